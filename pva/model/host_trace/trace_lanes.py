"""The events of threads, read when they are asked for: alone, or many small threads at a time.

A program may have few threads of millions of events, or a hundred thousand tasks of a few events
each. The latter are read, sorted and nested together, so that a thread costs no more than its
events.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers, Values
from pva.model.host_trace.events import Metadata, Names, Thread, ThreadColumns
from pva.model.host_trace.nesting import Nesting, begin_order, nest
from pva.model.host_trace.trace_rows import (
    Columns,
    EventFile,
    Grouped,
    Numbering,
    rows_of_events,
    taken,
)

Window = tuple[int, int]

KEPT_BYTES = 24 << 20
# Of a trace with more events, those that frames have read are let go of; the arrays of a thread
# take as much as a hundred events.
KEPT_EVENTS, THREAD = 1 << 20, 100
FEW = 64  # threads that are sorted one by one
TOGETHER = 1 << 16  # events of small threads that are looked at together
METADATA = 110  # bytes taken to find the event of each
TIME_LIMIT = 1 << 62
TABLES = ("event_chunks", "long_events", "open_spans", "event_metadata")


class Stretch(NamedTuple):
    """Events of one thread, or of several, whose times are moved so that none meets another's.

    With `exact`, time runs backward: then all is as it was if each event holds what is in it, and
    what `exact` gives is to be taken if not.
    """

    begin: Integers
    end: Integers
    label: npt.NDArray[np.int32]
    exact: Callable[[], Stretch] | None = None


class Clocks(NamedTuple):
    """Of each thread: what its times are moved by, and the last time known of its process."""

    shift: Integers
    last: Integers


class Lanes:
    """Where the events of all threads are, by the number of the thread."""

    def __init__(
        self,
        file: EventFile,
        tables: dict[str, Columns],
        thread_of: Numbering,
        label_of: Numbering,
        clocks: Clocks,
    ) -> None:
        self._file = file
        self._label_of = label_of
        self._shift, self._last = clocks
        lanes = {name: thread_of.of(tables[name]["thread"]) for name in TABLES}
        count = len(self._shift)
        self._grouped = {name: Grouped(tables[name], lanes[name], count) for name in TABLES}
        chunks = lanes["event_chunks"]
        records = np.bincount(chunks, tables["event_chunks"]["records"], count)
        open_and_instants = (np.bincount(lanes[name], minlength=count) for name in TABLES[1:3])
        self.counts: Integers = records.astype(np.int64) + sum(open_and_instants)

    def columns(self, lane: int, names: Names) -> ThreadColumns:
        """Put ended, long and open events of a thread together, in the order of their begin."""
        return next(self._between(lane, lane + 1, names))

    def window(self, window: Window, names: Names) -> list[ThreadColumns]:
        """Return of every thread what is open at some time of a window, and read nothing else."""
        # Until a large block was freed, glibc hands what is freed back to the system, and each
        # window would wait for all its pages anew: malloc(3), M_MMAP_THRESHOLD.
        np.empty(KEPT_BYTES, np.uint8)
        count = len(self.counts)
        return list(self._between(0, count, names, window)) if count else []

    def chunks(self) -> list[tuple[Integers, Integers]]:
        """Return of each thread begin and end of its events, thousands at a time; reads none."""
        chunks = map(self._grouped["event_chunks"].of, range(len(self.counts)))
        return [
            (rows["begin_ns"] + shift, rows["end_ns"] + shift)
            for rows, shift in zip(chunks, self._shift.tolist(), strict=True)
        ]

    def load(self, threads: tuple[Thread, ...]) -> list[Stretch]:
        """Return the events of all threads, small threads together."""
        return [
            self._backward(first, threads[first]) or _stretch(self._read(threads, first, stop))
            for first, stop in self._groups()
        ]

    def _backward(self, lane: int, thread: Thread) -> Stretch | None:
        """Read a large thread as it is in the file, which saves sorting it.

        Its events are in the order of their end: seen backward, in the order of their begin.
        """
        small = "columns" in thread.__dict__ or self.counts[lane] < TOGETHER
        if small or any(self._grouped[name].count(lane) for name in TABLES[1:3]):
            return None
        begin, end, label, *_ = self._file.events(self._grouped["event_chunks"].of(lane))
        label = self._label_of.in_place(label.astype(np.int32, copy=False))
        if (end[1:] < end[:-1]).any() or (end <= begin).any():
            return _forward(begin, end, label)
        for times in (begin, end):  # in their place: new memory takes as long again
            np.negative(times, out=times)
        begin, end, label = end[::-1], begin[::-1], label[::-1]
        return Stretch(begin, end, label, lambda: _forward(-end[::-1], -begin[::-1], label[::-1]))

    def verify(self) -> None:
        """Read all events and keep none: the file's `problems` tell which are damaged."""
        for lane in range(len(self.counts)):
            self._file.events(self._grouped["event_chunks"].of(lane))

    def look(self, threads: tuple[Thread, ...]) -> Iterator[ThreadColumns]:
        """Return the columns of one thread after another, small ones read and nested together."""
        for first, stop in self._groups():
            lanes = self._read(threads, first, stop)
            if len(lanes) > 1 and not all("nesting" in lane.__dict__ for lane in lanes):
                _nest_together(lanes)
            yield from lanes

    def _read(self, threads: tuple[Thread, ...], first: int, stop: int) -> list[ThreadColumns]:
        """Return the columns of some threads, and keep them where these are few events."""
        some = threads[first:stop]
        cached = [thread.__dict__.get("columns") for thread in some]
        if all(cached):
            return [lane for lane in cached if lane is not None]
        lanes = list(self._between(first, stop, some[0].names))
        if int(self.counts.sum()) + THREAD * len(self.counts) > KEPT_EVENTS:
            return lanes
        return [thread.__dict__.setdefault("columns", lane)
                for thread, lane in zip(some, lanes, strict=True)]  # fmt: skip

    def each(self, names: Names) -> Iterator[ThreadColumns]:
        """Do the same and keep none."""
        for first, stop in self._groups():
            lanes = list(self._between(first, stop, names))
            if len(lanes) > 1:
                _nest_together(lanes)
            yield from lanes

    def _groups(self) -> Iterator[tuple[int, int]]:
        """Cut the threads into groups of few events."""
        ends = np.cumsum(self.counts)
        first = 0
        while first < len(ends):
            before = int(ends[first]) - int(self.counts[first])
            stop = max(int(np.searchsorted(ends, before + TOGETHER, "right")), first + 1)
            yield first, stop
            first = stop

    def _between(
        self, first: int, stop: int, names: Names, window: Window | None = None
    ) -> Iterator[ThreadColumns]:
        """Make the columns of some threads, which follow each other."""
        parts, lane, ended = self._in_order_of_end(first, stop, window)
        begin = parts["begin"]
        bounds = [0, len(begin)]
        if lane is None:
            order = begin_order(begin)
        else:
            order, bounds = _by_lane(begin, lane - first, stop - first)
        for name in parts:  # one after another, so that not all are held twice
            parts[name] = parts[name][order]
        is_open = np.flatnonzero(order >= ended)
        open_bounds = np.searchsorted(is_open, bounds).tolist()
        del order, lane, begin
        np.maximum(parts["end"], parts["begin"], out=parts["end"])
        for place in range(stop - first):
            low, high = bounds[place : place + 2]
            begin, end, label, kind = (parts[name][low:high] for name in _PARTS)
            mine = is_open[slice(*open_bounds[place : place + 2])] - low
            metadata = self._metadata(first + place, begin, label)
            yield ThreadColumns((begin, end), label, kind, mine, names, metadata)

    def _in_order_of_end(
        self, first: int, stop: int, window: Window | None
    ) -> tuple[dict[str, Any], Integers | None, int]:
        """Return begin, end, label and kind, the thread of each if several, and how many ended."""
        is_joined = stop - first > 1
        (chunks, of), (long, of_long), (spans, of_spans) = (
            self._grouped[name].between(first, stop) for name in TABLES[:3]
        )
        spans = {name: column[::-1] for name, column in spans.items()}
        of_spans = of_spans[::-1]
        if window is None:
            begin, end, label, kind, lane = self._ended(chunks, of, several=is_joined)
        else:
            begin, end, label, kind, lane = self._ended_within(chunks, of, window)
        from_long = long["begin_ns"] + self._shift[of_long]
        begin = _join(begin, from_long, spans["begin_ns"] + self._shift[of_spans])
        end = _join(end, from_long + long["duration_ns"])
        lane = _join(lane, of_long, of_spans) if is_joined else None
        ended = len(end)
        end = _join(end, self._latest(first, end, lane, of_spans))
        label = _join(label, long["label"], spans["label"])
        kind = _join(kind, long["kind"].astype(np.uint8), np.zeros(len(of_spans), np.uint8))
        parts = {"begin": begin, "end": end, "label": label, "kind": kind}
        if window is not None:
            meeting = np.flatnonzero(_meets(begin, end, window))
            ended = int(np.searchsorted(meeting, ended))
            parts, lane = taken(parts, meeting), None if lane is None else lane[meeting]
        parts["label"] = self._label_of.in_place(parts["label"].astype(np.int32, copy=False))
        return parts, lane, ended

    def _ended(self, chunks: Columns, of: Integers, *, several: bool) -> tuple[Any, ...]:
        """Read ended events: begin, end, label, kind, and the thread of each if asked for."""
        begin, end, label, kind, records = self._file.events(chunks)
        shift = self._shift[of]
        alike = not len(shift) or (shift == shift[0]).all()
        move = shift[:1].sum() if alike else np.repeat(shift, records)
        begin += move
        end += move
        lane = np.repeat(of, records) if several else of[:0]
        return begin, end, label, kind, lane

    def _ended_within(self, chunks: Columns, of: Integers, window: Window) -> tuple[Any, ...]:
        """Read those that meet a window, a few chunks at a time: the memory is used again."""
        meets = _meets(
            chunks["begin_ns"] + self._shift[of], chunks["end_ns"] + self._shift[of], window
        )
        chunks, of = taken(chunks, meets), of[meets]
        groups = np.cumsum(chunks["records"]) // TOGETHER
        cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(of)]
        parts = [self._ended(taken(chunks, slice(0)), of[:0], several=True)]
        for low, high in zip(cuts, cuts[1:], strict=False):
            rows = slice(low, high)
            events = self._ended(taken(chunks, rows), of[rows], several=True)
            meeting = np.flatnonzero(_meets(events[0], events[1], window))
            parts.append(tuple(column[meeting] for column in events))
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _latest(
        self, first: int, end: Integers, lane: Integers | None, of_spans: Integers
    ) -> Integers:
        """Return the time up to which each open span is shown: the last one known of its thread."""
        if not len(of_spans):
            return of_spans
        latest = self._last.copy()
        if lane is None:
            latest[first] = end.max(initial=latest[first])
        else:
            np.maximum.at(latest, lane[: len(end)], end)
        times: Integers = latest[of_spans]
        return times

    def _metadata(self, lane: int, begin: Integers, label: npt.NDArray[np.int32]) -> Metadata:
        if not self._grouped["event_metadata"].count(lane):
            return _NOTHING
        self._file.check(METADATA * self._grouped["event_metadata"].count(lane), "event_metadata")
        rows = self._grouped["event_metadata"].of(lane)
        begins = rows["begin_ns"] + self._shift[lane]
        event_rows = rows_of_events(begin, label, begins, self._label_of.of(rows["label"]))
        order = np.argsort(event_rows, kind="stable")
        order = order[np.searchsorted(event_rows[order], 0) :]
        return Metadata(event_rows[order], rows["metadata"][order])


