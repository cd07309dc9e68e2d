"""Any window of a timeline in few rectangles, whatever the number of events below them.

A timeline is rows of events; in a row none overlaps the next. Time is cut into cells of 2**level
units. At a level an event at least a cell long stands alone, and the shorter ones that begin in one
cell of one row stand together as one rectangle: they follow each other, as after a long one nothing
begins in its cell. Rectangles of more than `SMALL` events are worked out once, level by level
(pva/analysis/pyramid.py); those of fewer are put together when a window asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]

SMALL = 16  # events that are put together on demand
MAX_RECTANGLES = 3000  # an answer
MAX_EVENTS = 5_000  # looked at for an answer, beside the rectangles worked out before
MAX_ROWS = 400  # an answer


@dataclass(frozen=True, slots=True)
class Level:
    """The rectangles of more than SMALL events at one level, in the order of their events.

    `first` is its first event, `covered` counts the events in rectangles before each (one entry
    more than there are rectangles), so that its own follow from the next; `label` has the largest
    share of the time, `label_time`,
    and `kind` has the largest share among the kinds.
    """

    first: Integers
    covered: Integers
    label: Integers
    label_time: Integers
    kind: Integers

    def stop(self, places: Integers) -> Integers:
        """Give one event behind the last of rectangles."""
        count = self.covered[places + 1] - self.covered[places]
        stop: Integers = self.first[places].astype(np.int64) + count
        return stop


_LEVEL_ARRAYS = ("first", "covered", "label", "label_time", "kind")


@dataclass(frozen=True, slots=True)
class Tracks:
    """All rows of a timeline, one behind the other, and their levels.

    begin    [event] when it begins
    before   [event + 1] how long all events before it are together
    label    [event]
    kind     [label] what its colour stands for, such as a type of step or a channel
    offset   [row + 1] first event of the row
    levels   [level]
    """

    begin: Integers
    before: Integers
    label: Integers
    kind: Integers
    offset: Integers
    levels: tuple[Level, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        parts = [self.begin, self.before, self.label, self.kind, self.offset]
        parts += [getattr(level, name) for level in self.levels for name in _LEVEL_ARRAYS]
        return sum(part.nbytes for part in parts)

    @property
    def rows(self) -> int:
        """Count the rows."""
        return len(self.offset) - 1

    @property
    def extent(self) -> tuple[int, int]:
        """Give where the first event begins and the last one ends; (0, 1) without any."""
        filled = np.flatnonzero(np.diff(self.offset))
        if not len(filled):
            return 0, 1
        begin = int(self.begin[self.offset[filled]].min())
        end = int(self.ends(self.offset[filled + 1] - 1).max())
        return begin, max(end, begin + 1)

    def ends(self, events: Integers) -> Integers:
        """Give when events end."""
        found: Integers = self.begin[events] + self.before[events + 1] - self.before[events]
        return found

    def touching(self, row: int, begin: int, end: int) -> tuple[int, int]:
        """Give the events of a row that touch a window: first, and one behind the last."""
        low, high = int(self.offset[row]), int(self.offset[row + 1])
        begins = self.begin[low:high]
        if end <= begin:
            return low, low
        first, stop = begins.searchsorted((begin, end)).tolist()
        if first and int(self.ends(np.array([low + first - 1]))[0]) > begin:
            first -= 1
        return low + first, low + max(first, stop)

    def spans(self, row: int, begin: int, end: int) -> tuple[Integers, Integers, Integers]:
        """Give begin, end and label of the events that touch a window, cut to it."""
        events = np.arange(*self.touching(row, begin, end))
        begins, ends = self.begin[events], self.ends(events)
        return np.maximum(begins, begin), np.minimum(ends, end), self.label[events]

    def busy(self, row: int, times: Integers) -> Integers:
        """Give how long the events of a row are together before each of these times."""
        low, high = int(self.offset[row]), int(self.offset[row + 1])
        if low == high:
            return np.zeros(len(times), dtype=np.int64)
        stop = low + np.searchsorted(self.begin[low:high], times, side="right")
        last = np.maximum(stop - 1, low)
        beyond = np.where(stop > low, np.maximum(self.ends(last) - times, 0), 0)
        time: Integers = self.before[stop] - self.before[low] - beyond
        return time


@dataclass(frozen=True, slots=True)
class Rectangles:
    """What to draw, by row and begin: `count` events from `event` on stand together in each.

    `time` is how long they are together, `label_time` how long those of `label` are, the label with
    the largest share (of two alike the one with the lower number); `kind` has the largest share
    among the kinds.
    """

    row: Integers
    begin: Integers
    end: Integers
    event: Integers
    count: Integers
    label: Integers
    time: Integers
    label_time: Integers
    kind: Integers


def viewport(
    tracks: Tracks,
    begin: int,
    end: int,
    pixels: int,
    rows: Integers | None = None,
    limit: int = MAX_RECTANGLES,
) -> Rectangles:
    """Give the rectangles of rows that touch the window, at most `limit` of them.

    A cell is at most a pixel at first; a row that has too many rectangles gets wider cells, the
    first rows last. Rows beyond MAX_ROWS, or beyond the limit itself, are left out.
    """
    chosen = np.arange(tracks.rows) if rows is None else rows
    chosen = chosen[: min(MAX_ROWS, limit)]
    ranges = [tracks.touching(row, begin, end) for row in chosen.tolist()]
    pairs = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    filled = pairs[:, 1] > pairs[:, 0]
    window = _Window(tracks, chosen[filled], pairs[filled, 0], pairs[filled, 1])
    finest = _level_of(max((end - begin) // max(pixels, 1), 1))
    return window.rectangles(min(finest, len(tracks.levels) - 1), limit)


def _level_of(width: int) -> int:
    """Give the level whose cells are at most so wide."""
    return max(width.bit_length() - 1, 0)


class _Window:
    """The events of rows that a window touches, and the rectangles that they make."""

    def __init__(self, tracks: Tracks, rows: Integers, first: Integers, stop: Integers) -> None:
        self.tracks, self.rows, self.first, self.stop = tracks, rows, first, stop

    def rectangles(self, finest: int, limit: int) -> Rectangles:
        """Find for each row a level at which all rows together fit, and put them together."""
        levels = self._levels(finest, limit)
        columns = self._all(levels, np.ones(len(levels), dtype=np.bool_))
        counts = self._counted(columns)
        top = len(self.tracks.levels) - 1
        while counts.sum() > limit and (levels < top).any():
            over = counts / _ceiling(counts, limit)
            wider = np.ceil(np.log2(np.maximum(over, 1))).astype(np.int64)
            changed = (wider > 0) & (levels < top)
            levels = np.minimum(levels + wider, top)
            columns = self._again(columns, levels, changed)
            counts = self._counted(columns)
        # A level finer is about twice as much: the first rows that have room for it get one.
        more = (levels > finest) & (
            np.cumsum(np.where(levels > finest, counts, 0)) < limit - counts.sum()
        )
        if more.any():
            finer = self._again(columns, levels - more, more)
            columns = finer if len(finer[0]) <= limit else columns
        order = np.lexsort((columns[1], columns[0]))[:limit]
        place, first, stop, *of_group = (column[order] for column in columns)
        return self._drawn(place, first, stop, *of_group)

    def _counted(self, columns: list[Integers]) -> Integers:
        return np.bincount(columns[0], minlength=len(self.rows))

    def _all(self, levels: Integers, chosen: npt.NDArray[np.bool_]) -> list[Integers]:
        """Put the rectangles of the chosen rows together, each row at its level."""
        parts = [
            self._at(level, chosen & (levels == level))
            for level in np.unique(levels[chosen]).tolist()
        ]
        return [_joined([part[number] for part in parts]) for number in range(6)]

    def _again(
        self, columns: list[Integers], levels: Integers, changed: npt.NDArray[np.bool_]
    ) -> list[Integers]:
        """Put the rectangles of the changed rows together anew."""
        kept, fresh = ~changed[columns[0]], self._all(levels, changed)
        return [np.concatenate((old[kept], new)) for old, new in zip(columns, fresh, strict=True)]

    def _drawn(
        self, place: Integers, first: Integers, stop: Integers, *of_group: Integers
    ) -> Rectangles:
        tracks = self.tracks
        return Rectangles(
            row=self.rows[place],
            begin=tracks.begin[first],
            end=tracks.ends(stop - 1) if len(stop) else first,
            event=first,
            count=stop - first,
            label=of_group[0],
            time=tracks.before[stop] - tracks.before[first],
            label_time=of_group[1],
            kind=of_group[2],
        )

    def _levels(self, finest: int, limit: int) -> Integers:
        """Give each row the finest level that is not too much to look at."""
        levels = np.full(len(self.rows), len(self.tracks.levels) - 1)
        todo = np.ones(len(self.rows), dtype=np.bool_)
        most: tuple[int, int] | None = None
        for level in range(finest, len(self.tracks.levels)):
            known = self.tracks.levels[level]
            low, high = self._known(level, slice(None))
            covered = known.covered[high].astype(np.int64) - known.covered[low]
            looked = self.stop - self.first - covered
            most = most or (_ceiling(high - low, limit), _ceiling(looked, MAX_EVENTS))
            fits = todo & (high - low <= most[0]) & (looked <= most[1])
            levels[fits] = level
            todo &= ~fits
            if not todo.any():
                break
        return levels

    def _known(self, level: int, chosen: Any) -> tuple[Integers, Integers]:
        """Give the known rectangles that rows touch: the first, and one behind the last."""
        known = self.tracks.levels[level]
        # Of two types NumPy would copy the longer array to one of both.
        first, stop = (events[chosen].astype(np.uint32) for events in (self.first, self.stop))
        before = np.maximum(known.first.searchsorted(first, side="right") - 1, 0)
        if not len(known.first):
            return before, before
        low = before + (known.stop(before) <= first)
        high = known.first.searchsorted(stop, side="left")
        return low, np.maximum(high, low)

    def _cells(self, level: int, chosen: Any) -> tuple[Integers, Integers]:
        """Give the events of the cells that rows touch: the first, and one behind the last."""
        rows, offset = self.rows[chosen], self.tracks.offset
        first = self._cell_edge(self.first[chosen], level, offset[rows], -1)
        last = self._cell_edge(self.stop[chosen] - 1, level, offset[rows + 1] - 1, 1)
        return first, last + 1

    def _cell_edge(self, event: Integers, level: int, last: Integers, way: int) -> Integers:
        """Go on from an event of a small rectangle to its last one, or the other way its first."""
        tracks = self.tracks
        cell = tracks.begin[event] >> level
        steps = event[:, None] + way * np.arange(SMALL + 1)
        there = way * steps <= way * last[:, None]
        steps = np.where(there, steps, event[:, None])
        short = tracks.before[steps + 1] - tracks.before[steps] < 1 << level
        same = there & short & (tracks.begin[steps] >> level == cell[:, None])
        edge: Integers = event + way * np.maximum(np.cumprod(same, axis=1).sum(axis=1) - 1, 0)
        return edge

    def _at(self, level: int, chosen: npt.NDArray[np.bool_]) -> tuple[Integers, ...]:
        """Put the rectangles of rows together at a level: place, first, stop, label, time, kind."""
        known = self.tracks.levels[level]
        places = np.flatnonzero(chosen)
        first, stop = self._cells(level, chosen)
        low, high = self._known(level, chosen)
        there = ranges(low, high)
        of_place = np.repeat(places, high - low)
        big = (of_place, known.first[there], known.stop(there),
               known.label[there], known.label_time[there], known.kind[there])  # fmt: skip
        # What is between the known rectangles of a row, before the first and behind the last.
        ends = np.insert(known.first[there].astype(np.int64), np.cumsum(high - low), stop)
        begins = np.insert(known.stop(there), np.cumsum(high - low) - (high - low), first)
        sizes = np.maximum(ends - begins, 0)
        events = ranges(begins, begins + sizes)
        gap_places = np.repeat(places, high - low + 1)
        small = self._small(level, events, np.repeat(gap_places, sizes))
        return tuple(_joined(pair) for pair in zip(big, small, strict=True))

    def _small(self, level: int, events: Integers, places: Integers) -> tuple[Integers, ...]:
        """Put small rectangles together from their events."""
        tracks = self.tracks
        length = tracks.before[events + 1] - tracks.before[events]
        cell = tracks.begin[events] >> level
        starts = group_starts(places, cell, length >= 1 << level)
        stops = np.append(starts[1:], len(events))[: len(starts)]
        top = tops(starts, tracks.label[events], length, tracks.kind)
        return places[starts], events[starts], events[stops - 1] + 1, *top


def group_starts(places: Integers, cell: Integers, alone: npt.NDArray[np.bool_]) -> Integers:
    """Give where each run of events begins that one rectangle stands for."""
    new = np.ones(len(cell), dtype=np.bool_)
    new[1:] = alone[1:] | alone[:-1] | (cell[1:] != cell[:-1]) | (places[1:] != places[:-1])
    return np.flatnonzero(new)


def tops(
    starts: Integers, label: Integers, length: Integers, kind: Integers
) -> tuple[Integers, Integers, Integers]:
    """Give of each group its label with the most time, that time, and its kind with the most."""
    count = np.diff(np.append(starts, len(label)))
    top, top_time = label[starts].astype(np.int64), length[starts].astype(np.int64)
    top_kind = kind[top].astype(np.int64)
    several = np.flatnonzero(count > 1)
    if not len(several):
        return top, top_time, top_kind
    inside = np.repeat(count > 1, count)
    group = np.repeat(several, count[several])
    (group, labels), time = summed_pairs(group, label[inside], length[inside])
    best = largest(group, time)
    top[several], top_time[several] = labels[best], time[best]
    (group, kinds), time = summed_pairs(group, kind[labels], time)
    top_kind[several] = kinds[largest(group, time)]
    return top, top_time, top_kind


def summed_pairs(
    group: Integers, label: Integers, time: Integers
) -> tuple[tuple[Integers, Integers], Integers]:
    """Add up times by group and label; give the pairs in order, and their times."""
    bits = int(label.max(initial=0)).bit_length()
    key = group.astype(np.int64) << bits
    key |= label
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    pairs = key[starts]
    return (pairs >> bits, pairs & ((1 << bits) - 1)), np.add.reduceat(time[order], starts)


def largest(group: Integers, time: Integers) -> Integers:
    """Give the place of the largest time of each group, the first of those alike."""
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    count = np.diff(np.append(starts, len(group)))
    most = np.repeat(np.maximum.reduceat(time, starts), count)
    return np.minimum.reduceat(np.where(time == most, np.arange(len(time)), len(time)), starts)


def ranges(first: Integers, stop: Integers) -> Integers:
    """Count from each `first` to before its `stop`, one range behind the other."""
    size = stop - first
    shift = np.repeat(first - (np.cumsum(size) - size), size)
    return shift + np.arange(len(shift))


def _ceiling(counts: Integers, most: int) -> int:
    """Give the largest ceiling under which all counts, cut to it, sum to at most `most`."""
    ordered = np.sort(np.append(counts, 0))
    size = len(ordered)
    below = np.cumsum(ordered) - ordered
    room = (most - below) // np.arange(size, 0, -1)
    cut = np.flatnonzero(ordered > room)
    return max(int(room[cut[0]]), 1) if len(cut) else most


def _joined(parts: Any) -> Integers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
