"""The trace file being written: one SQLite database, touched only when a commit is due."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from pvti.buffers import HURRY_NANOSECONDS, Chunk, Row, Track, catalogue
from pvti.implementation import checksums
from pvti.schema import COLUMNS, WRITER_PRAGMAS, Cell, create_statements, insert_statement
from pvti.spans import do_at_once

BUSY_SECONDS = 0.002  # between two attempts while a reader has the file
FAULTS = (sqlite3.Error, OSError, MemoryError, OverflowError, ValueError, TypeError)
VALUES_A_STATEMENT = 999  # what every SQLite allows
CHUNKS_A_STATEMENT = 64  # of 1 MB at most: SQLite copies what a statement holds
PROCESS = 1  # one process a file: the number of its row
BEGIN = """BEGIN IMMEDIATE;
UPDATE processes SET last_ns = {:d}, finished = {:d}, unmatched_ends = {:d};"""

Rows = dict[str, list[tuple[Cell, ...]]]
Open = list[tuple[int, int]]  # label and begin, the innermost last


class Process(NamedTuple):
    """Who writes, and one moment on both clocks."""

    pid: int
    name: str
    clock_ns: int
    wall_ns: int


class Progress(NamedTuple):
    """How far a trace has come."""

    last_ns: int
    finished: int
    unmatched_ends: int


class Taken(NamedTuple):
    """What one commit takes from one track, and how to remove it there once it is made."""

    track: Track
    chunks: list[Chunk]
    rows: list[Row]
    open: Open
    removal: tuple[Callable[[], object], ...] = ()


def take(track: Track, now: int) -> Taken:
    """Copy all that has ended and what is open, without stopping the thread.

    What ends in between is in neither: the next commit has it.
    """
    track.due = now + HURRY_NANOSECONDS
    track.pack()
    chunks = [Chunk(*chunk) for chunk in track.chunks.copy()]
    long, rows = track.long_events.copy(), track.rows.copy()
    removal = tuple(
        partial(of_track.__delitem__, slice(len(items)))
        for of_track, items in (
            (track.chunks, chunks),
            (track.long_events, long),
            (track.rows, rows),
        )
        if items
    )
    rows += (("long_events", (track.number, *event)) for event in long)
    return Taken(track, chunks, rows, track.spans(), removal)


def remember(opened: dict[int, Open], part: Taken) -> bool:
    """Keep what a track has open, by its number; tell whether that is something new."""
    number = part.track.number
    before = opened.pop(number, [])
    if part.open:
        opened[number] = part.open
    return before != part.open


class TraceFile:
    """An open trace file. Not for several threads at once: the recorder holds a lock."""

    def __init__(self, path: str, process: Process) -> None:
        """Make the file."""
        self.path = path
        self.opened: dict[int, Open] = {}  # by number of track: what the file holds as open
        self._places = dict.fromkeys(catalogue, 0)
        self._threads: set[int] = set()
        self._maker = os.getpid()
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            self._connection = _create(path, process)
        except BaseException:
            remove(path)  # what cannot be opened is no trace
            raise
        self._identity = _identity(path)

    def write(self, batches: list[Taken], progress: Progress, patience: float) -> bool:
        """Commit what was taken.

        False when a reader had the file for `patience` seconds: the next call takes it along.
        Raises sqlite3.Error when the file cannot be written, OSError when it is gone.
        """
        new = [part for part in batches if self._is_new(part)]
        rows = self._rows(batches, new)
        places = {table: place + len(rows[table]) for table, place in self._places.items()}
        opened = self.opened.copy()
        for part in batches:
            remember(opened, part)
        self._check_place()
        try:
            # A script and `commit` are one turn of the interpreter's lock, not one for each step.
            begin = partial(self._connection.executescript, BEGIN.format(*progress))
            self._until_free(begin, patience)
            self._insert(rows, batches)
            commit = partial(
                do_at_once,
                self._connection.commit,
                partial(self._places.update, places),
                partial(self._threads.update, [part.track.number for part in new]),
                partial(setattr, self, "opened", opened),
                *chain.from_iterable(part.removal for part in batches),
            )
            self._until_free(commit, patience)
        except BaseException as error:
            # A child's rollback would take the parent's journal away.
            if self._connection.in_transaction and os.getpid() == self._maker:
                self._connection.rollback()
            if _is_busy(error):
                return False
            raise
        return True

    def dump(self, progress: Progress) -> None:
        """Do nothing: what was written is in the file."""

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _is_new(self, part: Taken) -> bool:
        is_known = part.track.number in self._threads
        return not is_known and bool(part.chunks or part.rows or part.open)

    def _rows(self, batches: list[Taken], new: list[Taken]) -> Rows:
        """List the rows that the file does not have, by table; `new` are of new threads."""
        rows: Rows = {table: catalogue[table][place:] for table, place in self._places.items()}
        rows["threads"] = [
            (part.track.number, PROCESS, part.track.tid, part.track.name) for part in new
        ]
        for table, row in chain.from_iterable(part.rows for part in batches):
            rows.setdefault(table, []).append(row)
        rows["event_chunks"] = _chunk_rows(batches)
        return rows

    def _check_place(self) -> None:
        """Raise OSError when the file was removed or replaced: SQLite would write into nothing."""
        if self._identity != _identity(self.path):
            raise FileNotFoundError(errno.ENOENT, "the file was replaced", self.path)

    def _insert(self, rows: Rows, batches: list[Taken]) -> None:
        closed: list[int] = []
        opened: list[tuple[Cell, ...]] = []
        for part in batches:
            number = part.track.number
            before = self.opened.get(number, [])
            common = _common(before, part.open)
            if common < len(before):
                closed += (number, common)
            opened += _open_rows(number, part.open, common)
        for first in range(0, len(closed), VALUES_A_STATEMENT - 1):
            values = closed[first : first + VALUES_A_STATEMENT - 1]
            some = " OR ".join(["(thread = ? AND position >= ?)"] * (len(values) // 2))
            self._connection.execute(f"DELETE FROM open_spans WHERE {some}", values)
        for table, some_rows in (*rows.items(), ("open_spans", opened)):
            self._insert_rows(table, some_rows)

    def _insert_rows(self, table: str, rows: list[tuple[Cell, ...]]) -> None:
        """Insert many rows a statement: in each all other threads have a turn, several times."""
        many = VALUES_A_STATEMENT // len(COLUMNS[table])
        if table == "event_chunks":
            many = min(many, CHUNKS_A_STATEMENT)
        for first in range(0, len(rows), many):
            some = rows[first : first + many]
            self._connection.execute(insert_statement(table, len(some)), list(chain(*some)))

    def _until_free(self, step: Callable[[], object], patience: float) -> None:
        """Do a step, waiting while a reader has the file.

        Raises OSError in a child that a signal handler forked in the middle of a commit.
        """
        deadline = time.monotonic() + patience
        while True:
            if os.getpid() != self._maker:
                raise OSError("the file is the parent's")
            try:
                step()
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(BUSY_SECONDS)


def remove(path: str) -> None:
    """Remove a file that holds nothing, and the journal that a full disk has left beside it."""
    for file in (path, f"{path}-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)


def _create(path: str, process: Process) -> sqlite3.Connection:
    """Make the tables in an empty file."""
    # A statement that is kept keeps a copy of the chunks that it wrote.
    connection = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=0
    )
    try:
        for statement in WRITER_PRAGMAS:
            connection.execute(statement)
        connection.execute("BEGIN IMMEDIATE")
        for statement in create_statements():
            connection.execute(statement)
        row = (PROCESS, *process, process.clock_ns, 0, 0)
        connection.execute(insert_statement("processes"), row)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _chunk_rows(batches: list[Taken]) -> list[tuple[Cell, ...]]:
    threads = [part.track.number for part in batches for _ in part.chunks]
    chunks = [chunk for part in batches for chunk in part.chunks]
    sums = checksums([chunk.data for chunk in chunks])
    return [
        (None, thread, *chunk[:3], crc, chunk.data)
        for thread, chunk, crc in zip(threads, chunks, sums, strict=True)
    ]


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _open_rows(thread: int, spans: Open, first: int) -> Iterator[tuple[Cell, ...]]:
    for position, (label, begin) in enumerate(islice(spans, first, None), first):
        yield (thread, position, begin, label)


def _common(before: Open, after: Open) -> int:
    """Count the spans, from the outermost, that are open in both."""
    for position, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            return position
    return min(len(before), len(after))
