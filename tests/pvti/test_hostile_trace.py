"""Traces that somebody changed: views, triggers, journals, single bits. See also `tests.fuzz`."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from pva.errors import DamagedFileError
from pva.formats import memory_limit
from pva.model.host_trace import nesting
from pva.trace import Trace, openTrace
from pva.trace_frames import NAMES
from pvti.schema import COLUMNS
from tests.fuzz.seeds import TRACE, write_trace

EVENTS = 7  # of the trace of the fuzzer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_trace(tmp_path / "host.pvti")
    return tmp_path / "host.pvti"


def change(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


def count(trace: Trace) -> int:
    return len(trace.frames.events())


def test_a_view_in_place_of_a_table_is_not_asked(path: Path) -> None:
    change(
        path,
        "DROP TABLE instants; CREATE VIEW instants AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n) SELECT i thread, i time_ns, i label, NULL metadata FROM n",
    )
    with pytest.raises(DamagedFileError, match="table 'instants' is no plain table"):
        openTrace(path)


def test_a_trigger_is_never_run(path: Path) -> None:
    change(path, "CREATE TRIGGER evil AFTER INSERT ON labels BEGIN DELETE FROM labels; END")
    before = path.read_bytes()
    assert count(openTrace(path)) == EVENTS
    assert path.read_bytes() == before


def test_the_journal_of_a_killed_writer_is_rolled_back_in_a_copy(path: Path) -> None:
    script = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN')\n"
        "c.execute('DELETE FROM event_chunks')\n"
        "c.execute('INSERT INTO heatmaps VALUES (9, 1, 1, randomblob(900000))')\n"
        "print('spilled', flush=True); time.sleep(60)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"spilled\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    spoilt = path.read_bytes()
    assert path.with_name("host.pvti-journal").stat().st_size > 0
    trace = openTrace(path)
    assert count(trace) == EVENTS
    trace.close()
    assert path.read_bytes() == spoilt


@pytest.mark.parametrize("number", [1 << 24, -(1 << 63)])
def test_numbers_of_chunks_that_lie_far_apart_cost_nothing(path: Path, number: int) -> None:
    again = ", ".join(COLUMNS["event_chunks"][1:])
    change(path, f"INSERT INTO event_chunks SELECT {number}, {again} FROM event_chunks")
    tracemalloc.start()
    assert count(openTrace(path)) == EVENTS + 4
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("bit", range(0, 128, 11))
def test_a_bit_that_flips_in_a_blob_is_noticed(path: Path, bit: int) -> None:
    whole = bytearray(path.read_bytes())
    records = TRACE["event_chunks"][0][-1]
    place = whole.index(records)
    assert whole.count(records) == 1
    whole[place + bit // 8] ^= 1 << bit % 8
    path.write_bytes(whole)
    trace = openTrace(path)
    assert count(trace) == EVENTS - len(records) // 16
    assert "event_chunks row 1: its bytes have changed" in trace.problems[0]


def test_times_that_are_not_those_of_the_chunk_are_noticed(path: Path) -> None:
    change(path, "UPDATE event_chunks SET begin_ns = begin_ns + 1000")
    trace = openTrace(path)
    trace.window(0, 10**12)
    assert "row 1: an event begins before the chunk" in trace.problems[0]


def test_twenty_thousand_threads_and_labels_open(tmp_path: Path) -> None:
    path = tmp_path / "many.pvti"
    write_trace(path)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n LIMIT 20000) "
    change(
        path,
        f"INSERT INTO labels {numbers} SELECT i + 5, 1, 'label ' || i FROM n;"
        f"INSERT INTO threads {numbers} SELECT i + 5, 1, i + 100, '' FROM n;",
    )
    trace = openTrace(path)
    assert len(trace.threads) == 20_002
    assert trace.frames.labels()["count"].sum() == EVENTS


def change_limits(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(memory_limit, "LEAST", memory_limit.ASIDE + least)
    monkeypatch.setattr(memory_limit, "TIMES_THE_FILE", 1)


def test_a_table_of_very_many_rows_is_refused_before_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_limits(monkeypatch, 20_000)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM n LIMIT 99)"
    change(path, f"INSERT INTO heatmaps {numbers} SELECT i, 'a', '', 3 FROM n;")
    with pytest.raises(DamagedFileError, match="table heatmaps: more values than fit into"):
        openTrace(path)


def test_frames_that_do_not_fit_are_told_and_the_rest_is_read(path: Path) -> None:
    trace = openTrace(path)
    trace._content._file.budget.left = memory_limit.ALWAYS - memory_limit.ASIDE
    told = {}
    for name in NAMES:
        try:
            getattr(trace.frames, name)()
        except DamagedFileError as error:
            told[name] = str(error)
    assert told.keys() == set(NAMES) - {"processes", "flows"}  # a .pvti file has no flows
    assert all("more values than fit into" in text for text in told.values())
    assert len(trace.threads) == 2


def test_events_that_are_all_open_at_once_are_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nesting, "BLOCK", 2)
    monkeypatch.setattr(nesting, "OPEN", 1 << 40)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20)"
    change(path, f"INSERT INTO long_events {numbers} SELECT 1, 2000 + i, 1 << 40, 0, 1 FROM n")
    trace = openTrace(path)
    for action in (
        trace.frames.events,
        trace.frames.labels,
        lambda: trace.threads[0].columns.depth,
    ):
        with pytest.raises(DamagedFileError, match="more values than fit"):
            action()
