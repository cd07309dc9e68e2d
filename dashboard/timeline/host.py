"""The host timeline: one lane a thread, with a row of flags and one for each depth of its events.

Its events are numbered through the rows. Columns of threads are read one after another and let go,
so that the timeline alone holds the events in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.store import Trace
from dashboard.theme import SERIES
from dashboard.timeline.lanes import Lane, Timeline
from pva.analysis.pyramid import build
from pva.analysis.spans import without_overlap

Integers = npt.NDArray[Any]
Row = tuple[Integers, Integers, Integers]

RUN = "Engine::run"  # the label of a run of a program on the device
NANOSECONDS = 1e9  # a second


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """The timeline; what a program attached to events, by event; and the events still open.

    `self_time` is that of all events of each label, without what is directly inside them.
    """

    timeline: Timeline
    metadata: Mapping[int, str]
    still_open: frozenset[int]
    self_time: Integers
    events: int


@dataclass(slots=True)
class _Making:
    """What the rows add to while they are given out."""

    lanes: list[Lane]
    metadata: dict[int, str]
    still_open: set[int]
    self_time: npt.NDArray[np.float64]
    events: int = 0


def host_timeline(trace: Trace) -> HostTimeline:
    """Lay out the events of all threads."""
    making = _Making([], {}, set(), np.zeros(len(trace.labels) + 1))
    tracks = build(_rows(trace, making), lambda: [*trace.label_channels.tolist(), 0])
    colours = [
        (f"series-{number % len(SERIES)}", name) for number, name in enumerate(trace.channels)
    ]
    whole = Timeline(
        "ns", NANOSECONDS, tuple(making.lanes), tracks, trace.labels,
        [*colours, ("quiet", "Other")], wall_ns=trace.anchor.wall_ns,
    )  # fmt: skip
    still_open = frozenset(making.still_open)
    spent = making.self_time.astype(np.int64)
    events = sum(thread.count for thread in trace.threads)
    return HostTimeline(whole, making.metadata, still_open, spent, events)


def _rows(trace: Trace, making: _Making) -> Iterator[Row]:
    """Give the rows of all threads, and note their lanes, metadata and what is open."""
    names = thread_names(trace)
    instants = trace.instants
    by_thread = np.argsort(instants.thread, kind="stable")
    edges = np.searchsorted(instants.thread[by_thread], np.arange(len(trace.threads) + 1))
    processes = {process.pid: process.name or "Process" for process in trace.processes}
    runs = np.flatnonzero([text == RUN for text in trace.labels])
    found: list[Row] = []
    first = 0
    for number, thread in enumerate(trace.threads):
        columns = thread.read()
        run = np.isin(columns.label, runs) if len(runs) else np.zeros(0, np.int64)
        if run.any():
            found.append((columns.begin_ns[run], columns.end_ns[run], columns.label[run]))
        flags = by_thread[edges[number] : edges[number + 1]]
        kinds = ["flag"] if len(flags) else []
        if len(flags):
            times = instants.time_ns[flags]
            texts = enumerate(instants.metadata[flags].tolist(), making.events)
            making.metadata.update((event, text) for event, text in texts if text)
            making.events += len(flags)
            yield times, times, instants.label[flags]
        for row in _depths(columns, making):
            yield row
            kinds.append("event")
        outermost = first + (1 if len(flags) and len(kinds) > 1 else 0)
        path = (trace.path.name, f"{processes[thread.pid]} {thread.pid}")
        stop = first + len(kinds)
        making.lanes.append(Lane(names[number], path, first, stop, (), tuple(kinds), outermost))
        first = stop
    if found:
        yield _activity(found)
        path = (trace.path.name, "Derived")
        lane = Lane("IPU activity", path, first, first + 1, ("from runs",), ("derived",), first)
        making.lanes.insert(0, lane)


def _activity(found: list[Row]) -> Row:
    """Give when any thread was in a run of the program on the device."""
    begin, end, label = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(begin, kind="stable")
    return *without_overlap(begin[order], end[order]), label[order]


def _depths(columns: Any, making: _Making) -> Iterator[Row]:
    """Give a row of each depth of a thread; a depth never holds two events at once."""
    making.self_time += np.bincount(
        columns.label, weights=columns.self_ns, minlength=len(making.self_time)
    )
    depth = columns.depth
    short = depth.astype(np.int16) if depth.max(initial=0) < 1 << 15 else depth
    order = np.argsort(short, kind="stable")
    edges = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    if len(columns.metadata) or len(columns.open_rows):
        place = np.empty(len(order), np.int64)
        place[order] = making.events + np.arange(len(order))
        attached = place[columns.metadata.rows].tolist()
        making.metadata.update(zip(attached, map(str, columns.metadata.texts), strict=True))
        making.still_open.update(place[columns.open_rows].tolist())
    making.events += len(order)
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        here = order[low:high]
        yield columns.begin_ns[here], columns.end_ns[here], columns.label[here]


def thread_names(trace: Trace) -> list[str]:
    """Name the lanes: a thread's name, and what tells it from others of that name."""
    known: dict[tuple[int, str], int] = {}
    for thread in trace.threads:
        key = (thread.pid, thread.name)
        known[key] = known.get(key, 0) + 1
    return [
        f"Thread {thread.tid}"
        if not thread.name
        else f"{thread.name} {thread.tid}"
        if known[thread.pid, thread.name] > 1
        else thread.name
        for thread in trace.threads
    ]
