"""How the fields of vertices meet the tile mapping: what is at hand, remote, or out of order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simulator.compiler.executable import BoolArray
from simulator.graph.graph import Graph
from simulator.graph.intervals import ascending, crossings, distinct, kinds, offsets_of
from simulator.graph.mapping import Mapping
from simulator.graph.types import IntArray
from simulator.graph.vertex import Field, VertexGroup


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The tile mapping with the place of each mapped piece inside its variable's part of a tile."""

    mapping: Mapping
    place: IntArray

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        """Lay the pieces of a variable on a tile one after another, in the order of the arena."""
        mapping = graph.mapping_table()
        # They are sorted by variable and begin already.
        order = ascending(mapping.variable * graph.target.num_tiles + mapping.tile)
        length = (mapping.end - mapping.begin)[order]
        before = np.cumsum(length) - length
        first = np.ones(len(order), dtype=bool)
        for column in (mapping.variable, mapping.tile):
            first[1:] &= column[order][1:] == column[order][:-1]
        first[1:] = ~first[1:]
        base = before[np.flatnonzero(first)]
        counts = np.diff(np.append(np.flatnonzero(first), len(order)))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = before - np.repeat(base, counts)
        return cls(mapping, place)


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """Pieces of memory that vertices touch: bytes [low, high) of the arena, each on one tile.

    `owner` is the tile that holds the piece, `user` the tile of the vertex. `remote` pieces are of
    an edge that lies in part or whole on other tiles: all of it goes through an exchange, which
    puts it into one row. `arranged` pieces are of an edge that is at hand but not in one row, so
    they are copied first (inputs) or last (outputs). `breaks` marks the begin of a row.
    """

    low: IntArray
    high: IntArray
    owner: IntArray
    user: IntArray
    variable: IntArray
    remote: BoolArray
    arranged: BoolArray
    breaks: BoolArray

    @property
    def bytes(self) -> IntArray:
        """Give the length of each piece."""
        return self.high - self.low

    def where(self, chosen: BoolArray | IntArray) -> Touch:
        """Keep the chosen pieces; given as indexes, in that order."""
        return Touch(*(getattr(self, name)[chosen] for name in Touch.__dataclass_fields__))


def join_touches(touches: Iterable[Touch]) -> Touch:
    """Put the pieces of several fields together."""
    parts = list(touches)
    if not parts:
        nothing, no = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        return Touch(nothing, nothing, nothing, nothing, nothing, no, no, no)
    return Touch(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in Touch.__dataclass_fields__
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """Byte intervals [begin, end) that edges take in, by tile of the vertex.

    `times` is how many edges of vertices on the same tile take in the same.
    """

    begin: IntArray
    end: IntArray
    edge: IntArray
    user: IntArray
    times: IntArray


def touch(layout: Layout, group: VertexGroup, item: Field) -> Touch:
    """Find the pieces of memory that a field of a group of vertices touches."""
    reach = _reach(group, item)
    found, times = _pieces(layout, reach)
    # What many edges bring to a tile comes once; but each arranges a copy of its own.
    several = np.where(found.arranged, times, 1)
    if (several > 1).any():
        found = found.where(np.repeat(np.arange(len(several)), several))
    return found


def _reach(group: VertexGroup, item: Field) -> _Reach:
    """List what the edges of a field take in, once a tile where an edge is one interval."""
    begins = item.begins * item.dtype.size
    ends = begins + item.lengths * item.dtype.size
    vertex = np.repeat(np.arange(len(group), dtype=np.int64), np.diff(item.starts))
    user = group.tile[vertex].astype(np.int64)
    once = np.ones(len(begins), dtype=np.int64)
    if item.rows is not None:
        return _Reach(begins, ends, _rows_of(item), user, once)
    if item.direction != "input" or len(begins) != len(group):
        return _Reach(begins, ends, vertex, user, once)
    chosen, times = distinct(user, begins, ends)
    return _Reach(begins[chosen], ends[chosen], vertex[: len(chosen)], user[chosen], times)


def _pieces(layout: Layout, reach: _Reach) -> tuple[Touch, IntArray]:
    """Cut intervals where the mapping changes; give the pieces and how often each is taken in."""
    mapping = layout.mapping
    interval, piece = crossings(reach.begin, reach.end, mapping.begin, mapping.end)
    low = np.maximum(reach.begin[interval], mapping.begin[piece])
    high = np.minimum(reach.end[interval], mapping.end[piece])
    edge, owner, user = reach.edge[interval], mapping.tile[piece], reach.user[interval]
    place = layout.place[piece] + low - mapping.begin[piece]
    variable = mapping.variable[piece]
    edges = int(edge.max(initial=-1)) + 1
    remote = (np.bincount(edge[owner != user], minlength=edges) > 0)[edge]
    follows = np.zeros(len(low), dtype=bool)
    in_row = (variable[1:] == variable[:-1]) & (place[1:] == (place + high - low)[:-1])
    follows[1:] = (edge[1:] == edge[:-1]) & (remote[1:] | in_row)
    rows = np.bincount(edge[~follows], minlength=edges)
    arranged = ~remote & (rows > 1)[edge]
    found = Touch(low, high, owner, user, variable, remote, arranged, ~follows)
    return found, reach.times[interval]


def _rows_of(item: Field) -> IntArray:
    """Give the edge of each interval of a VectorList."""
    assert item.rows is not None
    bounds = offsets_of(item.rows)
    first = offsets_of(item.lengths)[:-1]
    return np.searchsorted(bounds, first, side="right") - 1


def repeats(remote: Touch) -> BoolArray:
    """Tell the pieces of edges that take in a byte several times, as of a broadcast tensor.

    Such an edge has a row of its own, which holds the byte as often.
    """
    edge = np.cumsum(remote.breaks)
    stride = int(remote.high.max(initial=0)) + 1
    order = ascending(edge * stride + remote.low)
    begin, end = (edge * stride + remote.low)[order], (edge * stride + remote.high)[order]
    again = edge[order][1:][begin[1:] < np.maximum.accumulate(end)[:-1]]
    return np.isin(edge, again)


def union_by_tile(tile: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, ...]:
    """Join the byte ranges that a tile needs, so that each byte counts once; by tile and begin."""
    if len(tile) == 0:
        return tile, low, high
    stride = int(high.max()) + 1
    key = tile * stride + low
    order = np.argsort(key)
    begin, end = key[order], (tile * stride + high)[order]
    reached = np.maximum.accumulate(end)
    first = np.ones(len(order), dtype=bool)
    first[1:] = begin[1:] > reached[:-1]
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(order)) - 1
    owner = tile[order][heads]
    return owner, begin[heads] - owner * stride, reached[tails] - owner * stride


def sum_pairs(
    first: IntArray, second: IntArray, weight: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Add up weights by pairs; give the pairs, sorted, and their sums."""
    stride = int(second.max(initial=0)) + 1
    rows, row = kinds(first)
    pairs, which = kinds(row * stride + second)
    sums = np.bincount(which, weights=weight, minlength=len(pairs)).astype(np.int64)
    return rows[pairs // stride], pairs % stride, sums
