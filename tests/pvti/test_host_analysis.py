"""Analyses of the host's time, against sums made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pvti
from pva.analysis.host.labels import channel_statistics, label_statistics, longest_events, threads
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
    columns = ["label", "channel", "count", "total_ns", "self_ns", "mean_ns", "max_ns"]
    # Between two readings of the clock pass 1000 ns and what was skipped.
    assert frame[columns].to_dict("records") == [
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


def test_channels_share_out_the_time_inside_events(finish: Finish, clock: Any) -> None:
    left, right = (pvti.createTraceChannel(name) for name in ("left", "right"))
    with pvti.Tracepoint(left, "outer"):
        with pvti.Tracepoint(right, "inner"):
            clock.skip(5000)
        with pvti.Tracepoint(left, "more"):
            pass
    frame = channel_statistics(finish())
    # outer lasts 10,000 ns; inside it inner 6,000 and more 1,000.
    assert frame.to_dict("records") == [
        {"channel": "right", "labels": 1, "events": 1, "self_ns": 6000, "longest_ns": 6000,
         "share": 0.6},
        {"channel": "left", "labels": 2, "events": 2, "self_ns": 4000, "longest_ns": 10000,
         "share": 0.4},
    ]  # fmt: skip


def test_longest_events_stand_by_their_own_time(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    for wait in (3000, 9000):
        with pvti.Tracepoint(channel, "outer"), pvti.Tracepoint(channel, "inner"):
            clock.skip(wait)
    frame = longest_events(finish(), count=3)
    columns = ["label", "duration_ns", "self_ns"]
    # Entering and leaving inner take 1,000 ns each of outer.
    assert frame[columns].to_numpy().tolist() == [
        ["inner", 10000, 10000], ["inner", 4000, 4000], ["outer", 6000, 2000],
    ]  # fmt: skip
    assert frame["begin_ns"].tolist() == [9000, 2000, 1000]
