"""With the C accelerator and without it: the same tests, and faults that must not get out."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pvti
from pva.trace import Trace
from pvti.schema import CHUNK_RECORDS

Finish = Callable[[], Trace]
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRITING = (
    "crashes",
    "endings",
    "file",
    "forks",
    "instrument",
    "names",
    "processes",
    "ring",
    "series",
    "signals",
    "tasks",
    "tracepoint",
)


def python(*arguments: str, accelerator: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PVTI_ACCELERATOR": accelerator}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_it_says_whether_it_is_accelerated() -> None:
    built = importlib.util.find_spec("pvti._accelerator") is not None
    for accelerator, expected in (("0", False), ("1", built)):
        done = python("-c", "import pvti; print(pvti.accelerated)", accelerator=accelerator)
        assert done.stdout == f"{expected}\n", done.stderr


@pytest.mark.skipif(not pvti.accelerated, reason="not built: all tests run without it as they are")
@pytest.mark.parametrize("part", WRITING)
def test_the_same_tests_pass_without_it(part: str) -> None:
    tests = str(HERE / f"test_pvti_{part}.py")
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", tests, accelerator="0")
    assert done.returncode == 0, done.stdout


def test_a_label_may_be_anything(finish: Finish, channel: pvti.TraceChannel) -> None:
    class Nameless:
        def __str__(self) -> str:
            raise RuntimeError("no name")

    label: Any
    for label in (["a", "list"], 3, None, Nameless()):
        with pvti.Tracepoint(channel, label):
            pvti.Tracepoint.begin(channel, label)
            pvti.Tracepoint.end(channel, label)
        pvti.Tracepoint.event(channel, label)
    trace = finish()
    assert [event.label for event in trace.threads[0].events] == [
        "['a', 'list']", "3", "None", "<Nameless>",
    ]  # fmt: skip
    assert trace.problems == ()


@pytest.mark.parametrize("method", ["__hash__", "__eq__"])
def test_a_label_may_be_a_text_that_is_no_key(
    finish: Finish, channel: pvti.TraceChannel, method: str
) -> None:
    def fail(*_: object) -> Any:
        raise RuntimeError("no key")

    odd = type("Odd", (str,), {"__hash__": str.__hash__, method: fail})
    for label in ("x", odd("x")):
        with pvti.Tracepoint(channel, label):
            pvti.Tracepoint.begin(channel, label)
            pvti.Tracepoint.end(channel, label)
    assert [event.label for event in finish().threads[0].events] == ["x", "x"]


def test_metadata_may_be_anything(finish: Finish, channel: pvti.TraceChannel) -> None:
    circular: dict[str, Any] = {}
    circular["self"] = circular
    given: Any
    for given in ({"a": {1, 2}}, circular, {(1, 2): 3}, object, float("nan")):
        with pvti.Tracepoint(channel, "x", given):
            pass
    found = [event.metadata for event in finish().threads[0].events]
    assert found == [
        '{"a": "{1, 2}"}', "\"{'self': {...}}\"", '"{(1, 2): 3}"', "\"<class 'object'>\"", "NaN",
    ]  # fmt: skip


KEYS = st.integers(1, 4)
TIMES = st.integers(0, 1 << 34)
OPERATIONS = st.lists(
    st.tuples(st.just("push"), KEYS, TIMES)
    | st.tuples(st.just("end"), KEYS, TIMES)
    | st.tuples(st.just("end"), KEYS, TIMES, TIMES | st.just(-1))
    | st.tuples(st.just("drop"), KEYS, TIMES)
    | st.tuples(st.just("spans"))
    | st.tuples(st.just("pack")),
    max_size=60,
)


@pytest.mark.skipif(not pvti.accelerated, reason="not built: there is nothing to compare")
@settings(max_examples=300, deadline=None)
@given(operations=OPERATIONS)
def test_spans_in_c_are_those_in_python(operations: list[tuple[Any, ...]]) -> None:
    from pvti import _accelerator, spans

    one, other = _accelerator.Spans(), spans.Spans()
    for name, *arguments in [*operations, ("pack",), ("spans",)]:
        assert getattr(one, name)(*arguments) == getattr(other, name)(*arguments)
        if name == "pack":
            assert (one.chunks, one.long_events) == (
                other.chunks,
                other.long_events,
            )
    assert one.due == other.due == spans.NEVER_DUE


@pytest.mark.skipif(not pvti.accelerated, reason="not built: there is nothing to compare")
def test_chunks_in_c_are_cut_where_those_in_python_are() -> None:
    from pvti import _accelerator, spans

    one, other = _accelerator.Spans(), spans.Spans()
    for both in (one, other):
        for number in range(2 * CHUNK_RECORDS + 10):
            both.push(7, 100 + 3 * number)
            both.end(7, 101 + 3 * number)
        both.pack()
    assert one.chunks == other.chunks
    assert [chunk[0] for chunk in one.chunks] == [CHUNK_RECORDS, CHUNK_RECORDS, 10]


def test_arguments_may_be_named(finish: Finish, channel: pvti.TraceChannel) -> None:
    with pvti.Tracepoint(label="block", channel=channel, metadata={"a": 1}):
        pvti.Tracepoint.begin(channel, label="pair")
        pvti.Tracepoint.end(label="pair", channel=channel)
        pvti.Tracepoint.event(channel=channel, label="instant")
    (block,) = finish().threads[0].events
    assert (block.label, [event.label for event in block.children()]) == ("block", ["pair"])
    call: Any = pvti.Tracepoint.begin
    for named in ({}, {"label": "x"}, {"channel": channel}, {"other": 1}):
        with pytest.raises(TypeError):
            call(**named)
    with pytest.raises(TypeError):
        call(channel, "x", channel=channel)


def test_what_is_no_channel_is_refused() -> None:
    nothing: Any = "channel"
    with pytest.raises((TypeError, AttributeError)):
        pvti.Tracepoint(nothing, "x")
    with pytest.raises((TypeError, AttributeError)):
        pvti.Tracepoint.begin(nothing, "x")


def test_a_fault_while_recording_does_not_reach_the_program(
    trace_path: str,
    channel: pvti.TraceChannel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("pvti.buffers.Track.finish", fail)
    monkeypatch.setattr("pvti.spans._told", False)
    with pvti.Tracepoint(channel, "x", {"needs": "more"}):
        pvti.Tracepoint.end(channel, "no begin")
    assert capsys.readouterr().err == "pvti: an event was lost: RuntimeError: a fault\n"


def test_tracepoints_are_freed_with_what_they_hold(channel: pvti.TraceChannel) -> None:
    class Held:
        pass

    held = Held()
    point = pvti.Tracepoint(channel, "x", {"held": held})
    gone = weakref.ref(held)
    del held, point
    gc.collect()
    assert gone() is None


def test_events_of_threads_that_are_gone_are_kept(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    def work() -> None:
        with pvti.Tracepoint(channel, "work"):
            pass

    for _ in range(200):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    trace = finish()
    assert sum(len(thread.columns) for thread in trace.threads) == 200


def test_events_of_threads_that_come_and_go_during_a_commit_are_kept(
    finish: Finish, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pvti.writer import TraceFile

    def work() -> None:
        with pvti.Tracepoint(channel, "work"):
            pass

    def write(file: TraceFile, *arguments: Any) -> bool:
        for _ in range(5):  # each has the identifier of the one before
            thread = threading.Thread(target=work, name="worker")
            thread.start()
            thread.join()
        return original(file, *arguments)

    original = TraceFile.write
    monkeypatch.setattr(TraceFile, "write", write)
    for _ in range(3):
        work()
        pvti.writeTrace()
    monkeypatch.undo()
    trace = finish()
    assert sum(len(thread.columns) for thread in trace.threads) >= 3 * (1 + 5)


def test_what_the_garbage_collector_records_is_kept(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    class Loud:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with pvti.Tracepoint(channel, "deleted"):
                pass

    for _ in range(3000):
        with pvti.Tracepoint(channel, "made"):
            Loud()
    gc.collect()
    trace = finish()
    names = [trace.labels[i] for i in trace.threads[0].columns.label]
    assert (names.count("made"), names.count("deleted")) == (3000, 3000)


def test_one_tracepoint_in_a_thread_and_in_tasks_at_once(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    shared = pvti.Tracepoint(channel, "shared")

    async def work() -> None:
        for _ in range(100):
            with shared:
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work(), work())

    def plain() -> None:
        for _ in range(1000):
            with shared:
                pass

    threads = [threading.Thread(target=plain), threading.Thread(target=lambda: asyncio.run(both()))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace = finish()
    assert sorted(len(thread.columns) for thread in trace.threads) == [100, 100, 1000]
    assert all(set(thread.columns.depth.tolist()) == {0} for thread in trace.threads)
