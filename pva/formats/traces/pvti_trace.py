"""Read `.pvti` files: their tables as columns, and the events of a thread as arrays.

Layout and meaning of all tables: `pvti.schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.array_types import Integers, Values
from pva.collector import collector_paused
from pva.errors import DamagedFileError
from pva.formats.builders import IN_RUNS, Growing, GrowingTexts
from pva.formats.checksum import crc32
from pva.formats.database.sqlite_file import TRACE, Database, Declaration, faults, open_read_only
from pva.formats.memory_limit import SHORTER, Budget
from pvti.schema import (
    APPLICATION_ID,
    CHUNK_RECORDS,
    COLUMNS,
    FORMAT_VERSION,
    KINDS,
    LABEL_BITS,
    LABEL_MASK,
    OPTIONAL,
    RECORD,
    TABLES,
    Column,
    Table,
)

Columns = dict[str, Any]

DECLARATION = Declaration(TRACE, APPLICATION_ID, FORMAT_VERSION, COLUMNS, OPTIONAL)
_THERE = "SELECT name FROM sqlite_master WHERE type = 'table'"
# Of each table: which column refers to rows of which other table.
_REFERS = "row of `"
REFERENCES = {
    table.name: {
        column.name: column.meaning.removeprefix(_REFERS).rstrip("`")
        for column in table.columns
        if column.meaning.startswith(_REFERS)
    }
    for table in TABLES
}
NAMES = ("threads", "labels")  # without which nothing can be shown; rows of others can be left out
RECORD_TYPE = np.dtype([("begin", "<u8"), ("duration", "<u4"), ("label", "<u4")])
# Nanoseconds: all sums of a begin, a duration and what moves a clock stay within 64 bits. A clock
# may have begun anywhere; a time is one of it that lies within TIME_LIMIT of the process's anchor.
TIME_LIMIT = 1 << 60
WALL_LIMIT = 1 << 62
CLOCK_LIMIT = (1 << 63) - TIME_LIMIT
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
    "lost_events": 100,
}  # fmt: skip


class _Objects:
    """A column of what stays an object."""

    def __init__(self) -> None:
        self._found: list[Any] = []

    def extend(self, values: Sequence[object]) -> int:
        """Take values in; give the bytes that they take."""
        self._found.extend(values)
        return sum(map(getsizeof, values))

    def taken(self) -> npt.NDArray[np.object_]:
        """Return all values as an array."""
        array = np.empty(len(self._found), np.object_)
        array[:] = self._found
        return array


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
    records: Integers  # of each chunk asked for; 0 of one that is damaged


class PvtiFile:
    """An open trace. Reads what is committed when it is asked; never holds a lock in between."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._damage: dict[int, tuple[int, str]] = {}  # by chunk: its events, and what is wrong
        self._left_out: dict[tuple[str, str], int] = {}  # by table and fault: rows
        self._clock = (0, TIME_LIMIT)  # the times that are told
        self._labels = np.zeros(0, np.int64)  # their numbers, ascending
        self._database: Database = open_read_only(path, DECLARATION)
        self.path = self._database.path
        self.budget = self._whole_budget()

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what is left out, a line each."""
        lines = [
            f"{count} {'row' if count == 1 else 'rows'} of {table} with {fault}, left out"
            for (table, fault), count in self._left_out.items()
        ]
        if self._damage:
            chunk, (_, fault) = min(self._damage.items())
            events = sum(count for count, _ in self._damage.values())
            number = f"{len(self._damage)} damaged chunk{'s' * (len(self._damage) > 1)}"
            lines.append(f"{number} of {events} events left out: event_chunks row {chunk}: {fault}")
        return tuple(lines)

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
            present = {name for (name,) in self._database.rows(_THERE)}
            tables = [table for table in TABLES if table.name in present]
            for table in tables:
                query = f"SELECT count(*) FROM {table.name}"
                ((rows,),) = self._database.rows(query, place=table.name)
                self.budget.spend(rows * ROW_BYTES[table.name], f"table {table.name}")
            self._left_out = {}
            with collector_paused():
                read = {table.name: self._table(table) for table in tables}
            all_tables = {table.name: read.get(table.name) or _empty(table) for table in TABLES}
        self._labels = np.sort(all_tables["labels"]["id"])
        return {name: self._placed(name, rows, all_tables) for name, rows in all_tables.items()}

    def check(self, amount: int, place: str) -> None:
        """Raise DamagedFileError when so many bytes more are too many for the file."""
        self.budget.check_whole(amount, place)

    def events(self, chunks: Columns) -> RawEvents:
        """Read the events of these rows of `event_chunks`, in their order.

        A chunk whose length, CRC, times, kinds or labels do not fit has none; `problems` counts
        them.
        """
        total = int(chunks["records"].sum())
        begin, end = np.empty(total, np.int64), np.empty(total, np.int64)
        label, kind = np.empty(total, np.int32), np.empty(total, np.uint8)
        sizes = chunks["records"].astype(np.int64)
        place = 0
        for rows, data in self._records(chunks, sizes):
            part = slice(place, place + len(data) // RECORD.size)
            events = RawEvents(begin[part], end[part], label[part], kind[part], sizes)
            valid = self._kept(chunks, rows, events, _spread(data, events, sizes[rows]))
            place = part.stop
            if valid is not None:
                place = part.start + int(valid.sum())
                for column in (begin, end, label, kind):
                    column[part.start : place] = column[part][valid]
        return RawEvents(begin[:place], end[:place], label[:place], kind[:place], sizes)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _records(self, chunks: Columns, sizes: Integers) -> Iterator[tuple[slice, bytes]]:
        """Read the chunks, some at a time, each compared with its CRC; `sizes` of others get 0."""
        batches = np.cumsum(chunks["records"]) // _BATCH_RECORDS
        cuts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist(), len(batches)]
        for first, stop in zip(cuts, cuts[1:], strict=False):
            rows = slice(first, stop)
            some = {name: column[rows] for name, column in chunks.items()}
            data = self._data(some)
            for place in self._changed(data, some):
                data[place], sizes[first + place] = b"", 0
            if data:
                yield rows, data[0] if len(data) == 1 else b"".join(data)

    def _changed(self, data: Sequence[bytes], chunks: Columns) -> list[int]:
        """Return the places of chunks whose length or CRC is not what is said of them."""
        wrong = np.fromiter(map(crc32, data), np.int64, len(data)) != chunks["crc32"]
        wrong |= np.fromiter(map(len, data), np.int64, len(data)) != chunks["records"] * RECORD.size
        places: list[int] = np.flatnonzero(wrong).tolist()
        for place in places:
            self._note(chunks, place, "its bytes have changed")
        return places

    def _note(self, chunks: Columns, place: int, fault: str) -> None:
        self._damage[int(chunks["id"][place])] = (int(chunks["records"][place]), fault)

    def _data(self, chunks: Columns) -> list[bytes]:
        """Read the blobs of chunks: large ones one by one, which is faster."""
        numbers = chunks["id"].tolist()
        if numbers and chunks["records"].mean() >= _LARGE:
            return [self._database.blob("event_chunks", "data", number) for number in numbers]
        query, ends = f"{_DATA} BETWEEN ? AND ? ORDER BY id", (numbers[:1] + numbers[-1:])
        if numbers and (np.diff(chunks["id"]) == 1).all():
            rows = self._database.rows(query, ends, place="event_chunks")
            data = [data for _, data in rows if type(data) is bytes]
            if len(data) == len(numbers):
                return data
        blobs: dict[int, bytes] = {}
        for first in range(0, len(numbers), _ASKED):
            some = numbers[first : first + _ASKED]
            query = f"{_DATA} IN ({', '.join('?' * len(some))})"
            blobs.update(self._database.rows(query, some, place="event_chunks"))
        missing = [number for number in numbers if not isinstance(blobs.get(number), bytes)]
        if missing:
            raise self._damaged(missing[0], "is no longer there", "a trace that only grows")
        return [blobs[number] for number in numbers]

    def _kept(
        self, chunks: Columns, rows: slice, events: RawEvents, facts: Integers
    ) -> npt.NDArray[np.bool_] | None:
        """Return which events are of chunks whose times, kinds and labels fit; None when all are.

        An end may be later than the chunk's: earlier writers took that of its last record.
        """
        sizes = events.records
        filled = np.flatnonzero(sizes[rows])
        if not len(filled):
            return None
        least, most, *labels, kind = facts[:, filled]
        filled += rows.start
        faults = {
            "its times are beyond the clock": self._is_beyond(least) | self._is_beyond(most),
            "an event begins before the chunk": least < chunks["begin_ns"][filled],
            "an event is of no known kind": kind >= len(KINDS),
            "an event has no label of the file": self._without_label(
                events.label, labels, sizes[filled]
            ),
        }
        wrong = np.logical_or.reduce([*faults.values()])
        if not wrong.any():
            return None
        for bad in np.flatnonzero(wrong).tolist():
            fault = next(text for text, where in faults.items() if where[bad])
            self._note(chunks, int(filled[bad]), fault)
        valid = np.repeat(~wrong, sizes[filled])
        sizes[filled[wrong]] = 0
        return valid

    def _without_label(
        self, label: Any, limits: Sequence[Integers], sizes: Integers
    ) -> npt.NDArray[np.bool_]:
        """Return which chunks have an event whose label is none, by the lowest and the highest."""
        if _has_no_gaps(self._labels):  # as we write
            return ~(_is_in(limits[0], self._labels) & _is_in(limits[1], self._labels))
        starts = np.cumsum(sizes) - sizes
        return np.logical_or.reduceat(~_is_in(label, self._labels), starts)

    def _is_beyond(self, times: Integers) -> npt.NDArray[np.bool_]:
        least, limit = self._clock
        return (times < least) | (times >= limit)

    def _table(self, table: Table) -> Columns:
        """Read a table, some rows at a time: as Python objects they take many times the memory."""
        chunked = table.name == "event_chunks"
        columns = [c for c in table.columns if not (chunked and c.name == "data")]
        expressions = [c.name for c in columns] + ["coalesce(length(data), -1)"] * chunked
        builders = [*map(_growing, columns), *[Growing(np.int64)] * chunked]
        query = f"SELECT {', '.join(expressions)} FROM {table.name} ORDER BY rowid"
        for rows in self._database.batches(query, size=AT_ONCE, place=f"table {table.name}"):
            for column, c, values in zip(builders, [*columns, None], zip(*rows, strict=True),
                                         strict=False):  # fmt: skip
                self._check(f"{table.name}.{c.name if c else 'data'}", c, values)
                self.budget.spend(column.extend(values), f"table {table.name}")
        arrays = [column.taken() for column in builders]
        result = {c.name: self._narrow(values) if c.name in NUMBERS else values
                for c, values in zip(columns, arrays, strict=False)}  # fmt: skip
        if chunked:
            result = self._whole(result, np.asarray(arrays[-1], np.int64))
        if table.name == "processes" and len(result["clock_ns"]):
            clock = int(result["clock_ns"][0])
            self._clock = (max(clock - TIME_LIMIT, 0), clock + TIME_LIMIT)
        return self._within_the_clock(table.name, result)

    def _within_the_clock(self, table: str, rows: Columns) -> Columns:
        """Leave out, and count, rows with a time that no clock tells."""
        beyond = np.zeros(len(next(iter(rows.values()))), np.bool_)
        for name, column in rows.items():
            if name == "duration_ns":  # a clock may have been set back
                beyond |= (column < -TIME_LIMIT) | (column >= TIME_LIMIT)
            elif name.endswith("_ns") and name != "wall_ns":
                beyond |= self._is_beyond(column)
        return self._without(table, rows, beyond, "a time beyond the clock")

    def _placed(self, table: str, rows: Columns, tables: dict[str, Columns]) -> Columns:
        """Leave out, and count, rows of events, points and columns that belong to no row."""
        for column, target in REFERENCES[table].items() if table not in NAMES else ():
            identifiers = np.sort(tables[target]["id"])
            rows = self._without(
                table, rows, ~_is_in(rows[column], identifiers), f"no row of {target}"
            )
        return rows

    def _without(
        self, table: str, rows: Columns, wrong: npt.NDArray[np.bool_], fault: str
    ) -> Columns:
        if not wrong.any():
            return rows
        if table == "processes":
            raise DamagedFileError(self.path, fault, "times near that of clock_ns", place=table)
        if table == "event_chunks":
            for place in np.flatnonzero(wrong).tolist():
                self._note(rows, place, fault)
        else:
            self._left_out[table, fault] = int(wrong.sum())
        return _taken(rows, ~wrong)

    def _check(self, place: str, column: Column | None, values: Sequence[Any]) -> None:
        """Compare the types of values with those declared, and times with what a clock tells."""
        sql = column.type if column else "INTEGER"
        optional = "NOT NULL" not in sql and "PRIMARY KEY" not in sql
        allowed = {*_TYPES[sql.split()[0]], *([type(None)] if optional else ())}
        wrong = set(map(type, values)) - allowed
        if wrong:
            problem = f"values of type {', '.join(sorted(kind.__name__ for kind in wrong))}"
            raise DamagedFileError(self.path, problem, sql, place=place)
        limit = WALL_LIMIT if place == "processes.wall_ns" else CLOCK_LIMIT
        times = place.startswith("processes.") and place.endswith("_ns")
        if times and not (min(values) >= 0 and max(values) < limit):
            remedy = f"from 0 to below {limit} ns"
            raise DamagedFileError(self.path, "a time beyond the clock", remedy, place=place)

    @staticmethod
    def _narrow(values: Any) -> Any:
        """Return whole numbers in four bytes where they fit."""
        fits = len(values) and int(values.min()) >= 0 and int(values.max()) < 1 << 31
        return values.astype(np.int32) if fits else values

    def _whole(self, chunks: Columns, lengths: Integers) -> Columns:
        """Leave out, and count, chunks of another length than their records have."""
        records = chunks["records"]
        fit = (records > 0) & (records <= CHUNK_RECORDS) & (records * RECORD.size == lengths)
        for bad in np.flatnonzero(~fit).tolist():
            fault = f"{lengths[bad]} bytes for {records[bad]} records"
            self._damage[int(chunks["id"][bad])] = (max(int(lengths[bad]), 0) // RECORD.size, fault)
        return chunks if fit.all() else _taken(chunks, fit)

    def _damaged(self, chunk: int, problem: str, remedy: str) -> DamagedFileError:
        return DamagedFileError(self.path, problem, remedy, place=f"event_chunks row {chunk}")


def _empty(table: Table) -> Columns:
    return {column.name: _growing(column).taken() for column in table.columns}


def _taken(rows: Columns, mask: npt.NDArray[np.bool_]) -> Columns:
    places = np.flatnonzero(mask)
    return {name: column[places] for name, column in rows.items()}


def _spread(data: bytes, events: RawEvents, sizes: Integers) -> Integers:
    """Fill the columns of events, and return facts of their chunks: [fact][chunk].

    These are the least time, the largest, the lowest label, the highest, and the highest kind.
    """
    begin, end, label, kind, _ = events
    facts = np.zeros((5, len(sizes)), np.int64)
    if kernels.compiled:
        columns = begin, end, label, kind
        if kernels.compiled.records(data, sizes, *columns, facts.reshape(-1)) is not None:
            return facts
    records = np.frombuffer(data, RECORD_TYPE)
    begin[:] = records["begin"]
    np.add(begin, records["duration"], out=end)
    label[:] = records["label"] & LABEL_MASK
    kind[:] = records["label"] >> LABEL_BITS
    filled = np.flatnonzero(sizes)
    if len(filled):
        starts = np.cumsum(sizes[filled]) - sizes[filled]
        latest = np.maximum(*(np.maximum.reduceat(times, starts) for times in (begin, end)))
        facts[:, filled] = (
            np.minimum.reduceat(begin, starts), latest, np.minimum.reduceat(label, starts),
            np.maximum.reduceat(label, starts), np.maximum.reduceat(kind, starts),
        )  # fmt: skip
    return facts


def _has_no_gaps(ascending: Values) -> bool:
    return len(ascending) > 0 and int(ascending[-1]) - int(ascending[0]) == len(ascending) - 1


def _is_in(numbers: Values, ascending: Values) -> npt.NDArray[np.bool_]:
    """Return whether each number is among those that are there, which ascend."""
    if _has_no_gaps(ascending):
        return np.asarray((numbers >= ascending[0]) & (numbers <= ascending[-1]))
    return np.isin(numbers, ascending)
