"""Tensors of the KServe v2 protocol: their types, as bytes, as JSON and as NumPy arrays.

Raw bytes are little-endian and row-major; BOOL has a byte, BYTES a length of four bytes before each
element. BF16 is held as the upper halves of FP32. Source: Triton, docs/protocol/
extension_binary_data.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from simulator.graph.types import Array

# Of each datatype: its number in config.pbtxt, how its bytes are read, the contents of gRPC that
# hold it.
DATATYPES: dict[str, tuple[int, str, str]] = {
    "BOOL": (1, "?", "bool_contents"), "UINT8": (2, "u1", "uint_contents"),
    "UINT16": (3, "<u2", "uint_contents"), "UINT32": (4, "<u4", "uint_contents"),
    "UINT64": (5, "<u8", "uint64_contents"), "INT8": (6, "i1", "int_contents"),
    "INT16": (7, "<i2", "int_contents"), "INT32": (8, "<i4", "int_contents"),
    "INT64": (9, "<i8", "int64_contents"), "FP16": (10, "<f2", ""),
    "FP32": (11, "<f4", "fp32_contents"), "FP64": (12, "<f8", "fp64_contents"),
    "BYTES": (13, "O", "bytes_contents"), "BF16": (14, "<u2", ""),
}  # fmt: skip
_NAMES = {number: name for name, (number, _, _) in DATATYPES.items()}
MAX_DIMENSIONS = 32


class TensorError(ValueError):
    """A tensor of a request is not what it should be."""


def datatype_of(number: int) -> str:
    """Return the name of a data type of config.pbtxt, as clients write it."""
    return _NAMES[number]


def elements_of(name: str, shape: Sequence[object], most: int) -> int:
    """Count the elements of a shape; raises TensorError for no shape, or more than `most`."""
    sizes = [size for size in shape if type(size) is int and 0 <= size < 1 << 40]
    if len(sizes) != len(shape) or len(shape) > MAX_DIMENSIONS:
        raise TensorError(f"input {name!r}: shape {list(shape)[:8]}; sizes from 0 on")
    count = math.prod(sizes)
    if count > most:
        raise TensorError(f"input {name!r}: {count:,} elements; at most {most:,}")
    return count


def from_bytes(name: str, datatype: str, shape: Sequence[int], data: bytes | memoryview) -> Array:
    """Return the array that raw bytes hold; raises TensorError for another number of them."""
    count = math.prod(shape)
    if datatype == "BYTES":
        return _from_lengths(name, data, count).reshape(shape)
    dtype = np.dtype(DATATYPES[datatype][1])
    if len(data) != count * dtype.itemsize:
        needed = count * dtype.itemsize
        raise TensorError(f"input {name!r}: {len(data):,} bytes; {needed:,} for {list(shape)}")
    return np.frombuffer(data, dtype).reshape(shape)


def _from_lengths(name: str, data: bytes | memoryview, count: int) -> Array:
    view, place = memoryview(data), 0
    texts: list[bytes] = []
    while place < len(view) and len(texts) <= count:
        size = struct.unpack_from("<I", view, place)[0] if place + 4 <= len(view) else len(view)
        place += 4 + size
        if place > len(view):
            raise TensorError(f"input {name!r}: an element ends behind its {len(view):,} bytes")
        texts.append(bytes(view[place - size : place]))
    if len(texts) != count:
        raise TensorError(f"input {name!r}: not the {count:,} elements of its shape")
    return objects(texts)


def objects(texts: Sequence[object]) -> Array:
    """Return an array of objects."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def to_bytes(datatype: str, array: Array) -> bytes:
    """Return the raw bytes of an array."""
    if datatype == "BYTES":
        texts = [_as_bytes(text) for text in array.ravel().tolist()]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return np.ascontiguousarray(array, np.dtype(DATATYPES[datatype][1])).tobytes()


def _as_bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def from_values(name: str, datatype: str, shape: Sequence[int], values: object) -> Array:
    """Return the array of a list of JSON, flat or nested; raises TensorError."""
    if datatype in ("FP16", "BF16"):
        raise TensorError(f"input {name!r}: {datatype} as JSON; send it as raw bytes")
    if not isinstance(values, list):
        raise TensorError(f"input {name!r}: no data; a list, or raw bytes")
    count = math.prod(shape)
    flat = _flat(name, values, count)
    if datatype == "BYTES":
        texts = [value.encode() for value in flat if isinstance(value, str)]
        if len(texts) != len(flat):
            raise TensorError(f"input {name!r}: data of BYTES are texts")
        return objects(texts).reshape(shape)
    kinds: tuple[type, ...] = (bool,) if datatype == "BOOL" else (int, float)
    if datatype[0] in "UI":
        kinds = (int,)
    if any(not isinstance(value, kinds) or (type(value) is bool) != (datatype == "BOOL")
           for value in flat):  # fmt: skip
        raise TensorError(f"input {name!r}: data that is not {datatype}")
    try:
        return np.array(flat, np.dtype(DATATYPES[datatype][1])).reshape(shape)
    except OverflowError:
        raise TensorError(f"input {name!r}: a value that is not {datatype}") from None


def _flat(name: str, values: list[object], count: int) -> list[object]:
    for _ in range(MAX_DIMENSIONS):
        if not values or not isinstance(values[0], list):
            break
        lists = [inner for inner in values if isinstance(inner, list)]
        if len(lists) != len(values):
            raise TensorError(f"input {name!r}: data nested unevenly")
        values = [value for inner in lists for value in inner]
    if len(values) != count:
        raise TensorError(f"input {name!r}: {len(values):,} values; {count:,} for its shape")
    return values


def to_values(datatype: str, array: Array) -> list[object]:
    """Return an array as a flat list for JSON; BYTES become texts."""
    if datatype == "BYTES":
        return [_as_bytes(text).decode(errors="replace") for text in array.ravel().tolist()]
    values: list[object] = array.ravel().tolist()
    return values
