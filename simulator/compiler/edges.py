"""How the fields of vertices meet the tile mapping: what is at hand, remote, or out of order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.graph import kernels
from simulator.graph.geometry.intervals import (
    ascending,
    crossings,
    distinct,
    kinds,
    offsets_of,
    present,
    sorted_runs,
    uniform,
)
from simulator.graph.graph import Graph
from simulator.graph.mapping import Mapping
from simulator.graph.types import BoolArray, IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup

Arrays = tuple[IntArray, ...]
# An edge of fragments of fewer bytes is received in the order of the senders' memory.
SHORT_FRAGMENT = 8


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The tile mapping with the home of each mapped piece: bytes of one row follow one another.

    A variable's pieces on a tile lie in one row, in the order of the arena. Between the rows is a
    gap of a byte, so that what follows is of the same variable and tile.
    """

    mapping: Mapping
    home: IntArray

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        """Lay out the rows of a graph's variables."""
        mapping = graph.mapping_table()
        part = mapping.variable * graph.target.num_tiles + mapping.tile
        order = ascending(part)  # they are sorted by variable and begin already
        length = (mapping.end - mapping.begin)[order]
        gap = np.ones(len(order), dtype=bool)
        gap[1:] = part[order][1:] != part[order][:-1]
        home = np.empty(len(order), dtype=np.int64)
        home[order] = np.cumsum(length) - length + np.cumsum(gap)
        return cls(mapping, home)


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """Pieces of memory that vertices touch: bytes [low, high) of the arena, each on one tile.

    `owner` is the tile that holds the piece, `user` the tile of the vertex, `home` where the piece
    begins in the layout. `remote` pieces are of an edge that lies in part or
    whole on other tiles. `arranged` pieces are of an edge that is put into one row by a copy on the
    tile, before (inputs) or after (outputs): one that is at hand but not in one row, and a remote
    one that comes in fewer fragments in the order of the senders' memory. An exchange puts the
    other remote edges into one row. `breaks` marks the begin of a row.
    """

    low: IntArray
    high: IntArray
    owner: IntArray
    user: IntArray
    variable: IntArray
    home: IntArray
    remote: BoolArray
    breaks: BoolArray
    arranged: BoolArray

    @property
    def bytes(self) -> IntArray:
        """Return the length of each piece."""
        return self.high - self.low

    def where(self, selection: BoolArray | IntArray) -> Touch:
        """Keep the chosen pieces; given as indexes, in that order."""
        if selection.dtype == np.bool_:
            selection = np.flatnonzero(selection)
            if len(selection) == len(self.low):
                return self
        return Touch(*(getattr(self, name).take(selection) for name in Touch.__dataclass_fields__))


def join_touches(parts: list[Touch]) -> Touch:
    """Put the pieces of several fields together; they leave the list, so that none is double."""
    if len(parts) == 1:
        return parts.pop()
    if not parts:
        nothing, no = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        return Touch(nothing, nothing, nothing, nothing, nothing, nothing, no, no, no)
    names = Touch.__dataclass_fields__
    columns = [[getattr(part, name) for part in parts] for name in reversed(names)]
    parts.clear()
    return Touch(*(np.concatenate(columns.pop()) for _ in names))


@dataclass(frozen=True, slots=True, eq=False)
class Brought:
    """What vertices take in: bytes [low, high) that come to tile `user` as they are, and the rest.

    `arranged` are the pieces that are put into one row, `direct` the variables of what is at hand
    in one row. What comes as it is may be listed in part or whole more than once.
    """

    arranged: Touch
    user: IntArray
    low: IntArray
    high: IntArray
    direct: IntArray


def join_brought(parts: Sequence[Brought]) -> Brought:
    """Put what several fields bring together."""
    if len(parts) == 1:
        return parts[0]
    names = ("user", "low", "high", "direct")
    columns = [
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
        for name in names
    ]
    return Brought(join_touches([part.arranged for part in parts]), *columns)


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
    """Return the pieces of memory that a field of a group of vertices touches."""
    return _touch(layout, _reach(group, item))


def brought(layout: Layout, group: VertexGroup, item: Field) -> Brought:
    """Return the bytes that a field of a group of vertices receives, and their sources."""
    return _brought(layout, _reach(group, item))


def _brought(layout: Layout, reach: _Reach) -> Brought:
    if not kernels.compiled:
        return brought_by(_touch(layout, reach))
    columns = kernels.columns("brought", *_columns(layout, reach), flags=2)
    arranged = [*columns[4:], np.ones(len(columns[-1]), dtype=bool)]
    return Brought(Touch(*arranged), *columns[:4])


