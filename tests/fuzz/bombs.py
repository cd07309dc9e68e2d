"""Files of any size of which every part is small, so that reading them might fill the memory.

`KINDS` maps the name of a file, or of a directory, to what writes it in about the bytes given.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import cbor2
import numpy as np

from pva import schema
from pva.formats import registry
from pvti import schema as trace_schema
from tests.builders import small_report
from tests.fuzz.parquet_bombs import packed_tables, packed_texts, zeros_in_parquet
from tests.fuzz.seeds import write_trace

Writer = Callable[[Path, int], None]

PROGRAMS, TOTAL = '{"target":{},"programs":[', '{"target":{},"memory":{"byTile":{"total":['
NAMES, STEPS = '{"target":{},"vertexTypes":{"names":[', '{"profilerMode":"NONE","simulation":{'
# What stands before, what is repeated, and what stands behind.
JSON: dict[str, tuple[str, str, str]] = {
    "empty lists": (PROGRAMS, "[],", "[]]}"),
    "empty objects": (PROGRAMS, "{},", "{}]}"),
    "lists in objects": (PROGRAMS, '{"children":[[],[]]},', "{}]}"),
    "objects in objects": (PROGRAMS, '{"name":{"a":{}}},', "{}]}"),
    "rows": (PROGRAMS, '{"name":"a"},', "{}]}"),
    "rows of large numbers": (PROGRAMS, '{"run":12345678901234567890123},', "{}]}"),
    "rows with blanks": (PROGRAMS, '{ "name" : "\\u00e9" } ,\n', "{}]}"),
    "rows cut badly": (PROGRAMS, '{"name":"},{"},', "{}]}"),
    "one long row": ('{"target":{},"programs":[{"children":[', "0,", "0]}]}"),
    "lists in lists": (PROGRAMS, "[[[]]],", "[]]}"),
    "keys": ('{"target":{"a":0', ',"b":0', "}}"),
    "texts": (NAMES, '"",', '""]}}'),
    "short texts": (NAMES, '"ab",', '""]}}'),
    "escapes": (NAMES + '"', "\\u20ac", '"]}}'),
    "one text": (NAMES + '"', "a", '"]}}'),
    "a key of text": ('{"target":{"', "a", '":1}}'),
    "a key of blanks": ('{"target":{}, "x":[', " ", "]}"),
    "blanks": ("", " ", "{}"),
    "fractions": (TOTAL, "0,0.5,", "null]}}}"),
    "exponents": (TOTAL, "1e5,", "1]}}}"),
    "nulls": (TOTAL, "null,", "null]}}}"),
    "zeros": (TOTAL, "0,", "0]}}}"),
    "signs": (TOTAL, "-1,", "0]}}}"),
    "numbers of 63 bits": (TOTAL, "9223372036854775806,", "0]}}}"),
    "numbers of 64 bits": (TOTAL, "18446744073709551615,", "0]}}}"),
    "digits": (TOTAL, "9", "]}}}"),
    "short rows": (TOTAL, "[1],", "[1]]}}}"),
    "rows of two lengths": (TOTAL, "[1],[1,2],", "[1]]}}}"),
    "rows of nothing": (TOTAL, "[],", "[]]}}}"),
    "contexts": ('{"contexts":[', '{"id":1},', '{"id":1}]}'),
    "contexts of keys": ('{"contexts":[{"id":1', ',"b":0', "}]}"),
    "strings": ('{"contexts":[],"stringTable":[', '"",', '""]}'),
    "depth": ("", "[", ""),
    "depth of objects": ("", '{"a":', ""),
    "steps": (STEPS + '"steps":[', '{"type":"Sync"},', "{}]}}"),
    "steps of objects": (STEPS + '"steps":[', '{"type":{}},', "{}]}}"),
    "variables": ('{"target":{},"memory":{"liveness":{"notAlwaysLive":{"steps":[',
                  '{"variables":[0,0,0]},', "{}]}}}}"),
    "cut off": (PROGRAMS, '{"name":"a"},', ""),
}  # fmt: skip
IN_PROGRAMS, IN_TOTAL = {"target": {}, "programs": []}, {"memory": {"byTile": {"total": []}}}
IN_NAMES = {"target": {}, "vertexTypes": {"names": []}}
# In which document, what is repeated, and whether the list tells no length.
CBOR: dict[str, tuple[object, bytes, bool]] = {
    "empty lists": (IN_PROGRAMS, b"\x80", False),
    "empty maps": (IN_PROGRAMS, b"\xa0", False),
    "endless maps": (IN_PROGRAMS, b"\xa0", True),
    "endless lists": (IN_PROGRAMS, b"\x9f\xff", True),
    "lists in maps": (IN_PROGRAMS, cbor2.dumps({"children": [[], []]}), False),
    "rows": (IN_PROGRAMS, cbor2.dumps({"name": "a"}), False),
    "rows of two kinds": (IN_PROGRAMS, cbor2.dumps({"name": "a"}) + b"\xa0", False),
    "rows of other keys": (IN_PROGRAMS, cbor2.dumps({"x": 1, "y": {"z": 1}}), False),
    "texts": (IN_NAMES, b"\x61a", False),
    "empty texts": (IN_NAMES, b"\x60", False),
    "texts in parts": (IN_NAMES, b"\x7f\x61a\xff", False),
    "bytes": (IN_NAMES, b"\x40", False),
    "nulls": (IN_TOTAL, b"\xf6", False),
    "zeros": (IN_TOTAL, b"\x00", False),
    "endless zeros": (IN_TOTAL, b"\x00", True),
    "fractions": (IN_TOTAL, b"\xf9\x38\x00", False),
    "large numbers": (IN_TOTAL, b"\xc2\x49" + b"\xff" * 9, False),
    "decimals": (IN_TOTAL, b"\xc4\x82\x01\x01", False),
    "tags": (IN_TOTAL, b"\xc6\x00", False),
    "dates": (IN_TOTAL, b"\xc1\x00", False),
    "typed arrays": (IN_TOTAL, b"\xd8\x40\x40", False),
    "typed arrays of one": (IN_TOTAL, b"\xd8\x40\x41\x01", False),
    "shaped arrays": (IN_TOTAL, b"\xd8\x28\x82\x82\x01\x01\xd8\x40\x41\x01", False),
    "short rows": (IN_TOTAL, b"\x81\x01", False),
    "rows of two lengths": (IN_TOTAL, b"\x81\x01\x82\x01\x01", False),
    "contexts": ({"contexts": []}, cbor2.dumps({"id": 1}), False),
    "debug": ({"contexts": []}, cbor2.dumps({"id": 1, "name": {"a": []}}), False),
    "strings": ({"contexts": [], "stringTable": []}, b"\x60", False),
}  # fmt: skip
# Chrome trace events, repeated.
EVENTS: dict[str, str] = {
    "no events": "{},",
    "events": '{"ph":"X","ts":1,"dur":0,"name":""},',
    "begins": '{"ph":"B","ts":1},',
    "ends": '{"ph":"E","ts":1},',
    "instants": '{"ph":"i","ts":1,"args":{"a":1}},',
    "counters": '{"ph":"C","ts":1,"args":{"a":1}},',
    "flows": '{"ph":"s"},',
    "lists": "[],",
    "texts": '"",',
    "threads": '{"ph":"M","name":"thread_name"},',
}

OTHER_EVENTS: dict[str, str] = {
    "names": '{"ph":"X","ts":1,"name":"%d"}',
    "threads": '{"ph":"X","ts":1,"tid":%d}',
    "counters": '{"ph":"C","ts":1,"args":{"%d":1}}',
    "named threads": '{"ph":"M","name":"thread_name","tid":%d}',
    "ordinary events": '{"ph":"X","pid":1,"tid":1,"ts":%d.125,"dur":0.25,"name":"step","cat":"a"}',
}


def of_json(before: str, item: str, after: str) -> Writer:
    """Repeat a part of a text."""

    def write(path: Path, size: int) -> None:
        path.write_bytes((before + item * (size // len(item)) + after).encode())

    return write


def of_cbor(before: object, item: bytes, endless: bool) -> Writer:
    """Put very many items in the place of the last list of a document."""
    begin = cbor2.dumps(before)
    assert begin.endswith(b"\x80")

    def write(path: Path, size: int) -> None:
        count = size // len(item)
        head, end = (b"\x9f", b"\xff") if endless else (b"\x9b" + count.to_bytes(8), b"")
        path.write_bytes(begin[:-1] + head + item * count + end)

    return write


def other_keys(path: Path, size: int) -> None:
    """Write rows of which each has a key of its own."""
    rows = ",".join(f'{{"k{number}":1}}' for number in range(size // 14))
    path.write_text(f"{PROGRAMS}{rows}]}}")


def cbor_keys(path: Path, size: int) -> None:
    """Write a map of very many keys."""
    count = size // 6
    keys = b"".join(b"\x1a" + number.to_bytes(4) + b"\x00" for number in range(count))
    path.write_bytes(b"\xa1\x66target\xbb" + count.to_bytes(8) + keys)


def cbor_depth(path: Path, size: int) -> None:
    """Write lists in lists in lists."""
    path.write_bytes(b"\xa1\x66target" + b"\x81" * size)


def far_inside(path: Path, size: int) -> None:
    """Write a long list in lists in lists."""
    of_cbor([], b"\x80", False)(path, size)
    path.write_bytes(b"\xa1\x66target" + b"\x81" * 20 + path.read_bytes())


def packed(
    path: Path, names: Sequence[str], shape: Sequence[int], *statements: str, dtype: str = "u1"
) -> None:
    """Put zeros that pack well into columns and arrays of a small profile.pop, and change it."""
    registry.write(small_report(), path)
    data = zlib.compress(bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), 9)
    with closing(connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
        for name in names:
            row = (name, 0, shape[0], dtype, json.dumps(shape), "zlib", zlib.crc32(data), data)
            database.execute("DELETE FROM arrays WHERE name = ?", (name,))
            database.execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def packed_columns(path: Path, size: int) -> None:
    """Write a small profile.pop whose long tables are zeros."""
    wide = [table for table in schema.TABLES if table.wide]
    packed(path, [f"{t.name}.{c.name}" for t in wide for c in t.columns], [16 << 20])


def packed_fractions(path: Path, size: int) -> None:
    """Write a small profile.pop whose long tables are of as many zeros as one chunk holds."""
    wide = [table for table in schema.TABLES if table.wide]
    names = [f"{t.name}.{c.name}" for t in wide for c in t.columns]
    packed(path, names, [2 << 20], dtype="f8")


def packed_arrays(path: Path, size: int) -> None:
    """Write a small profile.pop of very many tiles whose arrays are zeros, 128 MB each."""
    tiles, sets = 1 << 21, 8
    names = [a.name for a in schema.ARRAYS if a.index == ("compute_set", "tile")]
    packed(
        path, names, [sets, tiles], "DELETE FROM arrays",
        f"UPDATE target SET num_tiles = {tiles}, tiles_per_ipu = {tiles}, num_ipus = 1",
        *[f"INSERT INTO compute_sets SELECT * FROM compute_sets LIMIT {sets - 3}"] * 2,
        f"DELETE FROM compute_sets WHERE rowid > {sets}",
    )  # fmt: skip


def padded(write: Writer) -> Writer:
    """Make a large profile.pop of a small one."""

    def larger(path: Path, size: int) -> None:
        write(path, size)
        with closing(connect(path)) as database, database:
            database.execute("CREATE TABLE padding (a BLOB)")
            for _ in range(size >> 20):
                database.execute("INSERT INTO padding VALUES (?)", (os.urandom(1 << 20),))

    return larger


def repeated(table: str, keyed: str = "") -> Writer:
    """Repeat the rows of a table of a report very often; `keyed` numbers them."""

    def write(path: Path, size: int) -> None:
        if path.suffix == ".pvti":
            write_trace(path)
        else:
            registry.write(small_report(), path)
        with closing(connect(path)) as database, database:
            shown = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            given = ", ".join("n.i" if name == keyed else f't."{name}"' for name in shown)
            told = database.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchone()
            blobs = sum(len(value) for value in told if isinstance(value, bytes))
            per_row = 12 + 3 * len(shown) + blobs
            database.execute(
                f'INSERT INTO "{table}" WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL '
                f"SELECT i + 1 FROM n WHERE i < {size // per_row}) SELECT {given} FROM n, "
                f'(SELECT * FROM "{table}" LIMIT 1) AS t'
            )

    return write


def other_rows(table: str) -> Writer:
    """Write rows of a host trace, each with a text of its own."""

    def write(path: Path, size: int) -> None:
        write_trace(path)
        with closing(connect(path)) as database, database:
            database.execute(
                f"INSERT INTO {table} WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL "
                f"SELECT i + 1 FROM n WHERE i < {size // 24}) SELECT i, 1, {_OTHER[table]} FROM n"
            )

    return write


def in_place(table: str, value: str, *, bytes_each: int) -> Writer:
    """Write very many rows whose columns have one value each, an expression over `i`."""

    def write(path: Path, size: int) -> None:
        registry.write(small_report(), path)
        values = ", ".join([value] * len(schema.TABLE[table].columns))
        with closing(connect(path)) as database, database:
            database.execute(
                f'INSERT INTO "{table}" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 '
                f"FROM n WHERE i < {size // bytes_each}) SELECT {values} FROM n"
            )

    return write


_OTHER = {"labels": "'step ' || i", "threads": "i, 'worker'"}


def ordinary_events(path: Path, size: int) -> None:
    """Write a host trace of as many events of one thread as there may be, one after another."""
    write_trace(path)
    count = trace_schema.CHUNK_RECORDS
    records = np.zeros(count, [("begin", "<u8"), ("duration", "<u4"), ("label", "<u4")])
    with closing(connect(path)) as database, database:
        for chunk in range(size // records.nbytes):
            records["begin"] = 10_000 + 100 * (chunk * count + np.arange(count))
            records["duration"], records["label"] = 50, 1
            data, (first, last) = records.tobytes(), records["begin"][[0, -1]].tolist()
            row = (chunk + 1000, 1, count, first, last + 50, zlib.crc32(data), data)
            database.execute("INSERT INTO event_chunks VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def many_tables(path: Path, size: int) -> None:
    """Write a profile.pop with very many tables that are none of ours."""
    registry.write(small_report(), path)
    with closing(connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute(
            "INSERT INTO sqlite_master WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
            f"FROM n WHERE i < {size // 60}) SELECT 'table', 't' || i, 't' || i, 2, "
            "'CREATE TABLE t' || i || '(a)' FROM n"
        )


def _key(table: trace_schema.Table) -> str:
    """Name the column whose values must differ, if there is one."""
    return next((c.name for c in table.columns if "PRIMARY KEY" in c.type), "")


def many_chunks(path: Path, size: int) -> None:
    """Write a profile.pop with an array in chunks of one row each."""
    registry.write(small_report(), path)
    name, data = "steps.program", b"\0"
    with closing(connect(path)) as database, database:
        database.execute("DELETE FROM arrays WHERE name = ?", (name,))
        database.executemany(
            "INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((name, row, 1, "u1", "[1]", "raw", zlib.crc32(data), data)
             for row in range(size // 80)),
        )  # fmt: skip


def other_events(item: str) -> Writer:
    """Write a Chrome trace of events of which each is numbered."""

    def write(path: Path, size: int) -> None:
        rows = ",".join(item % number for number in range(size // (len(item) + 5)))
        path.write_text(f"[{rows}]")

    return write


def events(item: str, *, pack: bool = False) -> Writer:
    """Write a Chrome trace; packed, it is as much text as may be unpacked from it."""

    def write(path: Path, size: int) -> None:
        text = ("[" + item * (size // len(item)) + "{}]").encode()
        path.write_bytes(gzip.compress(text, 1) if pack else text)

    return write


KINDS: dict[str, Writer] = {
    **{f"{name}.json": of_json(*parts) for name, parts in JSON.items()},
    "other keys.json": other_keys,
    **{f"{name}.cbor": of_cbor(*parts) for name, parts in CBOR.items()},
    "keys.cbor": cbor_keys,
    "depth.cbor": cbor_depth,
    "far inside.cbor": far_inside,
    "packed columns.pop": packed_columns,
    "packed columns, large.pop": padded(packed_columns),
    "packed arrays.pop": packed_arrays,
    "packed arrays, large.pop": padded(packed_arrays),
    "packed fractions.pop": packed_fractions,
    "chunks.pop": many_chunks,
    "tables.pop": many_tables,
    "other texts.pop": in_place("debug_contexts", "i", bytes_each=40),
    "long texts.pop": in_place("compute_sets", "printf('%.*c', 1000000, 'x')", bytes_each=2000000),
    **{
        f"{table.name}.pop": repeated(table.name)
        for table in schema.TABLES
        if not table.wide and table.layout != "object"
    },
    "packed tables": packed_tables,
    "packed texts": packed_texts,
    "zeros": zeros_in_parquet,
    **{
        f"{table.name}.pvti": repeated(table.name, _key(table)) for table in trace_schema.TABLES
    },
    "other labels.pvti": other_rows("labels"),
    "other threads.pvti": other_rows("threads"),
    "ordinary events.pvti": ordinary_events,
    **{f"{name}.trace": events(item) for name, item in EVENTS.items()},
    **{f"other {name}.trace": other_events(item) for name, item in OTHER_EVENTS.items()},
    "packed.gz": events('{"ph":"X","ts":1,"dur":0,"name":""},', pack=True),
}  # fmt: skip
