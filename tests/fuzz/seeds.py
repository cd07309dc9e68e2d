"""Valid files of every format, to be spoilt: the small report and a small host trace."""

from __future__ import annotations

import gzip
import sqlite3
import struct
import tempfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from pva.formats import registry
from pvti import schema as trace_schema
from tests.builders import small_report, write_report

_RECORDS = b"".join(
    trace_schema.RECORD.pack(*record)
    for record in ((1300, 100, 2), (1500, 200, 2), (1200, 900, 1), (1150, 10, 1 << 28 | 3))
)
# Every table of a trace, two threads, by hand; the first column numbers rows.
TRACE: dict[str, list[tuple[Any, ...]]] = {
    "processes": [(1, 42, "program", 1000, 10**18, 9000, 0, 1)],
    "threads": [(1, 1, 77, "main"), (2, 1, 78, "worker")],
    "channels": [(1, "compute"), (2, "copy")],
    "labels": [(1, 1, "step"), (2, 1, "multiply"), (3, 2, "send")],
    "event_chunks": [(1, 1, 4, 1150, 2100, zlib.crc32(_RECORDS), _RECORDS)],
    "long_events": [(2, 1100, 1 << 33, 0, 3)],
    "open_spans": [(2, 0, 2000, 1), (2, 1, 2500, 2)],
    "instants": [(1, 1250, 3, '{"a":1}'), (2, 1750, 1, None)],
    "event_metadata": [(1, 1200, 1, '{"epoch":3}')],
    "series": [(1, "Loss", "nats", "train")],
    "series_points": [(1, 1300, 0.5), (1, 1400, None)],
    "heatmaps": [(1, "weights", "2^x", struct.pack("<3d", 0, 1, 2))],
    "heatmap_columns": [(1, 1600, 0, 1, struct.pack("<2Q", 3, 4))],
}


@dataclass(frozen=True, slots=True)
class Seed:
    """Files of a report directory by name; `opened` is the one to open, empty for the directory."""

    name: str
    files: dict[str, bytes]
    opened: str = ""

    def write(self, directory: Path) -> Path:
        """Write the files into a directory, and give the path to open."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (directory / name).write_bytes(content)
        return directory / self.opened


@cache
def seeds() -> tuple[Seed, ...]:
    """Make the seeds, one a format and two kinds of directory."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        data = small_report()
        write_report(directory)
        write_trace(directory / "run.pvti")
        whole = _files(directory)
        alone = {
            "pop": "report.pop", "json": "report.json", "cbor": "report.cbor",
            "graph": "graph.json", "execution": "execution.json", "contexts": "debug.json",
        }  # fmt: skip
        for file in alone.values():
            registry.write(data, directory / file)
        registry.write(data, directory / "plain.cbor", "plain")
        written = _files(directory)
    alone |= {"plain": "plain.cbor", "debug": "debug.cbor", "trace": "run.pvti"}
    traces = {
        "chrome": ("trace.json", chrome_events(as_object=True)),
        "chrome-array": ("array.trace", chrome_events(as_object=False)),
        "chrome-packed": ("trace.gz", gzip.compress(chrome_events(as_object=True), 1, mtime=0)),
    }
    documents = ("graph.json", "execution.json", "debug.json")
    return (
        *(Seed(kind, {file: written[file]}, file) for kind, file in alone.items()),
        *(Seed(kind, {name: content}, name) for kind, (name, content) in traces.items()),
        Seed("directory", whole),
        Seed("documents", {file: written[file] for file in documents}),
    )


def write_trace(path: Path) -> None:
    """Write the host trace."""
    with closing(sqlite3.connect(path)) as trace:
        for statement in trace_schema.create_statements():
            trace.execute(statement)
        for table, rows in TRACE.items():
            trace.executemany(trace_schema.insert_statement(table), rows)
        trace.commit()


def chrome_events(*, as_object: bool) -> bytes:
    """Write Chrome trace JSON with an event of each kind."""
    common = {"pid": 1, "tid": 2, "cat": "c"}
    told: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "args": {"name": "main"}},
        {"ph": "X", "ts": 1.5, "dur": 8, "name": "outer", "args": {"shape": [[2, 2]], "n": 1}},
        {"ph": "X", "ts": 2, "dur": 3.25, "name": 'inner "}]'},
        {"ph": "B", "ts": 10, "name": "begun"},
        {"ph": "E", "ts": 12},
        {"ph": "B", "ts": 13, "name": "open", "tid": "stream 7"},
        {"ph": "E", "ts": 14, "tid": 5},
        {"ph": "i", "ts": 4, "s": "t", "name": "here", "args": {"a": None}},
        {"ph": "C", "ts": 5, "name": "memory", "args": {"used": 1, "free": 2.5}},
        {"ph": "b", "ts": 6, "id": "0x1", "name": "async", "pid": "Spans"},
        {"ph": "n", "ts": 7, "id": "0x1", "name": "async"},
        {"ph": "e", "ts": 8, "id": "0x1", "name": "async"},
        {"ph": "s", "ts": 9, "id": 3, "name": "flow"},
    ]
    events = [common | event for event in told]
    around = {"displayTimeUnit": "ms", "baseTimeNanoseconds": 10**18, "traceName": "x"}
    return orjson.dumps({**around, "traceEvents": events, "after": [1]} if as_object else events)


def _files(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}
