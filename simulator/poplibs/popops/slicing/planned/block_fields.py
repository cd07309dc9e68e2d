"""Fields of vertices that take blocks of rows and columns out of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph.geometry.intervals import cut, offsets_of, spread
from simulator.graph.geometry.strides import Loops, Strides, by_dimension, stepped
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.graph.vertices.vertex import Direction, Field


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What blocks of elements are made of: block b of the intervals [starts[b], starts[b + 1])."""

    graph: Arena
    dtype: Type
    begins: IntArray
    lengths: IntArray
    starts: IntArray

    def chosen(self, blocks: IntArray) -> Pieces:
        """Return some of the blocks, in their order; one may come several times."""
        counts = np.diff(self.starts)[blocks]
        pieces = spread(self.starts[blocks], counts)
        cut_out = (self.begins[pieces], self.lengths[pieces], offsets_of(counts))
        return Pieces(self.graph, self.dtype, *cut_out)

    def field(self, name: str, direction: Direction) -> Field:
        """Assign each vertex one block, as an edge."""
        edges = np.ones(len(self.starts) - 1, dtype=np.int64)
        return Field(
            self.graph, name, self.dtype, direction, self.begins, self.lengths, self.starts, edges
        )

    def rows_field(self, name: str, direction: Direction, edges: IntArray) -> Field:
        """Assign each vertex the next `edges[v]` blocks, each an edge of its own."""
        starts = self.starts[offsets_of(edges)]
        rows = np.diff(offsets_of(self.lengths)[self.starts])
        return Field(
            self.graph, name, self.dtype, direction, self.begins, self.lengths, starts, edges,
            rows=rows,
        )  # fmt: skip


def cut_blocks(tensor: Tensor, low: IntArray, high: IntArray, ranges: IntArray) -> Pieces:
    """Return block b the next `ranges[b]` of the position ranges [low, high) of a flat tensor.

    What follows one another in memory becomes one interval, but not across blocks.
    """
    begins, lengths, starts = cut(tensor.begins, tensor.lengths, low, high)
    pieces = Pieces(tensor.graph, tensor.dtype, begins, lengths, starts[offsets_of(ranges)])
    return joined(pieces)


def joined(pieces: Pieces) -> Pieces:
    """Join the intervals that follow one another inside a block."""
    begins, lengths, starts = pieces.begins, pieces.lengths, pieces.starts
    if len(begins) < 2:
        return pieces
    first = np.ones(len(begins), dtype=bool)
    np.not_equal(begins[1:], begins[:-1] + lengths[:-1], out=first[1:])
    first[starts[starts < len(begins)]] = True
    heads = np.flatnonzero(first)
    return Pieces(
        pieces.graph,
        pieces.dtype,
        begins[heads],
        np.add.reduceat(lengths, heads),
        np.searchsorted(heads, starts),
    )


def column_blocks(matrix: Tensor, low: IntArray, high: IntArray, ranges: IntArray) -> Pieces:
    """Return block b all rows of the next `ranges[b]` column ranges [low, high) of a matrix.

    A block is laid out row by row.
    """
    stacked = _stacked_columns(matrix)
    if stacked is not None and (ranges == 1).all():
        begins, widths = stacked
        bounds = offsets_of(widths)
        column = np.searchsorted(bounds, low, side="right") - 1
        if np.array_equal(bounds[column], low) and np.array_equal(bounds[column + 1], high):
            lengths = widths[column] * matrix.shape[0]
            every = np.arange(len(low) + 1, dtype=np.int64)
            return Pieces(matrix.graph, matrix.dtype, begins[column], lengths, every)
    rows, columns = matrix.shape
    counts = ranges * rows
    within = spread(np.zeros_like(counts), counts)
    of_block = np.repeat(ranges, counts)
    ranges_used = np.repeat(offsets_of(ranges)[:-1], counts) + within % of_block
    row = within // of_block * columns
    return cut_blocks(matrix, row + low[ranges_used], row + high[ranges_used], counts)


def _stacked_loops(first: int, rows: Loops, columns: Loops) -> tuple[IntArray, IntArray] | None:
    """Do what `_stacked_columns` does of a matrix of loops that come to no element twice."""
    begins, widths = stepped(first, columns).intervals()
    stacked = len(begins) > 1 and len(rows) == 1 and (widths == rows[0][1]).all()
    return (begins, widths) if stacked else None


def _stacked_columns(matrix: Tensor) -> tuple[IntArray, IntArray] | None:
    """Return begins and widths of groups of columns whose rows follow one another in memory.

    None when a matrix is not made of such groups. A matrix of many rows is made of very many
    intervals, which this looks through without making new ones.
    """
    rows, columns = matrix.shape
    if isinstance(matrix.places, Strides) and matrix.places.ascending() is not None:
        parts = by_dimension(matrix.places.loops, matrix.shape)
        if parts is not None:
            return _stacked_loops(matrix.places.first, *parts)
    groups, remainder = divmod(len(matrix.begins), max(rows, 1))
    if remainder or not groups or rows < 2:
        return None
    widths, begins = matrix.lengths[:groups], matrix.begins[:groups]
    if int(widths.sum()) != columns:
        return None
    if (matrix.lengths.reshape(rows, groups) != widths).any():
        return None
    follows = matrix.begins[groups:] - matrix.begins[:-groups]
    if (follows.reshape(rows - 1, groups) != widths).any():
        return None
    return begins, widths