def brought_by(found: Touch) -> Brought:
    """Sort out what pieces that vertices touch bring to their tiles."""
    here = np.flatnonzero(found.remote & ~found.arranged)
    user, low, high = (column.take(here) for column in (found.user, found.low, found.high))
    direct = present(found.variable[~found.remote & ~found.arranged])
    return Brought(found.where(found.arranged), user, low, high, direct)


def _touch(layout: Layout, reach: _Reach) -> Touch:
    found, times = _pieces(layout, reach)
    # What many edges bring to a tile comes once; but each arranges a copy of its own.
    if found.arranged.any() and (times[found.arranged] > 1).any():
        several = np.where(found.arranged, times, 1)
        found = found.where(np.repeat(np.arange(len(several)), several))
    return found


def _reach(group: VertexGroup, item: Field) -> _Reach:
    """List what the edges of a field take in, once a tile where an edge is one interval."""
    begins = item.begins * item.dtype.size
    ends = begins + item.lengths * item.dtype.size
    intervals = item.starts[1:] - item.starts[:-1]
    vertex = np.repeat(np.arange(len(group), dtype=np.int64), intervals)
    user = group.tile[vertex].astype(np.int64, copy=False)
    once = uniform(1, len(begins))
    if item.apart:
        return _edges_apart(group, item)
    if item.rows is not None:
        return _Reach(begins, ends, _rows_of(item), user, once)
    if item.direction != "input" or len(begins) != len(group):
        return _Reach(begins, ends, vertex, user, once)
    firsts, times = distinct(user, begins, ends)
    return _Reach(begins[firsts], ends[firsts], vertex[: len(firsts)], user[firsts], times)


def _edges_apart(group: VertexGroup, item: Field) -> _Reach:
    """Cut what vertices take in into their edges, which are even shares of it."""
    bounds = offsets_of(item.lengths)
    first = bounds[item.starts]
    vertex = np.repeat(np.arange(len(group), dtype=np.int64), item.edges)
    place = np.arange(len(vertex), dtype=np.int64) - offsets_of(item.edges)[vertex]
    cut = first[vertex] + place * np.diff(first)[vertex] // item.edges[vertex]
    start = present(np.concatenate([bounds[:-1][item.lengths > 0], cut]))
    start = start[start < bounds[-1]]
    interval = np.searchsorted(bounds, start, side="right") - 1
    begins = item.begins[interval] + start - bounds[interval]
    lengths = np.diff(np.append(start, bounds[-1]))
    edge = np.searchsorted(cut, start, side="right") - 1
    user, size = group.tile[vertex[edge]].astype(np.int64), item.dtype.size
    once = uniform(1, len(start))
    return _Reach(begins * size, (begins + lengths) * size, edge, user, once)


def _pieces(layout: Layout, reach: _Reach) -> tuple[Touch, IntArray]:
    """Cut intervals where the mapping changes; give the pieces and how often each is taken in."""
    mapping = layout.mapping
    if kernels.compiled:
        return _compiled_pieces(layout, reach)
    interval, piece = crossings(reach.begin, reach.end, mapping.begin, mapping.end)
    low = np.maximum(reach.begin[interval], mapping.begin[piece])
    high = np.minimum(reach.end[interval], mapping.end[piece])
    edge, owner, user = reach.edge[interval], mapping.tile[piece], reach.user[interval]
    home = layout.home[piece] + low - mapping.begin[piece]
    variable = mapping.variable[piece]
    edges = int(edge.max(initial=-1)) + 1
    remote = (np.bincount(edge[owner != user], minlength=edges) > 0)[edge]
    same = edge[1:] == edge[:-1]
    in_row = np.zeros(len(low), dtype=bool)
    in_row[1:] = same & (home[1:] == (home + high - low)[:-1])
    rows = np.bincount(edge[~in_row], minlength=edges)
    # In an edge that goes up in the senders' memory no byte comes again, and no fragments join.
    falls = same & (home[1:] < (home + high - low)[:-1])
    falling = (np.bincount(edge[1:][falls], minlength=edges) > 0)[edge] & remote
    candidates = np.flatnonzero(falling)
    scattered = _scattered(
        edge[candidates], home[candidates], (high - low)[candidates], ~in_row[candidates]
    )
    arranged = (rows > 1)[edge] & ~remote
    arranged[candidates] = scattered
    first = np.ones(len(low), dtype=bool)
    first[1:] = ~same
    breaks = np.where(remote & ~arranged, first, ~in_row)
    pieces = Touch(low, high, owner, user, variable, home, remote, breaks, arranged)
    return pieces, reach.times[interval]


