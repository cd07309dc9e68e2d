"""A timeline of the steps that a filter lets through alone, with levels of detail of its own.

Rows, labels and the numbers of steps stay as they are, so that all that reads a timeline reads this
one. A layer is kept where a step in it is; rows of runs are kept whole.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.analysis.filters import Filter, parse_filter, texts_matching
from pva.analysis.pyramid import build
from pva.plot.lanes import Lane, RowItems, Timeline

Integers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

COLUMN = "name"  # of the table of programs, which the same filter goes through
MAX_KEPT = 16
FILTERED = ("step", "io", "block")  # kinds of rows


@dataclass(slots=True)
class Filtered:
    """The last timelines made of one by filters: together no more events than it has, or one."""

    most: int
    made: OrderedDict[str, Timeline] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def get(self, name: str, make: Callable[[], Timeline]) -> Timeline:
        """Return the one that is kept under a name, or make it."""
        with self.lock:
            if name not in self.made:
                self.made[name] = make()
            self.made.move_to_end(name)
            while len(self.made) > MAX_KEPT or (len(self.made) > 1 and self._events() > self.most):
                self.made.popitem(last=False)
            return self.made[name]

    def _events(self) -> int:
        return sum(len(timeline.tracks.begin) for timeline in self.made.values())


def filter_of(text: str) -> Filter | None:
    """Read the filter of an address; None where it is of another column. Raises FilterError."""
    condition = parse_filter(text) if text else None
    return condition if condition and condition.column == COLUMN else None


def filtered_timeline(timeline: Timeline, condition: Filter) -> Timeline:
    """Leave out the steps and blocks that a filter does not let through; raises FilterError."""
    tracks = timeline.tracks
    holds = texts_matching(timeline.labels, condition)
    every = [np.arange(*tracks.offset[row : row + 2]) for row in range(tracks.rows)]
    remaining = list(every)
    for lane in timeline.lanes:
        _leave_out(timeline, lane, holds, remaining)
    counts = _count(timeline, remaining), _count(timeline, every)
    if sum(map(len, remaining)) == len(tracks.begin):
        return replace(timeline, found=counts)
    rows = (
        (tracks.begin[events], tracks.ends(events), tracks.label[events]) for events in remaining
    )
    items = tuple(_numbers(timeline.item_in(row, events)) for row, events in enumerate(remaining))
    matching = build(rows, lambda: tracks.kind)
    return replace(timeline, tracks=matching, items=items, found=counts, bounds=timeline.extent)


def _leave_out(timeline: Timeline, lane: Lane, holds: Mask, remaining: list[Integers]) -> None:
    """Take out of the rows of a lane what a filter does not let through."""
    tracks, begins = timeline.tracks, [np.zeros(0, dtype=np.int64)]
    rows = list(zip(range(lane.first, lane.stop), lane.kinds, strict=True))
    for row, kind in rows:
        if kind in FILTERED:
            remaining[row] = remaining[row][holds[tracks.label[remaining[row]]]]
        if kind == "step":
            begins.append(tracks.begin[remaining[row]])
    begin = np.sort(np.concatenate(begins))
    for row, kind in rows:
        if kind == "layer":
            low, high = (begin.searchsorted(edge) for edge in _edges(timeline, remaining[row]))
            remaining[row] = remaining[row][high > low]


def _edges(timeline: Timeline, events: Integers) -> tuple[Integers, Integers]:
    """Return begin and end of events, which are at least a unit long here."""
    begin = timeline.tracks.begin[events]
    return begin, np.maximum(timeline.tracks.ends(events), begin + 1)


def _count(timeline: Timeline, remaining: list[Integers]) -> int:
    """Count the steps, those of several IPUs once, and the blocks of all rows."""
    filtered = timeline.of_kinds(FILTERED)
    numbers = [timeline.item_in(row, remaining[row]) for row in np.flatnonzero(filtered).tolist()]
    number = np.concatenate([np.zeros(0, dtype=np.int64), *numbers])
    named = number[number >= 0]
    return int(np.count_nonzero(np.bincount(named))) + len(number) - len(named)


def _numbers(items: Integers) -> RowItems:
    """Hold the numbers of the events of a row, if they have some."""
    return RowItems.of(items) if len(items) and int(items[0]) >= 0 else RowItems()
