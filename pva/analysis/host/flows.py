"""What led to what on the host: the events that flows of a trace leave from and arrive in.

A flow leaves from the innermost event that is open on its thread at that moment, its end with it,
and arrives in one alike; PyTorch's profiler leads so from a launch to its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pva.analysis.timeline.level_of_detail import Tracks
from pva.array_types import Values
from pva.trace import Trace

Rows = tuple[int, int]


@dataclass(frozen=True, slots=True)
class HostFlows:
    """Flows between events of a timeline, in order of time; one row each. Times in nanoseconds.

    `event` and `to_event` are numbers of events, `row` and `to_row` the rows that they stand in,
    `label` is an index into the labels of the trace.
    """

    label: Values
    event: Values
    row: Values
    time: Values
    to_event: Values
    to_row: Values
    to_time: Values


def host_flows(trace: Trace, tracks: Tracks, threads: list[Rows]) -> HostFlows:
    """List the events of all flows of a trace; a flow without an event at an end is left out.

    `threads` are the rows of each thread of the trace, one a depth, the outermost first.
    """
    flows = trace.flows
    event, row = _open_at(tracks, threads, flows.thread, flows.time_ns)
    to_event, to_row = _open_at(tracks, threads, flows.to_thread, flows.to_time_ns)
    both = (event >= 0) & (to_event >= 0)
    columns = (flows.label, event, row, flows.time_ns, to_event, to_row, flows.to_time_ns)
    return HostFlows(*(column[both] for column in columns))


def _open_at(
    tracks: Tracks, threads: list[Rows], thread: Values, time: Values
) -> tuple[Values, Values]:
    """Return the innermost event that is open on a thread at each moment, and its row; -1: none."""
    event, row_of_event = np.full(len(time), -1), np.full(len(time), -1)
    for number in np.unique(thread).tolist():
        points = np.flatnonzero(thread == number)
        for row in range(*threads[number]):
            first, stop = tracks.offset[row : row + 2].tolist()
            places = first - 1 + np.searchsorted(tracks.begin[first:stop], time[points], "right")
            met = places >= first
            met[met] = tracks.ends(places[met]) >= time[points[met]]
            event[points[met]], row_of_event[points[met]] = places[met], row
    return event, row_of_event
