"""What is in a window of a host trace: an event and what is around it, call trees, labels.

Works on the rows of one thread (pva/analysis/timeline/level_of_detail.py), one a depth, the
outermost first: the event around another is the last one of the row above that began no later.
Times in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pva.analysis.columns import table
from pva.analysis.selection import chosen
from pva.analysis.table import Columns, rows_of
from pva.analysis.timeline.level_of_detail import Tracks
from pva.array_types import Floats, Integers

Rows = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EventFigures:
    """One event: its row, depth and label, when it was, and what of it is its own.

    `self_time` leaves out the `children` directly inside it; `around` are the events that it lies
    in, the outermost first.
    """

    row: int
    depth: int
    label: int
    begin: int
    end: int
    self_time: int
    children: int
    around: tuple[int, ...]


def event_figures(tracks: Tracks, event: int, rows: Rows | None = None) -> EventFigures:
    """Describe an event among the rows of its thread; raises SelectionError."""
    chosen("event", event, len(tracks.begin))
    row = int(np.searchsorted(tracks.offset, event, side="right")) - 1
    first, stop = rows or (row, row + 1)
    begin, end = int(tracks.begin[event]), int(tracks.ends(np.array([event]))[0])
    around = [_last_before(tracks, above, begin) for above in range(first, row)]
    inside = np.zeros(0, dtype=np.int64)
    if row + 1 < stop:
        inside = np.arange(*tracks.touching(row + 1, begin, max(end, begin + 1)))
        inside = inside[(tracks.begin[inside] >= begin) & (tracks.begin[inside] < end)]
    covered = int((np.minimum(tracks.ends(inside), end) - tracks.begin[inside]).sum())
    return EventFigures(
        row=row,
        depth=row - first,
        label=int(tracks.label[event]),
        begin=begin,
        end=end,
        self_time=end - begin - covered,
        children=len(inside),
        around=tuple(one for one in around if one >= 0),
    )


def _last_before(tracks: Tracks, row: int, moment: int) -> int:
    """Return the last event of a row that began no later, or -1."""
    low, high = int(tracks.offset[row]), int(tracks.offset[row + 1])
    place = int(np.searchsorted(tracks.begin[low:high], moment, side="right"))
    return low + place - 1 if place else -1


@dataclass(frozen=True, slots=True)
class CallTree:
    """The events of a window by the labels around them; a node a different path.

    parent      [node] the node around it, -1 for the outermost; never behind the node
    label       [node]
    count       [node] events
    total       [node] time of these inside the window
    self_time   [node] the same without what is directly inside them
    event       [node] the longest of these, of `callers` one of them
    """

    parent: Integers
    label: Integers
    count: Integers
    total: Integers
    self_time: Integers
    event: Integers

    def whole_time(self) -> int:
        """Return the time in which threads were inside events, each thread for itself."""
        return int(self.self_time.sum())


def call_tree(tracks: Tracks, threads: list[Rows], begin: int, end: int) -> CallTree:
    """Sum up the events of threads that touch a window by their path of labels."""
    labels = len(tracks.kind)
    parents, names = np.zeros(0, np.int64), np.zeros(0, np.int64)
    counts, totals, inner, longest = (np.zeros(0, np.int64) for _ in range(4))
    above = [_Above(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in threads]
    deepest = max((stop - first for first, stop in threads), default=0)
    for depth in range(deepest):
        parts_of_threads = [
            _row_of_tree(tracks, first + depth, (begin, end), above[number])
            for number, (first, stop) in enumerate(threads)
            if first + depth < stop
        ]
        around, label, time, _, event = map(np.concatenate, zip(*parts_of_threads, strict=True))
        keys, place = np.unique((around + 1) * labels + label, return_inverse=True)
        offset = len(parents)
        node = offset + place
        parents = np.append(parents, keys // labels - 1)
        names = np.append(names, keys % labels)
        counts = np.append(counts, np.bincount(place, minlength=len(keys)))
        longest = np.append(longest, _longest_of(place, time, event, len(keys)))
        spent = np.bincount(place, weights=time, minlength=len(keys)).astype(np.int64)
        totals, inner = np.append(totals, spent), np.append(inner, np.zeros_like(spent))
        nested = parents[offset:] >= 0
        np.add.at(inner, parents[offset:][nested], spent[nested])
        sizes = np.cumsum([0, *(len(part[0]) for part in parts_of_threads)])
        still = [n for n, (first, stop) in enumerate(threads) if first + depth < stop]
        for number, low, high, part in zip(
            still, sizes[:-1], sizes[1:], parts_of_threads, strict=True
        ):
            above[number] = _Above(part[3], node[low:high])
    return CallTree(parents, names, counts, totals, totals - inner, longest)


def _longest_of(group: Integers, time: Integers, event: Integers, groups: int) -> Integers:
    """Return of each group its event that takes longest, the first of several."""
    longest = np.full(groups, -1)
    order = np.lexsort((-event, time))
    longest[group[order]] = event[order]
    return longest


@dataclass(frozen=True, slots=True)
class _Above:
    """The events of the row above: when they begin, and their nodes."""

    begin: Integers
    node: Integers


def _row_of_tree(
    tracks: Tracks, row: int, window: Rows, above: _Above
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Return of a row's events the node around, label, time in the window, begin, and number."""
    events = np.arange(*tracks.touching(row, *window))
    begins, ends = tracks.begin[events], tracks.ends(events)
    time = np.minimum(ends, window[1]) - np.maximum(begins, window[0])
    around = np.full(len(events), -1)
    if len(above.begin):
        place = np.searchsorted(above.begin, begins, side="right") - 1
        around = np.where(place >= 0, above.node[np.maximum(place, 0)], -1)
    return around, tracks.label[events].astype(np.int64), np.maximum(time, 0), begins, events


