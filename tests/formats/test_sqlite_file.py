"""Files that nobody vouches for are opened safely, and writers lose nothing to readers or kills."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pva.errors import (
    DamagedFileError,
    NewerVersionError,
    NotFoundError,
    PvaError,
    UnknownFormatError,
)
from pva.formats.database import sqlite_file
from pva.formats.database.sqlite_file import Declaration, open_read_only, open_writer, transaction

DECLARATION = Declaration("a sample file", 0x5A4D504C, 2, {"rows": ("id", "data")})
CREATE = ("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)",)


def make(path: Path, values: int = 3) -> Path:
    connection = open_writer(path, DECLARATION, CREATE)
    with transaction(connection):
        connection.executemany(
            "INSERT INTO rows (data) VALUES (?)", [(bytes([i]) * 5000,) for i in range(values)]
        )
    connection.close()
    return path


def line(error: pytest.ExceptionInfo[PvaError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def open_files() -> set[str]:
    folder = Path("/proc/self/fd")
    return {os.readlink(link) for link in folder.iterdir() if link.is_symlink()}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    database = open_read_only(make(tmp_path / "a file?#%.pop"), DECLARATION)
    assert database.rows("SELECT id, length(data) FROM rows") == [(1, 5000), (2, 5000), (3, 5000)]
    assert database.blob("rows", "data", 2) == b"\x01" * 5000
    assert database.version == 2
    database.close()


def test_reading_writes_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    before = path.read_bytes()
    database = open_read_only(path, DECLARATION)
    with pytest.raises(PvaError):
        database.rows("DELETE FROM rows")
    database.close()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_is_let_go_when_nobody_refers_to_it(tmp_path: Path) -> None:
    path = str(make(tmp_path / "file"))
    database = open_read_only(path, DECLARATION)
    assert database.rows("SELECT count(*) FROM rows") == [(3,)]
    assert path in open_files()
    del database
    assert path not in open_files()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as error:
        open_read_only(tmp_path / "none", DECLARATION)
    assert line(error).endswith("none: no such file; give the path of a sample file")


@pytest.mark.parametrize(
    "content", [b"", b"SQLite", b"PK\x03\x04 not ours", b"SQLite format 3\x00"]
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises((UnknownFormatError, DamagedFileError)) as error:
        open_read_only(tmp_path / "file", DECLARATION)
    assert "a sample file" in line(error)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="a directory"):
        open_read_only(tmp_path, DECLARATION)


def test_another_database_is_refused_by_its_application_id(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "file")
    connection.execute("CREATE TABLE rows (id, data)")
    connection.close()
    with pytest.raises(
        UnknownFormatError, match="application id 0x0; a sample file has 0x5a4d504c"
    ):
        open_read_only(tmp_path / "file", DECLARATION)


def test_a_newer_version_names_both(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    older = Declaration("a sample file", DECLARATION.application_id, 1, DECLARATION.tables)
    with pytest.raises(NewerVersionError, match=r"format version 2; .* up to version 1"):
        open_read_only(path, older)


@pytest.mark.parametrize("size", [50, 4096, 9000])
def test_a_truncated_file_tells_how_much_is_missing(tmp_path: Path, size: int) -> None:
    path = make(tmp_path / "file")
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedFileError) as error:
        open_read_only(path, DECLARATION)
    assert f"cut short: {size} bytes of {whole}" in line(error)


def test_a_missing_table_or_column_or_a_view_is_named(tmp_path: Path) -> None:
    identity = f"PRAGMA application_id = {DECLARATION.application_id}"
    for number, (statement, found) in enumerate(
        [
            ("CREATE TABLE other (id)", "table 'rows' is missing"),
            ("CREATE TABLE rows (id)", "column 'data' is missing"),
            ("CREATE VIEW rows AS SELECT 1 AS id, 2 AS data", "is no plain table"),
        ]
    ):
        connection = sqlite3.connect(tmp_path / str(number))
        connection.execute(identity)
        connection.execute(statement)
        connection.close()
        with pytest.raises(DamagedFileError, match=found):
            open_read_only(tmp_path / str(number), DECLARATION)


def test_an_older_file_may_lack_an_optional_table(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    tables = {**DECLARATION.tables, "later": ("id",)}
    newer = Declaration("x", DECLARATION.application_id, 3, tables, frozenset({"later"}))
    database = open_read_only(path, newer)
    assert database.version == 2
    database.close()


def test_every_flipped_page_is_one_line_or_read(tmp_path: Path) -> None:
    whole = make(tmp_path / "file").read_bytes()
    for start in range(16, len(whole), 509):
        path = tmp_path / "flipped"
        path.write_bytes(
            whole[:start] + bytes(b ^ 0xFF for b in whole[start : start + 40]) + whole[start + 40 :]
        )
        try:
            database = open_read_only(path, DECLARATION)
        except PvaError as error:
            assert "\n" not in str(error)
            continue
        try:
            database.rows("SELECT * FROM rows", place="rows")
        except PvaError as error:
            assert "\n" not in str(error)
        database.close()


def test_a_query_is_stopped_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_read_only(make(tmp_path / "file"), DECLARATION)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with monkeypatch.context() as short, pytest.raises(DamagedFileError, match="a query took over"):
        short.setattr(sqlite_file, "QUERY_SECONDS", 0.05)
        database.rows(endless)
    assert len(database.rows("SELECT id FROM rows")) == 3
    database.close()


def test_a_writer_waits_for_a_reader_and_loses_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    reader = sqlite3.connect(path, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM rows").fetchone()
    release = threading.Timer(0.3, reader.rollback)
    release.start()
    writer = open_writer(path, DECLARATION, CREATE)
    writer.execute("PRAGMA busy_timeout = 10")
    with transaction(writer):
        writer.execute("INSERT INTO rows (data) VALUES (x'ff')")
    writer.close()
    release.join()
    assert reader.execute("SELECT count(*) FROM rows").fetchone() == (4,)
    reader.close()


def test_the_journal_of_a_killed_writer_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    script = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN')\n"
        "c.execute('UPDATE rows SET data = randomblob(5000)')\n"
        "c.execute('INSERT INTO rows (data) VALUES (randomblob(900000))')\n"
        "print('spilled', flush=True); time.sleep(60)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "spilled\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    spoilt = path.read_bytes()
    assert (tmp_path / "file-journal").stat().st_size > 0
    database = open_read_only(path, DECLARATION)
    assert database.blob("rows", "data", 3) == b"\x02" * 5000
    assert database.rows("SELECT count(*) FROM rows") == [(3,)]
    database.close()
    assert path.read_bytes() == spoilt


def test_a_failed_transaction_leaves_no_trace(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    writer = open_writer(path, DECLARATION, CREATE)
    with pytest.raises(KeyError), transaction(writer):
        writer.execute("DELETE FROM rows")
        raise KeyError
    assert writer.execute("SELECT count(*) FROM rows").fetchone() == (3,)
    writer.close()


def test_a_writer_refuses_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("notes")
    with pytest.raises(UnknownFormatError):
        open_writer(tmp_path / "file", DECLARATION, CREATE)
    assert (tmp_path / "file").read_text() == "notes"


def test_threads_share_one_database(tmp_path: Path) -> None:
    database = open_read_only(make(tmp_path / "file", values=50), DECLARATION)
    results: list[int] = []

    def read() -> None:
        deadline = time.monotonic() + 0.1
        while time.monotonic() < deadline:
            results.append(len(database.rows("SELECT data FROM rows")))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) == {50}
    database.close()


def killed_while_writing(path: Path) -> Path:
    """Leave a journal beside a file, as a kill does; give the journal."""
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN')\n"
        "c.execute('UPDATE rows SET data = randomblob(5000)')\n"
        "c.execute('INSERT INTO rows (data) VALUES (randomblob(900000))')\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    return path.with_name(f"{path.name}-journal")


def test_a_journal_cannot_have_another_file_deleted(tmp_path: Path) -> None:
    # The end of a journal of a commit of several databases: page number, name of a journal of all
    # of them, its length, its sum and the magic number (SQLite file format, section 3).
    path, victim = make(tmp_path / "file"), tmp_path / "victim"
    victim.write_text("precious")
    name = str(victim).encode()
    record = (0x40000000 // 4096 + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    record += sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    with killed_while_writing(path).open("ab") as journal:
        journal.write(record)
    with pytest.raises(DamagedFileError, match="file-journal: names another journal"):
        open_read_only(path, DECLARATION)
    with pytest.raises(DamagedFileError):
        open_writer(path, DECLARATION, CREATE)
    assert victim.read_text() == "precious"


def test_a_file_with_a_write_ahead_log_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with pytest.raises(DamagedFileError, match="kept with a write-ahead log"):
        open_read_only(path, DECLARATION)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_log_that_was_put_beside_a_file_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    (tmp_path / "file-wal").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(path)
    for opened in (path, link):  # SQLite looks beside what a link leads to
        with pytest.raises(DamagedFileError, match="file-wal: a write-ahead log"):
            open_read_only(opened, DECLARATION)
    assert not (tmp_path / "file-shm").exists()


@pytest.mark.parametrize("name", ["file", "file-journal", "file-wal"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    if name != "file":
        make(tmp_path / "file")
    os.mkfifo(tmp_path / name)
    with pytest.raises(PvaError) as error:
        open_read_only(tmp_path / "file", DECLARATION)
    assert str(tmp_path / name) in line(error)


def test_a_trigger_of_a_file_is_never_run(tmp_path: Path) -> None:
    path = make(tmp_path / "file")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER evil AFTER INSERT ON rows BEGIN DELETE FROM rows; END")
    connection.close()
    database = open_read_only(path, DECLARATION)
    assert database.rows("SELECT count(*) FROM rows") == [(3,)]
    with pytest.raises(PvaError):
        database.rows("INSERT INTO rows (data) VALUES (x'00')")
    database.close()


def test_process_ends_cleanly_while_a_daemon_thread_reads(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT sum(n) FROM t"
    script = f"""
import sys, threading, time
from pathlib import Path
from pva.formats.database.sqlite_file import Declaration, open_read_only
database = open_read_only(Path(sys.argv[1]), {DECLARATION!r})
threading.Thread(target=database.rows, args=({endless!r},), daemon=True).start()
time.sleep(0.5)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(make(tmp_path / "a.pop"))],
        capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_an_opened_file_trusts_no_function_of_its_schema_and_checks_its_cells(
    tmp_path: Path,
) -> None:
    database = open_read_only(make(tmp_path / "file"), DECLARATION)
    assert database.rows("PRAGMA trusted_schema") == [(0,)]
    assert database.rows("PRAGMA cell_size_check") == [(1,)]
    database.close()
