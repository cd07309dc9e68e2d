"""The chunks of `profile.pop`: columns and arrays cut by rows, each of the narrowest type."""

from __future__ import annotations

import json
import zlib

import numpy as np

from pva.array_types import Values
from pva.formats.checksum import crc32
from pva.formats.values import narrowed

SIGNED, UNSIGNED = ("i4", "i8"), ("u1", "u2", "u4", "i8")
DTYPES = frozenset({"u1", "u2", "u4", "u8", "i4", "i8", "f4", "f8"})
CHUNK_BYTES = 1 << 20  # so that one row is read without much of the rest
CHUNK_LIMIT = 16 << 20
WORTH_PACKING = 0.5  # shrunk to this share or below, a chunk is kept packed: unpacking is slow


def chunks_of(name: str, values: Values, first_row: int) -> list[tuple[object, ...]]:
    """Cut an array by rows; an array of no rows is one empty chunk."""
    narrow = np.ascontiguousarray(narrowed(values, SIGNED, UNSIGNED))
    row_bytes = max(narrow[:1].nbytes, 1)
    step = max(CHUNK_BYTES // row_bytes, 1)
    return [
        _chunk(name, first_row + begin, narrow[begin : begin + step])
        for begin in range(0, max(len(narrow), 1), step)
    ]


def _chunk(name: str, first_row: int, part: Values) -> tuple[object, ...]:
    raw = part.tobytes()
    packed = zlib.compress(raw, 1)
    encoding, data = ("zlib", packed) if len(packed) <= WORTH_PACKING * len(raw) else ("raw", raw)
    dtype, shape = part.dtype.str[1:], json.dumps(part.shape)
    return name, first_row, len(part), dtype, shape, encoding, crc32(data), data
