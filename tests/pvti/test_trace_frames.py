"""The tables of a trace, against values by hand and by pandas from its events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pvti
from pva import schema
from pva.errors import PvaError
from pva.trace import Trace, openTrace
from pva.trace_frames import NAMES
from tests.fuzz.seeds import write_trace

Finish = Callable[[], Trace]


@pytest.fixture
def small(tmp_path: Path) -> Trace:
    """Open the trace of the fuzzer, of which every row is known; 0 is at 1000 on its clock."""
    write_trace(tmp_path / "small.pvti")
    return openTrace(tmp_path / "small.pvti")


def random_trace(finish: Finish, clock: Any, crossing: int = 98) -> Trace:
    """Record a thousand events of twenty labels, some of them overlapping if `crossing` < 100."""
    channel, generator = pvti.createTraceChannel("random"), np.random.default_rng(5)
    is_open: list[str] = []
    for choice, wait in generator.integers(0, 100, (2000, 2)).tolist():
        clock.skip(wait * 50)
        if choice < 50 or not is_open:
            is_open.append(f"label {choice % 20}")
            pvti.Tracepoint.begin(channel, is_open[-1])
        else:
            pvti.Tracepoint.end(channel, is_open.pop(0 if choice >= crossing else -1))
    return finish()


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_has_the_declared_columns(small: Trace, name: str) -> None:
    dtypes = {"int": "int64", "float": "float64", "bool": "bool", "text": "str", "code": "category"}
    frame = getattr(small.frames, name)()
    declared = schema.TRACE_TABLE[name].columns
    assert list(frame.columns) == [column.name for column in declared]
    assert [str(dtype) for dtype in frame.dtypes] == [dtypes[column.kind] for column in declared]
    assert (len(frame) > 0) == (name != "flows")  # which only Chrome traces tell


def test_the_schema_lists_every_column_and_help_tells_it(small: Trace) -> None:
    listed = small.frames.schema()
    assert len(listed) == sum(len(table.columns) for table in schema.TRACE_TABLES)
    assert "begin_ns (int64, ns): begin" in (small.frames.events.__doc__ or "")
    assert set(NAMES) <= set(dir(small.frames))
    assert small.frames._repr_html_().startswith("<table")
    with pytest.raises(AttributeError, match="no table event; did you mean events"):
        _ = small.frames.event


def test_events_are_those_of_the_file(small: Trace) -> None:
    frame = small.frames.events()
    columns = ["thread", "begin_ns", "duration_ns", "self_ns", "depth", "parent", "open"]
    # step holds multiply twice; what is open lasts as long as the last event known, send.
    assert frame[columns].to_numpy().tolist() == [
        [0, 150, 10, 10, 0, -1, False],
        [0, 200, 900, 600, 0, -1, False],
        [0, 300, 100, 100, 1, 1, False],
        [0, 500, 200, 200, 1, 1, False],
        [1, 100, 1 << 33, 900, 0, -1, False],
        [1, 1000, (1 << 33) - 900, 500, 1, 4, True],
        [1, 1500, (1 << 33) - 1400, (1 << 33) - 1400, 2, 5, True],
    ]
    assert frame["label"].tolist() == ["send", "step", "multiply", "multiply", "send", "step",
                                       "multiply"]  # fmt: skip
    assert frame["metadata"].dropna().to_dict() == {1: '{"epoch":3}'}


def test_instants_series_and_heatmaps_are_those_of_the_file(small: Trace) -> None:
    instants = small.frames.instants()
    assert instants[["time_ns", "thread", "label"]].to_numpy().tolist() == [
        [250, 0, "send"], [750, 1, "step"],
    ]  # fmt: skip
    assert instants["metadata"].dropna().to_dict() == {0: '{"a":1}'}
    (first, second) = small.frames.series().to_dict("records")
    assert (first["graph"], first["time_ns"], first["value"]) == ("Loss", 300, 0.5)
    assert np.isnan(second["value"])
    cells = small.frames.heatmaps()[["time_ns", "low", "high", "count"]].to_numpy().tolist()
    assert cells == [[600, 0, 1, 3], [600, 1, 2, 4], [600, 2, np.inf, 1]]


def test_labels_are_what_pandas_finds_in_the_events(finish: Finish, clock: Any) -> None:
    trace = random_trace(finish, clock)
    grouped = trace.frames.events().groupby("label", observed=True)
    found = trace.frames.labels().set_index("label")
    duration = grouped["duration_ns"]
    expected = pd.DataFrame(
        {"count": duration.count(), "total_ns": duration.sum(), "self_ns": grouped["self_ns"].sum(),
         "mean_ns": duration.mean(), "min_ns": duration.min(), "p50_ns": duration.quantile(0.5),
         "p90_ns": duration.quantile(0.9), "p99_ns": duration.quantile(0.99),
         "max_ns": duration.max()}
    )  # fmt: skip
    found.index = found.index.astype("str")
    expected.index = expected.index.astype("str")
    assert list(found["self_ns"]) == sorted(found["self_ns"], reverse=True)
    pd.testing.assert_frame_equal(found.drop(columns="channel").sort_index(), expected.sort_index())


def test_many_labels_are_summed_alike(
    finish: Finish, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = random_trace(finish, clock)
    few = trace.frames.labels()
    monkeypatch.setattr("pva.model.host_trace.label_sums.FEW", 0)
    monkeypatch.setattr("pva.model.host_trace.label_sums.BLOCK", 7)
    pd.testing.assert_frame_equal(trace.frames.labels(), few)


@pytest.mark.parametrize("crossing", [98, 200])
def test_labels_of_large_threads_are_summed_as_those_of_small_ones(
    finish: Finish, clock: Any, monkeypatch: pytest.MonkeyPatch, crossing: int
) -> None:
    path = random_trace(finish, clock, crossing).path
    small = openTrace(path).frames.labels()
    monkeypatch.setattr("pva.model.host_trace.trace_lanes.TOGETHER", 1)
    pd.testing.assert_frame_equal(openTrace(path).frames.labels(), small)


def covered(events: pd.DataFrame) -> int:
    """Sweep over events in the order of their begin: how long at least one is open."""
    total, until = 0, 0
    for begin, duration in events[["begin_ns", "duration_ns"]].to_numpy().tolist():
        total += max(begin + duration - max(begin, until), 0)
        until = max(until, begin + duration)
    return total


def test_channels_and_threads_sum_up_their_events(finish: Finish, clock: Any) -> None:
    trace = random_trace(finish, clock)
    events = trace.frames.events()
    (channel,) = trace.frames.channels().query("events > 0").to_dict("records")
    assert channel["total_ns"] == events["duration_ns"].sum()
    assert channel["self_ns"] == events["self_ns"].sum()
    (thread,) = trace.frames.threads().to_dict("records")
    assert thread["busy_ns"] == events["self_ns"].sum() == covered(events)
    assert thread["depth"] == events["depth"].max() + 1
    assert trace.threads[0].count == len(events)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.99])
def test_a_window_holds_what_is_open_in_it(finish: Finish, clock: Any, share: float) -> None:
    trace = random_trace(finish, clock)
    events = trace.frames.events()
    begin = int(trace.duration_ns * share)
    end = begin + trace.duration_ns // 50
    wanted = events.query("begin_ns < @end and begin_ns + duration_ns > @begin")
    found = trace.window(begin, end)
    same = ["thread", "begin_ns", "duration_ns", "label", "channel", "open"]
    pd.testing.assert_frame_equal(found[same], wanted[same].reset_index(drop=True))


def test_threads_whose_commits_take_turns_in_the_file_are_read_apart(
    finish: Finish, channel: pvti.TraceChannel
) -> None:
    turn = Barrier(4)

    def work(name: str) -> None:
        for commit in range(3):
            with pvti.Tracepoint(channel, f"{name}{commit}"):
                turn.wait()
            turn.wait(), turn.wait()

    workers = [Thread(target=work, args=(name,)) for name in "abc"]
    for worker in workers:
        worker.start()
    for _ in range(3):
        turn.wait(), turn.wait(), pvti.writeTrace(), turn.wait()
    for worker in workers:
        worker.join()
    window = finish().window(0, 1 << 62)
    read = [labels.tolist() for _, labels in window.groupby("thread")["label"]]
    assert sorted(read) == [[f"{name}{commit}" for commit in range(3)] for name in "abc"]


def test_a_window_reads_the_chunks_that_meet_it_alone(finish: Finish, channel: Any) -> None:
    for _ in range(3):
        with pvti.Tracepoint(channel, "part"):
            pass
        pvti.closeTrace()
    trace = finish()
    read: list[int] = []
    file: Any = trace._file
    events = file.events
    file.events = lambda chunks: read.append(len(chunks["id"])) or events(chunks)
    assert len(trace.window(trace.duration_ns + 10**9, trace.duration_ns + 2 * 10**9)) == 0
    assert set(read) == {0}


def test_two_files_lie_as_their_wall_clocks_tell(tmp_path: Path) -> None:
    channel = pvti.createTraceChannel("two files")
    paths = []
    for label in ("early", "late"):
        pvti.closeTrace()
        paths.append(pvti.startTrace(tmp_path / label))
        with pvti.Tracepoint(channel, label):
            pass
        pvti.closeTrace()
    both, alone = openTrace(paths), [openTrace(path) for path in paths]
    apart = alone[1].anchor.wall_ns - alone[0].anchor.wall_ns
    first, second = both.frames.events()["begin_ns"]
    begins = [int(trace.threads[0].columns.begin_ns[0]) for trace in alone]
    assert (first, second) == (begins[0], begins[1] + apart)
    together = openTrace(paths, align="start").frames.events()
    assert together["begin_ns"].tolist() == begins
    assert together["label"].tolist() == ["early", "late"]
    assert len(both.processes) == 2
    with pytest.raises(PvaError, match="align='end': no such way; wall or start"):
        openTrace(paths, align="end")  # type: ignore[arg-type]


def test_two_files_keep_what_each_of_them_holds(tmp_path: Path) -> None:
    paths = [tmp_path / "a.pvti", tmp_path / "b.pvti"]
    for path in paths:
        write_trace(path)
    one, two = openTrace(paths[0]), openTrace(paths)
    for name in ("events", "instants", "series", "heatmaps"):
        assert len(getattr(two.frames, name)()) == 2 * len(getattr(one.frames, name)()), name
    labels = [
        trace.frames.labels().set_index("label")["count"].sort_index() for trace in (one, two)
    ]
    assert (labels[1] == 2 * labels[0]).all()
    assert two.problems == ("2 ends without a begin were left out",)
    assert two.reload() is False
    two.close()


def test_small_threads_read_together_are_as_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = pvti.createTraceChannel("tasks")
    pvti.closeTrace()
    path = pvti.startTrace(tmp_path)

    def work(count: int) -> None:
        for _ in range(count):
            outer = pvti.Tracepoint(channel, "outer", {"n": count})
            with outer, pvti.Tracepoint(channel, f"part {count % 3}"):
                pass
        pvti.Tracepoint.begin(channel, "open")

    for count in range(12):
        thread = Thread(target=work, args=(count,), name=f"worker {count}")
        thread.start()
        thread.join()
    pvti.closeTrace()
    together = openTrace(path)
    monkeypatch.setattr("pva.model.host_trace.trace_lanes.TOGETHER", 1)
    alone = openTrace(path)
    for name in ("labels", "events", "threads"):
        one, two = (getattr(trace.frames, name)() for trace in (together, alone))
        pd.testing.assert_frame_equal(one, two)
    assert sum(thread.count for thread in together.threads) == 2 * sum(range(12)) + 12
    pd.testing.assert_frame_equal(together.window(0, 10**12), alone.window(0, 10**12))


@pytest.mark.parametrize(
    ("begin", "end", "told"),
    [
        (10, 0, "window(10, 0): ends before it begins; begin first"),
        ("a", 5, "begin_ns='a': no time; nanoseconds since the trace began"),
        (0, None, "end_ns=None: no time; nanoseconds since the trace began"),
        (0, float("nan"), "end_ns=nan: no time; nanoseconds since the trace began"),
    ],
)
def test_a_window_that_is_none_is_told_in_a_line(
    finish: Finish, channel: Any, begin: Any, end: Any, told: str
) -> None:
    with pvti.Tracepoint(channel, "a"):
        pass
    trace = finish()
    with pytest.raises(PvaError) as fault:
        trace.window(begin, end)
    assert str(fault.value) == told
    with pytest.raises(PvaError, match="begin_ns='a': no time"):
        trace.since("a")  # type: ignore[arg-type]
