"""Faults of tracing cost events, never the program; the file counts them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from test_pvti_processes import run

import pvti
from pva.trace import Trace

Finish = Callable[[], Trace]


def test_lost_events_are_counted_in_the_file(
    finish: Finish, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    with pvti.Tracepoint(channel, "kept"):
        pass
    monkeypatch.setattr("pvti.tracepoint.json_text", fail)
    monkeypatch.setattr("pvti.spans._told", True)
    for _ in range(3):
        pvti.Tracepoint.event(channel, "lost", {"needs": "more"})
    trace = finish()
    assert [event.label for event in trace.threads[0].events] == ["kept"]
    assert trace.problems == (
        "3 events, or their metadata, were lost to a fault of tracing: RuntimeError: a fault",
    )


def test_a_file_of_an_earlier_writer_has_lost_nothing(
    finish: Finish, trace_path: str, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "kept"):
        pass
    pvti.closeTrace()
    with contextlib.closing(sqlite3.connect(trace_path)) as file:
        file.execute("DROP TABLE lost_events")
    trace = finish()
    assert ([event.label for event in trace.threads[0].events], trace.problems) == (["kept"], ())


def test_labels_of_a_trace_file_have_a_bound(
    finish: Finish, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pvti.buffers.label_room <= 64 << 20
    monkeypatch.setattr("pvti.buffers.label_room", 1500)
    for number in range(1000):
        with pvti.Tracepoint(channel, f"label {number}"):
            pass
    with pvti.Tracepoint(channel, "x" * 2000):  # finds no room, and takes none
        pass
    labels = [event.label for event in finish().threads[0].events]
    assert labels.count("(labels that found no room)") == 1001 - 4
    assert len(channel.keys) == 5


def test_a_million_labels_take_no_more_memory_than_their_room(tmp_path: Path) -> None:
    body = """
import resource
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for number in range(1_000_000):
    with pvti.Tracepoint(channel, f"request {number}"): pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    assert int(run(body, tmp_path)[0]) / 1024 < 160


@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, RecursionError])
def test_no_fault_of_tracing_reaches_the_program(
    finish: Finish,
    channel: pvti.TraceChannel,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[Exception],
) -> None:
    def fail(*_: object) -> None:
        raise fault("a fault")

    series, heatmap = pvti.Graph("graph").addSeries("line"), pvti.HeatmapInt("map", [0, 1])
    with pvti.Tracepoint(channel, "kept"):
        pass
    for name in ("tracepoint.json_text", "tracepoint.find_key", "series._number"):
        monkeypatch.setattr(f"pvti.{name}", fail)
    monkeypatch.setattr("pvti.heatmap._flat", fail)
    pvti.Tracepoint.event(channel, "instant", {"a": 1})
    series.add(1.0)
    heatmap.add([1])
    assert list(pvti.trace("generator", channel)(lambda: (yield 1))()) == [1]
    (problem,) = finish().problems
    assert problem.startswith("4 events, or their metadata, were lost to a fault of tracing: ")
