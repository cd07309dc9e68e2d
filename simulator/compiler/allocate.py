"""Compute the address of every piece of data on its tile, on all tiles at once.

Non-interleaved data fills the memory of a tile from address 0, interleaved data from the base of
the interleaved region; what fits in neither overflows above the end of the memory. Data that is
never live at the same time may share addresses: each variable lies on top of all that is live with
it. Code comes first and has its memory elements for itself, as an element serves one access a cycle
(idle tiles of the user guide's sample: 684 bytes of code, then 3,212 of data from 16,384 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from pva.progress import each
from simulator.graph import kernels
from simulator.graph.deferred import DeferredFields
from simulator.graph.geometry.intervals import ascending, spread
from simulator.graph.types import IntArray

ALIGNMENT = 8  # bytes: one 64-bit word, the width of the data path
ELEMENTS_APART = 2  # memory elements between which operands are held apart, above what always lives
INTERVALS_AT_ONCE = 256  # whose pairs are held in memory at a time
NON_INTERLEAVED, INTERLEAVED, OVERFLOWED = range(3)  # as in pva.schema.REGIONS


@dataclass(frozen=True, slots=True, eq=False)
class Allocation(DeferredFields):
    """Where each part of a piece lies: `address` in bytes from the tile's first byte, and `region`.

    `piece` numbers the pieces, in their order, and `bytes` are those of the part.
    """

    address: IntArray
    region: IntArray
    piece: IntArray
    bytes: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What needs room. A piece is all that one variable has on one tile; pieces by variable.

    variable, tile, bytes    of each piece, sorted by variable
    interleaved              by variable: wants the interleaved region
    is_code                  by variable: fills whole memory elements
    conflicts                by pair of variables: live at the same time
    apart                    pairs of variables that should lie in different memory elements
    divisible                by variable: may lie in two regions, if it fits in none; None: none may
    """

    variable: IntArray
    tile: IntArray
    bytes: IntArray
    interleaved: np.ndarray[tuple[int], np.dtype[np.bool_]]
    is_code: np.ndarray[tuple[int], np.dtype[np.bool_]]
    conflicts: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    apart: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    divisible: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None


