"""Flows of Chrome trace JSON: which points lead to which, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pva.formats.traces import chrome_trace
from pva.trace import Trace, openTrace
from tests.formats.test_chrome_trace import trace_of

ON = {"ph": "X", "ts": 0, "dur": 100}


def led(tmp_path: Path, *points: tuple[Any, ...], **more: Any) -> tuple[list[Any], Trace]:
    """Return the arrows between points (phase, microseconds, thread), and their trace."""
    events = [{"ph": ph, "ts": ts, "tid": tid, "id": 1, **more} for ph, ts, tid in points]
    trace = trace_of(tmp_path, ON, ON | {"tid": 3}, *events)
    return arrows(trace), trace


def arrows(trace: Trace) -> list[Any]:
    tid = [thread.tid for thread in trace.threads]
    rows = trace.frames.flows()[["thread", "time_ns", "to_thread", "to_time_ns"]].to_numpy()
    return [(tid[of], begin // 1000, tid[to], end // 1000) for of, begin, to, end in rows]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([("s", 1, 2), ("f", 4, 3)], [(2, 1, 3, 4)]),
        ([("f", 4, 3), ("s", 1, 2)], [(2, 1, 3, 4)]),  # the order of the file does not matter
        ([("s", 1, 2), ("t", 3, 3), ("f", 4, 2)], [(2, 1, 3, 3), (3, 3, 2, 4)]),
        ([("s", 1, 2), ("f", 4, 3), ("f", 6, 3)], [(2, 1, 3, 4), (2, 1, 3, 6)]),
        ([("s", 1, 2), ("f", 2, 3), ("s", 5, 2), ("f", 6, 3)], [(2, 1, 3, 2), (2, 5, 3, 6)]),
        ([("s", 5, 2), ("f", 4, 3)], [(2, 5, 3, 4)]),  # the clock of the device is behind
        ([("s", 5, 2)], []),
    ],
)
def test_each_pass_and_end_is_led_to_by_the_point_before(
    tmp_path: Path, points: list[Any], expected: list[Any]
) -> None:
    found, trace = led(tmp_path, *points)
    assert (found, trace.problems) == (expected, ())


@pytest.mark.parametrize("identity", [7, "0x7", -7, 1 << 62, [7]])
def test_a_flow_is_of_one_category_name_and_identity(tmp_path: Path, identity: Any) -> None:
    flow = {"ts": 1, "id": identity}
    trace = trace_of(
        tmp_path,
        ON,
        {"ph": "s", **flow},
        {"ph": "f", **flow, "ts": 2},
        {"ph": "f", **flow, "ts": 3, "cat": "other"},
        {"ph": "f", **flow, "ts": 4, "name": "other"},
        {"ph": "f", **flow, "ts": 5, "id": "another"},
    )
    assert arrows(trace) == [(2, 1, 2, 2)]
    assert trace.problems == ("3 events of a flow without a start left out",)


def test_a_flow_to_a_thread_without_events_is_left_out_and_told(tmp_path: Path) -> None:
    found, trace = led(tmp_path, ("s", 1, 2), ("f", 4, 99), ("f", 5, 3))
    assert found == [(2, 1, 3, 5)] and len(trace.threads) == 2
    problem = "1 event of a flow on threads without events left out"
    assert trace.problems == (problem,)


def test_flows_without_a_time_are_told(tmp_path: Path) -> None:
    found, trace = led(tmp_path, ("s", "soon", 2), ("f", 4, 3))
    assert found == []
    assert "1 event of a flow without a time that can be, left out" in trace.problems


def test_flows_of_several_files_keep_their_threads(tmp_path: Path) -> None:
    paths = []
    for name, tid in (("one", 2), ("none", 2), ("two", 3)):
        flow = [{"ph": "s", "ts": 1, "id": 1}, {"ph": "f", "ts": 4, "tid": tid, "id": 1}]
        trace_of(tmp_path, ON, ON | {"tid": 3}, *(flow if name != "none" else ()))
        paths.append((tmp_path / "trace.json").rename(tmp_path / f"{name}.json"))
    assert arrows(openTrace(paths)) == [(2, 1, 2, 4), (2, 1, 3, 4)]


def test_flows_that_were_exported_are_there_again(tmp_path: Path) -> None:
    found, trace = led(tmp_path, ("s", 1, 2), ("t", 3, 3), ("f", 4, 2))
    with (tmp_path / "again.json").open("wb") as out:
        chrome_trace.write(trace, out)
    assert arrows(openTrace(tmp_path / "again.json")) == found
