"""`profile.pop`: the report as one SQLite database, written run by run and read piece by piece.

Tables that are short are tables of their own, codes as texts, so that any SQLite tool can query
them. What is as long as tiles, steps or events is columns in `arrays`, in chunks cut by rows. A
table or array that was not recorded is not there. A dataset shows the file as it was when opened.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.array_types import Values
from pva.collector import collector_paused
from pva.data.dataset import Dataset, completed, texts_of
from pva.data.sources import Room, Spend
from pva.errors import DamagedFileError, OverwriteError, PvaError
from pva.formats.database.chunk_reader import ChunkReader
from pva.formats.database.chunks import chunks_of
from pva.formats.database.sqlite_file import (
    BATCH,
    REPORT,
    REPORT_ID,
    Database,
    Declaration,
    faults,
    open_read_only,
    open_writer,
    transaction,
)
from pva.formats.files import beside
from pva.formats.marker import ID_TABLE
from pva.formats.memory_limit import reading_limit
from pva.formats.values import columns_in_parts, numbers_of

Columns = Mapping[str, npt.ArrayLike]

FORMAT = REPORT
APPLICATION_ID = REPORT_ID
CHUNKS = "arrays"
CHUNK_COLUMNS = ("name", "first_row", "rows", "dtype", "shape", "encoding", "crc32", "data")
CREATE_CHUNKS = (
    "CREATE TABLE arrays (name TEXT NOT NULL, first_row INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "dtype TEXT NOT NULL, shape TEXT NOT NULL, encoding TEXT NOT NULL, crc32 INTEGER NOT NULL, "
    "data BLOB NOT NULL)",
    "CREATE INDEX arrays_by_name ON arrays (name, first_row)",
)
BATCH_BYTES = 4 << 20  # of texts that are read at once
LAST = "SELECT coalesce(max(rowid), 0) FROM"
# A file of many numbers has larger pages, of which a chunk takes fewer reads; a small one would
# mostly hold what its tables leave free of them.
MANY, PAGE_BYTES = 1 << 22, 16384
SQL_TYPES = {"int": "INTEGER", "float": "REAL", "bool": "INTEGER", "text": "TEXT", "code": "TEXT"}

CHUNKED = {array.name for array in schema.ARRAYS} | {
    f"{table.name}.{table.columns[0].name}" for table in schema.TABLES if table.wide
}
REPLACED = {array.name for array in schema.ARRAYS if array.replaced}

DECLARATION = Declaration(
    FORMAT,
    APPLICATION_ID,
    schema.FORMAT_VERSION,
    {CHUNKS: CHUNK_COLUMNS}
    | {
        table.name: tuple(column.name for column in table.columns if not column.optional)
        for table in schema.TABLES
        if not table.wide
    },
    frozenset(schema.TABLE),
)


def read(path: str | PathLike[str]) -> Dataset:
    """Open a report lazily: nothing is read before it is asked for; raises PvaError."""
    return Dataset(_Pop(open_read_only(path, DECLARATION)), str(path))


def write(dataset: Dataset, path: str | PathLike[str]) -> None:
    """Write a whole dataset; a report that was there is replaced once the new one is whole."""
    file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file():
        raise PvaError(path, "no regular file", "a name for profile.pop, which is a database")
    if not file.exists() and _journal(file).exists():
        raise OverwriteError(_journal(file), "there without its database", "move it away")
    part = beside(file, "part")
    try:
        with _written(file):
            part.touch(exist_ok=False)
        ReportWriter(part, dataset).close()
        with _written(file):
            _journal(file).unlink(missing_ok=True)
            os.replace(part, file)
    except BaseException:
        _remove(part)
        raise


def content_of(dataset: Dataset) -> bytes:
    """Return the bytes of a file that holds a dataset."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "profile.pop")
        write(dataset, path)
        return path.read_bytes()


