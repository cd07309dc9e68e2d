"""Analyses of the host's time, against sums made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pvti
from pva.analysis.host import label_statistics, threads
from pva.trace import Trace

Finish = Callable[[], Trace]


def test_labels_are_summed_with_and_without_what_is_inside(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    for wait in (5000, 1000):
        with pvti.Tracepoint(channel, "outer"):
            with pvti.Tracepoint(channel, "inner"):
                clock.skip(wait)
            with pvti.Tracepoint(channel, "inner"):
                pass
    frame = label_statistics(finish())
    # Between two readings of the clock pass 1000 ns and what was skipped.
    assert frame.to_dict("records") == [
        {"label": "inner", "channel": channel.name, "count": 4, "total_ns": 10000,
         "self_ns": 10000, "mean_ns": 2500.0, "max_ns": 6000},
        {"label": "outer", "channel": channel.name, "count": 2, "total_ns": 16000,
         "self_ns": 6000, "mean_ns": 8000.0, "max_ns": 10000},
    ]  # fmt: skip


def test_one_label_on_two_channels_is_two_rows(finish: Finish) -> None:
    for name in ("left", "right"):
        with pvti.Tracepoint(pvti.createTraceChannel(name), "both"):
            pass
    frame = label_statistics(finish())
    assert sorted(frame["channel"]) == ["left", "right"]
    assert frame["count"].tolist() == [1, 1]


def test_a_thread_is_described_by_its_outermost_events(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "a"), pvti.Tracepoint(channel, "b"):
        pass
    clock.skip(10_000)
    with pvti.Tracepoint(channel, "c"):
        pass
    (row,) = threads(finish()).to_dict("records")
    assert {key: row[key] for key in ("events", "depth", "begin_ns", "end_ns", "busy_ns")} == {
        "events": 3, "depth": 2, "begin_ns": 1000, "end_ns": 16000, "busy_ns": 4000,
    }  # fmt: skip


def test_a_trace_without_events_has_no_labels(finish: Finish) -> None:
    pvti.Graph("g").addSeries("s").add(1)
    trace = finish()
    assert len(label_statistics(trace)) == 0
    assert threads(trace)["events"].tolist() == [0]
