"""What fields of Chrome trace JSON hold besides the plain: arguments, identities, large times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pva.trace import Trace, openTrace


def trace_of(tmp_path: Path, *events: dict[str, Any]) -> Trace:
    """Write events, each with what all have unless it says otherwise, and open them."""
    common = {"pid": 1, "tid": 2, "name": "a", "cat": "c"}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([common | event for event in events]))
    return openTrace(path)


def points(trace: Trace) -> list[list[Any]]:
    frame = trace.frames.series()[["graph", "series", "time_ns", "value"]]
    return [*frame.astype(object).where(frame.notna(), None).to_numpy().tolist()]


def test_a_counter_with_a_value_that_is_nan_keeps_all_its_values(tmp_path: Path) -> None:
    nan = float("nan")
    trace = trace_of(tmp_path, {"ph": "C", "ts": 1, "args": {"loss": nan, "rate": 0.5}})
    assert points(trace) == [["a", "loss", 0, None], ["a", "rate", 0, 0.5]]
    assert trace.series[0].value.tolist() == pytest.approx([nan], nan_ok=True)


def test_a_counter_without_values_is_told(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, {"ph": "C", "ts": 1}, {"ph": "X", "ts": 1, "dur": 1})
    assert trace.problems == ("1 event of a counter without values, left out",)


def test_counters_of_one_name_with_identities_are_several(tmp_path: Path) -> None:
    values = {"ph": "C", "ts": 1}
    trace = trace_of(
        tmp_path,
        values | {"args": {"v": 1}},
        values | {"id": 7, "args": {"v": 2}},
        values | {"id": "0x8", "args": {"v": 3}},
    )
    assert points(trace) == [["a", "v", 0, 1.0], ["a [7]", "v", 0, 2.0], ["a [0x8]", "v", 0, 3.0]]


def test_arguments_of_ends_join_those_of_their_begins(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"ph": "B", "ts": 1, "args": {"x": 1, "k": "begin"}},
        {"ph": "B", "ts": 2},
        {"ph": "E", "ts": 3, "args": {"inner": 2}},
        {"ph": "E", "ts": 4, "args": {"y": "ä", "k": "end"}},
        {"ph": "b", "ts": 5, "id": 1},
        {"ph": "e", "ts": 6, "id": 1, "args": {"z": 3}},
    )
    told = [json.loads(text) for text in trace.frames.events()["metadata"]]
    assert told == [{"x": 1, "k": "end", "y": "ä"}, {"inner": 2}, {"z": 3}]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ([1], {"x": 2}, [[1], {"x": 2}]),
        ({"x": float("inf")}, {"y": 2}, {"x": float("inf"), "y": 2}),
    ],
)
def test_arguments_that_are_not_plain_join_too(
    tmp_path: Path, first: Any, second: Any, told: Any
) -> None:
    events = {"ph": "B", "ts": 1, "args": first}, {"ph": "E", "ts": 2, "args": second}
    (found,) = trace_of(tmp_path, *events).frames.events()["metadata"]
    assert json.loads(found) == told


def test_an_open_event_keeps_its_arguments(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, {"ph": "B", "ts": 1, "args": {"x": 1}}, {"ph": "i", "ts": 2})
    assert trace.frames.events()[["open", "metadata"]].to_numpy().tolist() == [[True, '{"x": 1}']]


def test_times_since_1970_are_exact_to_the_microsecond(tmp_path: Path) -> None:
    begin = 1_790_857_026_000_001
    trace = trace_of(
        tmp_path,
        {"ph": "X", "ts": begin, "dur": 1},
        {"ph": "X", "ts": begin + 1, "dur": 3},
        {"ph": "C", "ts": begin + 2, "args": {"v": 1}},
    )
    assert trace.frames.events()["begin_ns"].tolist() == [0, 1000]
    assert trace.frames.events()["depth"].tolist() == [0, 0]
    assert points(trace) == [["a", "v", 2000, 1.0]]
    assert trace.anchor.wall_ns == 1000 * begin


def test_times_of_fifty_days_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    # As PyTorch writes them; the nearest doubles lie up to half a nanosecond beside them.
    fractions = range(1000)
    events = ({"ph": "X", "ts": 4_495_550_086_420 + n / 1000, "dur": 0} for n in fractions)
    assert trace_of(tmp_path, *events).frames.events()["begin_ns"].tolist() == [*fractions]


def test_a_text_and_a_number_below_0_are_two_processes(tmp_path: Path) -> None:
    complete = {"ph": "X", "ts": 1, "dur": 1}
    trace = trace_of(tmp_path, complete | {"pid": "Spans"}, complete | {"pid": -1})
    assert [(process.pid, process.name) for process in trace.processes] == [(-2, "Spans"), (-1, "")]


def test_a_name_that_is_null_is_no_name(tmp_path: Path) -> None:
    event = {"ph": "X", "ts": 1, "dur": 1, "name": None, "cat": None, "pid": None, "tid": None}
    trace = trace_of(tmp_path, event)
    assert [(one.name, one.threads[0].name) for one in trace.processes] == [("", "")]
    assert trace.labels == ("",)
    assert trace.channels == ("no category",)
