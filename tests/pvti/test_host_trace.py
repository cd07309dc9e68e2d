"""Reading host traces: nesting, errors, and files that nobody vouches for."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pvti
from pva.errors import (
    DamagedFileError,
    NewerVersionError,
    NotFoundError,
    PvaError,
    UnknownFormatError,
)
from pva.model.host_trace.nesting import begin_order, nest, self_times
from pva.trace import Trace, openTrace
from pvti.schema import FORMAT_VERSION, TABLES, insert_statement

Interval = tuple[int, int]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a trace with a little of everything."""
    folder = tmp_path_factory.mktemp("sample")
    path = pvti.startTrace(folder)
    channel = pvti.createTraceChannel("sample")
    with pvti.Tracepoint(channel, "outer", {"a": 1}):
        for number in range(100):
            with pvti.Tracepoint(channel, f"inner {number % 3}"):
                pvti.Tracepoint.event(channel, "instant")
    pvti.Graph("g", "u").addSeries("s").add(1)
    pvti.HeatmapInt("h", [0, 1]).add([0])
    pvti.closeTrace()
    return Path(path)


@pytest.fixture
def copy(sample: Path, tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "copy.pvti"
    shutil.copyfile(sample, target)
    yield target


def look_at_all(trace: Trace) -> None:
    """Read whatever a trace holds."""
    for thread in trace.threads:
        for event in thread.events:
            assert event.duration >= 0
            assert len(event.children()) >= 0
        assert len(thread.columns.self_ns) == len(thread.columns)
    assert len(trace.instants) >= 0
    assert trace.series is not None
    assert trace.heatmaps is not None


def change(path: Path, statement: str, *parameters: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, parameters)
    connection.close()


def by_hand(intervals: list[Interval]) -> list[tuple[int, int]]:
    """Depth and parent of nested intervals, sorted by begin: count those that hold each."""
    rows = []
    for place, (begin, end) in enumerate(intervals):
        holders = [i for i in range(place) if intervals[i][0] <= begin and end <= intervals[i][1]]
        rows.append((len(holders), max(holders, default=-1)))
    return rows


@st.composite
def nested_intervals(draw: st.DrawFn) -> list[Interval]:
    """Intervals in the order of their end, as blocks make them; times may repeat."""
    ended: list[Interval] = []
    stack: list[int] = []
    now = 0
    for step in draw(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=60)):
        opening, wait = step
        now += wait
        if opening:
            stack.append(now)
        elif stack and now > stack[-1]:
            ended.append((stack.pop(), now))
    while stack:
        now += 1
        ended.append((stack.pop(), now))
    return ended


@settings(max_examples=200, deadline=None)
@given(nested_intervals())
def test_nesting_is_what_a_count_of_the_holders_gives(ended: list[Interval]) -> None:
    begin, end = (np.array([pair[i] for pair in ended], np.int64) for i in (0, 1))
    order = begin_order(begin)
    found = nest(begin[order], end[order], lambda _: None)
    rows = [ended[i] for i in order]
    assert list(zip(found.depth.tolist(), found.parent.tolist(), strict=True)) == by_hand(rows)
    total = sum(stop - start for (start, stop), depth in zip(rows, found.depth, strict=True)
                if depth == 0)  # fmt: skip
    assert int(found.self_ns.sum()) == total


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40))
def test_no_depth_holds_two_events_at_once_even_when_they_overlap(
    spans: list[tuple[int, int]],
) -> None:
    ended = sorted(((b, b + d) for b, d in spans), key=lambda pair: pair[1])
    begin, end = (np.array([pair[i] for pair in ended], np.int64) for i in (0, 1))
    order = begin_order(begin)
    begin, end = begin[order], end[order]
    found = nest(begin, end, lambda _: None)
    for depth in set(found.depth.tolist()):
        rows = np.flatnonzero(found.depth == depth)
        assert (end[rows[:-1]] <= begin[rows[1:]]).all()
    for row, parent in enumerate(found.parent.tolist()):
        assert parent < row
        assert found.depth[row] == (found.depth[parent] + 1 if parent >= 0 else 0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=40), st.integers(1, 40))
def test_self_time_is_that_in_which_an_event_is_the_last_begun_of_those_open(
    spans: list[tuple[int, int]], block: int
) -> None:
    begin, end = np.array(sorted((b, b + d) for b, d in spans), np.int64).reshape(-1, 2).T
    order = np.lexsort((-end, begin))  # of equal begins the longest first
    begin, end = begin[order], end[order]
    expected = [0] * len(begin)
    for now in range(50):
        is_open = [row for row in range(len(begin)) if begin[row] <= now < end[row]]
        if is_open:
            expected[is_open[-1]] += 1
    with patch("pva.model.host_trace.nesting.BLOCK", block):
        assert nest(begin, end, lambda _: None).self_ns.tolist() == expected
        assert self_times(begin, end, lambda _: None).tolist() == expected


