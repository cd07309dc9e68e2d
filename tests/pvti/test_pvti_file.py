"""The file: as documented, and no larger than it has to be."""

from __future__ import annotations

import sqlite3
import struct
import time
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from test_pvti_processes import run

import pvti
from pvti import buffers, document, implementation, schema, spans, writer

DOCUMENT = Path(__file__).parents[2] / "docs" / "trace-format.md"


def rows(path: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_the_document_is_what_the_schema_says() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document.text()


def test_every_table_and_column_is_described() -> None:
    text = document.text()
    for table in schema.TABLES:
        section = text.split(f"### `{table.name}`")[1].split("###")[0]
        assert all(f"| `{column.name}` |" in section for column in table.columns)


def test_a_file_holds_the_tables_that_are_declared(
    trace_path: str, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "x"):
        pass
    pvti.closeTrace()
    found = {name for (name,) in rows(trace_path, "SELECT name FROM sqlite_schema")}
    assert found == {table.name for table in schema.TABLES}
    for table in schema.TABLES:
        columns = rows(trace_path, f"PRAGMA table_info({table.name})")
        assert [row[1] for row in columns] == [column.name for column in table.columns]
    assert rows(trace_path, "PRAGMA application_id") == [(0x50565449,)]
    assert rows(trace_path, "PRAGMA user_version") == [(1,)]
    assert rows(trace_path, "PRAGMA journal_mode") == [("delete",)]


def test_a_record_is_begin_duration_and_label(
    trace_path: str, clock: Any, channel: pvti.TraceChannel
) -> None:
    with pvti.Tracepoint(channel, "first"), pvti.Tracepoint(channel, "second"):
        pass
    pvti.closeTrace()
    chunk = rows(trace_path, "SELECT records, begin_ns, end_ns, crc32, data FROM event_chunks")
    ((count, begin, end, crc, data),) = chunk
    names = dict(rows(trace_path, "SELECT id, text FROM labels"))
    records = [(b, d, names[label]) for b, d, label in struct.iter_unpack("<QII", data)]
    assert records == [(1_002_000, 1000, "second"), (1_001_000, 3000, "first")]
    assert (count, begin, end, crc) == (2, 1_001_000, 1_004_000, zlib.crc32(data))


@pytest.mark.parametrize("module", [implementation, spans], ids=["implementation", "spans"])
def test_a_chunk_ends_with_the_last_end_whatever_was_recorded_last(module: Any) -> None:
    events = module.Spans()
    events.push(1, 10)
    events.push(2, 20)
    assert events.end(2, 90) == 20  # of a finalizer, after the clock of the other was read
    assert events.end(1, 50) == 10
    events.pack()
    (chunk,) = events.chunks
    assert (chunk[:3], events.long_events) == ((2, 10, 90), [])


def test_an_event_takes_sixteen_bytes_in_its_chunk_and_seventeen_in_the_file(
    tmp_path: Path,
) -> None:
    # A process of its own has its own labels alone, and here commits once: on a busy machine there
    # are many commits, and each leaves part of a page empty.
    body = """
from pvti import recorder
recorder.COMMIT_SECONDS, recorder.HURRY_NANOSECONDS = 60, 60 * 10**9
points = [pvti.Tracepoint(channel, f"label {number}") for number in range(100)]
for number in range(200_000):
    with points[number % 100]: pass
"""
    run(body, tmp_path)
    (path,) = tmp_path.iterdir()
    query = "SELECT sum(length(data)), sum(records) FROM event_chunks"
    assert rows(str(path), query) == [(16 * 200_000, 200_000)]
    assert path.stat().st_size <= 17 * 200_000


def test_a_thread_that_the_writer_leaves_waiting_packs_what_has_ended() -> None:
    track = buffers.Track(1, 1, "", [], help=lambda: None)
    records = [(10, 20, 5), (40, 2, 7)]
    for begin, duration, label in records:
        track.push(label, begin)
        track.end(label, begin + duration)
        track.hurry(now=begin + duration)
    packed = [struct.pack("<QII", *record) for record in records]
    expected = [(1, 10, 30, packed[0]), (1, 40, 42, packed[1])]
    assert (track.chunks, track.long_events) == (expected, [])
    track.pack()
    assert track.chunks == expected


def test_checksums_are_those_of_zlib_whatever_the_length() -> None:
    data = [bytes(range(256)) * 5, b"", *(b"\xa5" * length for length in range(1, 40))]
    assert implementation.checksums(data) == [zlib.crc32(each) for each in data]


def test_what_was_written_leaves_the_memory(tmp_path: Path) -> None:
    # In all 190 MB are written, at most 19 at once. Statements that SQLite keeps would keep all.
    body = f"""
import resource
from pvti.buffers import Chunk, Track
from pvti.writer import Process, Progress, Taken, TraceFile
file = TraceFile({str(tmp_path / "big.pvti")!r}, Process(1, "", 0, 0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
track = Track(1, 1, "", [], None)
for count in range(20):
    chunks = [Chunk(65536, 0, 0, bytes(1 << 20)) for _ in range(count)]
    file.write([Taken(track, chunks, [], [])], Progress(0, 0, 0), 0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    assert int(run(body, tmp_path, None)[0]) / 1024 < 120


def test_what_two_pack_at_once_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    events, pack = spans.Spans(), spans._pack
    for number in range(3):
        events.push(5, number)
        events.end(5, number + 10)

    def pack_while_another_does(*arguments: Any) -> None:
        monkeypatch.setattr(spans, "_pack", pack)
        events.pack()
        pack(*arguments)

    monkeypatch.setattr(spans, "_pack", pack_while_another_does)
    events.pack()
    assert [chunk[0] for chunk in events.chunks] == [3]
    assert events.words == []


def test_threads_that_record_at_once_lose_and_tear_nothing(
    trace_path: str, channel: pvti.TraceChannel
) -> None:
    import threading

    events, workers = 20_000, 8
    barrier = threading.Barrier(workers)

    def work(number: int) -> None:
        point = pvti.Tracepoint(channel, f"worker {number}")
        barrier.wait()
        for _ in range(events):
            with point:
                pass

    threads = [threading.Thread(target=work, args=(n,), name=f"t{n}") for n in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pvti.closeTrace()
    labels = dict(rows(trace_path, "SELECT id, text FROM labels"))
    names = dict(rows(trace_path, "SELECT id, name FROM threads"))
    found: dict[str, list[tuple[int, int]]] = {}
    for thread, data in rows(trace_path, "SELECT thread, data FROM event_chunks ORDER BY id"):
        for begin, duration, label in struct.iter_unpack("<QII", data):
            assert labels[label] == f"worker {names[thread][1:]}"
            found.setdefault(names[thread], []).append((begin, begin + duration))
    assert {name: len(times) for name, times in found.items()} == {
        f"t{number}": events for number in range(workers)
    }
    for times in found.values():
        assert all(a[1] <= b[0] for a, b in zip(times, times[1:], strict=False))


def test_two_threads_that_start_a_trace_at_once_start_one(
    tmp_path: Path, channel: pvti.TraceChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    pvti.closeTrace()
    seconds = iter([0.1, 0.4])  # the second to come begins before the first is done
    monkeypatch.setattr("pvti.channel.choose", lambda channels: time.sleep(next(seconds)))

    def work(number: int) -> None:
        pvti.startTrace(tmp_path)
        with pvti.Tracepoint(channel, f"of {number}"):
            pass

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2)))
    pvti.closeTrace()
    (path,) = tmp_path.iterdir()
    assert rows(str(path), "SELECT sum(records) FROM event_chunks") == [(2,)]


@pytest.mark.parametrize(
    ("code", "busy"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_RECOVERY, True),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_LOCKED, False),
        (sqlite3.SQLITE_FULL, False),
        (None, False),
    ],
)
def test_a_writer_waits_for_every_kind_of_busy_file_and_for_nothing_else(
    code: int | None, busy: bool
) -> None:
    error = sqlite3.OperationalError("no")
    if code is not None:
        error.sqlite_errorcode = code
    assert writer._is_busy(error) is busy


@pytest.mark.parametrize(
    ("before", "after", "common"),
    [("", "", 0), ("a", "", 0), ("", "a", 0), ("ab", "ab", 2), ("ab", "ac", 1), ("ab", "abc", 2)],
)
def test_spans_that_were_open_before_are_counted_from_the_outermost(
    before: str, after: str, common: int
) -> None:
    spans_of = {name: (number, 10 * number) for number, name in enumerate("abc")}
    assert writer._common([spans_of[n] for n in before], [spans_of[n] for n in after]) == common