class ReportWriter:
    """A report that grows run by run. What has been appended survives a kill of the process."""

    def __init__(
        self,
        path: str | PathLike[str],
        dataset: Dataset,
        identity: str | None = None,
        content: bytes = b"",
    ) -> None:
        """Write all that `dataset` holds in one commit; a report that was there is replaced.

        Where that fails no file is left, which would be read as a report of nothing. `identity`
        stands in the file from its first moment, and so do the tables of `content`, from
        `content_of`.
        """
        self._path = Path(path)
        with _written(self._path):
            for old in (self._path, _journal(self._path)):
                old.unlink(missing_ok=True)
            if identity is None:
                self._path.write_bytes(content)
            else:
                _put_identified(self._path, identity, content)
            inode = self._path.stat().st_ino
        self._rows: dict[str, int] = {}
        try:
            tables = {name: dataset.table(name) for name in dataset.tables}
            arrays = {name: dataset.array(name) for name in dataset.arrays}
            self._connection = open_writer(
                path, DECLARATION, CREATE_CHUNKS, _page_bytes(tables, arrays)
            )
            try:
                self._rows = _rows_of(self._connection)
                self.append_run(tables, arrays)
            except BaseException:
                self.close()
                raise
        except BaseException:
            with suppress(OSError):
                if self._path.stat().st_ino == inode:  # no other writer has put its file there
                    _remove(self._path)
            raise

    def append_run(
        self, tables: Mapping[str, Columns], arrays: Mapping[str, npt.ArrayLike] | None = None
    ) -> None:
        """Append rows to tables and arrays in one commit; a table of one row is replaced.

        Optional columns may be left out. Raises InconsistentDataError when names or lengths are
        wrong.
        """
        added = {name: completed(str(self._path), name, tables[name]) for name in tables}
        added_arrays = Dataset.of({}, arrays, str(self._path))
        rows = dict(self._rows)
        with faults(self._path, FORMAT), transaction(self._connection):
            for name, columns in added.items():
                if not schema.TABLE[name].wide:
                    _insert(self._connection, schema.TABLE[name], columns)
                    continue
                for column, values in columns.items():
                    self._append(f"{name}.{column}", values, rows)
            for name in added_arrays.arrays:
                self._append(name, added_arrays.array(name), rows)
        self._rows = rows

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _append(self, name: str, values: Values, rows: dict[str, int]) -> None:
        # Chunks that begin again at row 0 take the place of those before.
        first = 0 if name in REPLACED else rows.get(name, 0)
        self._connection.executemany(
            f"INSERT INTO arrays ({', '.join(CHUNK_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            chunks_of(name, values, first),
        )
        rows[name] = first + len(values)


def _page_bytes(tables: Mapping[str, Columns], arrays: Mapping[str, npt.ArrayLike]) -> int:
    """Return the size of the pages of a file for this much; 0 where it is SQLite's."""
    columns = (np.size(values) for table in tables.values() for values in table.values())
    return PAGE_BYTES if sum(columns) + sum(map(np.size, arrays.values())) >= MANY else 0


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Raise PvaError, in one line, where a place cannot be written."""
    try:
        yield
    except OSError as error:
        remedy = f"a place where {FORMAT} can be written"
        raise PvaError(path, error.strerror or str(error), remedy) from error


def _put_identified(path: Path, identity: str, content: bytes) -> None:
    """Put a file there that holds its identity and what `content` has, whole at once."""
    part = beside(path, "part")
    try:
        with _written(part):
            part.write_bytes(content)
        with (
            closing(open_writer(part, DECLARATION, CREATE_CHUNKS)) as connection,
            faults(part, FORMAT),
            transaction(connection),
        ):
            connection.execute(f"CREATE TABLE {ID_TABLE} (id TEXT NOT NULL)")
            connection.execute(f"INSERT INTO {ID_TABLE} VALUES (?)", (identity,))
        os.replace(part, path)
    finally:
        _remove(part)


def _rows_of(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each column or array in chunks has."""
    return dict(connection.execute("SELECT name, max(first_row + rows) FROM arrays GROUP BY name"))


