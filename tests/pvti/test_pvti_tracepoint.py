"""What a program traces is what the file gives back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pvti
from pva.model.host_trace.events import Event
from pva.trace import Trace, openTrace

Finish = Callable[[], Trace]
Tree = list[Any]


def shape(events: Any) -> Tree:
    return [(event.label, shape(event.children())) for event in events]


def test_blocks_nest_as_the_program_nests_them(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "outer"):
        with pvti.Tracepoint(channel, "first"):
            pass
        with pvti.Tracepoint(channel, "second"), pvti.Tracepoint(channel, "third"):
            pass
    trace = finish()
    (thread,) = trace.threads
    assert shape(thread.events) == [("outer", [("first", []), ("second", [("third", [])])])]
    outer = thread.events[0]
    # The clock is read once a begin and once an end: 8 times, a microsecond apart.
    assert (outer.timestamp, outer.duration) == (1, 7)
    assert [(e.timestamp, e.duration) for e in outer.children()] == [(2, 1), (4, 3)]
    assert outer.channel == channel.name


def test_begin_and_end_are_a_block(finish: Finish, clock: Any, channel: pvti.TraceChannel) -> None:
    pvti.Tracepoint.begin(channel, "outer")
    pvti.Tracepoint.begin(channel, "inner")
    pvti.Tracepoint.end(channel, "inner")
    pvti.Tracepoint.end(channel, "outer")
    trace = finish()
    assert shape(trace.threads[0].events) == [("outer", [("inner", [])])]
    assert trace.problems == ()


def test_an_exception_ends_its_blocks_and_goes_on(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    outer, inner = (pvti.Tracepoint(channel, label) for label in ("outer", "inner"))
    with pytest.raises(KeyError, match="mine"), outer, inner:
        raise KeyError("mine")
    assert shape(finish().threads[0].events) == [("outer", [("inner", [])])]


def test_an_end_without_a_begin_is_counted_and_breaks_nothing(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.end(channel, "never begun")
    with pvti.Tracepoint(channel, "block"):
        pvti.Tracepoint.end(channel, "another")
    trace = finish()
    assert shape(trace.threads[0].events) == [("block", [])]
    assert trace.problems == ("2 ends without a begin were left out",)


def test_one_end_without_a_begin_is_said_in_the_singular(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.end(channel, "never begun")
    trace = finish()
    assert trace.problems == ("1 end without a begin was left out",)
    assert repr(trace).endswith("processes 1>")


def test_blocks_of_a_disabled_channel_are_no_ends_without_a_begin(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    block = pvti.Tracepoint(channel, "begun while disabled")
    pvti.disableTraceChannel(channel)
    with pvti.Tracepoint(channel, "block"):
        pvti.Tracepoint.begin(channel, "pair")
        pvti.Tracepoint.end(channel, "pair")
    with block:
        pvti.enableTraceChannel(channel)
    assert finish().problems == ()


def test_a_begin_without_an_end_is_shown_as_open(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.begin(channel, "forgotten")
    with pvti.Tracepoint(channel, "block"):
        pass
    clock.skip(10_000)
    forgotten = finish().threads[0].events[0]
    assert (forgotten.label, forgotten.isOpen, forgotten.duration) == ("forgotten", True, 12)
    assert [(e.label, e.isOpen) for e in forgotten.children()] == [("block", False)]


def test_ends_in_another_order_overlap(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.begin(channel, "a")  # 1 us
    pvti.Tracepoint.begin(channel, "b")  # 2
    pvti.Tracepoint.end(channel, "a")  # 3
    pvti.Tracepoint.end(channel, "b")  # 4
    columns = finish().threads[0].columns
    assert columns.begin_ns.tolist() == [1000, 2000]
    assert columns.end_ns.tolist() == [3000, 4000]
    assert columns.kind.tolist() == [1, 0]
    assert columns.depth.tolist() == [0, 1]
    assert columns.self_ns.tolist() == [1000, 2000]


def test_an_event_of_more_than_four_seconds_keeps_its_duration(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "long"), pvti.Tracepoint(channel, "short"):
        clock.skip(2**32 - 1001)
    columns = finish().threads[0].columns
    assert (columns.end_ns - columns.begin_ns).tolist() == [2**32 + 1999, 2**32 - 1]
    assert columns.depth.tolist() == [0, 1]


def test_one_tracepoint_serves_nested_blocks(finish: Finish, channel: pvti.TraceChannel) -> None:
    again = pvti.Tracepoint(channel, "again")
    with again, again, again:
        pass
    assert shape(finish().threads[0].events) == [("again", [("again", [("again", [])])])]


def test_each_thread_has_its_own_events(finish: Finish, channel: pvti.TraceChannel) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(1000):
            with pvti.Tracepoint(channel, f"work {number}"):
                pass

    workers = [threading.Thread(target=work, args=(i,), name=f"worker {i}") for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    trace = finish()
    labels = {t.name: {trace.labels[i] for i in set(t.columns.label)} for t in trace.threads}
    assert labels == {f"worker {i}": {f"work {i}"} for i in range(4)}
    assert [len(t.events) for t in trace.threads] == [1000] * 4


def test_instants_have_a_place_and_metadata(
    finish: Finish, clock: Any, channel: pvti.TraceChannel
) -> None:
    pvti.Tracepoint.event(channel, "plain")
    pvti.Tracepoint.event(channel, "with", {"epoch": 3})
    trace = finish()
    instants = trace.instants
    assert instants.time_ns.tolist() == [1000, 2000]
    assert [trace.labels[i] for i in instants.label] == ["plain", "with"]
    assert instants.metadata.tolist() == [None, '{"epoch": 3}']
    assert [trace.threads[i].pid for i in instants.thread] == [trace.processes[0].pid] * 2


def test_metadata_goes_with_its_event(finish: Finish, channel: pvti.TraceChannel) -> None:
    with pvti.Tracepoint(channel, "a", pvti.createJsonMetadata('{"x": 1}')):
        with pvti.Tracepoint(channel, "b"):
            pass
        with pvti.Tracepoint(channel, "c", "no JSON"):
            pass
    (a,) = finish().threads[0].events
    assert a.metadata == '{"x": 1}'
    assert [event.metadata for event in a.children()] == [None, '"no JSON"']


@pytest.mark.parametrize(
    "label", ["<script>alert(1)</script>", "é漢字🙂", "a\x00b", "", "half \ud800", "x" * 1_000_000]
)
def test_any_text_is_a_label(finish: Finish, channel: pvti.TraceChannel, label: str) -> None:
    with pvti.Tracepoint(channel, label):
        pass
    assert finish().threads[0].events[0].label == label.replace("\ud800", "\\ud800")


def test_only_enabled_channels_are_recorded(finish: Finish, channel: pvti.TraceChannel) -> None:
    pvti.disableTraceChannel(channel)
    assert not pvti.checkTraceChannel(channel)
    with pvti.Tracepoint(channel, "unseen"):
        pass
    pvti.enableTraceChannel(channel)
    with pvti.Tracepoint(channel, "seen"):
        pvti.disableTraceChannel(channel)
    pvti.enableTraceChannel(channel)
    assert [channel.name, True] in pvti.listTraceChannel()
    assert shape(finish().threads[0].events) == [("seen", [])]


def test_channels_of_one_name_are_one() -> None:
    assert pvti.createTraceChannel("Poplar") is pvti.tracePoplar
    assert [row[0] for row in pvti.listTraceChannel()][:3] == ["Drivers", "Poplar", "Framework"]


def test_nothing_is_recorded_after_the_end(trace_path: str, channel: pvti.TraceChannel) -> None:
    point = pvti.Tracepoint(channel, "point")
    with point:
        pvti.closeTrace()
        with point:
            pass
    assert pvti.getCurrentTraceFilename() == ""
    trace = openTrace(trace_path)
    assert [(event.label, event.isOpen) for event in trace.threads[0].events] == [("point", True)]
    trace.close()


def test_a_second_trace_knows_the_labels_of_the_first(
    trace_path: str, tmp_path: Path, channel: pvti.TraceChannel
) -> None:
    point = pvti.Tracepoint(channel, "point")
    with point:
        pvti.closeTrace()
        second = pvti.startTrace(tmp_path / "second")
        with point:
            pass
    pvti.closeTrace()
    trace = openTrace(tmp_path / "second")
    assert str(trace.path) == second
    assert [(event.label, event.isOpen) for event in trace.threads[0].events] == [("point", False)]
    trace.close()


programs = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=4),
    max_leaves=30,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_any_nested_program_is_read_back_as_it_ran(
    program: Tree, tmp_path: Path, clock: Any, channel: pvti.TraceChannel
) -> None:
    path = pvti.startTrace(tmp_path)
    expected: list[list[int | str]] = []

    def run(tree: Tree, depth: int) -> None:
        for label, inner in tree:
            with pvti.Tracepoint(channel, label):
                row: list[int | str] = [clock.now - start, 0, label, depth]
                expected.append(row)
                run(inner, depth + 1)
            row[1] = clock.now - start

    start = clock.now
    run(program, 0)
    pvti.closeTrace()
    if not program:
        assert not Path(path).exists()
        return
    trace = openTrace(path)
    columns = trace.threads[0].columns
    labels = [trace.labels[i] for i in columns.label]
    found = zip(columns.begin_ns, columns.end_ns, labels, columns.depth, strict=True)
    assert [list(row) for row in found] == expected
    assert shape(trace.threads[0].events) == program
    assert int(columns.self_ns.sum()) == int(columns.duration_ns[columns.depth == 0].sum())
    trace.close()


def test_events_of_a_hundred_thousand_levels_are_read(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    levels = 100_000
    for _ in range(levels):
        pvti.Tracepoint.begin(channel, "down")
    for _ in range(levels):
        pvti.Tracepoint.end(channel, "down")
    thread = finish().threads[0]
    assert np.array_equal(thread.columns.depth, np.arange(levels))
    event: Event = thread.events[0]
    for _ in range(5):
        (event,) = event.children()
    assert event.label == "down"


def test_labels_are_kept_only_while_a_trace_runs(
    channel: pvti.TraceChannel, tmp_path: Path
) -> None:
    early = pvti.Tracepoint(channel, "made early")
    with early:
        pvti.Tracepoint.begin(channel, "unseen")
    assert channel.keys == {}
    pvti.startTrace(tmp_path)
    with early:
        pass
    pvti.closeTrace()
    assert list(channel.keys) == ["made early"]
