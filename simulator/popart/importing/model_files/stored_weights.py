"""An ONNX file read without the values of its large tensors: these are read when asked for.

They become external data (onnx.proto, `TensorProto.external_data`) of the very file, so that a
model is never in memory twice. Protobuf's wire format: a message is fields, each a tag (number and
wire type) and its value; wire type 2 is a length and so many bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import onnx

LARGE = 64 << 10  # bytes of values that stay in the file
GRAPH = onnx.ModelProto.GRAPH_FIELD_NUMBER
TENSOR = onnx.GraphProto.INITIALIZER_FIELD_NUMBER
VALUES = onnx.TensorProto.RAW_DATA_FIELD_NUMBER
PLACE = (onnx.TensorProto.EXTERNAL_DATA_FIELD_NUMBER, onnx.TensorProto.DATA_LOCATION_FIELD_NUMBER)
NUMBER, WIDE, BYTES, NARROW = 0, 1, 2, 5  # wire types
FIXED = {WIDE: 8, NARROW: 4}
MAX_DIGITS = 10  # of a number, seven bits each


class _NotPlainError(ValueError):
    """Raised for a file that has to be read as a whole: damaged, or built in another way."""


def without_values(stream: BinaryIO, size: int, name: str) -> bytes | None:
    """Return the bytes of a model whose large tensors name `name` as the file of their values.

    `stream` is the file, of `size` bytes. None for one that has to be read as a whole.
    """
    try:
        return _rewritten(stream, size, {GRAPH: lambda end: _graph(stream, end, name)})
    except _NotPlainError:
        return None


def _graph(stream: BinaryIO, end: int, name: str) -> bytes:
    return _rewritten(stream, end, {TENSOR: lambda last: _tensor(stream, last, name)})


def _rewritten(stream: BinaryIO, end: int, inner: dict[int, Callable[[int], bytes]]) -> bytes:
    """Return a message, with some of its inner messages rewritten."""
    parts = []
    for number, begin, _, last in _fields(stream, end):
        if number in inner:
            content = inner[number](last)
            parts += [_digits(number << 3 | BYTES), _digits(len(content)), content]
        else:
            parts.append(_read(stream, begin, last))
        stream.seek(last)
    return b"".join(parts)


def _tensor(stream: BinaryIO, end: int, name: str) -> bytes:
    """Return a tensor without its values where these are large."""
    parts, places = [], []
    for number, begin, value, last in _fields(stream, end):
        if number in PLACE:
            raise _NotPlainError
        if number == VALUES and last - value >= LARGE:
            places.append((value, last - value))
        else:
            parts.append(_read(stream, begin, last))
        stream.seek(last)
    if not places:
        return b"".join(parts)
    if len(places) > 1:
        raise _NotPlainError
    ((offset, length),) = places
    tensor = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, text in (("location", name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=text)
    return b"".join((*parts, tensor.SerializeToString()))


def _fields(stream: BinaryIO, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Read the fields up to `end`: number, where each begins, where its value does, its end.

    The stream is to be left at the end of each.
    """
    while (begin := stream.tell()) < end:
        tag = _number(stream)
        number, kind = tag >> 3, tag & 7
        if kind == NUMBER:
            _number(stream)
            value = last = stream.tell()
        elif kind == BYTES:
            length = _number(stream)
            value = stream.tell()
            last = value + length
        elif kind in FIXED:
            value = stream.tell()
            last = value + FIXED[kind]
        else:
            raise _NotPlainError
        if last > end:
            raise _NotPlainError
        yield number, begin, value, last
    if begin != end:
        raise _NotPlainError


def _read(stream: BinaryIO, begin: int, end: int) -> bytes:
    stream.seek(begin)
    return stream.read(end - begin)


def _number(stream: BinaryIO) -> int:
    """Read a number: seven bits a byte, the lowest first, and the eighth where more follow."""
    number = 0
    for digit in range(MAX_DIGITS):
        byte = stream.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << 7 * digit
        if byte[0] < 0x80:
            return number
    raise _NotPlainError


def _digits(number: int) -> bytes:
    """Return a number as `_number` reads it."""
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
