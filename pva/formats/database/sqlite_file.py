"""Open SQLite files that nobody vouches for, and write those that a kill must not spoil.

Both the report (`profile.pop`) and the trace (`.pvti`) are SQLite databases with an application id
and a format version. What a file is must be declared; what it holds is compared with that before
the first query. Each fault is a `PvaError` of one line.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pva.errors import DamagedFileError, NewerVersionError, PvaError, UnknownFormatError
from pva.formats.database.sqlite_outside import check_outside, journal_of

REPORT_ID = 0x54534350  # "TSCP"
REPORT, TRACE = "a report (profile.pop)", "a host trace (.pvti)"
BLOB_LIMIT = 64 << 20  # bytes of one value; both formats cut theirs well below
SQL_LIMIT = 16 << 10  # bytes of a query, or of what made a table
BATCH = 1 << 12  # rows that are Python objects at once
QUERY_SECONDS, QUERY_BYTES = 10.0, 100 << 20  # of the processor, for a file of so many bytes
BUSY_SECONDS = 5.0
WRITE_SECONDS = 60.0
_PROGRESS_STEPS = 10_000  # instructions of SQLite between two looks at the clock


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a file must be: `tables` maps each table to its columns; others may stand beside them.

    `optional` names tables that files of an older version may lack.
    """

    what: str
    application_id: int
    version: int
    tables: Mapping[str, Sequence[str]]
    optional: frozenset[str] = frozenset()


class _Deadline:
    """When what is asked has taken too long, by the processor's time of the thread that asks."""

    def __init__(self) -> None:
        self.seconds = float("inf")

    def is_over(self) -> int:
        return int(time.thread_time() > self.seconds)


