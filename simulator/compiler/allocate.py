"""Compute the address of every piece of data on its tile, on all tiles at once.

Non-interleaved data fills the memory of a tile from address 0, interleaved data from the base of
the interleaved region; what fits in neither overflows above the end of the memory. The regions are
one memory, so that a message that fills the first goes on in the second. Data that is never live at
the same time may share addresses: each variable lies on top of all that is live with it. Code comes
first and has its memory elements for itself, as an element serves one access a cycle (idle tiles of
the user guide's sample: 684 bytes of code, then 3,212 of data from 16,384 on).
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
from simulator.graph.types import BoolArray, IntArray

ALIGNMENT = 8  # bytes: one 64-bit word, the width of the data path
ELEMENTS_APART = 2  # memory elements between which operands are held apart, above what always lives
SEARCHED = 64  # variables below another, at most, between which a gap is looked for: it takes long
BANKS = 2  # memory elements that serve as one where they are interleaved
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
    messages                 by variable: may lie in two regions; None: none may
    lasting                  by variable: has a value from run to run; None: none has
    """

    variable: IntArray
    tile: IntArray
    bytes: IntArray
    interleaved: np.ndarray[tuple[int], np.dtype[np.bool_]]
    is_code: np.ndarray[tuple[int], np.dtype[np.bool_]]
    conflicts: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    apart: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    messages: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
    lasting: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None


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
    """Assign an address to every piece, in the order of `_order`."""
    count = len(demand.interleaved)
    unit = np.where(demand.is_code[demand.variable], element_bytes, ALIGNMENT)
    sizes = -(-demand.bytes // unit) * unit
    limits = (0, interleaved_base, bytes_per_tile, np.iinfo(np.int64).max)
    memory = _Memory(
        stacks=[_Stack.on(tiles, count, *ends) for ends in pairwise(limits)],
        tile=demand.tile,
        size=sizes.copy(),
        starts=np.searchsorted(demand.variable, np.arange(count + 1)),
        address=np.zeros(len(sizes), dtype=np.int64),
        region=np.zeros(len(sizes), dtype=np.int64),
        partners=_partners(demand.apart),
        element=element_bytes,
    )
    with_all = np.logical_and.reduce(demand.conflicts, axis=1)
    apart = np.zeros(count, dtype=bool)  # what is placed and does not conflict with all
    messages = np.zeros(count, dtype=bool) if demand.messages is None else demand.messages
    for variable in each(_order(demand, sizes).tolist(), "placing variables"):
        below = None if with_all[variable] else np.flatnonzero(demand.conflicts[variable] & apart)
        piece = slice(memory.starts[variable], memory.starts[variable + 1])
        is_wanted = bool(demand.interleaved[variable]), bool(messages[variable])
        memory.place(
            _Wanted(variable, piece.start, demand.tile[piece], sizes[piece], below, *is_wanted)
        )
        apart[variable] = not with_all[variable]
    return _in_parts(demand.bytes, memory.address, memory.region, memory.divided)


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """The pieces of a variable: the first one's number, tiles, sizes, and what is not to share.

    `below` are the variables that are placed, live at the same time and do not conflict with all;
    None: this one conflicts with all.
    """

    variable: int
    first: int
    on: IntArray
    size: IntArray
    below: IntArray | None
    interleaved: bool
    message: bool


@dataclass(slots=True, eq=False)
class _Memory:
    """Where pieces lie, by piece: `address` and `region`.

    `starts` are the first pieces of variables, `size` what pieces take of the first region.
    `divided` lists pieces, the bytes of their first parts and the addresses of the others; `placed`
    by variable and region the tiles, begins and sizes of those that have partners; `raised` by
    variable the tiles on which it leaves a gap below.
    """

    stacks: Sequence[_Stack]
    tile: IntArray
    size: IntArray
    starts: IntArray
    address: IntArray
    region: IntArray
    partners: dict[int, list[int]]
    element: int
    divided: list[tuple[IntArray, ...]] = field(default_factory=list)
    placed: dict[tuple[int, int], list[tuple[IntArray, ...]]] = field(default_factory=dict)
    raised: dict[int, BoolArray] = field(default_factory=dict)

    def place(self, wanted: _Wanted) -> None:
        """Place a variable in the first regions that have room, or above them all."""
        waiting = np.arange(len(wanted.on))
        regions = (INTERLEAVED,) if wanted.interleaved else (NON_INTERLEAVED, INTERLEAVED)
        for where in (*regions, OVERFLOWED):
            stack, on, size = self.stacks[where], wanted.on[waiting], wanted.size[waiting]
            base = stack.base_of(wanted.below, on)
            if where == NON_INTERLEAVED:
                base = self._lower(wanted, base, on, size)
            elif wanted.interleaved and where == INTERLEAVED:
                moved = _in_other_elements(
                    base, size, on, stack, self._near(wanted, where), BANKS * self.element
                )
                base = np.where(moved + size <= stack.limit, moved, base)
            fits = base + size <= stack.limit
            self._note(wanted, where, waiting[fits], base[fits])
            waiting, base = waiting[~fits], base[~fits]
            if where == NON_INTERLEAVED and wanted.message and len(waiting):
                waiting = self._divide(wanted, waiting, base)
            if not len(waiting):
                return

    def _near(self, wanted: _Wanted, where: int) -> list[tuple[IntArray, ...]]:
        """List the pieces in a region from which a variable should lie apart."""
        partners = self.partners.get(wanted.variable, ())
        return [row for partner in partners for row in self.placed.get((partner, where), ())]

    def _lower(self, wanted: _Wanted, top: IntArray, on: IntArray, size: IntArray) -> IntArray:
        """Return the first gap where there is one, and where a piece does not fit on top.

        A message that has none begins in the next element, and ends in the next region.
        """
        stack, near = self.stacks[NON_INTERLEAVED], self._near(wanted, NON_INTERLEAVED)
        away = _in_other_elements(top, size, on, stack, near, self.element)
        moved = away != top
        if moved.any():
            self.raised[wanted.variable] = np.zeros(len(stack.top), dtype=bool)
            self.raised[wanted.variable][on[moved]] = True
        settled = away if wanted.message else np.where(away + size <= stack.limit, away, top)
        if wanted.below is None or len(wanted.below) > SEARCHED:
            return settled
        wide = moved | (top + size > stack.limit)
        for variable in self.raised.keys() & set(wanted.below.tolist()):
            wide |= self.raised[variable][on]
        rows = np.flatnonzero(wide)
        if not len(rows):
            return settled
        taken = [self._taken(wanted.below), *(self._elements(*row) for row in near)]
        gap = first_gaps(on[rows], size[rows], stack.with_all[on[rows]], stack.limit, taken)
        settled[rows] = np.where(gap + size[rows] <= stack.limit, gap, settled[rows])
        return settled

    def _taken(self, variables: IntArray) -> tuple[IntArray, ...]:
        """List the tiles, begins and ends of the pieces of variables in the first region."""
        ends, base = self.stacks[NON_INTERLEAVED].ends, self.stacks[NON_INTERLEAVED].base
        if ends is None or not len(variables):
            return tuple(np.zeros((3, 0), dtype=np.int64))
        counts = (self.starts[1:] - self.starts[:-1])[variables]
        piece, variable = spread(self.starts[variables], counts), np.repeat(variables, counts)
        tile = self.tile[piece]
        end = ends[variable, tile]
        inside = end > base
        return tile[inside], (end - self.size[piece])[inside], end[inside]

    def _elements(self, tile: IntArray, begin: IntArray, size: IntArray) -> tuple[IntArray, ...]:
        """Widen pieces to the memory elements that they touch, where they are to be apart."""
        high = -(-(begin + size) // self.element)
        near = _is_near(high, size, self.stacks[NON_INTERLEAVED], tile, self.element)
        tile, begin, high = tile[near], begin[near], high[near]
        return tile, begin // self.element * self.element, high * self.element

    def _note(self, wanted: _Wanted, where: int, rows: IntArray, base: IntArray) -> None:
        """Put the pieces `rows` of a variable into a region."""
        self.address[wanted.first + rows], self.region[wanted.first + rows] = base, where
        self._fill(wanted, where, wanted.on[rows], base, wanted.size[rows])

    def _fill(
        self, wanted: _Wanted, where: int, on: IntArray, base: IntArray, size: IntArray
    ) -> None:
        """Note that parts of a variable take room in a region."""
        owner = None if wanted.below is None else wanted.variable
        self.stacks[where].put(owner, on, base + size)
        if wanted.variable in self.partners and where != OVERFLOWED and len(on):
            self.placed.setdefault((wanted.variable, where), []).append((on, base, size))

    def _divide(self, wanted: _Wanted, rows: IntArray, begin: IntArray) -> IntArray:
        """Fill what is left of the first region with a message, and put its rest into the second.

        Returns the pieces that do not fit so.
        """
        first, second = self.stacks[NON_INTERLEAVED], self.stacks[INTERLEAVED]
        on, size = wanted.on[rows], wanted.size[rows]
        room = (first.limit - begin) // ALIGNMENT * ALIGNMENT
        rest_begin = second.base_of(wanted.below, on)
        fit = (room > 0) & (rest_begin + size - room <= second.limit)
        on, size, begin, room, rest_begin = (x[fit] for x in (on, size, begin, room, rest_begin))
        piece = wanted.first + rows[fit]
        self.address[piece], self.region[piece], self.size[piece] = begin, NON_INTERLEAVED, room
        self._fill(wanted, NON_INTERLEAVED, on, begin, room)
        self._fill(wanted, INTERLEAVED, on, rest_begin, size - room)
        self.divided.append((piece, room, rest_begin))
        return rows[~fit]


def first_gaps(
    on: IntArray,
    size: IntArray,
    floor: IntArray,
    limit: int,
    taken: Sequence[tuple[IntArray, ...]],
) -> IntArray:
    """Return on each of the tiles `on` the first address from `floor` with `size` free bytes.

    `taken` are tiles, begins and ends of what is there; above it all is free.
    """
    place = np.full(int(on.max()) + 1, -1)
    place[on] = np.arange(len(on))
    tile, begin, end = (np.concatenate(column) for column in zip(*taken, strict=True))
    known = tile < len(place)
    tile, begin, end = tile[known], begin[known], end[known]
    which = place[tile]
    mine = which >= 0
    # All tiles on one axis, each with a mark at its floor and one above all that is there.
    span = 2 * max(limit, int(end.max(initial=0)), int(floor.max())) + int(size.max()) + 1
    tiles = np.arange(len(on))
    shift = span * np.concatenate([tiles, which[mine], tiles])
    begins = shift + np.concatenate([floor * 0, begin[mine], np.full(len(on), span - 1)])
    ends = shift + np.concatenate([floor, end[mine], np.full(len(on), span - 1)])
    order = ascending(begins)
    reached = np.maximum.accumulate(ends[order])
    number = shift[order] // span
    gap = begins[order][1:] - reached[:-1]
    fits = np.flatnonzero((number[1:] == number[:-1]) & (gap >= size[number[1:]]))
    first = fits[np.searchsorted(number[1:][fits], tiles)]
    result: IntArray = reached[first] - span * tiles
    return result


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
    stack: _Stack,
    neighbours: Sequence[tuple[IntArray, ...]],
    element: int,
) -> IntArray:
    """Move pieces to the next memory element where they would share one with others.

    No further than the second boundary above what is always live, and as far as others are large:
    as data lies in stacks here, rules that follow one another would else leave a gap for each.
    """
    if not neighbours:
        return base
    base = base - stack.base
    for tile, begin, length in neighbours:
        low, high = np.zeros((2, len(stack.top)), dtype=np.int64)
        begin = begin - stack.base
        low[tile], high[tile] = begin // element, -(-(begin + length) // element)
        shared = (base // element < high[on]) & ((base + size - 1) // element >= low[on])
        large = np.zeros(len(stack.top), dtype=np.int64)
        large[tile] = length
        near = _is_near(high[on], large[on], stack, on, element)
        base = np.where(shared & near, high[on] * element, base)
    return base + stack.base


def _is_near(
    high: IntArray, size: IntArray, stack: _Stack, tile: IntArray, element: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether elements up to `high` are near enough to the always-live ones of the tiles."""
    always = (stack.with_all[tile] - stack.base) // element
    near: np.ndarray[tuple[int], np.dtype[np.bool_]]
    near = high <= always + ELEMENTS_APART + size // element
    return near


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
            self.highest[variable] = max(self.highest[variable], int(end.max()))


def _order(demand: Demand, sizes: IntArray) -> IntArray:
    """Order variables: code, what lasts, messages, what is interleaved, the rest.

    Among them what most others have to stay clear of comes first, then the largest.
    """
    count = len(demand.interleaved)
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, demand.variable, sizes)
    crowd = demand.conflicts.sum(axis=1)
    kinds = (demand.is_code, demand.lasting, demand.messages, demand.interleaved)
    rank = np.full(count, len(kinds))
    for number, members in reversed(list(enumerate(kinds))):
        if members is not None:
            rank[members] = number
    return np.lexsort((np.arange(count), -largest, -crowd, rank))


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
