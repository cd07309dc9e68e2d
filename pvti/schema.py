"""The `.pvti` file, declared once: tables, record layout, and how the file is written.

One SQLite database holds what one process did. Times are nanoseconds of the process's monotonic
clock; the row in `processes` ties that clock to the wall clock, so that several files align.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import Any, NamedTuple

APPLICATION_ID = 0x50565449  # "PVTI"
FORMAT_VERSION = 1

# The rollback journal, never WAL: a copied or killed file must be whole by itself. The page cache
# may not spill, so that the file is touched in the commit alone. A killed process loses nothing
# that the operating system was handed, so commits need not wait for the disk.
WRITER_PRAGMAS = (
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = OFF",
    "PRAGMA cache_spill = OFF",
    "PRAGMA trusted_schema = OFF",
)

# One ended event: begin (u64, nanoseconds), duration (u32, nanoseconds), kind and label (u32).
RECORD = struct.Struct("<QII")
DURATION_LIMIT = 1 << 32  # a longer event is a row of `long_events`
LABEL_BITS = 28
LABEL_LIMIT = 1 << LABEL_BITS
LABEL_MASK = LABEL_LIMIT - 1
CHUNK_RECORDS = 1 << 16  # at most: 1 MB a blob

# Kinds of events, the upper bits of a record's last field.
NESTED = 0  # ended as the innermost event of its thread
OVERLAPPING = 1  # ended while later events of its thread were open: may overlap them
KINDS = ("nested", "overlapping")

# A running asyncio task has a row of its own in `threads`; its `tid` is this and its number there.
TASK_TID = 1 << 40

Cell = int | float | str | bytes | None


class Column(NamedTuple):
    """One column: its SQL type (with constraints) and what it holds."""

    name: str
    type: str
    meaning: str


class Table(NamedTuple):
    """One table of the file."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


def _table(name: str, meaning: str, *columns: tuple[str, str, str]) -> Table:
    return Table(name, meaning, tuple(Column(*column) for column in columns))


