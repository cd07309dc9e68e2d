"""Read the chunks of `profile.pop`: the list of a column or array first, then those asked for.

A file may have a million small ones: lists are arrays, and small chunks are read many at a time.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from pva.array_types import Integers, Values
from pva.data.sources import Room, Spend
from pva.errors import DamagedFileError
from pva.formats.checksum import crc32
from pva.formats.database.chunks import CHUNK_BYTES, CHUNK_LIMIT, DTYPES
from pva.formats.database.sqlite_file import Database, faults

Row = tuple[Any, ...]

NAMES = tuple(sorted(DTYPES))
TYPES = tuple(np.dtype(f"<{name}") for name in NAMES)
ENCODINGS = ("raw", "zlib")
LISTED = 2 * 8 * 8  # bytes of a chunk in a list, and in the parts that it is made of
TOGETHER = 500  # chunks read at once; every SQLite takes as many parameters
LIST = (
    "SELECT rowid, first_row, rows, substr(dtype, 1, 9), substr(shape, 1, 200), "
    "substr(encoding, 1, 9), crc32, length(data) FROM arrays "
    "WHERE name = ? AND rowid BETWEEN ? AND ? ORDER BY first_row, rowid"
)
LATEST = "SELECT max(rowid) FROM arrays WHERE name = ? AND rowid <= ? AND first_row = 0"
WHOLE = "a file as its program wrote it: make or copy it again"


@dataclass(frozen=True, slots=True)
class Index:
    """The chunks of a column or array in order: a value for each, and the shape of a row."""

    inner: tuple[int, ...]
    rowid: Integers
    first_row: Integers
    rows: Integers
    dtype: Integers  # place in TYPES
    encoding: Integers  # place in ENCODINGS
    crc32: Integers
    length: Integers  # bytes in the file
    size: Integers  # bytes when unpacked

    @property
    def count(self) -> int:
        """Rows of all chunks."""
        return int(self.rows.sum())

    def between(self, begin: int, end: int) -> slice:
        """Return which chunks hold some rows; one of them where there are none."""
        first = int(np.searchsorted(self.first_row + self.rows, begin, side="right"))
        stop = int(np.searchsorted(self.first_row, end))
        first = min(first, len(self.rows) - 1)
        return slice(first, max(stop, first + 1))

    def together(self, chunks: slice) -> list[slice]:
        """Cut chunks so that small ones of one type are read together."""
        sizes = np.maximum(self.length, self.size)[chunks]
        numbers = np.cumsum(sizes) // CHUNK_BYTES, np.arange(len(sizes)) // TOGETHER
        changes = [np.diff(values) != 0 for values in (*numbers, self.dtype[chunks])]
        cuts = chunks.start + 1 + np.flatnonzero(np.logical_or.reduce(changes))
        borders = [chunks.start, *cuts.tolist(), chunks.stop]
        return list(map(slice, borders[:-1], borders[1:]))


class ChunkReader:
    """The columns and arrays in chunks of a file, as they were when it was opened."""

    def __init__(self, database: Database, room: Room, last: int, replaced: set[str]) -> None:
        self._database, self._room, self._last = database, room, last
        self._replaced = replaced  # whose chunks take the place of those before

    def index(self, name: str) -> Index | None:
        """List the chunks of a column or array, each compared with its neighbours.

        None when there are none. Raises DamagedFileError.
        """
        place, first = f"arrays, {name}", 0
        if name in self._replaced:
            first = self._database.rows(LATEST, (name, self._last), place=place)[0][0] or 0
        parts: list[tuple[Integers, ...]] = []
        inner: tuple[int, ...] = ()
        expected = listed = 0
        with closing(
            self._database.batches(LIST, (name, first, self._last), place=place)
        ) as batches:
            for rows in batches:
                inner = inner if parts else (shape_of(rows[0][4]) or (0,))[1:]
                part = _columns(rows, expected, inner)
                if part is None:
                    raise self._misplaced(place, rows, expected, inner)
                parts.append(part)
                expected += int(part[2].sum())
                listed += len(rows)
                self._room.check(LISTED * listed, place)
        return Index(inner, *map(np.concatenate, zip(*parts, strict=True))) if parts else None

    def values(
        self, name: str, index: Index | None, first: int, stop: int | None, spend: Spend
    ) -> Values:
        """Read rows of a column or array, only from the chunks that hold them."""
        if index is None:
            raise DamagedFileError(self._database.path, "nothing", "one chunk or more", place=name)
        begin, end, _ = slice(first, stop).indices(index.count)
        selected = index.between(begin, end)
        dtype = np.result_type(*(TYPES[code] for code in set(index.dtype[selected].tolist())))
        shape = (max(end - begin, 0), *index.inner)
        spend(math.prod(shape) * dtype.itemsize, name)
        parts = index.together(selected)
        if len(parts) == 1:
            return self._part(name, index, parts[0], begin, end)
        with faults(self._database.path, self._database.declaration.what, name):
            array = np.empty(shape, dtype)
        filled = 0
        for chunks in parts:
            part = self._part(name, index, chunks, begin, end)
            array[filled : filled + len(part)] = part
            filled += len(part)
        return array

    def _part(self, name: str, index: Index, chunks: slice, begin: int, end: int) -> Values:
        """Return the rows from `begin` to `end` that chunks of one type hold."""
        data = self._data(name, index.rowid[chunks].tolist())
        sums, recorded = list(map(crc32, data)), index.crc32[chunks].tolist()
        if sums != recorded:
            bad = next(n for n, (checksum, crc) in enumerate(zip(sums, recorded, strict=True))
                       if checksum != crc)  # fmt: skip
            checksum = f"checksum {sums[bad]:#x}, recorded {recorded[bad]}"
            raise self._damaged(name, index, chunks.start + bad, checksum)
        sizes = index.size[chunks].tolist()
        for number in np.flatnonzero(index.encoding[chunks]).tolist():
            data[number], wrong = _unpacked(data[number], sizes[number])
            if wrong:
                raise self._damaged(name, index, chunks.start + number, wrong)
        lengths = list(map(len, data))
        if lengths != sizes:
            bad = next(n for n, size in enumerate(sizes) if lengths[n] != size)
            checksum = f"{lengths[bad]} bytes of {sizes[bad]}"
            raise self._damaged(name, index, chunks.start + bad, checksum)
        joined = data[0] if len(data) == 1 else b"".join(data)
        rows = int(index.rows[chunks].sum())
        values = np.frombuffer(joined, TYPES[index.dtype[chunks.start]])
        first = int(index.first_row[chunks.start])
        within = slice(max(begin - first, 0), max(end - first, 0))
        return values.reshape(rows, *index.inner)[within]

    def _data(self, name: str, rowids: list[int]) -> list[bytes]:
        """Read the bytes of chunks: one without the rest of its row, several by one query."""
        place = f"arrays, {name}"
        if len(rowids) == 1:
            return [self._database.blob("arrays", "data", rowids[0], place=place)]
        marks = ", ".join("?" * len(rowids))
        query = f"SELECT rowid, CAST(data AS BLOB) FROM arrays WHERE rowid IN ({marks})"
        blobs = dict(self._database.rows(query, rowids, place=place))
        missing = [rowid for rowid in rowids if not isinstance(blobs.get(rowid), bytes)]
        if missing:
            raise DamagedFileError(
                self._database.path, f"no chunk in row {missing[0]}", "a file that only grows",
                place=place,
            )  # fmt: skip
        return [blobs[rowid] for rowid in rowids]

    def _damaged(self, name: str, index: Index, chunk: int, problem: str) -> DamagedFileError:
        place = f"arrays, {name}, rows from {index.first_row[chunk]}"
        return DamagedFileError(self._database.path, problem, WHOLE, place=place)

    def _misplaced(
        self, place: str, rows: Sequence[Row], expected: int, inner: tuple[int, ...]
    ) -> DamagedFileError:
        """Return the error of the first chunk that does not fit."""
        for row in rows:
            if _columns([row], expected, inner) is None:
                break
            expected += row[2]
        _, first_row, count, dtype, shape, encoding, *_ = row
        problem = (
            f"chunk at row {first_row!r}: {count!r} rows, {dtype!r}, {encoding!r}, shape {shape!r}"
        )
        remedy = f"rows from {expected} on, shaped like the chunk before"
        return DamagedFileError(self._database.path, problem, remedy, place=place)


def _columns(
    rows: Sequence[Row], expected: int, inner: tuple[int, ...]
) -> tuple[Integers, ...] | None:
    """Turn rows of the list into arrays; None when one does not fit its neighbours."""
    rowid, first_row, counts, dtype, shape, encoding, crc32, length = zip(*rows, strict=True)
    shapes = {text: shape_of(text) for text in set(shape)}
    fits = (
        math.prod(inner) <= CHUNK_LIMIT
        and all(shape is not None and shape[1:] == inner for shape in shapes.values())
        and set(map(type, first_row + counts)) == {int}
        and set(dtype) <= DTYPES
        and set(encoding) <= set(ENCODINGS)
        and [shapes[text][0] for text in shape] == list(counts)  # type: ignore[index]
    )
    if not fits:
        return None
    codes = np.array([*map(NAMES.index, dtype)])
    count, begins = np.array(counts, np.int64), np.array(first_row, np.int64)
    bounded = np.minimum(count, CHUNK_LIMIT)  # so that nothing is beyond 64 bits
    size = bounded * math.prod(inner) * np.array([of.itemsize for of in TYPES])[codes]
    placed = (bounded == count) & (begins == expected + np.cumsum(bounded) - bounded)
    if not (placed & (size <= CHUNK_LIMIT)).all():
        return None
    of_bytes = [0 if type(size) is not int else size for size in length]
    sums = [-1 if type(crc) is not int else crc for crc in crc32]
    packed = np.array([*map(ENCODINGS.index, encoding)])
    listed = np.array(rowid), begins, count, codes, packed, np.array(sums), np.array(of_bytes)
    return *listed, size


def shape_of(text: object) -> tuple[int, ...] | None:
    """Read a shape; None when it is none."""
    with suppress(ValueError, TypeError, RecursionError):
        shape = json.loads(str(text))
        if shape and all(type(size) is int and 0 <= size < 1 << 40 for size in shape):
            return tuple(shape)
    return None


def _unpacked(data: bytes, size: int) -> tuple[bytes, str]:
    """Unpack at most `size` bytes; the second value says what is wrong."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        return b"", str(error)
    return unpacked, ""
