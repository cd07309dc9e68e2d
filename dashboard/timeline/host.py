"""The host timeline: one lane a thread, with a row for each depth of its events."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.store import Trace
from dashboard.theme import SERIES
from dashboard.timeline.lanes import Row, Timeline
from pva.analysis.level_of_detail import Track

NANOSECONDS = 1e9  # a second
MAX_DEPTH = 40  # rows a lane


def host_timeline(trace: Trace) -> Timeline:
    """Lay out the events of all threads. `item` counts events through the threads in order."""
    rows: list[Row] = []
    first = 0
    for thread in trace.threads:
        rows += thread_rows(thread, first, thread_name(thread, trace))
        first += len(thread.columns)
    colours = [
        (f"series-{number % len(SERIES)}", name) for number, name in enumerate(trace.channels)
    ]
    return Timeline(
        "ns", NANOSECONDS, tuple(rows), list(trace.labels), [*colours, ("quiet", "Other")]
    )


def thread_name(thread: Any, trace: Trace) -> str:
    """Name a lane: the thread's name, and what tells it from others of that name."""
    same = [other for other in trace.threads if other.name == thread.name]
    name = thread.name or f"Thread {thread.tid}"
    name = f"{name} {thread.tid}" if thread.name and len(same) > 1 else name
    return name if len(trace.processes) == 1 else f"Process {thread.pid}, {name}"


def thread_rows(thread: Any, first: int, lane: str) -> list[Row]:
    """Make a row of each depth of a thread; a depth never holds two events at once."""
    columns = thread.columns
    deepest = min(int(columns.depth.max(initial=-1)) + 1, MAX_DEPTH)
    rows = []
    for depth in range(deepest):
        here = np.flatnonzero(columns.depth == depth)
        track = Track(
            columns.begin_ns[here],
            columns.end_ns[here],
            columns.channel[here].astype(np.int64),
            columns.label[here].astype(np.int64),
            first + here,
        )
        rows.append(Row(lane, "", track, overview=depth == 0))
    return rows
