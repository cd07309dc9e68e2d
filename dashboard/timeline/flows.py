"""The flows of a host trace in a window, drawn as arrows: a launch leads to its kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.store import Trace
from pva.analysis.host.flows import HostFlows, host_flows
from pva.array_types import Integers
from pva.plot.host import threads_in_order
from pva.plot.lanes import Lane, Timeline

MAX_DRAWN = 200  # the longest that touch a window
MAX_CHOSEN = 1000  # of the chosen event


def flows_of(trace: Trace, timeline: Timeline) -> HostFlows:
    """Return the events of a timeline of threads that the flows of its trace join."""
    threads = [(0, 0)] * len(trace.threads)
    lanes = (lane for lane in timeline.lanes if "derived" not in lane.kinds)
    for (number, _, _), lane in zip(threads_in_order(trace), lanes, strict=True):
        threads[number] = lane.first + lane.kinds.count("flag"), lane.stop
    return host_flows(trace, timeline.tracks, threads)


def flows_in(
    flows: HostFlows, rows: Integers, window: tuple[int, int], event: int
) -> dict[str, list[int]]:
    """Return the longest flows that touch a window, and those of an event, which are `chosen`.

    `rows` are those that the rows of the timeline of threads are shown as.
    """
    low, high = np.minimum(flows.time, flows.to_time), np.maximum(flows.time, flows.to_time)
    places = np.flatnonzero((high >= window[0]) & (low < window[1]))
    length = (high - low)[places]
    places = places[np.argsort(-length, kind="stable")[:MAX_DRAWN]]
    chosen = flows_at(flows, event)
    places = np.union1d(places, chosen)
    columns = {
        "row": rows[flows.row[places]],
        "to_row": rows[flows.to_row[places]],
        "begin": flows.time[places],
        "end": flows.to_time[places],
        "chosen": np.isin(places, chosen).astype(np.int64),
    }
    return {name: column.tolist() for name, column in columns.items()}


def flows_at(flows: HostFlows, event: int) -> Integers:
    """Return the flows that leave from an event or arrive in it, the first of many."""
    mine = (flows.event == event) | (flows.to_event == event)
    return np.flatnonzero(mine & (event >= 0))[:MAX_CHOSEN]


def shown_rows(threads: Sequence[Lane], shown: Sequence[Lane], count: int) -> Integers:
    """Return as which row each of `count` rows of threads is shown, where those are merged."""
    rows = np.zeros(count, dtype=np.int64)
    merged = {lane.path: lane for lane in shown}
    for lane in threads:
        of = lane if shown is threads else merged[lane.path]
        flags, of_flags = lane.kinds.count("flag"), of.kinds.count("flag")
        events = np.arange(lane.first + flags, lane.stop)
        rows[events] = events - lane.first - flags + of.first + of_flags
        rows[lane.first : lane.first + flags] = of.first
    return rows
