"""Host traces in the formats of other viewers hold the events of the trace."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

import pvti
from pva.formats.traces import chrome_trace
from pva.trace import Trace

Finish = Callable[[], Trace]


def traced(finish: Finish) -> Trace:
    """Record one of each: outer from 1 us to 5, an instant in it, two that overlap."""
    channel = pvti.createTraceChannel('work "A"')
    with pvti.Tracepoint(channel, "outer"):
        with pvti.Tracepoint(channel, "inner <1>", pvti.createJsonMetadata({"x": 1})):
            pass
        pvti.Tracepoint.event(channel, "here", pvti.createJsonMetadata([2]))
    pvti.Tracepoint.begin(channel, "first")
    pvti.Tracepoint.begin(channel, "second")
    pvti.Tracepoint.end(channel, "first")
    pvti.Tracepoint.end(channel, "second")
    loss = pvti.Graph("Loss", "nats").addSeries("train")
    loss.add(2.5)
    loss.add(float("nan"))
    return finish()


def chrome(trace: Trace) -> dict[str, Any]:
    out = io.BytesIO()
    chrome_trace.write(trace, out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_chrome_has_each_event_with_its_times(finish: Finish, clock: Any) -> None:
    events = chrome(traced(finish))["traceEvents"]
    complete = {e["name"]: (e["ts"], e["dur"], e["cat"]) for e in events if e["ph"] == "X"}
    assert complete == {
        "outer": (1, 4, 'work "A"'), "inner <1>": (2, 1, 'work "A"'), "first": (6, 2, 'work "A"'),
    }  # fmt: skip
    assert next(e["args"] for e in events if e["name"] == "inner <1>") == {"metadata": {"x": 1}}
    (instant,) = [e for e in events if e["name"] == "here"]
    assert (instant["ph"], instant["ts"], instant["args"]) == ("i", 4, {"metadata": [2]})


def test_chrome_pairs_what_lies_across_the_end_of_another(finish: Finish, clock: Any) -> None:
    events = chrome(traced(finish))["traceEvents"]
    pairs: dict[str, list[tuple[str, int]]] = {}
    for event in events:
        if event["ph"] in "be":
            pairs.setdefault(event["id"], []).append((event["name"], event["ts"]))
    assert list(pairs.values()) == [[("second", 7), ("second", 9)]]


def test_chrome_counts_series_and_tells_the_wall_clock(finish: Finish, clock: Any) -> None:
    trace = traced(finish)
    found = chrome(trace)
    (counter,) = [e for e in found["traceEvents"] if e["ph"] == "C"]
    assert (counter["name"], counter["args"]) == ("Loss (nats)", {"train": 2.5})
    assert found["otherData"] == {
        "wall_clock_ns": trace.anchor.wall_ns, "duration_ns": trace.duration_ns, "finished": True,
    }  # fmt: skip


def test_chrome_of_many_events_is_written_in_parts(
    finish: Finish, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        with pvti.Tracepoint(channel, f"step {number % 3}"):
            pass
    trace = finish()
    whole = chrome(trace)
    monkeypatch.setattr(chrome_trace, "BATCH", 7)
    assert chrome(trace) == whole
    assert sum(event["ph"] == "X" for event in whole["traceEvents"]) == 20


def test_an_event_that_had_not_ended_says_so(finish: Finish, channel: pvti.TraceChannel) -> None:
    pvti.Tracepoint.begin(channel, "never ends")
    events = chrome(finish())["traceEvents"]
    assert [e["args"] for e in events if e["name"] == "never ends"] == [{"open": True}]


def test_chrome_counts_the_bins_of_heatmaps(finish: Finish, clock: Any) -> None:
    pvti.HeatmapInt("weights", [0, 1, 2], "2^x").add([0, 0, 1, 9])
    (counter,) = [e for e in chrome(finish())["traceEvents"] if e["ph"] == "C"]
    assert counter["args"] == {"0 to 1 2^x": 2, "1 to 2 2^x": 1, "above 2 2^x": 1}
    assert (counter["name"], counter["ts"]) == ("weights", 1)  # microseconds
