"""Which tile holds which bytes of the arena."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import TypeAlias

import numpy as np

from simulator.graph.deferred import DeferredFields
from simulator.graph.geometry.intervals import (
    as_int64,
    ascending,
    crossings,
    offsets_of,
    present,
    spread,
)
from simulator.graph.types import IntArray

TileIntervals = Sequence[Sequence[tuple[int, int]]]  # the parts [begin, end) on each tile


@dataclass(frozen=True, slots=True, eq=False)
class Mapping(DeferredFields):
    """Disjoint mapped pieces [begin, end) of the arena in bytes, sorted by begin."""

    begin: IntArray
    end: IntArray
    tile: IntArray
    variable: IntArray

    def pieces(
        self, begins: IntArray, ends: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Cut byte intervals where the tile changes.

        Gives the source interval, begin, end and tile of each piece, in the order of the intervals;
        unmapped bytes are left out.
        """
        source, piece = crossings(begins, ends, self.begin, self.end)
        low = np.maximum(begins[source], self.begin[piece])
        high = np.minimum(ends[source], self.end[piece])
        return source, low, high, self.tile[piece]

    def covered(self, begins: IntArray, ends: IntArray) -> IntArray:
        """Count the mapped bytes of each byte interval."""
        below = offsets_of(self.end - self.begin)

        def mapped_before(byte: IntArray) -> IntArray:
            piece = np.searchsorted(self.begin, byte, side="right")
            last = np.maximum(piece - 1, 0)
            beyond = np.maximum(self.end[last] - byte, 0) if len(self.end) else 0
            inside: IntArray = below[piece] - np.where(piece > 0, beyond, 0)
            return inside

        return mapped_before(ends) - mapped_before(begins)


Pieces: TypeAlias = tuple[IntArray, IntArray, IntArray]  # begin, end and tile of each


def listed_pieces(
    parts: Iterable[Iterable[tuple[int, int]]],
) -> tuple[IntArray, IntArray, IntArray]:
    """Return begin, end and tile of the parts that a list holds for each tile.

    Raises TypeError or ValueError for anything else.
    """
    pieces = [
        (index(low), index(high), tile)
        for tile, intervals in enumerate(parts)
        for low, high in intervals
    ]
    low, high, tiles = as_int64(pieces).reshape(-1, 3).T.copy()
    return low, high, tiles


def _empty() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class MappingTable(DeferredFields):
    """Collects mappings; a later one of the same bytes replaces an earlier one.

    What has been settled is kept by variable, so that a program that asks for the mapping of each
    new variable does not go through all the others.
    """

    _waiting: list[Pieces] = field(default_factory=list)
    _single: list[tuple[int, int, int]] = field(default_factory=list)
    _settled: dict[int, Pieces] = field(default_factory=dict)
    version: int = 0

    def add(self, begins: IntArray, ends: IntArray, tiles: IntArray) -> None:
        """Map byte intervals to tiles."""
        if len(begins):
            self._keep_single()
            self._waiting.append((begins, ends, tiles))
            self.version += 1

    def add_one(self, begin: int, end: int, tile: int) -> None:
        """Map one byte interval to a tile: cheap, as programs map the data of each vertex."""
        self._single.append((begin, end, tile))
        self.version += 1

    def _keep_single(self) -> None:
        """Put the intervals that came one by one where the others wait, in their order."""
        if self._single:
            begins, ends, tiles = np.array(self._single, dtype=np.int64).T.copy()
            self._waiting.append((begins, ends, tiles))
            self._single.clear()

    def settled(
        self, bounds: tuple[IntArray, IntArray], variables: Iterable[int] | None = None
    ) -> Mapping:
        """Return all mapped pieces of variables (of all, when none are named).

        `bounds` are the first and last byte of every variable of the graph.
        """
        self._keep_single()
        if self._waiting:
            self._settle(*bounds)
        numbers = sorted(self._settled if variables is None else self._settled.keys() & variables)
        rows = [self._settled[number] for number in numbers]
        begin, end, tile = _concatenated(rows)
        counts = [len(row[0]) for row in rows]
        return Mapping(begin, end, tile, np.repeat(as_int64(numbers), counts))

    def _settle(self, first_byte: IntArray, last_byte: IntArray) -> None:
        """Lay what waits over what is settled of the same variables."""
        begins, ends, tiles = _concatenated(self._waiting)
        self._waiting.clear()
        piece, variable = crossings(begins, ends, first_byte, last_byte)
        low = np.maximum(begins[piece], first_byte[variable])
        high = np.minimum(ends[piece], last_byte[variable])
        touched = present(variable)
        before = [self._settled[n] for n in touched.tolist() if n in self._settled]
        nonempty = high > low
        now = last_wins(
            *_concatenated([*before, (low[nonempty], high[nonempty], tiles[piece][nonempty])])
        )
        # Variables that follow one another on a tile have been joined: cut them again.
        piece, place = crossings(now[0], now[1], first_byte[touched], last_byte[touched])
        low = np.maximum(now[0][piece], first_byte[touched][place])
        high = np.minimum(now[1][piece], last_byte[touched][place])
        heads = np.searchsorted(place, np.arange(len(touched) + 1)).tolist()
        for number, begin, end in zip(touched.tolist(), heads[:-1], heads[1:], strict=True):
            rows = slice(begin, end)
            self._settled[number] = (low[rows], high[rows], now[2][piece[rows]])


def _concatenated(rows: list[Pieces]) -> Pieces:
    if not rows:
        return _empty(), _empty(), _empty()
    begins, ends, tiles = (np.concatenate(column) for column in zip(*rows, strict=True))
    return begins, ends, tiles


def last_wins(
    begins: IntArray, ends: IntArray, tiles: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Lay intervals over one another in their order; give the visible pieces, joined by tile."""
    if not len(begins):
        return begins, ends, tiles
    order = ascending(begins)
    if (begins[order][1:] < ends[order][:-1]).any():
        begins, ends, tiles = _visible(begins, ends, tiles)
    else:
        begins, ends, tiles = begins[order], ends[order], tiles[order]
    first = np.ones(len(begins), dtype=bool)
    first[1:] = (begins[1:] != ends[:-1]) | (tiles[1:] != tiles[:-1])
    heads = np.flatnonzero(first)
    return begins[heads], ends[np.append(heads[1:], len(begins)) - 1], tiles[heads]


def _visible(
    begins: IntArray, ends: IntArray, tiles: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut at every boundary and keep the last interval over each part."""
    bounds = present(np.concatenate([begins, ends]))
    low, high = np.searchsorted(bounds, begins), np.searchsorted(bounds, ends)
    owner = np.full(len(bounds) - 1, -1, dtype=np.int64)
    # NumPy assigns repeated indexes in order, so the last interval stays.
    owner[spread(low, high - low)] = np.repeat(as_int64(np.arange(len(begins))), high - low)
    covered = np.flatnonzero(owner >= 0)
    return bounds[covered], bounds[covered + 1], tiles[owner[covered]]
