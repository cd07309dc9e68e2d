"""Operations whose second operand is a vector that repeats: which tiles take it as it is.

As PopLibs lib/popops/ElementWise.cpp (constructBroadcastBinaryOp) chooses on each tile. A vector
lies along the data, over and over (inner), or each of its elements goes with a row (outer); else it
is repeated in memory before the operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from simulator.codelets.elementwise import broadcast, broadcast_cycles
from simulator.codelets.elementwise import vertices as codelets
from simulator.codelets.elementwise.operation import Operation
from simulator.graph.geometry.intervals import among, cut, offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.types import HALF, BoolArray, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_ranges
from simulator.poplibs.popops.regions import (
    Operand,
    Regions,
    add_to_regions,
    in_memory_order,
    regions_of,
    split_among_workers,
)

COMMUTATIVE = ("ADD", "MULTIPLY")
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Work:
    """An operation on flat operands data, B and out, and the compute set that its vertices are in.

    In place the data are `out`. B repeats, and has as many elements as the others.
    """

    graph: Graph
    compute_set: ComputeSet
    kind: str
    operands: dict[str, Operand]
    in_place: bool

    @property
    def dtype(self) -> Type:
        """Return the type of the operands."""
        return self.operands["B"][1].dtype

    def vector(self) -> tuple[IntArray, IntArray]:
        """Return the intervals of B."""
        return self.operands["B"][1].intervals()


@dataclass(frozen=True, slots=True)
class Patterns:
    """Parts [low, high) of the operands along which a vector of some elements repeats, by tile."""

    low: IntArray
    high: IntArray
    tile: IntArray
    length: IntArray

    @property
    def blocks(self) -> IntArray:
        """Return how often each vector is there."""
        return (self.high - self.low) // self.length

    def where(self, mask: BoolArray) -> Patterns:
        """Return some of the patterns."""
        return Patterns(self.low[mask], self.high[mask], self.tile[mask], self.length[mask])


@dataclass(frozen=True, slots=True)
class Rows:
    """Parts [low, high) in rows of as many columns, which go with different elements of B."""

    low: IntArray
    high: IntArray
    tile: IntArray
    columns: IntArray
    different: IntArray

    def where(self, mask: BoolArray) -> Rows:
        """Return some of the parts."""
        return Rows(
            *(
                column[mask]
                for column in (self.low, self.high, self.tile, self.columns, self.different)
            )
        )


def add_with_vectors(
    graph: Graph,
    compute_set: ComputeSet,
    operation: Operation,
    vertices: codelets.ElementwiseVertices,
    operands: dict[str, Operand],
) -> None:
    """Add the vertices of a binary operation, by the kind of its second operand on each tile.

    Where operands can change places, the first may be the vector, as long as it is not replaced.
    """
    ordered = in_memory_order(operands, "out")
    regions = regions_of(graph, ordered["out"][1])
    in_place = "in1" not in ordered
    kind = operation.name
    for data, vector in (("in1", "in2"), ("in2", "in1")):
        swapped = data == "in2"
        if (swapped and (in_place or kind not in COMMUTATIVE)) or not len(regions.tile):
            continue
        if not ordered[vector][1].containsAliases():
            continue
        fields = {"B": ordered[vector], "out": ordered["out"]}
        if not in_place:
            fields["data"] = ordered[data]
        work = Work(graph, compute_set, kind, fields, in_place)
        if broadcast.has_inner(kind, work.dtype):
            regions = _add_inner(work, regions)
        if broadcast.has_outer(kind, work.dtype):
            regions = _add_outer(work, regions)
    add_to_regions(graph, compute_set, vertices, ordered, regions)


def _add_inner(work: Work, regions: Regions) -> Regions:
    """Add vertices on the tiles where a vector lies along the data; return the other regions."""
    patterns = _along(work, regions)
    handled = among(regions.tile, patterns.tile)
    first = np.flatnonzero(np.diff(regions.tile, prepend=-1))
    single = regions.tile[first[np.diff(first, append=len(regions.tile)) == 1]]
    # Patterns alike that follow one another are slices of one vertex; a tile has at most two.
    blocks, tile = patterns.blocks, patterns.tile
    mergeable = (work.kind != "DIVIDE" or work.dtype != HALF) | (patterns.length % 2 == 0)
    new = (np.diff(tile, prepend=-1) != 0) | (np.diff(blocks, prepend=-1) != 0) | ~mergeable
    heads = np.flatnonzero(new)
    tiles, counts = np.unique(tile[heads], return_counts=True)
    together = among(tile, tiles[counts <= 2]) & among(tile, single)
    _add_inner_1d(work, patterns.where(together), new[together])
    _add_inner_2d(work, patterns.where(~together))
    return regions.where(~handled)


def _add_inner_1d(work: Work, patterns: Patterns, new: BoolArray) -> None:
    """Add a vertex for each of the patterns that are new and those that follow it."""
    heads = np.flatnonzero(new)
    if not len(heads):
        return
    slices = np.diff(heads, append=len(new))
    length, blocks = patterns.length[heads], patterns.blocks[heads]
    cycles = broadcast_cycles.inner_1d(
        length, slices, blocks, work.kind, work.dtype, work.graph.target, work.in_place
    )
    vectors = cut_ranges(
        "B", "input", work.operands["B"][1], patterns.low, patterns.low + patterns.length, slices
    )
    last = heads + slices - 1
    codelet = broadcast.inner_1d(work.kind, work.dtype, work.in_place)
    ends = (patterns.low[heads], patterns.high[last])
    fields = {"B": vectors} | _data(work, *ends, np.ones_like(slices))
    _add(work, codelet, patterns.tile[heads], fields, {"length": length}, cycles)


def _add_inner_2d(work: Work, patterns: Patterns) -> None:
    """Add vertices that share the patterns of each tile, by whole blocks."""
    if not len(patterns.tile):
        return
    regions = Regions(patterns.low, patterns.high, patterns.tile)
    # A worker's part may not begin within a pattern of another length: all of a tile have one.
    pieces, ranges = split_among_workers(work.graph.target, regions, work.dtype, 1, patterns.length)
    of = np.searchsorted(offsets_of(patterns.high - patterns.low), _positions(pieces), "right") - 1
    length = patterns.length[of]
    blocks = (pieces.high - pieces.low) // length
    cycles = broadcast_cycles.inner_2d(length, blocks, ranges, work.kind, work.dtype, work.in_place)
    vectors = cut_ranges(
        "B", "input", work.operands["B"][1], pieces.low, pieces.low + length, ranges, as_rows=True
    )
    codelet = broadcast.inner_2d(work.kind, work.dtype, work.in_place)
    fields = {"B": vectors} | _data(work, pieces.low, pieces.high, ranges, as_rows=True)
    _add(work, codelet, pieces.tile[offsets_of(ranges)[:-1]], fields, {}, cycles)


def _positions(pieces: Regions) -> IntArray:
    """Return where each piece begins when all are laid end to end."""
    return offsets_of(pieces.high - pieces.low)[:-1]


def _along(work: Work, regions: Regions) -> Patterns:
    """Return the vectors that lie along the data, on the tiles that have no others."""
    begins, lengths, starts = cut(*work.vector(), regions.low, regions.high)
    sizes = regions.high - regions.low
    counts = np.diff(starts)
    positions = offsets_of(lengths)[:-1] - np.repeat(offsets_of(sizes)[:-1], counts)
    again = (begins == np.repeat(begins[starts[:-1]], counts)) & (positions > 0)
    period = np.minimum.reduceat(np.where(again, positions, NEVER), starts[:-1])
    first = np.flatnonzero(np.diff(regions.tile, prepend=-1))
    number = np.cumsum(np.diff(regions.tile, prepend=-1) != 0) - 1  # of the region's tile
    length = period[first][number]
    is_regular = (length < NEVER) & (sizes % length == 0)
    if work.kind != "DIVIDE":  # halves that are no whole vectors go faster one by one
        is_regular &= length % work.graph.target.getVectorWidth(work.dtype) == 0
    regular = np.logical_and.reduceat(is_regular, first)[number]
    patterns = _patterns(work, regions.where(regular), length[regular])
    once = patterns.tile[patterns.blocks == 1]
    return patterns.where(~among(patterns.tile, once))


def _patterns(work: Work, regions: Regions, length: IntArray) -> Patterns:
    """Cut regions into blocks of a length, and join blocks of the same elements of B."""
    if not len(length):
        return Patterns(regions.low, regions.high, regions.tile, length)
    counts = (regions.high - regions.low) // length
    size = np.repeat(length, counts)
    low = np.repeat(regions.low, counts) + spread(np.zeros_like(counts), counts) * size
    begins, lengths, starts = cut(*work.vector(), low, low + size)
    new = np.ones(len(low), dtype=bool)
    if len(low) > 1:
        pieces = np.diff(starts)
        before = np.maximum(np.arange(len(begins)) - np.repeat(pieces, pieces), 0)
        same = (begins == begins[before]) & (lengths == lengths[before])
        new = ~np.logical_and.reduceat(same, starts[:-1])
        new[1:] |= pieces[1:] != pieces[:-1]
    new[offsets_of(counts)[:-1]] = True
    heads = np.flatnonzero(new)
    high = low + size
    last = np.append(heads[1:], len(low)) - 1
    tile = np.repeat(regions.tile, counts)
    return Patterns(low[heads], high[last], tile[heads], size[heads])


def _add_outer(work: Work, regions: Regions) -> Regions:
    """Add vertices on the tiles whose rows have an element each; return the other regions."""
    rows = _rows(work, regions) if len(regions.tile) else None
    if rows is None:
        return regions
    width = work.graph.target.getVectorWidth(work.dtype)
    by_row, misaligned = _short(work, rows.columns), rows.columns % width != 0
    for short, odd in product((False, True), repeat=2):
        _add_outer_1d(work, rows.where((by_row == short) & (misaligned == odd)), short, odd)
    return regions.where(~among(regions.tile, rows.tile))


def _short(work: Work, columns: IntArray) -> BoolArray:
    """Return which rows are too short to be shared by workers."""
    target = work.graph.target
    return columns < target.workers * target.getVectorWidth(work.dtype)


def _add_outer_1d(work: Work, rows: Rows, by_row: bool, misaligned: bool) -> None:
    """Add a vertex for each part of rows."""
    if not len(rows.tile):
        return
    counts = (rows.high - rows.low) // rows.columns
    cycles = broadcast_cycles.outer_1d(
        rows.columns, counts, work.kind, work.dtype, work.graph.target
    )
    places = spread(np.zeros_like(counts), rows.different) * np.repeat(rows.columns, rows.different)
    low = np.repeat(rows.low, rows.different) + places
    vectors = cut_ranges("B", "input", work.operands["B"][1], low, low + 1, rows.different)
    codelet = broadcast.outer_1d(
        work.kind, work.dtype, work.in_place, by_row=by_row, misaligned=misaligned
    )
    fields = {"B": vectors} | _data(work, rows.low, rows.high, np.ones_like(counts))
    _add(work, codelet, rows.tile, fields, {"columns": rows.columns}, cycles)


def _rows(work: Work, regions: Regions) -> Rows | None:
    """Return regions that are rows of as many columns, on tiles with no others, one a worker."""
    begins, lengths, starts = cut(*work.vector(), regions.low, regions.high)
    sizes, number = regions.high - regions.low, np.cumsum(np.diff(regions.tile, prepend=-1) != 0)
    are_few = np.bincount(number)[number] <= work.graph.target.workers
    single = np.diff(starts) * 2 >= sizes  # an element at a time, but where rows meet
    mask = ~among(regions.tile, regions.tile[~(are_few & single)])
    if not mask.any():
        return None
    part, pieces = regions.where(mask), np.repeat(mask, np.diff(starts))
    elements = spread(begins[pieces], lengths[pieces])
    begin = offsets_of(sizes[mask])[:-1]
    new = np.ones(len(elements), dtype=bool)
    np.not_equal(elements[1:], elements[:-1], out=new[1:])
    new[begin] = True
    heads = np.flatnonzero(new)
    columns, first = np.diff(heads, append=len(elements)), np.searchsorted(heads, begin)
    counts = np.diff(first, append=len(heads))
    alike = columns == np.repeat(columns[first], counts)
    different, over_and_over = _cycle(elements[heads], first, counts)
    columns = columns[first]
    regular = (
        np.logical_and.reduceat(alike, first) & over_and_over & (columns > 1) & (different > 1)
    )
    short = _short(work, columns)
    mixed = among(part.tile, part.tile[short]) & among(part.tile, part.tile[~short])
    rows = Rows(part.low, part.high, part.tile, columns, different)
    return rows.where(~among(part.tile, part.tile[~regular | mixed]))


def _cycle(elements: IntArray, first: IntArray, counts: IntArray) -> tuple[IntArray, BoolArray]:
    """Return after how many elements each list of them begins anew, and whether it goes on so."""
    number = spread(np.zeros_like(counts), counts)
    again = (elements == np.repeat(elements[first], counts)) & (number > 0)
    period = np.minimum(np.minimum.reduceat(np.where(again, number, NEVER), first), counts)
    before = np.arange(len(elements)) - np.where(
        number < np.repeat(period, counts), 0, np.repeat(period, counts)
    )
    same = np.logical_and.reduceat(elements == elements[before], first)
    return period, same & (counts % period == 0)


def _data(
    work: Work, low: IntArray, high: IntArray, ranges: IntArray, *, as_rows: bool = False
) -> dict[str, Field]:
    """Cut the fields beside B."""
    return {
        name: cut_ranges(name, way, tensor, low, high, ranges, as_rows=as_rows)
        for name, (way, tensor) in work.operands.items()
        if name != "B"
    }


def _add(
    work: Work,
    codelet: Codelet,
    tile: IntArray,
    fields: dict[str, Field],
    parameters: dict[str, IntArray],
    cycles: IntArray,
) -> None:
    group = VertexGroup(work.compute_set.id, codelet, tile, fields, parameters, cycles)
    work.graph.add_vertices(group)