TABLES = (
    _table(
        "processes",
        "the process that wrote the file, and its anchor between the two clocks",
        ("id", "INTEGER PRIMARY KEY", "number of the process in this file"),
        ("pid", "INTEGER NOT NULL", "identifier the system gave it"),
        ("name", "TEXT NOT NULL", "file name of the program"),
        ("clock_ns", "INTEGER NOT NULL", "monotonic clock at the anchor"),
        ("wall_ns", "INTEGER NOT NULL", "wall clock at the anchor, since 1970-01-01 UTC"),
        ("last_ns", "INTEGER NOT NULL", "monotonic clock at the last commit"),
        ("finished", "INTEGER NOT NULL", "1 when the trace was closed, 0 while it is written"),
        ("unmatched_ends", "INTEGER NOT NULL", "ends that had no begin, left out"),
    ),
    _table(
        "threads",
        "threads that recorded something, and in each its asyncio tasks that ran at once",
        ("id", "INTEGER PRIMARY KEY", "number of the thread in this file"),
        ("process", "INTEGER NOT NULL", "row of `processes`"),
        ("tid", "INTEGER NOT NULL", "identifier the system gave it; of tasks 2**40 + id"),
        ("name", "TEXT NOT NULL", "name the program gave it; of tasks `<thread>: <task>`"),
    ),
    _table(
        "channels",
        "channels, in order of creation",
        ("id", "INTEGER PRIMARY KEY", "number of the channel in this file"),
        ("name", "TEXT NOT NULL", "its name"),
    ),
    _table(
        "labels",
        "texts of events, each once a channel",
        ("id", "INTEGER PRIMARY KEY", "number used in records"),
        ("channel", "INTEGER NOT NULL", "row of `channels`"),
        ("text", "TEXT NOT NULL", "the label"),
    ),
    _table(
        "event_chunks",
        "ended events of one thread in order of their end, 16 bytes a record",
        ("id", "INTEGER PRIMARY KEY", "order of writing"),
        ("thread", "INTEGER NOT NULL", "row of `threads`"),
        ("records", "INTEGER NOT NULL", "number of records"),
        ("begin_ns", "INTEGER NOT NULL", "smallest begin"),
        ("end_ns", "INTEGER NOT NULL", "largest end"),
        ("crc32", "INTEGER NOT NULL", "CRC-32 of `data`"),
        ("data", "BLOB NOT NULL", "begin u64, duration u32, kind << 28 | label u32; little-endian"),
    ),
    _table(
        "long_events",
        "ended events of 2**32 ns and more, which records cannot hold, or ended by another thread",
        ("thread", "INTEGER NOT NULL", "row of `threads`"),
        ("begin_ns", "INTEGER NOT NULL", "begin"),
        ("duration_ns", "INTEGER NOT NULL", "duration"),
        ("kind", "INTEGER NOT NULL", "0 nested, 1 overlapping"),
        ("label", "INTEGER NOT NULL", "row of `labels`"),
    ),
    _table(
        "open_spans",
        "events begun and not ended at the last commit; written anew with each",
        ("thread", "INTEGER NOT NULL", "row of `threads`"),
        ("position", "INTEGER NOT NULL", "0 for the outermost"),
        ("begin_ns", "INTEGER NOT NULL", "begin"),
        ("label", "INTEGER NOT NULL", "row of `labels`"),
    ),
    _table(
        "instants",
        "events without duration",
        ("thread", "INTEGER NOT NULL", "row of `threads`"),
        ("time_ns", "INTEGER NOT NULL", "when"),
        ("label", "INTEGER NOT NULL", "row of `labels`"),
        ("metadata", "TEXT", "JSON, or NULL"),
    ),
    _table(
        "event_metadata",
        "what the program attached to an event",
        ("thread", "INTEGER NOT NULL", "row of `threads`"),
        ("begin_ns", "INTEGER NOT NULL", "begin of the event"),
        ("label", "INTEGER NOT NULL", "row of `labels`"),
        ("metadata", "TEXT NOT NULL", "JSON"),
    ),
    _table(
        "series",
        "lines of line graphs",
        ("id", "INTEGER PRIMARY KEY", "number of the series in this file"),
        ("graph", "TEXT NOT NULL", "name of the graph"),
        ("unit", "TEXT NOT NULL", "unit of its values"),
        ("name", "TEXT NOT NULL", "name of the series"),
    ),
    _table(
        "series_points",
        "values of series",
        ("series", "INTEGER NOT NULL", "row of `series`"),
        ("time_ns", "INTEGER NOT NULL", "when"),
        ("value", "REAL", "the value; NULL for what is not a number"),
    ),
    _table(
        "heatmaps",
        "histograms over time",
        ("id", "INTEGER PRIMARY KEY", "number of the heatmap in this file"),
        ("name", "TEXT NOT NULL", "its name"),
        ("unit", "TEXT NOT NULL", "unit of its edges"),
        ("edges", "BLOB NOT NULL", "edges of its bins, ascending, f64 little-endian"),
    ),
    _table(
        "heatmap_columns",
        "counts a bin, one column each time values were added",
        ("heatmap", "INTEGER NOT NULL", "row of `heatmaps`"),
        ("time_ns", "INTEGER NOT NULL", "when"),
        ("below", "INTEGER NOT NULL", "values under the first edge, and those not a number"),
        ("above", "INTEGER NOT NULL", "values over the last edge"),
        ("counts", "BLOB NOT NULL", "values in each bin, u64 little-endian"),
    ),
    _table(
        "lost_events",
        "events, or their metadata, that faults of tracing cost; files of earlier writers lack it",
        ("time_ns", "INTEGER NOT NULL", "when the commit was made"),
        ("events", "INTEGER NOT NULL", "events lost since the row before"),
        ("reason", "TEXT NOT NULL", "the fault that cost the first of them"),
    ),
)

OPTIONAL = frozenset({"lost_events"})  # tables that files of earlier writers lack

COLUMNS = {table.name: tuple(column.name for column in table.columns) for table in TABLES}


def create_statements() -> list[str]:
    """List the statements that make an empty file."""
    statements = [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {FORMAT_VERSION}",
    ]
    for table in TABLES:
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        statements.append(f"CREATE TABLE {table.name} ({columns})")
    return statements


def insert_statement(table: str, rows: int = 1) -> str:
    """Spell the statement that adds `rows` whole rows to `table`."""
    columns = COLUMNS[table]
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"


def little_endian(values: array[Any]) -> bytes:
    """Return the bytes of an array, least significant first, on every machine."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()
