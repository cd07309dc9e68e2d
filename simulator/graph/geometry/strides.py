"""Places in steps: the elements of a view as nested loops over the arena, without listing them.

A view that slices, transposes, reshapes or repeats part of a variable is a few loops, however many
elements it has. Most views are of this kind; what it costs to make one does not grow with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from simulator.graph.geometry.intervals import join, uniform
from simulator.graph.types import IntArray

Loop: TypeAlias = tuple[int, int]  # how often, and how many elements from one to the next
Loops: TypeAlias = tuple[Loop, ...]
FEW = 1 << 10  # intervals: so many are kept, as they are asked for again


class Strides(NamedTuple):
    """Element `first` of the arena and those that the loops, the outermost first, lead to.

    No loop runs once, and none could be one with the next: a view has one form. One that runs
    never is the only one.
    """

    first: int
    loops: Loops

    def reach(self) -> tuple[int, int]:
        """Return how many intervals there are, and how many elements each has before any join."""
        counts = [count for count, _ in self.loops]
        if self.loops and self.loops[-1][1] == 1:
            return prod(counts[:-1]), counts[-1]
        return prod(counts), 1

    def extent(self) -> tuple[int, int]:
        """Return the lowest of the elements and the end of the highest; there is one at least."""
        reaches = [(times - 1) * step for times, step in self.loops]
        low = sum(reach for reach in reaches if reach < 0)
        return self.first + low, self.first + sum(reaches) - low + 1

    def intervals(self) -> tuple[IntArray, IntArray]:
        """Return begins and lengths of the elements' intervals, the fewest that there are."""
        count, length = self.reach()
        if not count * length:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        outer = self.loops[:-1] if length > 1 else self.loops
        begins = np.full(1, self.first, dtype=np.int64)
        span = length  # from the first element to the end of all that lie within a loop
        meets = False
        for times, step in reversed(outer):
            begins = (np.arange(times, dtype=np.int64)[:, None] * step + begins).reshape(-1)
            meets |= step == span
            span += (times - 1) * step
        lengths = uniform(length, count)
        return join(begins, lengths) if meets else (begins, lengths)

    def at(self, positions: IntArray) -> IntArray:
        """Return the elements at positions in their order."""
        elements, quotients = np.full_like(positions, self.first), positions
        for times, step in reversed(self.loops):
            elements += quotients % times * step
            quotients = quotients // times
        return elements

    def nested(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return intervals, and how often and at which steps loops around them go, outermost first.

        The loops around are as many as leave few intervals, but none where intervals join.
        """
        outer, span, meets = len(self.loops), 1, False
        for place in reversed(range(len(self.loops))):
            times, step = self.loops[place]
            meets |= step == span and span > 1
            span += (times - 1) * step
            outer = place if Strides(0, self.loops[place:]).reach()[0] <= FEW else outer
        around = () if meets else self.loops[:outer]
        inner = Strides(self.first, self.loops[len(around) :])
        counts, steps = np.array(around, dtype=np.int64).reshape(-1, 2).T.copy()
        return *intervals_of(inner), counts, steps

    def ascending(self) -> Strides | None:
        """Return the same elements in the order of the arena; None unless loops tell that order."""
        loops = tuple(sorted(self.loops, key=lambda loop: -loop[1]))
        span = 1
        for times, step in reversed(loops):
            if step < span:
                return None
            span += (times - 1) * step
        return stepped(self.first, loops)

    def repeats(self) -> bool | None:
        """Return whether an element comes twice; None where the loops alone do not tell it."""
        if any(step == 0 and times > 1 for times, step in self.loops):
            return True
        return False if self.ascending() is not None else None

    def packed(self, first: int) -> Strides:
        """Return places in the same order from an element on, without what lies between."""
        inward = sorted(range(len(self.loops)), key=lambda number: self.loops[number][1])
        steps, step = {}, 1
        for number in inward:
            steps[number] = step
            step *= self.loops[number][0]
        loops = [(times, steps[number]) for number, (times, _) in enumerate(self.loops)]
        return stepped(first, loops)


def stepped(first: int, loops: Sequence[Loop]) -> Strides:
    """Make the one form of these loops."""
    merged: list[Loop] = []
    for times, step in loops:
        if times == 0:
            return Strides(first, ((0, 0),))
        if times == 1:
            continue
        if merged and merged[-1][1] == times * step:
            merged[-1] = merged[-1][0] * times, step
        else:
            merged.append((times, step))
    return Strides(first, tuple(merged))


def listed(begins: IntArray, lengths: IntArray) -> Strides | tuple[IntArray, IntArray]:
    """Return one interval as a loop; more of them as they are."""
    if len(begins) == 1:
        return stepped(int(begins[0]), [(int(lengths[0]), 1)])
    return begins, lengths


def intervals_of(places: Strides) -> tuple[IntArray, IntArray]:
    """Return the intervals of places, those kept that are few or the last; they are not changed."""
    return (_kept_few if places.reach()[0] <= FEW else _kept_last)(places)


def _fixed(places: Strides) -> tuple[IntArray, IntArray]:
    begins, lengths = places.intervals()
    begins.flags.writeable = lengths.flags.writeable = False
    return begins, lengths


_kept_few = lru_cache(FEW)(_fixed)
_kept_last = lru_cache(1)(_fixed)


def by_dimension(loops: Loops, shape: Sequence[int]) -> list[Loops] | None:
    """Share the loops out to the dimensions of a shape; None where one crosses their borders."""
    if 0 in shape:
        return None
    pending, parts = list(loops), []
    for size in reversed(shape):
        part: list[Loop] = []
        while size > 1:
            times, step = pending.pop()
            if size % times == 0:
                part.append((times, step))
                size //= times
            elif times % size == 0:
                part.append((size, step))
                pending.append((times // size, size * step))
                size = 1
            else:
                return None
        parts.append(tuple(part[::-1]))
    return parts[::-1]


def between(loops: Loops, begin: int, end: int) -> tuple[int, Loops] | None:
    """Take the turns [begin, end) of one dimension's loops: the shift, and the loops that stay.

    None where these are no loops.
    """
    if end <= begin:
        return 0, ((0, 0),)
    if not loops:
        return 0, ()
    (_, step), inner = loops[0], loops[1:]
    size = prod(times for times, _ in inner)
    first, last = begin // size, (end - 1) // size
    if first == last and inner:
        within = between(inner, begin - first * size, end - first * size)
        return None if within is None else (within[0] + first * step, within[1])
    if begin % size or end % size:
        return None
    return first * step, ((last - first + 1, step), *inner)


def sliced(
    places: Strides, shape: Sequence[int], axis: int, begin: int, end: int
) -> Strides | None:
    """Take [begin, end) of a dimension; None where that is no form of loops."""
    parts = by_dimension(places.loops, shape)
    cut = None if parts is None else between(parts[axis], begin, end)
    if parts is None or cut is None:
        return None
    return _joined(places.first + cut[0], [*parts[:axis], cut[1], *parts[axis + 1 :]])


def shuffled(places: Strides, shape: Sequence[int], order: Sequence[int]) -> Strides | None:
    """Put dimension order[i] in place i."""
    parts = by_dimension(places.loops, shape)
    return None if parts is None else _joined(places.first, [parts[axis] for axis in order])


def repeated(places: Strides, shape: Sequence[int], axis: int, times: int) -> Strides | None:
    """Repeat what a dimension and those behind it hold."""
    parts = by_dimension(places.loops, shape)
    if parts is None:
        return None
    return _joined(places.first, [*parts[:axis], ((times, 0),), *parts[axis:]])


def along(places: object, leading: object) -> Strides | None:
    """Return places in the order in which the leading ones go up in the arena.

    None where either are no loops, or the order is not that of loops over both.
    """
    if not isinstance(places, Strides) or not isinstance(leading, Strides):
        return None
    counts = [times for times, _ in leading.loops]
    parts = by_dimension(places.loops, counts)
    if leading.ascending() is None or parts is None:
        return None
    upward = sorted(range(len(counts)), key=lambda number: -leading.loops[number][1])
    return _joined(places.first, [parts[number] for number in upward])


def _joined(first: int, parts: Sequence[Loops]) -> Strides:
    return stepped(first, [loop for part in parts for loop in part])
