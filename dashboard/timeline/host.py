"""The host timeline: one lane a thread, with a row of flags and one for each depth of its events.

Its events are numbered through the rows. Columns of threads are read one after another and let go,
so that the timeline alone holds the events in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.store import Trace
from dashboard.theme import SERIES
from dashboard.timeline.lanes import Lane, Timeline
from pva.analysis.alignment import RUN
from pva.analysis.pyramid import build
from pva.analysis.spans import without_overlap

Integers = npt.NDArray[Any]
Row = tuple[Integers, Integers, Integers]

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


def host_timeline(trace: Trace, *, from_start: bool = False) -> HostTimeline:
    """Lay out the events of all threads; with `from_start` they lie by no one clock."""
    making = _Making([], {}, set(), np.zeros(len(trace.labels) + 1))
    tracks = build(_rows(trace, making), lambda: [*trace.label_channels.tolist(), 0])
    colours = [
        (f"series-{number % len(SERIES)}", name) for number, name in enumerate(trace.channels)
    ]
    whole = Timeline(
        "ns", NANOSECONDS, tuple(making.lanes), tracks, trace.labels,
        [*colours, ("quiet", "Other")], wall_ns=0 if from_start else trace.anchor.wall_ns,
    )  # fmt: skip
    still_open = frozenset(making.still_open)
    spent = making.self_time.astype(np.int64)
    events = sum(thread.count for thread in trace.threads)
    return HostTimeline(whole, making.metadata, still_open, spent, events)


def _rows(trace: Trace, making: _Making) -> Iterator[Row]:
    """Give the rows of all threads, and note their lanes, metadata and what is open."""
    instants = trace.instants
    by_thread = np.argsort(instants.thread, kind="stable")
    edges = np.searchsorted(instants.thread[by_thread], np.arange(len(trace.threads) + 1))
    runs = np.flatnonzero([text == RUN for text in trace.labels])
    found: list[Row] = []
    first = 0
    places = list(threads_in_order(trace))
    told = {number: (path, name) for number, path, name in places}
    for number, columns in enumerate(trace.read_threads()):
        path, name = told[number]
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
        stop = first + len(kinds)
        names = flag_names(len(flags), len(kinds))
        making.lanes.append(Lane(name, path, first, stop, names, tuple(kinds), outermost))
        first = stop
    making.lanes[:] = [making.lanes[number] for number, _, _ in places]
    if found:
        yield _activity(found)
        above = (trace.path.name,) if len(trace.paths) == 1 else ()
        lane = Lane(
            "IPU activity",
            (*above, "Derived"),
            first,
            first + 1,
            ("from runs",),
            ("derived",),
            first,
        )
        making.lanes.insert(0, lane)


def flag_names(flags: int, rows: int) -> tuple[str, ...]:
    """Name the rows of a lane: the first one counts its flags, if it has any."""
    return (f"⚑ ×{flags:,}", *[""] * (rows - 1)) if flags else ()


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


def threads_in_order(trace: Trace) -> Iterator[tuple[int, tuple[str, str], str]]:
    """Give number, headings and name of the threads, those of a process after each other.

    Headings are file and process; a name is that of the thread, and what tells it from others.
    """
    places = {id(thread): number for number, thread in enumerate(trace.threads)}
    files = _told_apart(trace.files)
    for process, file in zip(trace.processes, files, strict=True):
        path = (file, f"{process.name or 'Process'} {process.pid}")
        alike = Counter(thread.name for thread in process.threads)
        for thread in process.threads:
            name = f"Thread {thread.tid}" if not thread.name else thread.name
            if thread.name and alike[thread.name] > 1:
                name = f"{thread.name} {thread.tid}"
            yield places[id(thread)], path, name


def _told_apart(files: Sequence[Path]) -> list[str]:
    """Name files, those of one name with their directory."""
    alike = Counter(file.name for file in set(files))
    return [f"{one.parent.name}/{one.name}" if alike[one.name] > 1 else one.name for one in files]