class Database:
    """A file open for reading. Holds no lock between calls; safe to share among threads.

    It is closed when nobody refers to it: reports and traces need no `close`.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, declaration: Declaration):
        self.path = path
        self.declaration = declaration
        self._connection = connection
        self._lock = threading.RLock()
        self._deadline = _Deadline()
        self._times = max(path.stat().st_size / QUERY_BYTES, 1)
        # What the connection refers to must not refer to `self`, or nothing would close it.
        connection.set_progress_handler(self._deadline.is_over, _PROGRESS_STEPS)
        self._close = weakref.finalize(self, connection.close)
        # A daemon thread may still read when the interpreter ends; the system closes the file then.
        self._close.atexit = False

    def rows(
        self, statement: str, parameters: Sequence[object] = (), *, place: str = ""
    ) -> list[tuple[Any, ...]]:
        """Fetch all rows of a query; `place` names the table in the text of a fault."""
        with self._guarded(place):
            return self._connection.execute(statement, parameters).fetchall()

    def batches(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        size: int = BATCH,
        place: str = "",
    ) -> Generator[list[tuple[Any, ...]], None, None]:
        """Fetch the rows of a query some at a time: as Python objects they take much memory.

        Nobody else reads before the last: end it with `contextlib.closing`, or in a snapshot.
        """
        with self._guarded(place):
            cursor = self._connection.execute(statement, parameters)
            while rows := cursor.fetchmany(size):
                resumed = time.thread_time()
                yield rows
                self._deadline.seconds += time.thread_time() - resumed

    def blob(self, table: str, column: str, rowid: int, *, place: str = "") -> bytes:
        """Read one blob whole, without the rest of its row."""
        with (
            self._guarded(place or f"{table}.{column} row {rowid}"),
            self._connection.blobopen(table, column, rowid, readonly=True) as blob,
        ):
            return blob.read()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries inside see one state of the file; it holds off the writer: be short."""
        with self._lock:
            self.rows("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    @property
    def version(self) -> int:
        """Format version of the file."""
        return int(self.rows("PRAGMA user_version")[0][0])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._close()

    @contextmanager
    def _guarded(self, place: str) -> Iterator[None]:
        with self._lock:
            self._deadline.seconds = time.thread_time() + QUERY_SECONDS * self._times
            with faults(self.path, self.declaration.what, place):
                yield


def open_read_only(path: str | PathLike[str], declaration: Declaration) -> Database:
    """Open a file for reading and compare it with its declaration.

    A journal left by a kill is rolled back in a private copy, never in the file itself.
    Raises NotFoundError, UnknownFormatError (foreign), DamagedFileError, NewerVersionError.
    """
    file = Path(path)
    check_outside(file, declaration.what)
    with faults(file, declaration.what):
        try:
            connection = _connect(file)
        except sqlite3.OperationalError as error:
            if not _needs_recovery(file, error):
                raise
            connection = _connect_recovered(file)
        database = Database(file, connection, declaration)
        try:
            _check_identity(database)
            _check_tables(database)
        except BaseException:
            database.close()
            raise
        return database


@contextmanager
def faults(path: Path, kind: str, place: str = "") -> Iterator[None]:
    """Turn what SQLite and the system raise into one line about `path`."""
    try:
        yield
    except sqlite3.DataError as error:
        raise DamagedFileError(
            path, str(error), f"values in {kind} hold at most {BLOB_LIMIT} bytes", place=place
        ) from error
    except sqlite3.Error as error:
        raise _translate(path, kind, place, error) from error
    except UnicodeDecodeError as error:  # a text of the file, or one that quotes it
        raise DamagedFileError(path, "bytes that are no text", "UTF-8", place=place) from error
    except OverflowError as error:
        raise DamagedFileError(path, str(error), "numbers of 64 bits", place=place) from error
    except MemoryError as error:
        raise DamagedFileError(path, "too large for the memory", place=place) from error
    except OSError as error:
        problem = error.strerror or str(error)
        raise PvaError(path, problem, f"{kind} that can be read", place=place) from error


def _translate(path: Path, kind: str, place: str, error: sqlite3.Error) -> PvaError:
    code = _code(error)
    if isinstance(error, sqlite3.ProgrammingError):
        return PvaError(path, str(error), "open it again", place=place)
    if code == sqlite3.SQLITE_BUSY:
        problem = f"locked by its writer for {BUSY_SECONDS:.0f} s"
        return PvaError(path, problem, "try again", place=place)
    if code == sqlite3.SQLITE_FULL:
        return PvaError(path, str(error), f"a place with room for {kind}", place=place)
    if code == sqlite3.SQLITE_INTERRUPT:
        problem = f"a query took over {QUERY_SECONDS:.0f} s"
        return DamagedFileError(path, problem, f"{kind} as its program wrote it", place=place)
    if code == sqlite3.SQLITE_CANTOPEN:
        return PvaError(path, "cannot be opened", f"{kind} that can be read", place=place)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_DBMOVED:
        problem = "taken away or replaced while it was written"
        return PvaError(path, problem, "give each program a directory of its own", place=place)
    remedy = f"{kind} as its program wrote it: make or copy it again"
    return DamagedFileError(path, _damage(path, error), remedy, place=place)


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; 0 when the error does not come from SQLite itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _damage(path: Path, error: sqlite3.Error) -> str:
    """Return how many bytes are missing, when the header tells."""
    with suppress(OSError), path.open("rb") as stream:
        header = stream.read(100)
        pages = int.from_bytes(header[28:32])
        page = int.from_bytes(header[16:18])
        expected = pages * (65536 if page == 1 else page)
        size = path.stat().st_size
        if len(header) < 100 or size < expected:
            return f"cut short: {size} bytes of {max(expected, 100)}"
    return str(error)


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


def _connect(path: Path, mode: str = "ro") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BLOB_LIMIT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_LIMIT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _needs_recovery(path: Path, error: sqlite3.OperationalError) -> bool:
    """Return whether a kill left a journal that must be rolled back before the file can be read."""
    refused = _code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return refused and journal_of(path.resolve()).is_file()


def _connect_recovered(path: Path) -> sqlite3.Connection:
    import shutil  # after a kill alone
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="recovered-"))
    copy = directory / "copy"
    try:
        shutil.copyfile(path, copy)
        shutil.copyfile(journal_of(path.resolve()), journal_of(copy))
        connection = _connect(copy, mode="rw")
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    weakref.finalize(connection, shutil.rmtree, directory, ignore_errors=True)
    return connection


