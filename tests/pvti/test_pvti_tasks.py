"""Tasks and threads stay apart: each task that runs has a track of its own."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pvti
from pva.trace import Trace

Finish = Callable[[], Trace]


def shape(events: Any) -> list[Any]:
    return [(event.label, shape(event.children())) for event in events]


def tracks(trace: Trace) -> dict[str, list[Any]]:
    return {thread.name: shape(thread.events) for thread in trace.threads}


def test_interleaved_tasks_keep_their_own_spans(finish: Finish, channel: pvti.TraceChannel) -> None:
    shared = pvti.Tracepoint(channel, "request")

    async def work(name: str, turns: list[int]) -> None:
        with shared:
            for turn in turns:
                with pvti.Tracepoint(channel, f"{name} {turn}"):
                    await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work("a", [1, 2]), work("b", [1, 2, 3]))

    with pvti.Tracepoint(channel, "around"):
        asyncio.run(both())
    trace = finish()
    assert tracks(trace) == {
        "MainThread": [("around", [])],
        "MainThread: task 1": [("request", [("a 1", []), ("a 2", [])])],
        "MainThread: task 2": [("request", [("b 1", []), ("b 2", []), ("b 3", [])])],
    }
    assert trace.problems == ()
    assert len({thread.tid for thread in trace.threads}) == 3


def test_the_spans_of_a_task_begin_and_end_by_calls_too(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    async def work() -> None:
        pvti.Tracepoint.begin(channel, "pair")
        await asyncio.sleep(0.001)
        pvti.Tracepoint.event(channel, "instant")
        pvti.Tracepoint.end(channel, "pair")

    async def many() -> None:
        await asyncio.gather(*(work() for _ in range(5)))

    asyncio.run(many())
    trace = finish()
    assert [shape(thread.events) for thread in trace.threads] == [[("pair", [])]] * 5
    assert trace.problems == ()
    assert sorted(trace.instants.thread.tolist()) == [0, 1, 2, 3, 4]


def test_tasks_that_follow_each_other_share_a_track(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    async def work() -> None:
        with pvti.Tracepoint(channel, "work"):
            await asyncio.sleep(0)

    async def follow() -> None:
        for _ in range(50):
            await asyncio.create_task(work())
            await asyncio.sleep(0)

    asyncio.run(follow())
    trace = finish()
    assert tracks(trace) == {"MainThread: task 1": [("work", [])] * 50}


def test_a_task_with_a_name_has_a_track_of_that_name(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    async def work() -> None:
        with pvti.Tracepoint(channel, "work"):
            await asyncio.sleep(0)

    async def named() -> None:
        names = ("reader", "writer", "writer")
        await asyncio.gather(*(asyncio.create_task(work(), name=name) for name in names))

    asyncio.run(named())
    assert sorted(tracks(finish())) == [
        "MainThread: reader", "MainThread: writer", "MainThread: writer 2",
    ]  # fmt: skip


def test_a_span_may_end_in_another_task_of_its_thread(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    async def begin() -> None:
        pvti.Tracepoint.begin(channel, "handed on")

    async def both() -> None:
        await asyncio.create_task(begin())
        pvti.Tracepoint.end(channel, "handed on")

    asyncio.run(both())
    trace = finish()
    assert [shape(thread.events) for thread in trace.threads] == [[("handed on", [])]]
    assert trace.problems == ()


def test_the_end_of_another_thread_is_no_end(finish: Finish, channel: pvti.TraceChannel) -> None:
    pvti.Tracepoint.begin(channel, "mine")
    other = threading.Thread(target=pvti.Tracepoint.end, args=(channel, "mine"))
    other.start()
    other.join()
    trace = finish()
    assert trace.problems == ("1 end without a begin was left out",)
    assert trace.threads[0].events[0].isOpen


def test_a_copied_context_is_no_task(finish: Finish, channel: pvti.TraceChannel) -> None:
    def inside() -> None:
        with pvti.Tracepoint(channel, "inside"):
            pass

    with pvti.Tracepoint(channel, "outside"):
        contextvars.copy_context().run(inside)
    assert tracks(finish()) == {"MainThread": [("outside", [("inside", [])])]}


def test_work_handed_to_a_thread_stands_in_that_thread(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    def inside() -> None:
        with pvti.Tracepoint(channel, "inside"):
            pass

    async def outside() -> None:
        with pvti.Tracepoint(channel, "outside"):
            await asyncio.to_thread(inside)

    asyncio.run(outside())
    found = tracks(finish())
    assert found.pop("MainThread: task 1") == [("outside", [])]
    assert list(found.values()) == [[("inside", [])]]


def test_an_abandoned_asynchronous_generator_ends_where_it_began(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    @pvti.instrument_fn(channel)
    async def values() -> Any:
        yield 1
        yield 2

    async def use() -> None:
        async for _ in values():
            break
        with pvti.Tracepoint(channel, "next"):
            await asyncio.sleep(0.01)  # the loop closes the generator in a task of its own

    asyncio.run(use())
    trace = finish()
    assert len(trace.threads) == 1
    assert not any(trace.threads[0].columns.is_open)


def test_loops_in_several_threads_stay_apart(finish: Finish, channel: pvti.TraceChannel) -> None:
    async def work(name: str) -> None:
        with pvti.Tracepoint(channel, name):
            await asyncio.sleep(0.001)

    async def several(name: str) -> None:
        await asyncio.gather(work(name), work(name))

    threads = [
        threading.Thread(target=lambda n=name: asyncio.run(several(n)), name=name)
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tracks(finish()) == {
        f"{name}: task {number}": [(name, [])] for name in ("one", "two") for number in (1, 2)
    }
