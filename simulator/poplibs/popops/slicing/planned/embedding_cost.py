"""What planned slices and updates need on a tile, for many ways to split them at once.

As PopLibs planned in March 2021 (lib/popops/DynamicSlice.cpp at 8dcde1ec, embedding::plan): the
bytes that stay on the busiest tile, and the most that it needs for a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.slicing import UpdateKind
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.slicing.planned.slice_layout import INDICES_PER_TILE

OFFSET_BYTES = INSTRUCTION_BYTES = 4
KEPT_WEIGHT = 10  # what stays counts ten times as much as what is needed for a time


@dataclass(frozen=True, slots=True)
class Problem:
    """An embedding: `matrices` of `rows` and `columns`, and how many `offsets` look them up.

    `grain` columns stay together; parts of the offsets are added up in `partials`.
    """

    target: Target
    dtype: Type
    partials: Type
    matrices: int
    rows: int
    columns: int
    offsets: int
    grain: int
    update: UpdateKind


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Ways to split a problem; each array has one number for each of them."""

    lookup: IntArray
    sliced: IntArray
    unsliced: IntArray
    group: IntArray

    @property
    def tiles(self) -> IntArray:
        """Count the tiles that each way uses."""
        return self.lookup * self.sliced * self.unsliced * self.group


class Estimate:
    """The shares of a tile for each way to split a problem, and the bytes that they need."""

    def __init__(self, problem: Problem, splits: Splits) -> None:
        self.problem, self.splits = problem, splits
        self.matrices = ceil_div(problem.matrices, splits.group)
        rows = ceil_div(problem.rows, splits.sliced)
        grains = ceil_div(ceil_div(problem.columns, problem.grain), splits.unsliced)
        self.columns = grains * problem.grain
        self.offsets = ceil_div(problem.offsets, splits.lookup)
        # Where the rows are split, each tile takes part of the offsets to choose among their finds.
        self.chosen = ceil_div(self.offsets, splits.sliced)
        self.rows_split = splits.sliced > 1
        self.offsets_split = splits.lookup > 1
        self.base = rows * self.columns
        self.stored = ceil_div(rows * grains, splits.lookup) * problem.grain
        least = min(problem.offsets, INDICES_PER_TILE)
        self.held_offsets = max(least, ceil_div(problem.offsets, problem.target.num_tiles))

    def kept(self, updated: bool) -> IntArray:
        """Return the bytes that stay: of the matrix, slices, offsets and exchange code."""
        size, splits = self.problem.dtype.size, self.splits
        senders = ceil_div(self.offsets, self.held_offsets)
        parts = self.offsets_split * splits.lookup
        instructions = parts + 2 * senders + self.rows_split * splits.sliced
        instructions = instructions + updated * (senders + parts)
        rows_held = self.stored + self.chosen * self.columns
        bytes_of_matrix = rows_held * size + self.held_offsets * OFFSET_BYTES
        bytes_kept: IntArray = self.matrices * bytes_of_matrix + INSTRUCTION_BYTES * instructions
        return bytes_kept

    def slice(self) -> IntArray:
        """Return the most bytes that a slice needs for a time."""
        size = self.problem.dtype.size
        base = self.offsets_split * self.base * size
        first = self.rows_split * self.offsets * self.columns * size
        second = self.rows_split * self.splits.sliced * self.chosen * self.columns * size
        at_first = base + first + self.offsets * OFFSET_BYTES
        at_last = first + second + self.chosen * OFFSET_BYTES
        most: IntArray = self.matrices * np.maximum(at_first, at_last)
        return most

    def update(self) -> IntArray:
        """Return the most bytes that an update needs for a time."""
        partials = self.problem.partials
        cast = (partials != self.problem.dtype) * self.chosen * self.columns * partials.size
        arriving = self.rows_split * self.offsets * self.columns * partials.size
        sums = self.offsets_split * self.base * partials.size
        at_work = arriving + sums + self.offsets * OFFSET_BYTES
        most: IntArray = np.maximum(np.maximum(cast + arriving, at_work), 2 * sums)
        bytes_of_matrices: IntArray = self.matrices * most
        return bytes_of_matrices
