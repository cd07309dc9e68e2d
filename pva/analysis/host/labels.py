"""Where the host's time goes: by label, and by thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.selection import rows_wanted
from pva.analysis.table import Columns, joined, largest_first, rows_of

if TYPE_CHECKING:
    from pva.trace import Thread, Trace


ORDER = 400  # of its analyses in the catalogue


@analysis(
    "label channel count total_ns:ns self_ns:ns mean_ns:ns min_ns:ns p50_ns:ns p90_ns:ns "
    "p99_ns:ns max_ns:ns",
    label="text of the events",
    channel="channel of the events",
)
def label_statistics(trace: Trace) -> Columns:
    """Sum up the events of each label, the most self time first; times in nanoseconds.

    `self_ns` leaves out what the events directly inside took. `total_ns` counts an event inside
    another of its own label twice. An event still open counts up to the last time known. `p90_ns`
    is what nine of ten take at most, between the two nearest.
    """
    return trace.frames.arrays("labels")


@analysis("channel labels events self_ns:ns longest_ns:ns share:fraction")
def channel_statistics(trace: Trace) -> Columns:
    """Return which channel the host's time goes to: its events, the most self time first.

    `self_ns` leaves out what the events directly inside took, on this channel or another, so that
    the rows add up to the time in which threads were inside events; `share` is of that sum.
    `labels` are the different texts of its events. Times in nanoseconds.
    """
    labels = label_statistics(trace).arrays
    channels, group = np.unique(labels["channel"], return_inverse=True)
    longest = np.zeros(len(channels), dtype=np.int64)
    np.maximum.at(longest, group, labels["max_ns"])
    own_time = summed(group, labels["self_ns"], len(channels))
    columns = {
        "channel": channels,
        "labels": np.bincount(group, minlength=len(channels)),
        "events": summed(group, labels["count"], len(channels)),
        "self_ns": own_time,
        "longest_ns": longest,
        "share": own_time / max(int(own_time.sum()), 1),
    }
    return largest_first(columns, "self_ns")


@analysis("label channel pid tid begin_ns:ns duration_ns:ns self_ns:ns", label="text of the event")
def longest_events(trace: Trace, *, count: int = 20) -> Columns:
    """Return the single events on the host that took longest without what is inside them.

    `self_ns` leaves out what the events directly inside took; `begin_ns` counts from the begin of
    the trace. Times in nanoseconds. `pid` and `tid` name the thread.
    """
    limit = rows_wanted(count)
    parts = [_longest(trace, thread, limit) for thread in trace.threads]
    columns = joined(parts or [dict.fromkeys(_EVENT_COLUMNS, np.zeros(0, dtype=np.int64))])
    return rows_of(columns, np.lexsort((columns["begin_ns"], -columns["self_ns"]))[:limit])


_EVENT_COLUMNS = ("label", "channel", "pid", "tid", "begin_ns", "duration_ns", "self_ns")


def _longest(trace: Trace, thread: Thread, count: int) -> Columns:
    """List the events of one thread with the most self time."""
    columns = thread.columns
    rows = np.argsort(-columns.self_ns, kind="stable")[:count]
    labels = columns.label[rows]
    values = (
        np.array(trace.labels, dtype=object)[labels],
        np.array(trace.channels, dtype=object)[trace.label_channels[labels]],
        np.full(len(rows), thread.pid),
        np.full(len(rows), thread.tid),
        columns.begin_ns[rows],
        columns.duration_ns[rows],
        columns.self_ns[rows],
    )
    return dict(zip(_EVENT_COLUMNS, values, strict=True))


@analysis("pid tid name events depth begin_ns:ns end_ns:ns busy_ns:ns", name="name of the thread")
def threads(trace: Trace) -> Columns:
    """Describe each thread: its events, when it was traced, and how long it was inside events.

    Times in nanoseconds since the trace began; `depth` is the number of levels.
    """
    columns = trace.frames.arrays("threads")
    del columns["process"]
    return columns
