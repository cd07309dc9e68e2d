"""The flight recorder: the last seconds, in memory, written when they are wanted."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from test_pvti_processes import labels, run, start

import pvti
from pva.trace import openTrace
from pvti import buffers, ring

OPTIONS = '{"mode": "ring", "seconds": 30}'


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Record into a ring of two seconds; files go into this folder."""
    pvti.closeTrace()
    pvti.startTrace(tmp_path, mode="ring", seconds=2)
    yield tmp_path
    pvti.closeTrace()


def written(path: Path | str) -> list[str]:
    """List the labels in a file, in the order of their begin; `*` after those still open."""
    trace = openTrace(path)
    found = [
        event.label + "*" * event.isOpen for thread in trace.threads for event in thread.events
    ]
    trace.close()
    return found


def test_nothing_is_written_before_it_is_asked_for(
    folder: Path, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "x"):
        pass
    assert list(folder.iterdir()) == []


def test_each_time_it_is_asked_for_the_last_seconds_go_into_a_file(
    folder: Path, clock: Any, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.begin(channel, "always")
    with pvti.Tracepoint(channel, "first"):
        pass
    one = pvti.writeTrace()
    clock.skip(1_500_000_000)
    with pvti.Tracepoint(channel, "second"):
        pass
    two = pvti.writeTrace()
    clock.skip(1_500_000_000)
    three = pvti.writeTrace()
    assert len({one, two, three}) == 3
    inner = []
    for path in (one, two, three):
        trace = openTrace(path)
        (always,) = trace.threads[0].events
        assert (always.label, always.isOpen, trace.is_finished) == ("always", True, True)
        inner.append([event.label for event in always.children()])
        trace.close()
    assert inner == [["first"], ["first", "second"], ["second"]]


def test_files_of_a_trace_are_numbered(folder: Path, channel: pvti.TraceChannel) -> None:
    with pvti.Tracepoint(channel, "x"):
        pass
    paths = [pvti.writeTrace() for _ in range(130)]
    stem = paths[0].removesuffix(".pvti")
    assert paths[1:] == [f"{stem}_{number}.pvti" for number in range(2, 131)]
    assert len(list(folder.iterdir())) == 130


def test_closing_writes_what_is_new(folder: Path, channel: pvti.TraceChannel) -> None:
    with pvti.Tracepoint(channel, "x"):
        pass
    path = pvti.writeTrace()
    pvti.closeTrace()
    assert [str(found) for found in folder.iterdir()] == [path]
    pvti.startTrace(folder, mode="ring")
    with pvti.Tracepoint(channel, "y"):
        pass
    pvti.closeTrace()
    assert sorted(written(found) for found in folder.iterdir()) == [["x"], ["y"]]


def test_all_that_is_recorded_is_in_the_file(folder: Path, channel: pvti.TraceChannel) -> None:
    loss = pvti.Graph("Loss").addSeries("train")
    weights = pvti.HeatmapInt("weights", [0, 1, 2])
    for number in range(3):
        with pvti.Tracepoint(channel, "step", {"number": number}):
            loss.add(number)
            weights.add([number])
            pvti.Tracepoint.event(channel, "instant")
    trace = openTrace(pvti.writeTrace())
    assert [event.metadata for event in trace.threads[0].events] == [
        f'{{"number": {number}}}' for number in range(3)
    ]
    assert trace.series[0].value.tolist() == [0, 1, 2]
    assert trace.heatmaps[0].counts.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert len(trace.instants) == 3
    trace.close()


def test_memory_has_a_bound(
    folder: Path, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pvti.Tracepoint(channel, "starts the trace"):
        pass
    monkeypatch.setattr(ring, "BYTES_LIMIT", 16 * 100)
    for number in range(10):
        for _ in range(50):
            with pvti.Tracepoint(channel, f"batch {number}"):
                pass
        pvti.writeTrace()
    assert written(pvti.writeTrace()) == ["batch 8"] * 50 + ["batch 9"] * 50


def test_labels_have_a_bound(
    folder: Path, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pvti.Tracepoint(channel, "known"):
        pass
    monkeypatch.setattr(buffers, "label_room", 1500)
    for number in range(1000):
        with pvti.Tracepoint(channel, f"label {number}"):
            pass
    with pvti.Tracepoint(channel, "known"):
        pass
    found = written(pvti.writeTrace())
    assert (found[0], found[-1], len(found)) == ("known", "known", 1002)
    assert found.count("(labels that found no room)") == 1000 - 4
    assert len(channel.keys) == 6


def test_a_file_that_cannot_be_written_is_one_warning(
    tmp_path: Path, channel: pvti.TraceChannel, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("a file")
    pvti.startTrace(tmp_path / "taken", mode="ring")
    for _ in range(3):
        with pvti.Tracepoint(channel, "x"):
            pass
        pvti.writeTrace()
    pvti.closeTrace()
    error = capsys.readouterr().err
    assert error.count("pvti: tracing stopped") == error.count("\n") == 1


def test_the_environment_can_ask_for_it(tmp_path: Path) -> None:
    body = """
print(pvti.getCurrentTraceFilename())
with pvti.Tracepoint(channel, "x"): pass
print(os.listdir("."))
"""
    name, files = run(body, tmp_path, OPTIONS)[0].splitlines()
    assert files == "[]"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert written(tmp_path) == ["x"]


def test_an_exception_writes_the_last_seconds(tmp_path: Path) -> None:
    body = """
import atexit
atexit.register(os._exit, 1)  # nothing is written after the exception
with pvti.Tracepoint(channel, "before"): pass
pvti.Tracepoint.begin(channel, "then open")
raise RuntimeError("expected")
"""
    process = start(body, tmp_path, OPTIONS)
    err = process.communicate()[1]
    assert err.endswith("RuntimeError: expected\n")
    assert written(tmp_path) == ["before", "then open*"]


def test_an_exception_in_a_thread_writes_them_too(tmp_path: Path) -> None:
    body = """
def fail():
    with pvti.Tracepoint(channel, "in the thread"): raise RuntimeError("expected")
thread = threading.Thread(target=fail)
thread.start(); thread.join()
print(len(os.listdir(".")), flush=True)
os._exit(0)
"""
    process = start(body, tmp_path, OPTIONS)
    out, err = process.communicate()
    assert (out, err.count("RuntimeError: expected")) == ("1\n", 1)
    assert written(tmp_path) == ["in the thread"]


def test_a_thread_that_ends_itself_writes_nothing(tmp_path: Path) -> None:
    body = """
def work():
    with pvti.Tracepoint(channel, "x"): sys.exit()
for _ in range(3):
    thread = threading.Thread(target=work)
    thread.start(); thread.join()
print(len(os.listdir(".")))
"""
    assert run(body, tmp_path, OPTIONS) == ("0\n", "")
    assert written(tmp_path) == ["x"] * 3


def test_a_ring_may_be_longer_than_any_clock(tmp_path: Path) -> None:
    body = "with pvti.Tracepoint(channel, 'x'): pass"
    assert run(body, tmp_path, '{"mode": "ring", "seconds": 1e300}') == ("", "")
    assert written(tmp_path) == ["x"]


def test_hooks_of_the_program_for_exceptions_are_called(tmp_path: Path) -> None:
    body = """
def hook(*raised): print("mine", raised[0].__name__, flush=True)
sys.excepthook = hook
with pvti.Tracepoint(channel, "x"): pass
raise ValueError
"""
    process = start(body, tmp_path, OPTIONS)
    assert process.communicate()[0] == "mine ValueError\n"
    assert written(tmp_path) == ["x"]


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval") or sys.platform == "win32", reason="fork")
def test_a_forked_child_has_a_ring_of_its_own(tmp_path: Path) -> None:
    body = """
with pvti.Tracepoint(channel, "parent"): pass
child = os.fork()
if child == 0:
    with pvti.Tracepoint(channel, "child"): pass
    pvti.closeTrace()
    os._exit(0)
os.waitpid(child, 0)
"""
    run(body, tmp_path, OPTIONS)
    assert sorted(written(path) for path in tmp_path.iterdir()) == [["child"], ["parent"]]


def test_what_is_forgotten_leaves_no_thread_behind(
    folder: Path, clock: Any, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "old"):
        pass
    pvti.writeTrace()
    clock.skip(10_000_000_000)
    path = pvti.writeTrace()
    with closing(sqlite3.connect(path)) as connection:
        tables = ("threads", "event_chunks", "open_spans")
        counts = [connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables]
    assert counts == [0, 0, 0]


def test_a_ring_that_never_stops_recording_keeps_its_labels(tmp_path: Path) -> None:
    body = """
while time.monotonic() < until:
    with pvti.Tracepoint(channel, "step"): time.sleep(0.001)
pvti.writeTrace()
os._exit(0)
"""
    run("until = time.monotonic() + 1\n" + body, tmp_path, '{"mode": "ring", "seconds": 0.5}')
    trace = openTrace(tmp_path)
    steps = labels(trace)
    assert set(steps) == {"step"}
    assert 0 < len(steps) < 900  # of the thousand
    trace.close()
