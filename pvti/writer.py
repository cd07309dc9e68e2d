"""The trace file being written: one SQLite database, touched only when a commit is due."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from array import array
from collections.abc import Iterator
from itertools import chain, islice

from pvti.buffers import Taken, ThreadState, catalogue
from pvti.schema import (
    CHUNK_RECORDS,
    COLUMNS,
    DURATION_LIMIT,
    WRITER_PRAGMAS,
    Cell,
    create_statements,
    insert_statement,
    little_endian,
)

BUSY_SECONDS = 0.25  # in SQLite, between two looks at the clock
FAULTS = (sqlite3.Error, OSError, MemoryError, OverflowError, ValueError, TypeError)
VALUES_A_STATEMENT = 999  # what every SQLite allows
PROCESS = 1  # one process a file: the number of its row

Rows = dict[str, list[tuple[Cell, ...]]]


class TraceFile:
    """An open trace file. Not for several threads at once: the recorder holds a lock."""

    def __init__(self, path: str, process: tuple[int, str, int, int]) -> None:
        """Make the file; `process` is pid, name, and monotonic and wall clock at the anchor."""
        self.path = path
        self._places = dict.fromkeys(catalogue, 0)
        self._threads: set[int] = set()
        self.waiting: Rows = {}  # taken from the threads, not yet committed
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        self._connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for statement in WRITER_PRAGMAS:
            self._connection.execute(statement)
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in create_statements():
            self._connection.execute(statement)
        row = (PROCESS, *process, process[2], 0, 0)
        self._connection.execute(insert_statement("processes"), row)
        self._connection.execute("COMMIT")

    def write(
        self,
        taken: list[tuple[ThreadState, Taken]],
        progress: tuple[int, int, int],
        patience: float,
    ) -> bool:
        """Commit what was taken, and `progress`: last time known, finished, unmatched ends.

        False when a reader had the file for `patience` seconds: the rows wait for the next call.
        Raises sqlite3.Error when the file cannot be written.
        """
        self._add_new_rows()
        for state, part in taken:
            self._add(state, part)
        try:
            self._until_free("BEGIN IMMEDIATE", patience)
            self._insert(taken, progress)
            self._until_free("COMMIT", patience)
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if _is_busy(error):
                return False
            raise
        self.waiting = {}
        for state, part in taken:
            state.open_written = part.open
        return True

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _add_new_rows(self) -> None:
        for table, place in self._places.items():
            new = catalogue[table][place:]
            self._places[table] = place + len(new)
            self.waiting.setdefault(table, []).extend(new)

    def _add(self, state: ThreadState, part: Taken) -> None:
        rows = self.waiting
        if state.number not in self._threads:
            self._threads.add(state.number)
            row = (state.number, PROCESS, state.tid, state.name)
            rows.setdefault("threads", []).append(row)
        rows.setdefault("event_chunks", []).extend(_chunks(state.number, part.words))
        for table, other in part.rows:
            rows.setdefault(table, []).append(other)

    def _insert(
        self, taken: list[tuple[ThreadState, Taken]], progress: tuple[int, int, int]
    ) -> None:
        closed: list[int] = []
        opened: list[tuple[Cell, ...]] = []
        for state, part in taken:
            kept = _common(state.open_written, part.open)
            if kept < len(state.open_written):
                closed += (state.number, kept)
            opened += _open_rows(state.number, part.open, kept)
        if closed:
            some = " OR ".join(["(thread = ? AND position >= ?)"] * (len(closed) // 2))
            self._connection.execute(f"DELETE FROM open_spans WHERE {some}", closed)
        for table, rows in (*self.waiting.items(), ("open_spans", opened)):
            self._insert_rows(table, rows)
        statement = "UPDATE processes SET last_ns = ?, finished = ?, unmatched_ends = ?"
        self._connection.execute(statement, progress)

    def _insert_rows(self, table: str, rows: list[tuple[Cell, ...]]) -> None:
        """Insert many rows a statement: each lets all other threads run first."""
        many = VALUES_A_STATEMENT // len(COLUMNS[table])
        for first in range(0, len(rows), many):
            some = rows[first : first + many]
            self._connection.execute(insert_statement(table, len(some)), list(chain(*some)))

    def _until_free(self, statement: str, patience: float) -> None:
        """Execute a statement, waiting while a reader has the file."""
        deadline = time.monotonic() + patience
        while True:
            try:
                self._connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _open_rows(thread: int, spans: list[tuple[int, int]], first: int) -> Iterator[tuple[Cell, ...]]:
    for position, (key, begin) in enumerate(islice(spans, first, None), first):
        yield (thread, position, begin, key >> 32)


def _common(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> int:
    """Count the spans, from the outermost, that are open in both."""
    for position, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new:
            return position
    return min(len(before), len(after))


def _chunks(thread: int, words: list[int]) -> Iterator[tuple[Cell, ...]]:
    """Pack words, two a record, into rows of `event_chunks`."""
    for first in range(0, len(words), 2 * CHUNK_RECORDS):
        packed = array("Q", words[first : first + 2 * CHUNK_RECORDS])
        begins = packed[::2]
        # Records are in order of their end.
        end = packed[-2] + packed[-1] % DURATION_LIMIT
        data = little_endian(packed)
        yield (None, thread, len(begins), min(begins), end, zlib.crc32(data), data)