def conflicts_of(
    always_live: np.ndarray[tuple[int], np.dtype[np.bool_]],
    variable: IntArray,
    begin: IntArray,
    end: IntArray,
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return which variables are live together, from half-open intervals of liveness steps."""
    together: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    together = always_live[:, None] | always_live[None, :]
    together[variable, variable] = True
    order = np.argsort(begin, kind="stable")
    variable, begin, end = variable[order], begin[order], end[order]
    # With each interval live those that begin after it and before its end.
    after = np.arange(1, len(order) + 1)
    counts = np.searchsorted(begin, end) - after
    for first in range(0, len(order), INTERVALS_AT_ONCE):
        batch = slice(first, first + INTERVALS_AT_ONCE)
        one = np.repeat(variable[batch], counts[batch])
        partner = variable[spread(after[batch], counts[batch])]
        together[one, partner] = together[partner, one] = True
    return together


def allocate(
    demand: Demand,
    tiles: int,
    bytes_per_tile: int,
    interleaved_base: int,
    element_bytes: int = ALIGNMENT,
) -> Allocation:
    """Find an address for every piece; code first, then what conflicts with most."""
    count = len(demand.interleaved)
    starts = np.searchsorted(demand.variable, np.arange(count + 1))
    unit = np.where(demand.is_code[demand.variable], element_bytes, ALIGNMENT)
    sizes = -(-demand.bytes // unit) * unit
    limits = (0, interleaved_base, bytes_per_tile, np.iinfo(np.int64).max)
    stacks = [_Stack.on(tiles, count, *ends) for ends in pairwise(limits)]
    address = np.zeros(len(demand.variable), dtype=np.int64)
    region = np.zeros(len(demand.variable), dtype=np.int64)
    with_all = np.logical_and.reduce(demand.conflicts, axis=1)
    apart = np.zeros(count, dtype=bool)  # what is placed and does not conflict with all
    partners = _partners(demand.apart)
    placed: dict[int, tuple[IntArray, ...]] = {}  # those of them: tile, address and size of pieces
    divided: list[tuple[IntArray, ...]] = []  # piece, bytes of its first part, address of the other
    for variable in each(_order(demand, sizes).tolist(), "placing variables"):
        piece = slice(starts[variable], starts[variable + 1])
        on, size = demand.tile[piece], sizes[piece]
        below = None if with_all[variable] else np.flatnonzero(demand.conflicts[variable] & apart)
        waiting = np.ones(len(on), dtype=bool)
        regions = (INTERLEAVED,) if demand.interleaved[variable] else (NON_INTERLEAVED, INTERLEAVED)
        for where in (*regions, OVERFLOWED):
            if where == OVERFLOWED and demand.divisible is not None and demand.divisible[variable]:
                rows = np.flatnonzero(waiting)
                division = _divide(
                    stacks, None if below is None else variable, below, on[rows], size[rows]
                )
                rows = rows[division[0]]
                address[piece.start + rows], waiting[rows] = division[2], False
                divided.append((piece.start + rows, division[1], division[3]))
            stack = stacks[where]
            base = stack.base_of(below, on)
            if where == NON_INTERLEAVED and below is not None and variable in partners:
                pieces = [placed[partner] for partner in partners[variable] if partner in placed]
                moved = _in_other_elements(base, size, on, stack.with_all, pieces, element_bytes)
                base = np.where(moved + size <= stack.limit, moved, base)
            fits = waiting & (base + size <= stack.limit)
            address[piece] = np.where(fits, base, address[piece])
            region[piece] = np.where(fits, where, region[piece])
            stack.put(None if below is None else variable, on[fits], (base + size)[fits])
            waiting &= ~fits
            if not waiting.any():
                break
        apart[variable] = not with_all[variable]
        if variable in partners:
            plain = region[piece] == NON_INTERLEAVED
            placed[variable] = on[plain], address[piece][plain], size[plain]
    return _in_parts(demand.bytes, address, region, divided)


def _divide(
    stacks: Sequence[_Stack],
    variable: int | None,
    below: IntArray | None,
    on: IntArray,
    size: IntArray,
) -> tuple[IntArray, ...]:
    """Fill what is left of the first region with pieces, and put their rest into the second.

    Returns which of them fit so, the bytes of their first parts, and the addresses of both parts.
    """
    first, second = stacks[NON_INTERLEAVED], stacks[INTERLEAVED]
    begin, rest_begin = first.base_of(below, on), second.base_of(below, on)
    room = np.maximum(first.limit - begin, 0) // ALIGNMENT * ALIGNMENT
    fit = np.flatnonzero((room > 0) & (room < size) & (rest_begin + size - room <= second.limit))
    on, room, begin, rest_begin = on[fit], room[fit], begin[fit], rest_begin[fit]
    first.put(variable, on, begin + room)
    second.put(variable, on, rest_begin + size[fit] - room)
    return fit, room, begin, rest_begin


def _in_parts(
    sizes: IntArray, address: IntArray, region: IntArray, divided: Sequence[tuple[IntArray, ...]]
) -> Allocation:
    """Put the second parts of pieces that are divided behind the first."""
    sizes, piece = sizes.copy(), np.arange(len(sizes), dtype=np.int64)
    if not divided:
        return Allocation(address, region, piece, sizes)
    source, room, tail_address = (np.concatenate(column) for column in zip(*divided, strict=True))
    rest_bytes = sizes[source] - room
    sizes[source] = room
    piece = np.concatenate([piece, source])
    order = np.argsort(piece, kind="stable")
    columns = (
        (address, tail_address),
        (region, np.full(len(tail_address), INTERLEAVED)),
        (sizes, rest_bytes),
    )
    where, which, length = (np.concatenate(column)[order] for column in columns)
    return Allocation(where, which, piece[order], length)


def _partners(pairs: IntArray) -> dict[int, list[int]]:
    """List for each variable those that should lie in other memory elements."""
    partners: dict[int, list[int]] = {}
    for one, partner in np.concatenate([pairs, pairs[:, ::-1]]).tolist():
        partners.setdefault(one, []).append(partner)
    return partners


def _in_other_elements(
    base: IntArray,
    size: IntArray,
    on: IntArray,
    always: IntArray,
    neighbours: Sequence[tuple[IntArray, ...]],
    element: int,
) -> IntArray:
    """Move pieces to the next memory element where they would share one with others.

    No further than the second boundary above what is always live, and as far as others are large:
    as data lies in stacks here, rules that follow one another would else leave a gap for each.
    """
    for tile, begin, length in neighbours:
        low, high = np.zeros((2, len(always)), dtype=np.int64)
        low[tile], high[tile] = begin // element, -(-(begin + length) // element)
        shared = (base // element < high[on]) & ((base + size - 1) // element >= low[on])
        large = np.zeros(len(always), dtype=np.int64)
        large[tile] = length // element
        near = high[on] <= always[on] // element + ELEMENTS_APART + large[on]
        base = np.where(shared & near, high[on] * element, base)
    return base


@dataclass(slots=True, eq=False)
class _Stack:
    """A region of all tiles: how far it is filled, by what conflicts with all and by the others.

    `ends` holds by variable, for those that do not conflict with all, where it ends on each of
    its tiles; elsewhere the region's base. `highest` is the furthest of these ends.
    """

    base: int
    limit: int
    count: int
    with_all: IntArray
    top: IntArray
    highest: IntArray
    ends: IntArray | None = None

    @classmethod
    def on(cls, tiles: int, count: int, base: int, limit: int) -> _Stack:
        """Make an empty one."""
        with_all, top, highest = np.full(tiles, base), np.full(tiles, base), np.full(count, base)
        return cls(base, limit, count, with_all, top, highest)

    def base_of(self, below: IntArray | None, on: IntArray) -> IntArray:
        """Return where a variable may begin on its tiles, above `below`; None: above everything."""
        if below is None:
            return self.top[on]
        if self.ends is None or not len(below):
            return self.with_all[on]
        base: IntArray = self.with_all[on]
        if kernels.compiled:
            order = np.argsort(-self.highest[below])
            rows, tops = below[order] * len(self.top), self.highest[below][order]
            ends = self.ends.reshape(-1)
            highest: IntArray = kernels.columns("highest", ends, rows, tops, on, base)[0]
            return highest
        result: IntArray = np.maximum(base, self.ends[np.ix_(below, on)].max(axis=0))
        return result

    def put(self, variable: int | None, on: IntArray, end: IntArray) -> None:
        """Note where a variable ends on tiles; None: one that conflicts with all."""
        self.top[on] = np.maximum(self.top[on], end)
        if variable is None:
            self.with_all[on] = np.maximum(self.with_all[on], end)
        elif len(on):
            if self.ends is None:
                self.ends = np.full((self.count, len(self.top)), self.base)
            self.ends[variable, on] = end
            self.highest[variable] = max(self.base, int(end.max()))


def _order(demand: Demand, sizes: IntArray) -> IntArray:
    """Order variables: code, then what most others have to stay clear of, then the largest."""
    count = len(demand.interleaved)
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, demand.variable, sizes)
    crowd = demand.conflicts.sum(axis=1)
    return np.lexsort((np.arange(count), -largest, -crowd, ~demand.is_code))


def shares_its_place(
    tile: IntArray, address: IntArray, length: IntArray
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return of each piece whether another one on its tile has an address in common with it."""
    order, begin, end = _sweep(tile, address, length)
    reached = np.maximum.accumulate(end)
    shared = np.zeros(len(order), dtype=bool)
    shared[1:] |= begin[1:] < reached[:-1]
    shared[:-1] |= begin[1:] < end[:-1]
    result = np.zeros(len(order), dtype=bool)
    result[order] = shared
    return result


def union_bytes(tile: IntArray, address: IntArray, length: IntArray, tiles: int) -> IntArray:
    """Count on each tile the bytes that at least one piece covers."""
    order, begin, end = _sweep(tile, address, length)
    before = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    new = np.maximum(end - np.maximum(begin, before), 0)
    return np.bincount(tile[order], weights=new, minlength=tiles).astype(np.int64)


def _sweep(
    tile: IntArray, address: IntArray, length: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Sort pieces by tile and address; give the order and begins and ends on one long axis."""
    stride = int((address + length).max(initial=0)) + 1
    order = ascending(tile * stride + address)
    begin = (tile * stride + address)[order]
    return order, begin, begin + length[order]
