"""Ways to spoil a file, each of which takes its choices from a function.

`below(n)` gives a number from 0 to n - 1: hypothesis, atheris and a random number generator each
have such a function, so that all three spoil files in the same ways.
"""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import cbor2
import numpy as np
import orjson

from pva.formats.database.chunks import chunks_of
from tests.fuzz.seeds import Seed

T = TypeVar("T")
Below = Callable[[int], int]

WHOLE = (
    0, 1, -1, -2, 2, 7, 10, 255, 2**31, -(2**31), 2**40, 2**53, 2**62, 2**63 - 1, -(2**63),
)  # fmt: skip
FRACTIONS = (0.5, -1.0, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"), -0.0)
TEXTS = ("", "x", "-1", "é\u2028", "\0", "a\nb", "\x1b[31m", "../..", "x" * 70_000, "4x5", "4xx")
NESTED: tuple[Any, ...] = ([], {}, [[]], [None], [-1], [[1, 2], [3]], {"a": 1}, ["x"], [2**63 - 1])
NASTY: tuple[Any, ...] = (None, True, 2**64 - 1, *WHOLE, *FRACTIONS, *TEXTS, *NESTED)
IN_SQL = (None, 2**31, *WHOLE, *FRACTIONS, *TEXTS, b"", b"\0" * 16, b"\xff" * 8)
DEEP = 100_000
BOMB = 100 << 20  # bytes of text
CHANGES = (1, 1, 1, 2, 2, 3, 5)  # of a report


def one_of(below: Below, items: Sequence[T]) -> T:
    """Choose an item; raises ValueError when there is none, as of a database without tables."""
    if not items:
        raise ValueError("nothing to choose from")
    return items[below(len(items))]


def spoilt(seed: Seed, below: Below) -> Seed:
    """Change some files of a seed, each in a few places."""
    files = dict(seed.files)
    for _ in range(one_of(below, CHANGES)):
        name = one_of(below, sorted(files))
        files[name] = one_of(below, WAYS[Path(name).suffix])(files[name], below)
    return Seed(seed.name, files, seed.opened)


def truncated(content: bytes, below: Below) -> bytes:
    """Cut a file short."""
    return content[: below(len(content) + 1)]


def flipped(content: bytes, below: Below) -> bytes:
    """Flip single bits."""
    changed = bytearray(content)
    for _ in range(1 + below(8) if content else 0):
        changed[below(len(changed))] ^= 1 << below(8)
    return bytes(changed)


def spliced(content: bytes, below: Below) -> bytes:
    """Put a part of the file, or a run of one byte, somewhere else in it."""
    if not content:
        return content
    begin, at, length = below(len(content)), below(len(content)), 1 + below(64)
    part = one_of(below, (content[begin : begin + length], b"\0" * length, b"\xff" * length, b""))
    return content[:at] + part + content[at + one_of(below, (0, len(part), length)) :]


def json_changed(content: bytes, below: Below) -> bytes:
    """Change one value of a JSON document."""
    with suppress(orjson.JSONDecodeError, TypeError):
        return orjson.dumps(_changed(orjson.loads(content), below))
    return content


def json_text_changed(content: bytes, below: Below) -> bytes:
    """Put into JSON what no encoder writes: double keys, depth, numbers without end."""
    place = content.find(b":", below(len(content) + 1)) + 1
    if not place:
        return content
    texts = (
        b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 400, b'"\\ud800"', b'"\xff\xfe"',
        b"[" * DEEP, b'{"a":' * DEEP, b"[" * 500 + b"]" * 500 + b",", b"1,", b'1,"target":{},"x":',
        b"null,", b"[1" + b",1" * 50_000 + b"],",
    )  # fmt: skip
    return content[:place] + one_of(below, texts) + content[place:]


def cbor_changed(content: bytes, below: Below) -> bytes:
    """Change one value of a CBOR document, tags and typed arrays included."""
    with suppress(Exception):
        root = cbor2.loads(content, tag_hook=lambda tag, _: tag)
        return cbor2.dumps(_changed(root, below))
    return content


def cbor_bytes_changed(content: bytes, below: Below) -> bytes:
    """Put into CBOR what claims to be long or deep."""
    heads = (
        b"\x9b\x0f" + b"\xff" * 7, b"\x5b\x0f" + b"\xff" * 7, b"\x9a\x7f\xff\xff\xff", b"\x9f",
        b"\xbb\x00\x00\x00\x10" + b"\0" * 4, b"\x81" * DEEP, b"\xc0" * 1000, b"\xd8\x1d\x00",
        b"\xd8\x28\x82\x82\x1b\x0f" + b"\xff" * 7 + b"\x02\xd8\x40\x40", b"\xf9\x7e\x00", b"\xf7",
        b"\xd8\x28\x82\x82\x00\x1b\x0f" + b"\xff" * 7 + b"\xd8\x40\x40", b"\xc2\x49" + b"\xff" * 9,
        b"\xd8\x23\x64(a+)", b"\xc4\x82\x1b\x0f" + b"\xff" * 7 + b"\x01", b"\xd9\x01\x02\x81\x01",
    )  # fmt: skip
    at = below(len(content) + 1)
    return content[:at] + one_of(below, heads) + content[at + below(2) :]


def _changed(root: Any, below: Below) -> Any:
    """Change one value of nested lists, objects and tags."""
    holder, key = _place(root, below)
    if holder is None:
        return one_of(below, NASTY)
    if isinstance(holder, cbor2.CBORTag):
        return _retagged(root, holder, below)
    way = below(8)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[one_of(below, ("x", "", "name", "\0"))] = holder.pop(key)
    elif way == 2 and isinstance(holder, list):
        holder.append(holder[key])
    elif way == 3:
        holder[key] = [holder[key]]
    else:
        holder[key] = one_of(below, NASTY)
    return root


def _place(root: Any, below: Below) -> tuple[Any, Any]:
    """Choose where: a dict and its key, a list and its index, or a tag."""
    holder: Any = None
    key: Any = None
    found = root
    while True:
        if isinstance(found, cbor2.CBORTag) and below(2):
            return found, None
        inside = found.value if isinstance(found, cbor2.CBORTag) else found
        if (
            not isinstance(inside, dict | list)
            or not inside
            or (holder is not None and not below(6))
        ):
            return holder, key
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        holder, key = inside, one_of(below, keys)
        found = holder[key]


def _retagged(root: Any, tag: cbor2.CBORTag, below: Below) -> Any:
    """Change the number of a tag, or its content."""
    number = one_of(
        below, (tag.tag, *range(64, 88), 40, 41, 1040, 2, 4, 24, 30, 35, 258, 260, 1001)
    )
    value = tag.value
    if isinstance(value, bytes) and below(2):
        value = one_of(below, (truncated, flipped, spliced))(value, below)
    elif below(2):
        value = one_of(below, (*NASTY, [tag.value], [[0, 2**62], tag], [[-1, -1], tag]))
    return _replaced(root, tag, cbor2.CBORTag(number, value))


def _replaced(value: Any, old: Any, new: Any) -> Any:
    if value is old:
        return new
    if isinstance(value, dict):
        return {key: _replaced(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, old, new) for part in value]
    if isinstance(value, cbor2.CBORTag):
        return cbor2.CBORTag(value.tag, _replaced(value.value, old, new))
    return value


def in_database(change: Callable[[sqlite3.Connection, Below], None]) -> Callable[..., bytes]:
    """Make a way to spoil the bytes of a database of a way to change it; SQLite may refuse."""

    def changed(content: bytes, below: Below) -> bytes:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "changed"
            path.write_bytes(content)
            with (
                suppress(sqlite3.Error, OverflowError, TypeError, ValueError, zlib.error),
                closing(sqlite3.connect(path, isolation_level=None)) as database,
            ):
                database.execute("PRAGMA synchronous = OFF")
                change(database, below)
            return path.read_bytes()

    return changed


def _tables(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows]


def value_changed(database: sqlite3.Connection, below: Below) -> None:
    """Put something nasty into one cell, or a whole column, of any table, whatever its type."""
    table = one_of(below, _tables(database))
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    database.execute(f'CREATE TABLE untyped AS SELECT * FROM "{table}"')
    database.execute(f'DROP TABLE "{table}"')
    database.execute(f'ALTER TABLE untyped RENAME TO "{table}"')
    (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    where = one_of(below, ("", f"WHERE rowid = {1 + below(count + 1)}"))
    statement = f'UPDATE "{table}" SET "{one_of(below, columns)}" = ? {where}'
    database.execute(statement, (one_of(below, IN_SQL),))


def rows_changed(database: sqlite3.Connection, below: Below) -> None:
    """Delete rows, or add some again."""
    table = one_of(below, _tables(database))
    limit = below(4)
    database.execute(
        one_of(
            below,
            (
                f'DELETE FROM "{table}"',
                f'DELETE FROM "{table}" WHERE rowid > {limit}',
                f'DELETE FROM "{table}" WHERE rowid = {1 + limit}',
                f'INSERT INTO "{table}" SELECT * FROM "{table}"',
                f'UPDATE "{table}" SET rowid = -rowid',
                f'UPDATE "{table}" SET rowid = rowid + {2**62}',
            ),
        )
    )


def schema_changed(database: sqlite3.Connection, below: Below) -> None:
    """Change what the file declares: columns, views, triggers, indexes, versions."""
    table = one_of(below, _tables(database))
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    column = one_of(below, columns)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
        + ", ".join(f'i AS "{name}"' for name in columns)
        + " FROM n"
    )
    generated = ", ".join(
        f'"{name}" {"AS (length(zeroblob(60000000)))" if name == column else ""}'
        for name in columns
    )
    master = "PRAGMA writable_schema = ON; UPDATE sqlite_master"
    of_table = f"WHERE name = '{table}'"
    again = f'DROP TABLE "{table}"; CREATE'
    scripts = (
        f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
        f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO other',
        f'DROP TABLE "{table}"',
        f'{again} VIEW "{table}" AS {endless}',
        f'ALTER TABLE "{table}" RENAME TO hidden; CREATE VIEW "{table}" AS SELECT * FROM hidden',
        f'{again} TABLE "{table}" ({generated}); INSERT INTO "{table}" DEFAULT VALUES',
        f'CREATE TRIGGER evil AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END',
        f'CREATE INDEX evil ON "{table}" (abs("{column}"))',
        f"PRAGMA user_version = {below(5) - 2}",
        f"PRAGMA application_id = {below(5)}",
        "PRAGMA encoding = 'UTF-16'; VACUUM",
        "PRAGMA journal_mode = WAL",
        "PRAGMA auto_vacuum = 1; PRAGMA page_size = 512; VACUUM",
        f'CREATE TABLE "{one_of(below, ("x", "sqlite", "steps", "tile"))}" (a)',
        f"{master} SET rootpage = {below(40)} {of_table}",
        f"{master} SET sql = 'CREATE TABLE {table} (a' {of_table}",
        f"{master} SET name = CAST(x'ff00fe' AS TEXT) {of_table}",
    )
    database.executescript(one_of(below, scripts))


def array_changed(database: sqlite3.Connection, below: Below) -> None:
    """Change a value, the length or the shape of a chunk whose CRC then fits again."""
    (count,) = database.execute("SELECT count(*) FROM arrays").fetchone()
    row = database.execute(
        "SELECT rowid, name, dtype, shape, encoding, data FROM arrays LIMIT 1 OFFSET ?",
        (below(count),),
    ).fetchone()
    rowid, name, dtype, shape, encoding, data = row
    if encoding == "zlib":
        data = zlib.decompress(data)
    values = np.frombuffer(data, f"<{dtype}").reshape(orjson.loads(shape))
    way = below(8)
    if way == 0:
        values = values[: below(len(values) + 1)]
    elif way == 1:
        values = np.concatenate([values, values])
    elif way == 2:
        values = values[..., None] if below(2) else values.reshape(-1)
    elif way == 3:
        values = values[..., : below(3)]
    elif values.size and values.dtype.kind == "f":
        values = values.astype("f8")
        values.flat[below(values.size)] = one_of(below, FRACTIONS)
    elif values.size:
        values = values.astype("i8")
        place = below(values.size + 1)
        values.flat[slice(None) if place == values.size else place] = one_of(below, WHOLE)
    (chunk,) = chunks_of(name, values, 0)
    *_, rows, dtype, shape, encoding, crc, packed = chunk
    database.execute(
        "UPDATE arrays SET rows = ?, dtype = ?, shape = ?, encoding = ?, crc32 = ?, data = ? "
        "WHERE rowid = ?", (rows, dtype, shape, encoding, crc, packed, rowid),
    )  # fmt: skip


def packed_changed(content: bytes, below: Below) -> bytes:
    """Change the text of a packed file, or pack what never seems to end."""
    way = below(20)
    if way == 0:
        unit = one_of(below, (b" ", b"[", b"{}", b'{"ph":"X","ts":1},', b'{"ph":"s"},', b'"'))
        return gzip.compress(b"[" + unit * (BOMB // len(unit)), 1)
    if way == 1:
        return content + content
    with suppress(OSError, EOFError, zlib.error):
        text = gzip.decompress(content)
        return gzip.compress(one_of(below, JSON)(text, below), 1)
    return content


def repeated(content: bytes, below: Below) -> bytes:
    """Repeat a part of the text many times."""
    begin = below(len(content) + 1)
    length = 1 + below(200)
    return content[:begin] + content[begin : begin + length] * (1 + below(5000)) + content[begin:]


BYTES = (truncated, flipped, spliced)
JSON = (*BYTES, json_text_changed, *[json_changed] * 6)
CBOR = (*BYTES, cbor_bytes_changed, *[cbor_changed] * 6)
DATABASE = (flipped, in_database(rows_changed), in_database(schema_changed))
VALUES = [in_database(value_changed)] * 4
WAYS: dict[str, tuple[Callable[[bytes, Below], bytes], ...]] = {
    ".json": JSON,
    ".cbor": CBOR,
    ".pop": (*BYTES, *DATABASE, *VALUES, *[in_database(array_changed)] * 5),
    ".pvti": (*BYTES, *DATABASE, *VALUES),
    ".trace": (*JSON, repeated),
    ".gz": (*BYTES, *[packed_changed] * 5),
}