@table(
    "label count total:ns self_time:ns mean:ns p50:ns p95:ns longest:ns event",
    label="number of the label",
    count="events that touch this part of the trace",
    total="time in this part of the trace, with that of the events inside",
    self_time="time in this part of the trace, without that of the events directly inside",
    mean="mean length of an event",
    p50="median length of an event",
    p95="length that 95 % of the events do not exceed",
    longest="length of the longest event",
    event="number of the longest event",
)
def label_figures(tracks: Tracks, threads: list[Rows], begin: int, end: int) -> Columns:
    """Sum up the events that touch a window by label, the most self time first.

    `total` and `self_time` count what is inside the window, an event inside another of its label
    twice in `total`; `mean`, `p50`, `p95` and `longest` are of whole events. `label` is its number,
    `event` that of its longest event, the first of several.
    """
    tree = call_tree(tracks, threads, begin, end)
    self_time = np.bincount(tree.label, weights=tree.self_time, minlength=1).astype(np.int64)
    total = np.bincount(tree.label, weights=tree.total, minlength=1).astype(np.int64)
    events = np.concatenate(
        [np.zeros(0, np.int64)]
        + [np.arange(*tracks.touching(row, begin, end)) for rows in threads for row in range(*rows)]
    )
    lengths = tracks.ends(events) - tracks.begin[events]
    label = tracks.label[events].astype(np.int64)
    order = np.argsort(lengths)
    # NumPy sorts numbers of 16 bits by radix: several times as fast as both columns at once.
    narrow = label.astype(np.min_scalar_type(int(label.max(initial=0))))
    order = order[np.argsort(narrow[order], kind="stable")]
    rising = lengths[order]  # of each label, one label behind the other
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    numbers, count = label[order[first]], np.diff(first, append=len(order))
    columns = {
        "label": numbers,
        "count": count,
        "total": total[numbers],
        "self_time": self_time[numbers],
        "mean": np.add.reduceat(rising, first) / count if len(first) else np.zeros(0),
        "p50": _quantile(rising, first, count, 0.5),
        "p95": _quantile(rising, first, count, 0.95),
        "longest": rising[first + count - 1],
        "event": _longest_of(label, lengths, events, len(self_time))[numbers],
    }
    return rows_of(columns, np.argsort(-columns["self_time"], kind="stable"))


def _quantile(rising: Integers, first: Integers, count: Integers, part: float) -> Floats:
    """Return a quantile of each group of ascending values, between the two nearest of them."""
    place = part * (count - 1)
    below = first + np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, first + count - 1)
    values: Floats = rising[below] + (rising[above] - rising[below]) * (place % 1)
    return values


def callers(tree: CallTree) -> CallTree:
    """Turn a call tree over: each label on the outside, below it what called it.

    `total` and `self_time` of a node are the self time that the label spent when called that way.
    """
    parent, label = tree.parent, tree.label
    at = np.flatnonzero(tree.self_time > 0)
    frontier, self_time, node = at, tree.self_time[at], np.full(len(at), -1)
    count = tree.count[at]
    labels = int(label.max(initial=0)) + 1
    columns: list[list[Integers]] = [[], [], [], [], []]
    offset = 0
    while len(frontier):
        keys, first, place = np.unique(
            (node + 1) * labels + label[frontier], return_index=True, return_inverse=True
        )
        columns[4].append(tree.event[frontier[first]])
        columns[0].append(keys // labels - 1)
        columns[1].append(keys % labels)
        columns[2].append(np.bincount(place, weights=count, minlength=len(keys)).astype(np.int64))
        columns[3].append(
            np.bincount(place, weights=self_time, minlength=len(keys)).astype(np.int64)
        )
        node, up = offset + place, parent[frontier]
        offset += len(keys)
        on = up >= 0
        frontier, self_time, count, node = up[on], self_time[on], count[on], node[on]
    parents, names, counts, spent, events = (
        np.concatenate([np.zeros(0, np.int64), *parts]) for parts in columns
    )
    return CallTree(parents, names, counts, spent, spent, events)


@table(
    "event row label begin:ns length:ns",
    event="number of the event",
    row="number of the row",
    label="number of the label",
    begin="begin of the event",
    length="length of the event",
)
def events_in_window(tracks: Tracks, rows: Integers, begin: int, end: int) -> Columns:
    """Return the events of rows that touch a window: event, row, label (its number), begin, length.

    By row and begin, as they are in the timeline: not cut to the window.
    """
    parts = [np.arange(*tracks.touching(row, begin, end)) for row in rows.tolist()]
    events = np.concatenate([np.zeros(0, np.int64), *parts])
    begins = tracks.begin[events]
    return {
        "event": events,
        "row": np.repeat(rows, [len(part) for part in parts]),
        "label": tracks.label[events].astype(np.int64),
        "begin": begins,
        "length": tracks.ends(events) - begins,
    }
