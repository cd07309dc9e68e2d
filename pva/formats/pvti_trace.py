"""Read `.pvti` files: their tables as columns, and the events of a thread as arrays.

Layout and meaning of all tables: `pvti.schema`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

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
TIME_LIMIT = 1 << 62  # nanoseconds: sums of two times stay within 64 bits
_BATCH_RECORDS = 4 * CHUNK_RECORDS  # read at once

# What each SQL type comes as: the dtype, and the Python types that may stand in the column.
_TYPES: dict[str, tuple[Any, tuple[type, ...]]] = {
    "INTEGER": (np.int64, (int,)),
    "REAL": (np.float64, (float, int)),
    "TEXT": (np.object_, (str,)),
    "BLOB": (np.object_, (bytes,)),
}


@dataclass(frozen=True, slots=True)
class RawEvents:
    """Ended events in the order of their end. Times in nanoseconds of the monotonic clock."""

    begin: Integers
    end: Integers
    label: npt.NDArray[np.int32]  # rows of `labels`
    kind: npt.NDArray[np.uint8]  # index into pvti.schema.KINDS

    def __len__(self) -> int:
        return len(self.begin)


class PvtiFile:
    """An open trace. Reads what is committed when it is asked; never holds a lock in between."""

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
        for number, records in self._records(chunks):
            part = slice(place, place + len(records))
            if records["begin"].max() >= TIME_LIMIT:
                raise self._damaged(number, "a begin beyond the clock", f"below {TIME_LIMIT} ns")
            begin[part] = records["begin"]
            end[part] = records["begin"] + records["duration"]
            label[part] = records["label"] & LABEL_MASK
            kind[part] = records["label"] >> LABEL_BITS
            place = part.stop
        if total and int(kind.max()) >= len(KINDS):
            found = f"an event of kind {int(kind.max())}"
            raise DamagedFileError(self.path, found, f"kinds 0 to {len(KINDS) - 1}")
        return RawEvents(begin, end, label, kind)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _records(self, chunks: Columns) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Read the chunks, some at a time, and check each."""
        numbers = chunks["id"].tolist()
        expected = dict(
            zip(numbers, zip(chunks["records"], chunks["crc32"], strict=True), strict=True)
        )
        batches = np.cumsum(chunks["records"]) // _BATCH_RECORDS
        cuts = np.flatnonzero(np.diff(batches)) + 1
        for batch in np.split(chunks["id"], cuts):
            for number, data in self._data(batch.tolist()):
                records, crc = expected[number]
                if len(data) != records * RECORD.size:
                    found = f"{len(data)} bytes for {records} records"
                    raise self._damaged(number, found, f"{RECORD.size} bytes a record")
                if zlib.crc32(data) != crc:
                    raise self._damaged(number, "its bytes have changed", f"the CRC-32 {crc:#x}")
                yield number, np.frombuffer(data, RECORD_TYPE)

    def _data(self, numbers: list[int]) -> list[tuple[int, bytes]]:
        if not numbers:
            return []
        rows = self._database.rows(
            "SELECT id, data FROM event_chunks WHERE id BETWEEN ? AND ? ORDER BY id",
            (numbers[0], numbers[-1]),
            place="event_chunks",
        )
        wanted = set(numbers)
        return [(number, data) for number, data in rows if number in wanted]

    def _table(self, name: str) -> Columns:
        declared = next(table for table in TABLES if table.name == name)
        chunked = name == "event_chunks"
        names = [c.name for c in declared.columns if not (chunked and c.name == "data")]
        types = [c.type for c in declared.columns if c.name in names]
        wanted = [*names, "coalesce(length(data), -1)"] if chunked else names
        rows = self._database.rows(f"SELECT {', '.join(wanted)} FROM {name} ORDER BY rowid")
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(wanted)
        table = {
            column: self._column(f"{name}.{column}", sql, values)
            for column, sql, values in zip(names, types, columns, strict=False)
        }
        if chunked:
            self._check_lengths(table, columns[-1])
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
        if place.endswith("_ns") and len(column) and np.abs(column).max() >= TIME_LIMIT:
            raise DamagedFileError(
                self.path, "a time beyond the clock", f"below {TIME_LIMIT} ns", place=place
            )
        return column

    def _check_lengths(self, chunks: Columns, lengths: Sequence[int]) -> None:
        """Compare lengths before memory is taken."""
        records = chunks["records"]
        fit = (records > 0) & (records <= CHUNK_RECORDS)
        fit &= records * RECORD.size == np.array(lengths, np.int64)
        if not fit.all():
            bad = int(np.argmin(fit))
            found = f"{lengths[bad]} bytes for {records[bad]} records"
            wanted = f"1 to {CHUNK_RECORDS} records of {RECORD.size} bytes"
            raise self._damaged(int(chunks["id"][bad]), found, wanted)

    def _damaged(self, chunk: int, found: str, wanted: str) -> DamagedFileError:
        return DamagedFileError(self.path, found, wanted, place=f"event_chunks row {chunk}")
