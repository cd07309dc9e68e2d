"""A matrix laid out block after block, so that each tile's block lies together in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph.types import IntArray


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix cut at row and column bounds; blocks go row of blocks by row, each row-major."""

    row_bounds: IntArray
    column_bounds: IntArray

    def heights(self) -> IntArray:
        """Give the rows of each row of blocks."""
        return np.diff(self.row_bounds)

    def widths(self) -> IntArray:
        """Give the columns of each column of blocks."""
        return np.diff(self.column_bounds)

    def starts(self) -> IntArray:
        """Give where block [i][j] starts in the blocked order."""
        columns = int(self.column_bounds[-1])
        across = self.heights()[:, None] * self.column_bounds[None, :-1]
        return self.row_bounds[:-1, None] * columns + across

    def positions(self) -> IntArray:
        """Give the place of element [row][column] in the blocked order."""
        block_row = np.repeat(np.arange(len(self.row_bounds) - 1), self.heights())
        block_column = np.repeat(np.arange(len(self.column_bounds) - 1), self.widths())
        local_row = np.arange(self.row_bounds[-1]) - self.row_bounds[block_row]
        local_column = np.arange(self.column_bounds[-1]) - self.column_bounds[block_column]
        starts = self.starts()[block_row[:, None], block_column[None, :]]
        width = self.widths()[block_column][None, :]
        places: IntArray = starts + local_row[:, None] * width + local_column[None, :]
        return places

    def in_order(self) -> IntArray:
        """List the row-major numbers of the elements in the blocked order."""
        places = self.positions().reshape(-1)
        order = np.empty(len(places), dtype=np.int64)
        order[places] = np.arange(len(places))
        return order
