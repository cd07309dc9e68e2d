"""Long columns of times in few bytes: what each is above a base that seldom changes.

Begins of one row ascend, so that their upper halves seldom change. How long all events before one
are together differs from its begin by the gaps between events, of which a device has few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pva import kernels
from pva.array_types import Values

LARGE = 1 << 20  # events; fewer take little as they are
BLOCK = 1 << 18  # events that are looked at at once
WORD = 64  # places
_UP_TO = (np.uint64(2) << np.arange(WORD, dtype=np.uint64)) - np.uint64(1)  # bits up to each


@dataclass(frozen=True, slots=True)
class Stepped:
    """Whole numbers of 64 bits: at each place a base, and what `above` has there or at its last.

    base     [change] ascending by place
    changes  [place // WORD] a bit for each place, set where a base begins, as at the first
    counted  [place // WORD] bits that are set before
    """

    above: Values | Stepped
    base: Values
    changes: Values
    counted: Values
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, places: Any) -> Any:
        if isinstance(places, slice):
            first, stop, step = places.indices(self.size)
            return self._between(first, max(stop, first))[::step]
        if kernels.compiled and isinstance(places, np.ndarray) and places.dtype == np.int64:
            numbers = self._raised(places.ravel())
            if numbers is not None:
                return numbers.reshape(places.shape)
        word = places >> 6
        bits = self.changes[word] & _UP_TO[places & (WORD - 1)]
        change = self.counted[word] + np.bitwise_count(bits) - 1
        return self.base[change] + self.above[np.minimum(places, len(self.above) - 1)]

    def _raised(self, places: Values) -> Values | None:
        """Return the numbers at places by the pass in C; None where one is no place."""
        above = None if isinstance(self.above, Stepped) else self.above
        numbers = np.empty(len(places), np.int64)
        if above is None:
            numbers = self.above[np.minimum(places, len(self.above) - 1)]
        column = above, self.base, self.changes, self.counted
        return None if kernels.compiled.raised(*column, places, numbers) is None else numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        numbers: Values = self[:]
        return numbers if dtype is None else numbers.astype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.base.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all parts; what it lies above may be a column by itself."""
        parts = self.base.nbytes + self.changes.nbytes + self.counted.nbytes
        return parts + (0 if isinstance(self.above, Stepped) else self.above.nbytes)

    def _between(self, first: int, stop: int) -> Values:
        """Return the numbers of places that follow each other."""
        if kernels.compiled:
            above = None if isinstance(self.above, Stepped) else self.above
            filled = np.empty(stop - first, np.int64)
            if above is None:
                part = self.above[first:stop]
                filled[: len(part)] = part
                filled[len(part) :] = self.above[len(self.above) - 1]
            column = above, self.base, self.changes, self.counted
            if kernels.compiled.stretched(*column, first, filled) is not None:
                return filled
        word = first // WORD
        bits = self.changes[word : -(-stop // WORD)].view(np.uint8)
        changes = np.flatnonzero(np.unpackbits(bits, bitorder="little")) + word * WORD
        before = int(self.counted[word]) + int(np.searchsorted(changes, first, side="right"))
        edges = changes[(changes > first) & (changes < stop)]
        count = np.diff(edges, prepend=first, append=stop)
        numbers: Values = np.repeat(self.base[before - 1 : before + len(edges)], count)
        part = self.above[first:stop]
        numbers[: len(part)] += part
        numbers[len(part) :] += self.above[len(self.above) - 1]
        return numbers


Column = Values | Stepped


def shortened(begin: Values, before: Values) -> tuple[Column, Column]:
    """Return the columns of a timeline in few bytes, short ones as they are."""
    if len(begin) < LARGE:
        return begin, before
    columns = stepped(begin, begin.astype(np.uint32)), stepped(before, before.astype(np.uint32))
    over = stepped(before, begin)
    if over.base.nbytes < before.nbytes // 2:
        over = Stepped(columns[0], over.base, over.changes, over.counted, over.size)
        return columns[0], over
    return columns


def stepped(numbers: Values, above: Values) -> Stepped:
    """Note what numbers are above others, whose last one is taken for all places behind it."""
    last = len(above) - 1
    changes = np.zeros(-(-(len(numbers) + 1) // WORD) * WORD, np.bool_)
    base, former = [], None
    for first in range(0, len(numbers), BLOCK):
        places = slice(first, first + BLOCK)
        part = numbers[places].copy()
        lower = above[places]
        part[: len(lower)] -= lower
        part[len(lower) :] -= above[last]
        changed = changes[first : first + len(part)]
        changed[0] = former is None or part[0] != former
        np.not_equal(part[1:], part[:-1], out=changed[1:])
        base.append(part[changed])
        former = part[-1]
    words = np.packbits(changes, bitorder="little").view(np.uint64)
    counts = np.bitwise_count(words)
    counted = (np.cumsum(counts) - counts).astype(np.uint32)
    return Stepped(above, np.concatenate(base), words, counted, len(numbers))


def first_from(column: Column, low: Values, high: Values, number: Values) -> Values:
    """Return the first places from `low` to `high` with what is not below a number.

    Between these the column ascends; `number` may have several of each.
    """
    low, high = (np.broadcast_to(edge, number.shape).astype(np.int64) for edge in (low, high))
    if kernels.compiled and isinstance(column, Stepped):
        places = low.ravel()
        parts = column.above, column.base, column.changes, column.counted
        if kernels.compiled.sought(*parts, high.ravel(), number.ravel(), places) is not None:
            return places.reshape(number.shape)
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        below = (low < high) & (column[np.minimum(middle, len(column) - 1)] < number)
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    return low
