"""Any window of a timeline in few rectangles, whatever the number of events below them.

A timeline is rows of events; in a row none overlaps the next. Time is cut into cells of 2**level
units. At a level an event at least a cell long stands alone, and the shorter ones that begin in one
cell of one row stand together as one rectangle: they follow each other, as after a long one nothing
begins in its cell. Rectangles of more than `SMALL` events are worked out once, level by level
(pva/analysis/timeline/pyramid.py); those of fewer are put together when a window asks for them
(pva/analysis/timeline/viewport.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva.analysis.timeline.stepped import Column, first_from
from pva.array_types import Values

SMALL = 16  # events that are put together on demand


@dataclass(frozen=True, slots=True)
class Level:
    """The rectangles of more than SMALL events at one level, in the order of their events.

    `first` is its first event, `covered` counts the events in rectangles before each (one entry
    more than there are rectangles), so that its own follow from the next; `label` has the largest
    share of the time, `label_time`,
    and `kind` has the largest share among the kinds.
    """

    first: Values
    covered: Values
    label: Values
    label_time: Values
    kind: Values

    def stop(self, places: Values) -> Values:
        """Return one event behind the last of rectangles."""
        count = self.covered[places + 1] - self.covered[places]
        stop: Values = self.first[places].astype(np.int64) + count
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
    seam     [row] first event that came since all levels were worked out: no rectangle has events
             of both sides; one behind the last event where none came
    levels   [level]
    """

    begin: Column
    before: Column
    label: Values
    kind: Values
    offset: Values
    seam: Values
    levels: tuple[Level, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        parts = [self.begin, self.before, self.label, self.kind, self.offset, self.seam]
        parts += [getattr(level, name) for level in self.levels for name in _LEVEL_ARRAYS]
        return sum(part.nbytes for part in parts)

    @property
    def rows(self) -> int:
        """Count the rows."""
        return len(self.offset) - 1

    @property
    def extent(self) -> tuple[int, int]:
        """Return where the first event begins and the last one ends; (0, 1) without any.

        Its end is not of it: one without length is inside.
        """
        filled = np.flatnonzero(np.diff(self.offset))
        if not len(filled):
            return 0, 1
        begin = int(self.begin[self.offset[filled]].min())
        last = self.offset[filled + 1] - 1
        return begin, max(int(self.ends(last).max()), int(self.begin[last].max()) + 1)

    def ends(self, events: Values) -> Values:
        """Return when events end."""
        end: Values = self.begin[events] + self.before[events + 1] - self.before[events]
        return end

    def touched(self, rows: Values, begin: int, end: int) -> tuple[Values, Values]:
        """Return the events of rows that touch a window: the first, and one behind the last."""
        low, high = self.offset[rows], self.offset[rows + 1]
        if end <= begin or not len(self.begin):
            return low, low
        edges = np.repeat([[begin], [end]], len(rows), axis=1)
        first, stop = first_from(self.begin, low, high, edges)
        last = np.maximum(first - 1, 0)
        first -= (first > low) & (self.ends(last) > begin)
        return first, np.maximum(first, stop)

    def touching(self, row: int, begin: int, end: int) -> tuple[int, int]:
        """Return the events of a row that touch a window: first, and one behind the last."""
        first, stop = self.touched(np.array([row]), begin, end)
        return int(first[0]), int(stop[0])

    def spans(self, row: int, begin: int, end: int) -> tuple[Values, Values, Values]:
        """Return begin, end and label of the events that touch a window, cut to it."""
        events = np.arange(*self.touching(row, begin, end))
        begins, ends = self.begin[events], self.ends(events)
        return np.maximum(begins, begin), np.minimum(ends, end), self.label[events]


def group_starts(places: Values, cell: Values, alone: npt.NDArray[np.bool_]) -> Values:
    """Return where each run of events begins that one rectangle stands for."""
    new = np.ones(len(cell), dtype=np.bool_)
    new[1:] = alone[1:] | alone[:-1] | (cell[1:] != cell[:-1]) | (places[1:] != places[:-1])
    return np.flatnonzero(new)


def tops(
    starts: Values, label: Values, length: Values, kind: Values
) -> tuple[Values, Values, Values]:
    """Return of each group its label with the most time, that time, and its kind with the most."""
    count = np.diff(np.append(starts, len(label)))
    top, top_time = label[starts].astype(np.int64), length[starts].astype(np.int64)
    top_kind = kind[top].astype(np.int64)
    crowded = np.flatnonzero(count > 1)
    if not len(crowded):
        return top, top_time, top_kind
    inside = np.repeat(count > 1, count)
    group = np.repeat(crowded, count[crowded])
    (group, labels), time = summed_pairs(group, label[inside], length[inside])
    best = largest(group, time)
    top[crowded], top_time[crowded] = labels[best], time[best]
    (group, kinds), time = summed_pairs(group, kind[labels], time)
    top_kind[crowded] = kinds[largest(group, time)]
    return top, top_time, top_kind


def summed_pairs(
    group: Values, label: Values, time: Values
) -> tuple[tuple[Values, Values], Values]:
    """Add up times by group and label; give the pairs in order, and their times."""
    bits = int(label.max(initial=0)).bit_length()
    size = int(group.max(initial=0)).bit_length() + bits
    # Of four bytes where they suffice: getting memory takes longer than the sums.
    key: Values = group.astype(np.uint32 if size <= 32 else np.int64)
    key = (key << bits) + label.astype(key.dtype, copy=False)
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    pairs, sums = key[starts], np.add.reduceat(time[order], starts, dtype=np.int64)
    labels = (pairs & ((1 << bits) - 1)).astype(label.dtype, copy=False)
    return ((pairs >> bits).astype(group.dtype, copy=False), labels), sums


def largest(group: Values, time: Values) -> Values:
    """Return the place of the largest time of each group, the first of those alike."""
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    count = np.diff(np.append(starts, len(group)))
    most = np.flatnonzero(time == np.repeat(np.maximum.reduceat(time, starts), count))
    of_group = group[most]
    places: Values = most[np.append(True, of_group[1:] != of_group[:-1])[: len(most)]]
    return places