def _compiled_pieces(layout: Layout, reach: _Reach) -> tuple[Touch, IntArray]:
    columns = kernels.columns("touch", *_columns(layout, reach), flags=3)
    return Touch(*columns[:6], *columns[7:]), columns[6]


def _columns(layout: Layout, reach: _Reach) -> Arrays:
    """Return what the kernels take."""
    mapping = layout.mapping
    taken = (reach.begin, reach.end, reach.edge, reach.user, reach.times)
    return *taken, mapping.begin, mapping.end, mapping.tile, mapping.variable, layout.home


def _scattered(edge: IntArray, home: IntArray, size: IntArray, breaks: BoolArray) -> BoolArray:
    """Return the pieces of edges that arrive in the order of the senders' memory, then are copied.

    They take in a byte several times, as those of a broadcast tensor, or they are of short
    fragments of which senders hold two or more in one row: our estimate of a rule not published.
    """
    _, edge = kinds(edge)
    fragment = edge[breaks]
    fragments = np.bincount(fragment)
    fragment_bytes = np.bincount(np.cumsum(breaks) - 1, weights=size) if len(size) else size
    short = np.bincount(fragment[fragment_bytes < SHORT_FRAGMENT], minlength=len(fragments)) > 0
    order, begin, reached = in_order_of_senders(edge, home, size)
    runs = np.bincount(edge[order][begin > reached], minlength=len(fragments))
    again = np.bincount(edge[order][begin < reached], minlength=len(fragments)) > 0
    result: BoolArray = (again | short & (2 * runs <= fragments))[edge]
    return result


def in_order_of_senders(receiver: IntArray, home: IntArray, size: IntArray) -> Arrays:
    """Sort what each receiver gets by where senders hold it.

    Returns the order, where each piece in it begins, and how far those before it reach: less where
    a run of a sender's memory begins, more where a byte comes again.
    """
    stride = int((home + size).max(initial=0)) + 1
    begin = receiver * stride + home
    order = ascending(begin)
    begin, end = begin[order], (begin + size)[order]
    reached = np.full(len(order), -1, dtype=np.int64)
    reached[1:] = np.maximum.accumulate(end)[:-1]
    return order, begin, reached


def fragments_of_senders(remote: Touch) -> Arrays:
    """Join what tiles receive to runs of the senders' memory; each byte comes once to a tile.

    Returns the variable, owner and user of each run, where it begins in the arena, and its bytes.
    """
    if kernels.compiled:
        end = remote.home + remote.bytes
        _, begin, end, first = kernels.columns("united", remote.user, remote.home, end)
        columns = remote.variable, remote.owner, remote.user, remote.low
        variable, owner, user, low = (column.take(first) for column in columns)
        return variable, owner, user, low, end - begin
    order, begin, reached = in_order_of_senders(remote.user, remote.home, remote.bytes)
    heads = np.flatnonzero(begin > reached)
    first = order[heads]
    end = np.maximum.accumulate(begin + remote.bytes[order])
    size = end[np.append(heads[1:], len(order))[: len(heads)] - 1] - begin[heads]
    return remote.variable[first], remote.owner[first], remote.user[first], remote.low[first], size


def _rows_of(item: Field) -> IntArray:
    """Return the edge of each interval of a VectorList."""
    assert item.rows is not None
    bounds = offsets_of(item.rows)
    first = offsets_of(item.lengths)[:-1]
    return np.searchsorted(bounds, first, side="right") - 1


def union_by_tile(tile: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, ...]:
    """Join the byte ranges that a tile needs, so that each byte counts once; by tile and begin."""
    if len(tile) == 0:
        return tile, low, high
    if kernels.compiled:
        owner, begin, end, _ = kernels.columns("united", tile, low, high)
        return owner, begin, end
    stride = int(high.max()) + 1
    # Behind the k-th end, where no more than k have begun, none goes on: each is sorted by itself.
    begin, end = sorted_runs(tile * stride + low), sorted_runs(tile * stride + high)
    first = np.ones(len(begin), dtype=bool)
    np.greater(begin[1:], end[:-1], out=first[1:])
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(begin)) - 1
    owner = begin[heads] // stride
    return owner, begin[heads] - owner * stride, end[tails] - owner * stride


def sum_pairs(
    first: IntArray, second: IntArray, weight: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Add up weights by pairs; give the pairs, sorted, and their sums."""
    if kernels.compiled and (columns := kernels.columns("summed", first, second, weight)):
        first, second, sums = columns
        return first, second, sums
    stride = int(second.max(initial=0)) + 1
    rows, row = kinds(first)
    pairs, which = kinds(row * stride + second)
    sums = np.bincount(which, weights=weight, minlength=len(pairs)).astype(np.int64)
    return rows[pairs // stride], pairs % stride, sums