def test_events_are_a_sequence(sample: Path) -> None:
    trace = openTrace(str(sample))
    (process,) = trace.processes
    events = trace.process(process.pid).thread(process.threads[0].tid).events
    inner = events[0].children()
    assert (len(events), len(inner), len(inner[10:20])) == (1, 100, 10)
    assert inner[-1].label == "inner 0"
    assert inner[3] == events[0].children()[3] != inner[4]
    assert len({inner[0], inner[1], inner[0]}) == 2
    assert [event.label for event in inner][:2] == ["inner 0", "inner 1"]
    trace.close()


def test_columns_say_the_same_as_events(sample: Path) -> None:
    trace = openTrace(sample)
    thread = trace.threads[0]
    columns = trace.columns(thread.pid, thread.tid)
    assert len(columns) == 101
    event = thread.events[0].children()[5]
    row = columns.children(0)[5]
    assert event.timestamp == columns.begin_ns[row] // 1000
    assert event.label == trace.labels[columns.label[row]]
    assert event.channel == trace.channels[columns.channel[row]] == "sample"
    assert columns.channel[row] == trace.label_channels[columns.label[row]]
    with pytest.raises(ValueError, match="read-only"):
        columns.begin_ns[0] = 0
    trace.close()


def test_a_process_or_thread_that_is_not_there_is_named(sample: Path) -> None:
    trace = openTrace(sample)
    with pytest.raises(PvaError, match=r"no process -1; its processes are \d+"):
        trace.process(-1)
    with pytest.raises(PvaError, match=r"no thread -2; its threads are \d+"):
        trace.processes[0].thread(-2)
    trace.close()