def _nest_together(lanes: list[ThreadColumns]) -> None:
    """Compute how the events of lanes nest, in one sweep."""
    stretch = _stretch(lanes)
    nesting = nest(stretch.begin, stretch.end, lanes[0].check)
    row = 0
    for lane in lanes:
        mine = slice(row, row + len(lane))
        parent = nesting.parent[mine]
        parent = np.where(parent >= 0, parent - row, -1)
        lane.__dict__["nesting"] = Nesting(nesting.depth[mine], parent, nesting.self_ns[mine])
        row += len(lane)


def _forward(begin: Integers, end: Integers, label: npt.NDArray[np.int32]) -> Stretch:
    """Sort the events of a thread, given in the order of their end, by begin."""
    order = begin_order(begin)
    return Stretch(begin[order], np.maximum(begin, end)[order], label[order])


def _stretch(lanes: list[ThreadColumns]) -> Stretch:
    """Put lanes one behind the other, so that none meets the next."""
    if len(lanes) == 1:
        return Stretch(lanes[0].begin_ns, lanes[0].end_ns, lanes[0].label)
    begin, end, label = (
        np.concatenate([getattr(lane, name) for lane in lanes])
        for name in ("begin_ns", "end_ns", "label")
    )
    used = [lane for lane in lanes if len(lane)]
    counts = [len(lane) for lane in used]
    firsts = np.array([lane.begin_ns[0] for lane in used], np.int64)
    starts = np.cumsum([0, *counts])[:-1]
    spans = np.maximum.reduceat(end, starts) - firsts + 2 if used else firsts
    # What lies too far apart for 64 bits is squeezed: only the order is looked at there.
    moved = np.cumsum(np.minimum(spans, TIME_LIMIT // max(len(used), 1))) - spans - firsts
    moved = np.repeat(moved, counts)
    return Stretch(begin + moved, end + moved, label)


def _by_lane(begin: Integers, lane: Integers, count: int) -> tuple[Integers, list[int]]:
    """Sort events by thread, those of each by begin; tell where each thread begins and ends."""
    bounds = np.cumsum([0, *np.bincount(lane, minlength=count)]).tolist()
    # Of 16-bit numbers NumPy sorts by radix: many times as fast.
    number: Integers = lane.astype(np.uint16 if count < 1 << 16 else np.int64)
    if count > FEW:
        order = begin_order(begin)
        return order[np.argsort(number[order], kind="stable")], bounds
    if (number[1:] >= number[:-1]).all():  # as they are read, unless some are long or open
        parts = itertools.pairwise(bounds)
        return np.concatenate([low + begin_order(begin[low:high]) for low, high in parts]), bounds
    by_lane = np.argsort(number, kind="stable")
    places = [by_lane[low:high] for low, high in itertools.pairwise(bounds)]
    return np.concatenate([mine[begin_order(begin[mine])] for mine in places]), bounds


_PARTS = ("begin", "end", "label", "kind")
_NOTHING = Metadata(np.zeros(0, np.int64), ())


def loader(lanes: Lanes, lane: int, names: Names) -> Callable[[], ThreadColumns]:
    """Return what reads a thread."""
    return lambda: lanes.columns(lane, names)


def _meets(begin: Integers, end: Integers, window: Window) -> npt.NDArray[np.bool_]:
    """Return what is open at some time of a window, whose end does not belong to it."""
    first, stop = window
    return (begin < stop) & ((end > first) | (begin >= first))


def _join(first: Values, *arrays: Values) -> Values:
    """Put arrays after each other; the first itself when the others are empty."""
    return np.concatenate((first, *arrays)) if any(map(len, arrays)) else first