def _remove(path: Path) -> None:
    """Remove a file that is not whole, and the journal that a full disk has left beside it."""
    for file in (path, _journal(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _insert(
    connection: sqlite3.Connection, table: schema.Table, added: Mapping[str, Values]
) -> None:
    """Append to a table of its own, made when it is not there."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    types = ", ".join(f'"{column.name}" {SQL_TYPES[column.kind]}' for column in table.columns)
    connection.execute(f'CREATE TABLE IF NOT EXISTS "{table.name}" ({types})')
    if table.layout == "object":
        connection.execute(f'DELETE FROM "{table.name}"')
    columns = [
        (texts_of(column, added[column.name]) if column.values else added[column.name]).tolist()
        for column in table.columns
    ]
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', zip(*columns, strict=True)
    )


class _Pop:
    """The source of a dataset in a file."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.room = Room(reading_limit(_check_size(database)), database.path)
        with database.snapshot(), self.room.spending() as spend:
            self._lengths: dict[str, int] = {}
            self._widest: dict[tuple[str, ...], int] = {}
            self._present: dict[str, set[str]] = {}
            table_names = {str(name) for (name,) in database.rows("SELECT name FROM sqlite_master")}
            distinct = database.batches("SELECT DISTINCT name FROM arrays")
            chunked = {name for rows in distinct for (name,) in rows if name in CHUNKED}
            self._tables = [
                table.name
                for table in schema.TABLES
                if (_first_column(table) in chunked if table.wide else table.name in table_names)
            ]
            self._arrays = [array.name for array in schema.ARRAYS if array.name in chunked]
            self._last = self._last_rows(
                [n for n in (CHUNKS, *self._tables) if n == CHUNKS or not schema.TABLE[n].wide]
            )
            self._chunks = ChunkReader(database, self.room, self._last[CHUNKS], REPLACED)
            self._replaced = {
                (table.name, column.name): values
                for table in map(schema.TABLE.__getitem__, self._tables)
                if table.document == "execution" and table.layout == "object"
                for column, values in zip(
                    table.columns, self._own_columns(table, table.columns, spend), strict=True
                )
            }

    def _last_rows(self, tables: list[str]) -> dict[str, int]:
        """Return the last row of each table, by one query; by one each where a table is damaged."""
        try:
            queries = [f'({LAST} "{table}")' for table in tables]
            rows = self._database.rows(f"SELECT {', '.join(queries)}")[0]
        except DamagedFileError:
            rows = tuple(
                self._database.rows(f'{LAST} "{table}"', place=f"table {table}")[0][0]
                for table in tables
            )
        return dict(zip(tables, map(int, rows), strict=True))

    def tables(self) -> Collection[str]:
        return self._tables

    def arrays(self) -> Collection[str]:
        return self._arrays

    def length(self, table: str) -> int:
        if table not in self._lengths:
            self._lengths[table] = self._count(schema.TABLE[table])
        return self._lengths[table]

    def _count(self, table: schema.Table) -> int:
        """Count the rows of a table; of one in chunks only when these fit together."""
        if table.wide:
            index = self._chunks.index(_first_column(table))
            return index.count if index else 0
        query = f'SELECT count(*) FROM "{table.name}" WHERE rowid <= ?'
        last = (self._last[table.name],)
        return int(self._database.rows(query, last, place=f"table {table.name}")[0][0])

    def column(self, table: str, column: str, spend: Spend) -> Values:
        declared = schema.TABLE[table]
        if declared.wide:
            return self._wide_column(declared, declared.column(column), spend)
        if (table, column) in self._replaced:
            return self._replaced[table, column]
        return self._own_columns(declared, [declared.column(column)], spend)[0]

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        declared = schema.TABLE[table]
        return None if declared.wide else self._own_columns(declared, declared.columns, spend)

    def _own_columns(
        self, table: schema.Table, columns: Sequence[schema.Column], spend: Spend
    ) -> list[Values]:
        path, place = self._database.path, f"table {table.name}"
        count = self.length(table.name)
        if table.layout == "object" and count != 1:
            raise DamagedFileError(path, f"{count} rows", "one row", place=place)
        present = self._names_in(table.name)
        names = [f'"{c.name}"' if c.name in present else "NULL" for c in columns]
        where, last = f'FROM "{table.name}" WHERE rowid <= ?', (self._last[table.name],)
        most = self._most_bytes(table.name, names, where, last) if count > 1 else 1
        batches = self._database.batches(
            f"SELECT {', '.join(names)} {where} ORDER BY rowid", last,
            size=max(min(BATCH, BATCH_BYTES // most), 1), place=place,
        )  # fmt: skip
        with closing(batches), collector_paused():
            parts = (list(zip(*rows, strict=True)) for rows in batches)
            return columns_in_parts(path, table.name, columns, parts, count, spend)

    def _names_in(self, table: str) -> set[str]:
        """Name the columns that a table of the file has, which may be older."""
        if table not in self._present:
            query = "SELECT name FROM pragma_table_info(?)"
            rows = self._database.rows(query, (table,), place=f"table {table}")
            self._present[table] = {name for (name,) in rows}
        return self._present[table]

    def _most_bytes(self, table: str, names: list[str], where: str, last: tuple[int]) -> int:
        """Return the bytes of the longest row, at least 1, counted when it is first asked for.

        A long text may be told by very many rows: of such rows few are read at once.
        """
        if (table, *names) not in self._widest:
            sizes = "+".join(f"coalesce(length(CAST({name} AS BLOB)), 0)" for name in names)
            query = f"SELECT max({sizes}) {where}"
            most = self._database.rows(query, last, place=f"table {table}")[0][0]
            self._widest[table, *names] = most or 1
        return self._widest[table, *names]

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        declared = schema.ARRAY[array]
        values = self._chunks.values(array, self._chunks.index(array), first, stop, spend)
        return numbers_of(self._database.path, array, declared.kind, values, len(declared.index))

    def _wide_column(self, table: schema.Table, column: schema.Column, spend: Spend) -> Values:
        name, count = f"{table.name}.{column.name}", self.length(table.name)
        index = self._chunks.index(name)
        if column.optional and index is None:
            missing = np.array(schema.MISSING[column.kind])
            spend(count * missing.itemsize, name)
            return np.full(count, missing)
        values = self._chunks.values(name, index, 0, None, spend)
        if len(values) != count:
            remedy = f"{_first_column(table)} has {count}"
            raise DamagedFileError(self._database.path, f"{len(values)} rows", remedy, place=name)
        return numbers_of(self._database.path, name, column.kind, values, 1)


def _first_column(table: schema.Table) -> str:
    """Name the column in chunks that tells how many rows a table has."""
    return f"{table.name}.{table.columns[0].name}"


def _check_size(database: Database) -> int:
    """Refuse a file that was cut short: SQLite reads half of a last page as if it were whole.

    Gives its bytes.
    """
    ((pages,),), ((page,),) = (database.rows(f"PRAGMA page_{of}") for of in ("count", "size"))
    with faults(database.path, FORMAT):
        size = database.path.stat().st_size
    if size < pages * page:
        remedy = f"it had {pages * page}: make or copy it again"
        raise DamagedFileError(database.path, f"cut short: {size} bytes", remedy)
    return size