def test_a_path_that_is_wrong_is_one_line(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file; give the path of a host trace"):
        openTrace(tmp_path / "none.pvti")
    with pytest.raises(NotFoundError, match="no .pvti file or Chrome trace in this directory"):
        openTrace(tmp_path)
    (tmp_path / "notes.pvti").write_text("notes")
    with pytest.raises(UnknownFormatError, match="begins with b'notes'"):
        openTrace(tmp_path / "notes.pvti")
    shutil.copyfile(sample, tmp_path / "other.pvti")
    with pytest.raises(PvaError, match="2 traces; give one of them"):
        openTrace(tmp_path)


def test_a_newer_trace_names_both_versions(copy: Path) -> None:
    change(copy, f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    with pytest.raises(
        NewerVersionError, match=f"version {FORMAT_VERSION + 1}; .* {FORMAT_VERSION}"
    ):
        openTrace(copy)


def test_a_truncated_trace_says_how_much_is_missing(copy: Path) -> None:
    whole = copy.stat().st_size
    copy.write_bytes(copy.read_bytes()[: whole // 2])
    with pytest.raises(DamagedFileError, match=f"cut short: {whole // 2} bytes of {whole}"):
        openTrace(copy)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE labels SET channel = 77", "table channels: no row 77"),
        ("UPDATE labels SET text = x'00'", "labels.text: values of type bytes"),
        ("UPDATE threads SET tid = 'x'", "threads.tid: values of type str"),
        ("UPDATE threads SET process = 5", "table processes: no row 5"),
        ("DELETE FROM processes", "table processes is empty"),
        ("UPDATE heatmaps SET edges = x'0011'", "table heatmaps: 2 bytes"),
        ("UPDATE heatmap_columns SET counts = x''", "table heatmap_columns: 0 bytes"),
        ("UPDATE processes SET last_ns = 9223372036854775807", "a time beyond the clock"),
        ("ALTER TABLE labels RENAME COLUMN text TO word", "column 'text' is missing"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(copy: Path, statement: str, message: str) -> None:
    change(copy, statement)
    with pytest.raises(DamagedFileError, match=message) as error:
        trace = openTrace(copy)
        try:
            look_at_all(trace)
        finally:
            trace.close()
    assert "\n" not in str(error.value)
    assert str(copy) in str(error.value)


@pytest.mark.parametrize(
    ("change_to", "fault"),
    [
        ("data = zeroblob(length(data))", "its bytes have changed"),
        ("records = records + 1", "bytes for"),
        ("records = 4611686018427387904", "bytes for 4611686018427387904 records"),
        ("data = 'text'", "4 bytes for"),
        ("begin_ns = begin_ns + 1", "before the chunk"),
        ("end_ns = -1", "a time beyond the clock"),
        ("thread = 9", "no row of threads"),
    ],
)  # fmt: skip
def test_a_damaged_chunk_costs_its_own_events(copy: Path, change_to: str, fault: str) -> None:
    with closing(openTrace(copy)) as trace:
        before = len(trace.frames.events())
        records = int(trace._content._tables["event_chunks"]["records"][-1])
    change(
        copy, f"UPDATE event_chunks SET {change_to} WHERE id = (SELECT max(id) FROM event_chunks)"
    )
    with closing(openTrace(copy)) as trace:
        trace.verify()
        assert [fault in line for line in trace.problems] == [True]
        assert len(trace.frames.events()) == before - records
        look_at_all(trace)


def test_a_chunk_with_a_label_that_is_not_there_costs_its_own_events(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as file, file:
        asked = "SELECT id, records, data FROM event_chunks ORDER BY id DESC LIMIT 1"
        number, records, data = file.execute(asked).fetchone()
        spoilt = data[:12] + b"\x99\x99\x00\x00" + data[16:]
        file.execute(
            "UPDATE event_chunks SET data = ?, crc32 = ? WHERE id = ?",
            (spoilt, zlib.crc32(spoilt), number),
        )
        (total,) = file.execute("SELECT sum(records) FROM event_chunks").fetchone()
    with closing(openTrace(copy)) as trace:
        assert len(trace.frames.events()) == total - records
        assert trace.problems == (
            f"1 damaged chunk of {records} events left out: event_chunks row {number}:"
            " an event has no label of the file",
        )


def test_an_instant_without_its_thread_or_label_costs_its_own_row(copy: Path) -> None:
    change(copy, "UPDATE instants SET thread = 1000000 WHERE rowid = 1")
    change(copy, "UPDATE instants SET label = 1000000 WHERE rowid = 2")
    with closing(openTrace(copy)) as trace:
        assert len(trace.instants.time_ns) == 100 - 2
        assert trace.problems == (
            "1 row of instants with no row of threads, left out",
            "1 row of instants with no row of labels, left out",
        )


@pytest.mark.parametrize("began", [1 << 60, 1 << 62, (1 << 63) - (1 << 61)])
def test_a_clock_that_began_anywhere_is_read(tmp_path: Path, clock: Any, began: int) -> None:
    clock.now = began
    path = pvti.startTrace(tmp_path)
    with pvti.Tracepoint(pvti.createTraceChannel(f"began at {began}"), "x"):
        clock.skip(9000)
    pvti.closeTrace()
    with closing(openTrace(path)) as trace:
        assert [event.duration for event in trace.threads[0].events] == [10.0]
        assert (trace.problems, trace.anchor.clock_ns) == ((), began)


def test_a_time_beyond_the_clock_costs_its_own_row(copy: Path) -> None:
    change(copy, "UPDATE instants SET time_ns = 9223372036854775807 WHERE rowid = 1")
    with closing(openTrace(copy)) as trace:
        assert trace.problems == ("1 row of instants with a time beyond the clock, left out",)
        look_at_all(trace)


def test_events_that_end_after_their_chunk_are_those_of_an_earlier_writer(copy: Path) -> None:
    change(copy, "UPDATE event_chunks SET end_ns = begin_ns")
    with closing(openTrace(copy)) as trace:
        trace.verify()
        assert trace.problems == ()


def test_changed_bytes_never_raise_anything_else(copy: Path) -> None:
    whole = copy.read_bytes()
    for start in range(100, len(whole), 997):
        copy.write_bytes(whole[:start] + bytes(b ^ 0xA5 for b in whole[start : start + 16])
                         + whole[start + 16 :])  # fmt: skip
        try:
            trace = openTrace(copy)
        except PvaError:
            continue
        try:
            look_at_all(trace)
        except PvaError as error:
            assert "\n" not in str(error)
        trace.close()


def test_an_event_of_negative_duration_is_kept_and_told(copy: Path) -> None:
    change(copy, insert_statement("long_events"), 1, 5 * 10**9, -7, 0, 1)
    trace = openTrace(copy)
    assert trace.problems == ("1 event of negative duration was shown with none",)
    assert trace.threads[0].columns.duration_ns.min() == 0
    assert len(trace.threads[0].columns) == 102
    trace.close()


def test_rows_of_all_tables_are_declared_as_they_are_written(sample: Path) -> None:
    connection = sqlite3.connect(sample)
    for table in TABLES:
        found = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
        assert found == [column.name for column in table.columns]
        assert insert_statement(table.name).count("?") == len(found)
    connection.close()


def test_labels_numbered_twice_are_one(copy: Path) -> None:
    change(copy, "UPDATE labels SET text = 'same' WHERE text LIKE 'inner _'")
    trace = openTrace(copy)
    assert trace.labels.count("same") == 1
    assert {event.label for event in trace.threads[0].events[0].children()} == {"same"}
    trace.close()


def test_a_second_process_is_moved_onto_the_first_ones_clock(copy: Path) -> None:
    trace = openTrace(copy)
    first = trace.anchor
    begin = int(trace.threads[0].columns.begin_ns[0])
    trace.close()
    # The same events on a clock 5 s ahead, anchored 2 s later on the wall.
    change(copy, insert_statement("processes"), 2, 99, "second", first.clock_ns + 5 * 10**9,
           first.wall_ns + 2 * 10**9, first.clock_ns + 6 * 10**9, 1, 0)  # fmt: skip
    change(copy, "UPDATE threads SET process = 2")
    trace = openTrace(copy)
    assert [process.name for process in trace.processes][1:] == ["second"]
    assert int(trace.process(99).threads[0].columns.begin_ns[0]) == begin - 3 * 10**9
    trace.close()
