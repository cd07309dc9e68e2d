"""A timeline of the steps that a filter lets through alone, with levels of detail of its own.

Rows, labels and the numbers of steps stay as they are, so that all that reads a timeline reads this
one. A layer is kept where a step in it is; rows of runs are kept whole.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from pva.analysis.filters import Filter, parse_filter, texts_matching
from pva.analysis.spans import first_places
from pva.analysis.timeline.level_of_detail import Tracks
from pva.analysis.timeline.pyramid import build
from pva.array_types import Integers, Truths
from pva.plot.lanes import Lane, RowItems, Timeline

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
    kept: list[Truths | None] = [None] * tracks.rows
    for lane in timeline.lanes:
        _leave_out(timeline, lane, holds, kept)
    counts, items = _numbered(timeline, kept)
    if all(mask is None or mask.all() for mask in kept):
        return replace(timeline, found=counts)
    matching = build((_row(tracks, *row) for row in enumerate(kept)), lambda: tracks.kind)
    return replace(timeline, tracks=matching, items=items, found=counts, bounds=timeline.extent)


def _row(
    tracks: Tracks, row: int, kept: Truths | None = None
) -> tuple[Integers, Integers, Integers]:
    """Return begin, end and label of those events of a row that are kept, or of all."""
    first, stop = tracks.offset[row : row + 2].tolist()
    columns = tracks.begin[first:stop], np.diff(tracks.before[first : stop + 1])
    begin, length, label = (*columns, tracks.label[first:stop])
    if kept is not None:
        begin, length, label = begin[kept], length[kept], label[kept]
    return begin, begin + length, label


def _leave_out(timeline: Timeline, lane: Lane, holds: Truths, kept: list[Truths | None]) -> None:
    """Take out of the rows of a lane what a filter does not let through."""
    tracks, begins = timeline.tracks, [np.zeros(0, dtype=np.int64)]
    rows = list(zip(range(lane.first, lane.stop), lane.kinds, strict=True))
    for row, kind in rows:
        if kind in FILTERED:
            of_row = slice(*tracks.offset[row : row + 2])
            kept[row] = mask = holds[tracks.label[of_row]]
            if kind == "step":
                begins.append(tracks.begin[of_row][mask])
    begin = np.sort(np.concatenate(begins)) if len(begins) > 2 else begins[-1]
    last = np.iinfo(np.int64).max
    for row, kind in rows:
        if kind == "layer":
            first, end, _ = _row(tracks, row)
            following = np.append(begin, last)[first_places(begin, first)]
            kept[row] = following < np.maximum(end, first + 1)  # which are at least a unit long


def _numbered(
    timeline: Timeline, kept: list[Truths | None]
) -> tuple[tuple[int, int], tuple[RowItems, ...]]:
    """Return the numbers of what is kept, by row.

    Count, of it and of all, the steps, those of several IPUs once, and the blocks of all rows.
    """
    tracks, items = timeline.tracks, []
    last = timeline.item(np.maximum(tracks.offset[1:] - 1, 0)) if len(tracks.begin) else [-1]
    seen = np.zeros((2, int(np.max(last, initial=-1)) + 1), dtype=np.bool_)  # kept, all
    unnamed = np.zeros(2, dtype=np.int64)
    for row, is_filtered in enumerate(timeline.of_kinds(FILTERED).tolist()):
        number = timeline.item_in(row, np.arange(*tracks.offset[row : row + 2]))
        mask = kept[row]
        remaining = number if mask is None else number[mask]
        items.append(_numbers(remaining))
        for place, of_row in enumerate((remaining, number) if is_filtered else ()):
            if len(of_row) and int(of_row[0]) >= 0:
                seen[place, of_row] = True
            else:
                unnamed[place] += len(of_row)
    found, of = (np.count_nonzero(seen, axis=1) + unnamed).tolist()
    return (found, of), tuple(items)


def _numbers(items: Integers) -> RowItems:
    """Store the numbers of the events of a row, if they have some."""
    return RowItems.of(items) if len(items) and int(items[0]) >= 0 else RowItems()
