"""Read `.pvti` files: their tables as columns, and the events of a thread as arrays.

Layout and meaning of all tables: `pvti.schema`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from os import PathLike
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.formats.budget import SHORTER, Budget
from pva.formats.files import collector_paused
from pva.formats.growing import IN_RUNS, Growing, GrowingTexts
from pva.formats.sqlite_file import APPLICATIONS, Database, Declaration, faults, open_read_only
from pvti.schema import (
    APPLICATION_ID,
    CHUNK_RECORDS,
    COLUMNS,
    FORMAT_VERSION,
    KINDS,
    LABEL_BITS,
    LABEL_MASK,
    RECORD,
    TABLES,
    Column,
    Table,
)

Integers = npt.NDArray[np.int64]
Columns = dict[str, Any]

DECLARATION = Declaration(APPLICATIONS[APPLICATION_ID], APPLICATION_ID, FORMAT_VERSION, COLUMNS)
RECORD_TYPE = np.dtype([("begin", "<u8"), ("duration", "<u4"), ("label", "<u4")])
# Nanoseconds: all sums of a begin, a duration and what moves a clock stay within 64 bits.
TIME_LIMIT = 1 << 60
WALL_LIMIT = 1 << 62
_BATCH_RECORDS = 1 << 15  # read at once
_LARGE = 1 << 10  # records of a chunk
_DATA = "SELECT id, data FROM event_chunks WHERE id"
AT_ONCE = 1 << 11  # rows that are Python objects at once, few enough for the processor's cache
_ASKED = 500  # rows of one query; every SQLite allows twice as many

# The Python types that may stand in a column of each SQL type.
_TYPES: dict[str, tuple[type, ...]] = {
    "INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,),
}  # fmt: skip
_NUMBERS = {"INTEGER": np.int64, "REAL": np.float64}
# Columns of numbers of rows and the like, which are small.
NUMBERS = frozenset({"thread", "label", "kind", "position", "records", "series", "heatmap"})
# Bytes that a row of each table takes while it is read, and what is made of it when the trace is
# opened; texts and blobs come beside.
ROW_BYTES = {
    "processes": 3000, "threads": 250, "channels": 250, "labels": 70, "event_chunks": 100,
    "long_events": 70, "open_spans": 60, "instants": 45, "event_metadata": 60, "series": 1000,
    "series_points": 40, "heatmaps": 1500, "heatmap_columns": 60,
}  # fmt: skip


class _Objects:
    """A column of what stays an object."""

    def __init__(self) -> None:
        self._found: list[Any] = []

    def extend(self, values: Sequence[Any]) -> int:
        """Take values in; give the bytes that they take."""
        self._found.extend(values)
        return sum(map(getsizeof, values))

    def taken(self) -> npt.NDArray[np.object_]:
        """Give all values as an array."""
        found = np.empty(len(self._found), np.object_)
        found[:] = self._found
        return found


def _growing(column: Column) -> Growing | GrowingTexts | _Objects:
    dtype = _NUMBERS.get(column.type.split()[0])
    if dtype is not None:
        return Growing(dtype)
    return GrowingTexts() if column.name in IN_RUNS else _Objects()


class RawEvents(NamedTuple):
    """Ended events in the order of their end. Times in nanoseconds of the monotonic clock."""

    begin: Integers
    end: Integers
    label: npt.NDArray[np.int32]  # rows of `labels`
    kind: npt.NDArray[np.uint8]  # index into pvti.schema.KINDS


class PvtiFile:
    """An open trace. Reads what is committed when it is asked; never holds a lock in between."""

    problems: tuple[str, ...] = ()

    def __init__(self, path: str | PathLike[str]) -> None:
        self._database: Database = open_read_only(path, DECLARATION)
        self.path = self._database.path
        self.budget = self._whole_budget()

    def _whole_budget(self) -> Budget:
        with faults(self.path, DECLARATION.what):  # it may have been removed since
            size = self.path.stat().st_size
        return Budget(self.path, size, held=0, otherwise=SHORTER)

    def tables(self) -> dict[str, Columns]:
        """Read all tables at one moment; of `event_chunks` all but the data, with its length.

        Raises DamagedFileError for what does not fit, and for more than fits into the memory.
        """
        with self._database.snapshot():
            self.budget = self._whole_budget()
            for table in TABLES:
                asked = f"SELECT count(*) FROM {table.name}"
                ((rows,),) = self._database.rows(asked, place=table.name)
                self.budget.spend(rows * ROW_BYTES[table.name], f"table {table.name}")
            with collector_paused():
                return {table.name: self._table(table) for table in TABLES}

    def check(self, amount: int, place: str) -> None:
        """Raise DamagedFileError when so many bytes more are too many for the file."""
        self.budget.check_whole(amount, place)

    def events(self, chunks: Columns) -> RawEvents:
        """Read the events of these rows of `event_chunks`, in their order.

        Raises DamagedFileError for a chunk whose length, CRC or times do not fit.
        """
        total = int(chunks["records"].sum())
        begin, end = np.empty(total, np.int64), np.empty(total, np.int64)
        label, kind = np.empty(total, np.int32), np.empty(total, np.uint8)
        place = 0
        for rows, records in self._records(chunks):
            part = slice(place, place + len(records))
            begin[part] = records["begin"]
            np.add(begin[part], records["duration"], out=end[part])
            label[part] = records["label"] & LABEL_MASK
            kind[part] = records["label"] >> LABEL_BITS
            self._check_times(chunks, rows, begin[part], end[part])
            place = part.stop
        if total and int(kind.max()) >= len(KINDS):
            found = f"an event of kind {int(kind.max())}"
            raise DamagedFileError(self.path, found, f"kinds 0 to {len(KINDS) - 1}")
        return RawEvents(begin, end, label, kind)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _records(self, chunks: Columns) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Read the chunks, some at a time, each compared with its CRC."""
        batches = np.cumsum(chunks["records"]) // _BATCH_RECORDS
        cuts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist(), len(batches)]
        for first, stop in zip(cuts, cuts[1:], strict=False):
            rows = slice(first, stop)
            data = self._data({name: column[rows] for name, column in chunks.items()})
            self._compare(data, {name: column[rows] for name, column in chunks.items()})
            if data:
                whole = data[0] if len(data) == 1 else b"".join(data)
                yield rows, np.frombuffer(whole, RECORD_TYPE)

    def _compare(self, data: Sequence[bytes], chunks: Columns) -> None:
        """Compare the length and the CRC of each chunk with what is said of it."""
        records, number = chunks["records"], chunks["id"]
        lengths = np.fromiter(map(len, data), np.int64, len(data))
        wrong = np.flatnonzero(lengths != records * RECORD.size)
        if len(wrong):
            found = f"{lengths[wrong[0]]} bytes for {records[wrong[0]]} records"
            wanted = f"{RECORD.size} bytes a record"
            raise self._damaged(int(number[wrong[0]]), found, wanted)
        wrong = np.flatnonzero(np.fromiter(map(zlib.crc32, data), np.int64, len(data))
                               != chunks["crc32"])  # fmt: skip
        if len(wrong):
            wanted = f"the CRC-32 {int(chunks['crc32'][wrong[0]]):#x}"
            raise self._damaged(int(number[wrong[0]]), "its bytes have changed", wanted)

    def _data(self, chunks: Columns) -> list[bytes]:
        """Read the blobs of chunks: large ones one by one, which is faster."""
        numbers = chunks["id"].tolist()
        if numbers and chunks["records"].mean() >= _LARGE:
            return [self._database.blob("event_chunks", "data", number) for number in numbers]
        asked, ends = f"{_DATA} BETWEEN ? AND ? ORDER BY id", (numbers[:1] + numbers[-1:])
        if numbers and (np.diff(chunks["id"]) == 1).all():
            rows = self._database.rows(asked, ends, place="event_chunks")
            data = [data for _, data in rows if type(data) is bytes]
            if len(data) == len(numbers):
                return data
        found: dict[int, bytes] = {}
        for first in range(0, len(numbers), _ASKED):
            some = numbers[first : first + _ASKED]
            asked = f"{_DATA} IN ({', '.join('?' * len(some))})"
            found.update(self._database.rows(asked, some, place="event_chunks"))
        gone = [number for number in numbers if not isinstance(found.get(number), bytes)]
        if gone:
            raise self._damaged(gone[0], "is no longer there", "a trace that only grows")
        return [found[number] for number in numbers]

    def _check_times(self, chunks: Columns, rows: slice, begin: Integers, end: Integers) -> None:
        """Compare the times of chunks with what is said of them, by which windows are read."""
        stops = np.cumsum(chunks["records"][rows])
        starts = stops - chunks["records"][rows]
        least, most = np.minimum.reduceat(begin, starts), np.maximum.reduceat(end, starts)
        wrong = (least < chunks["begin_ns"][rows]) | (most > chunks["end_ns"][rows])
        if wrong.any():
            bad = int(wrong.argmax())
            found = f"events from {least[bad]} to {most[bad]} ns"
            told = (int(chunks[key][rows][bad]) for key in ("begin_ns", "end_ns"))
            wanted = f"those of the chunk, {' to '.join(map(str, told))}"
            raise self._damaged(int(chunks["id"][rows][bad]), found, wanted)

    def _table(self, table: Table) -> Columns:
        """Read a table, some rows at a time: as Python objects they take many times the memory."""
        chunked = table.name == "event_chunks"
        columns = [c for c in table.columns if not (chunked and c.name == "data")]
        wanted = [c.name for c in columns] + ["coalesce(length(data), -1)"] * chunked
        kept = [*map(_growing, columns), *[Growing(np.int64)] * chunked]
        asked = f"SELECT {', '.join(wanted)} FROM {table.name} ORDER BY rowid"
        for rows in self._database.batches(asked, size=AT_ONCE, place=f"table {table.name}"):
            for column, c, values in zip(kept, [*columns, None], zip(*rows, strict=True),
                                         strict=False):  # fmt: skip
                self._check(f"{table.name}.{c.name if c else 'data'}", c, values)
                self.budget.spend(column.extend(values), f"table {table.name}")
        arrays = [column.taken() for column in kept]
        made = {c.name: self._narrow(values) if c.name in NUMBERS else values
                for c, values in zip(columns, arrays, strict=False)}  # fmt: skip
        if chunked:
            self._check_lengths(made, np.asarray(arrays[-1], np.int64))
        return made

    def _check(self, place: str, column: Column | None, values: Sequence[Any]) -> None:
        """Compare the types of values with those declared, and times with what a clock tells."""
        sql = column.type if column else "INTEGER"
        optional = "NOT NULL" not in sql and "PRIMARY KEY" not in sql
        allowed = {*_TYPES[sql.split()[0]], *([type(None)] if optional else ())}
        wrong = set(map(type, values)) - allowed
        if wrong:
            found = f"values of type {', '.join(sorted(kind.__name__ for kind in wrong))}"
            raise DamagedFileError(self.path, found, sql, place=place)
        limit = WALL_LIMIT if place == "processes.wall_ns" else TIME_LIMIT
        least = -limit if place.endswith("duration_ns") else 0  # a clock may have been set back
        if place.endswith("_ns") and not (min(values) >= least and max(values) < limit):
            wanted = f"from {least} to below {limit} ns"
            raise DamagedFileError(self.path, "a time beyond the clock", wanted, place=place)

    @staticmethod
    def _narrow(values: Any) -> Any:
        """Give whole numbers in four bytes where they fit."""
        fits = len(values) and int(values.min()) >= 0 and int(values.max()) < 1 << 31
        return values.astype(np.int32) if fits else values

    def _check_lengths(self, chunks: Columns, lengths: Integers) -> None:
        """Compare lengths before memory is taken."""
        records = chunks["records"]
        fit = (records > 0) & (records <= CHUNK_RECORDS)
        fit &= records * RECORD.size == lengths
        if not fit.all():
            bad = int(np.argmin(fit))
            found = f"{lengths[bad]} bytes for {records[bad]} records"
            wanted = f"1 to {CHUNK_RECORDS} records of {RECORD.size} bytes"
            raise self._damaged(int(chunks["id"][bad]), found, wanted)

    def _damaged(self, chunk: int, found: str, wanted: str) -> DamagedFileError:
        return DamagedFileError(self.path, found, wanted, place=f"event_chunks row {chunk}")
