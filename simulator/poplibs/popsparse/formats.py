"""Sparse matrices on the host: by coordinates, by rows, by columns (SparseStorageFormats.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.types import Array, IntArray


class _Matrix:
    """Non-zero blocks, whose places are in elements; `(numRows, numColumns,)` may be left out."""

    def __init__(self, *arguments: Any, blockDimensions: Sequence[int] = (1, 1)) -> None:
        sized = len(arguments) > 1 and all(isinstance(a, int | np.integer) for a in arguments[:2])
        sizes, parts = (arguments[:2], arguments[2:]) if sized else ((0, 0), arguments)
        if not 3 <= len(parts) <= 4:
            raise poplibs_error(
                f"{type(self).__name__}: {len(arguments)} arguments; rows and columns or neither, "
                "values, column indices, row indices and perhaps the size of blocks are needed"
            )
        self.numRows, self.numColumns = (int(size) for size in sizes)
        self.nzValues = np.asarray(parts[0], dtype=np.float64).reshape(-1)
        self.columnIndices, self.rowIndices = (
            np.asarray(column, dtype=np.int64).reshape(-1) for column in parts[1:3]
        )
        block = parts[3] if len(parts) > 3 else blockDimensions
        self.blockDimensions = (int(block[0]), int(block[1]))

    def getNumRowsInBlock(self) -> int:
        return self.blockDimensions[0]

    def getNumColumnsInBlock(self) -> int:
        return self.blockDimensions[1]

    def getBlockSize(self) -> int:
        return self.blockDimensions[0] * self.blockDimensions[1]

    def getBlockDimensions(self) -> tuple[int, int]:
        return self.blockDimensions

    def coordinates(self) -> tuple[IntArray, IntArray, Array]:
        """Return block row, block column and values of each block, row by row."""
        rows, columns = self._pairs()
        height, width = self.blockDimensions
        if len(self.nzValues) != len(rows) * height * width or len(rows) != len(columns):
            raise poplibs_error(
                f"{type(self).__name__}: {len(self.nzValues)} values for {len(rows)} rows and "
                f"{len(columns)} columns of blocks of {height} x {width}"
            )
        if (rows % height).any() or (columns % width).any():
            raise poplibs_error(f"{type(self).__name__}: indices are no multiples of the blocks")
        order = np.lexsort((columns, rows))
        values = self.nzValues.reshape(-1, height, width)[order]
        return rows[order] // height, columns[order] // width, values

    def _pairs(self) -> tuple[IntArray, IntArray]:
        """Return row and column of each block."""
        raise NotImplementedError

    @classmethod
    def of(cls, shape: tuple[int, int], rows: IntArray, columns: IntArray, values: Array) -> Self:
        """Build a matrix of blocks given by block row and block column."""
        raise NotImplementedError


class COOMatrix(_Matrix):
    """A matrix by the row and the column of each block."""

    def _pairs(self) -> tuple[IntArray, IntArray]:
        return self.rowIndices, self.columnIndices

    @classmethod
    def of(cls, shape: tuple[int, int], rows: IntArray, columns: IntArray, values: Array) -> Self:
        height, width = values.shape[1:]
        places = (columns * width, rows * height, (height, width))
        return cls(*shape, values.reshape(-1), *places)


class CSRMatrix(_Matrix):
    """A matrix by rows: `rowIndices` are where the values of each row of blocks begin, and end."""

    def _pairs(self) -> tuple[IntArray, IntArray]:
        counts = np.diff(self.rowIndices) // self.getBlockSize()
        rows = np.repeat(np.arange(len(counts)), counts) * self.blockDimensions[0]
        return rows, self.columnIndices

    @classmethod
    def of(cls, shape: tuple[int, int], rows: IntArray, columns: IntArray, values: Array) -> Self:
        height, width = values.shape[1:]
        counts = np.bincount(rows, minlength=shape[0] // height)
        begins = np.concatenate([[0], np.cumsum(counts)]) * height * width
        return cls(*shape, values.reshape(-1), columns * width, begins, (height, width))


class CSCMatrix(_Matrix):
    """A matrix by columns: `columnIndices` are where the values of each begin, and end."""

    def _pairs(self) -> tuple[IntArray, IntArray]:
        counts = np.diff(self.columnIndices) // self.getBlockSize()
        columns = np.repeat(np.arange(len(counts)), counts) * self.blockDimensions[1]
        return self.rowIndices, columns

    @classmethod
    def of(cls, shape: tuple[int, int], rows: IntArray, columns: IntArray, values: Array) -> Self:
        height, width = values.shape[1:]
        order = np.lexsort((rows, columns))
        counts = np.bincount(columns, minlength=shape[1] // width)
        begins = np.concatenate([[0], np.cumsum(counts)]) * height * width
        return cls(*shape, values[order].reshape(-1), begins, rows[order] * height, (height, width))
