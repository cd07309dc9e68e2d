"""Read `.pvti` files: their tables as columns, and the events of a thread as arrays.

Layout and meaning of all tables: `pvti.schema`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.formats.sqlite_file import APPLICATIONS, Database, Declaration, open_read_only
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
)

Integers = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

DECLARATION = Declaration(APPLICATIONS[APPLICATION_ID], APPLICATION_ID, FORMAT_VERSION, COLUMNS)
RECORD_TYPE = np.dtype([("begin", "<u8"), ("duration", "<u4"), ("label", "<u4")])
# Nanoseconds: all sums of a begin, a duration and what moves a clock stay within 64 bits.
TIME_LIMIT = 1 << 60
WALL_LIMIT = 1 << 62
_BATCH_RECORDS = 1 << 15  # read at once
_LARGE = 1 << 10  # records of a chunk
_ASKED = 500  # rows of one query; every SQLite allows twice as many

# What each SQL type comes as: the dtype, and the Python types that may stand in the column.
_TYPES: dict[str, tuple[Any, tuple[type, ...]]] = {
    "INTEGER": (np.int64, (int,)),
    "REAL": (np.float64, (float, int)),
    "TEXT": (np.object_, (str,)),
    "BLOB": (np.object_, (bytes,)),
}


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

    def tables(self) -> dict[str, Columns]:
        """Read all tables at one moment; of `event_chunks` all but the data, with its length."""
        with self._database.snapshot():
            return {table.name: self._table(table.name) for table in TABLES}

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
            sums = zip(data, *(chunks[key][rows].tolist() for key in ("records", "crc32", "id")),
                       strict=True)  # fmt: skip
            for packed, records, crc, number in sums:
                if len(packed) != records * RECORD.size:
                    found = f"{len(packed)} bytes for {records} records"
                    raise self._damaged(number, found, f"{RECORD.size} bytes a record")
                if zlib.crc32(packed) != crc:
                    raise self._damaged(number, "its bytes have changed", f"the CRC-32 {crc:#x}")
            if data:
                whole = data[0] if len(data) == 1 else b"".join(data)
                yield rows, np.frombuffer(whole, RECORD_TYPE)

    def _data(self, chunks: Columns) -> list[bytes]:
        """Read the blobs of chunks: large ones one by one, which is faster."""
        numbers = chunks["id"].tolist()
        if numbers and chunks["records"].mean() >= _LARGE:
            return [self._database.blob("event_chunks", "data", number) for number in numbers]
        found: dict[int, bytes] = {}
        for first in range(0, len(numbers), _ASKED):
            some = numbers[first : first + _ASKED]
            marks = ", ".join("?" * len(some))
            asked = f"SELECT id, data FROM event_chunks WHERE id IN ({marks})"
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

    def _table(self, name: str) -> Columns:
        """Read a table, some rows at a time: as Python objects they take many times the memory."""
        declared = next(table for table in TABLES if table.name == name)
        chunked = name == "event_chunks"
        columns = [c for c in declared.columns if not (chunked and c.name == "data")]
        wanted = [c.name for c in columns] + ["coalesce(length(data), -1)"] * chunked
        parts: list[list[npt.NDArray[Any]]] = [[] for _ in wanted]
        for rows in self._database.batches(
            f"SELECT {', '.join(wanted)} FROM {name} ORDER BY rowid"
        ):
            for part, values, c in zip(parts, zip(*rows, strict=True), [*columns, None],
                                       strict=False):  # fmt: skip
                place, sql = (f"{name}.{c.name}", c.type) if c else (f"{name}.data", "INTEGER")
                part.append(self._column(place, sql, values))
        dtypes = [_TYPES[c.type.split()[0]][0] for c in columns] + [np.int64] * chunked
        arrays = [np.concatenate(part) if part else np.zeros(0, dtype)
                  for part, dtype in zip(parts, dtypes, strict=True)]  # fmt: skip
        table = {c.name: values for c, values in zip(columns, arrays, strict=False)}
        if chunked:
            self._check_lengths(table, arrays[-1])
        return table

    def _column(self, place: str, sql: str, values: Sequence[Any]) -> npt.NDArray[Any]:
        dtype, allowed = _TYPES[sql.split()[0]]
        optional = "NOT NULL" not in sql and "PRIMARY KEY" not in sql
        wrong = set(map(type, values)) - {*allowed, *([type(None)] if optional else ())}
        if wrong:
            found = f"values of type {', '.join(sorted(kind.__name__ for kind in wrong))}"
            raise DamagedFileError(self.path, found, sql, place=place)
        column = np.empty(len(values), dtype)
        column[:] = values
        limit = WALL_LIMIT if place == "processes.wall_ns" else TIME_LIMIT
        least = -limit if place.endswith("duration_ns") else 0  # a clock may have been set back
        if place.endswith("_ns") and not (column.min() >= least and column.max() < limit):
            wanted = f"from {least} to below {limit} ns"
            raise DamagedFileError(self.path, "a time beyond the clock", wanted, place=place)
        return column

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