def _check_identity(database: Database) -> None:
    declaration = database.declaration
    identity = int(database.rows("PRAGMA application_id")[0][0])
    if identity != declaration.application_id:
        from pvti.schema import APPLICATION_ID  # the package takes long to import

        known = {REPORT_ID: REPORT, APPLICATION_ID: TRACE}
        if identity in known:
            wanted = f"{declaration.what} is needed"
            raise UnknownFormatError(database.path, known[identity], wanted)
        remedy = f"{declaration.what} has {declaration.application_id:#x}"
        foreign = "; databases of Graphcore's SDK, whose layout is not public, are not read"
        raise UnknownFormatError(
            database.path,
            f"an SQLite database with application id {identity:#x}",
            remedy if identity else remedy + foreign,
        )
    if database.version > declaration.version:
        raise NewerVersionError(
            database.path,
            f"format version {database.version}",
            f"{declaration.what} is read up to version {declaration.version}: update tilescope",
        )


def _check_tables(database: Database) -> None:
    """Compare the tables found with those declared; a view or a virtual table is none."""
    kinds = {
        name: (kind == "table" and not str(sql).lstrip().upper().startswith("CREATE VIRTUAL"))
        for kind, name, sql in database.rows("SELECT type, name, sql FROM sqlite_master")
        if kind in ("table", "view")
    }
    have: dict[str, set[str]] = {}
    names = [table for table in database.declaration.tables if kinds.get(table, False)]
    query = "SELECT value, name FROM json_each(?), pragma_table_info(value)"
    for table, column in database.rows(query, (json.dumps(names),)):
        have.setdefault(table, set()).add(column)
    for table, columns in database.declaration.tables.items():
        if table not in kinds and table in database.declaration.optional:
            continue
        if not kinds.get(table, False):
            problem = "is no plain table" if table in kinds else "is missing"
            raise DamagedFileError(
                database.path, f"table {table!r} {problem}", f"{database.declaration.what} has it"
            )
        missing = [column for column in columns if column not in have.get(table, ())]
        if missing:
            raise DamagedFileError(
                database.path,
                f"column {missing[0]!r} is missing",
                f"columns {', '.join(columns)}",
                place=f"table {table}",
            )


def open_writer(
    path: str | PathLike[str], declaration: Declaration, create: Sequence[str], page_bytes: int = 0
) -> sqlite3.Connection:
    """Open a file for writing, making it with the statements `create` when it is not there.

    Of pages of so many bytes; 0 leaves that to SQLite, and so does a file that is there.
    The connection commits nothing by itself: use `transaction`. Raises PvaError when the place
    cannot be written, and what `open_read_only` raises for a file that is something else.
    """
    file = Path(path)
    if file.exists() and file.stat().st_size:
        open_read_only(file, declaration).close()
        create = ()
    with faults(file, declaration.what):
        connection = sqlite3.connect(
            file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, declaration, create, page_bytes if create else 0)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(
    connection: sqlite3.Connection,
    declaration: Declaration,
    create: Sequence[str],
    page_bytes: int,
) -> None:
    from pvti.schema import WRITER_PRAGMAS

    if page_bytes:
        connection.execute(f"PRAGMA page_size = {page_bytes}")
    for statement in WRITER_PRAGMAS:
        connection.execute(statement)
    if not create:
        return
    identity = (
        f"PRAGMA application_id = {declaration.application_id}",
        f"PRAGMA user_version = {declaration.version}",
    )
    with transaction(connection):
        for statement in (*identity, *create):
            connection.execute(statement)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what happens inside as one; wait for readers; roll back when something is raised."""
    retry_while_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        yield
        retry_while_locked(lambda: connection.execute("COMMIT"))
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def retry_while_locked(
    action: Callable[[], object], seconds: float = WRITE_SECONDS, pause: float = 0.01
) -> None:
    """Do `action` again while somebody else has the lock, for at most `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(pause)
