"""NumPy arrays in CBOR: typed arrays with tag 40 for the shape (RFC 8746).

The tag number of a typed array is 64 plus five bits: float, signed, little-endian and two of size
(RFC 8746, section 2.1). Single bytes have no byte order; the float sizes begin at two bytes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from cbor2 import CBORTag

from pva.array_types import Values
from pva.formats.values import narrowed

SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "i8")
SHORT = 16  # numbers; up to so many a list is smaller and quicker
MULTI_DIMENSIONAL, COLUMN_MAJOR, HOMOGENEOUS = 40, 1040, 41
SHAPED = (MULTI_DIMENSIONAL, COLUMN_MAJOR)


def _dtypes() -> dict[int, str]:
    """List the tags with the types that they stand for; float of 16 bytes is left out."""
    types = {64: "u1", 68: "u1", 72: "i1"}  # 68 is clamped bytes
    for order, offset in ((">", 0), ("<", 4)):
        for bits, size in ((1, 2), (2, 4), (3, 8)):
            types[64 + offset + bits] = f"{order}u{size}"
            types[72 + offset + bits] = f"{order}i{size}"
            types[80 + offset + bits - 1] = f"{order}f{size}"
    return types


DTYPES = _dtypes()
TAGS = {dtype.removeprefix("<"): tag for tag, dtype in reversed(DTYPES.items()) if dtype[0] != ">"}


def encoded(values: Values) -> CBORTag:
    """Wrap numbers as a typed array of the narrowest type; more dimensions than one need tag 40."""
    narrow = narrowed(values, SIGNED, UNSIGNED)
    tagged = CBORTag(TAGS[narrow.dtype.str[1:]], narrow.tobytes())
    if narrow.ndim == 1:
        return tagged
    return CBORTag(MULTI_DIMENSIONAL, [list(narrow.shape), tagged])


def numbers_in(value: object) -> Values | None:
    """Return the numbers that a typed array can hold; None for what is no array of numbers.

    Lists count as arrays: of whole numbers, in equal rows; of fractions with None for no number.
    """
    if isinstance(value, np.ndarray):
        return value if value.size and value.dtype.kind in "iuf" else None
    if not isinstance(value, list) or not value:
        return None
    first: Any = value
    while isinstance(first, list) and first:
        first = first[0]
    if type(first) is int:
        return whole_numbers(value)
    if all(type(number) is float or number is None for number in value):
        return np.array(value, dtype=np.float64)
    return None


def whole_numbers(rows: list[object]) -> Values | None:
    """Make an array of whole numbers, or of equal rows of them; None of anything else."""
    try:
        array = np.asarray(rows)
    except (ValueError, OverflowError):  # rows of different lengths
        return None
    return array if array.dtype.kind == "i" else None


def decoded(tag: CBORTag) -> object:
    """Turn a tag into an array, a list for the tag of lists, or itself when it is another.

    Raises ValueError when tag and content do not fit.
    """
    if tag.tag in DTYPES:
        if not isinstance(tag.value, bytes):
            raise ValueError(f"tag {tag.tag} holds {type(tag.value).__name__}, not bytes")
        return np.frombuffer(tag.value, dtype=DTYPES[tag.tag])
    if tag.tag in SHAPED:
        return _shaped(tag)
    return _as_lists(tag.value) if tag.tag == HOMOGENEOUS else tag


def _as_lists(value: object) -> object:
    """Turn tuples, which cbor2 makes of what is inside a tag, into lists again."""
    return [_as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def _shaped(tag: CBORTag) -> Values:
    if not isinstance(tag.value, list | tuple) or len(tag.value) != 2:
        raise ValueError(f"tag {tag.tag} holds no pair of shape and values")
    shape, values = (np.asarray(part) for part in tag.value)
    if shape.ndim != 1 or shape.dtype.kind not in "iu" or values.ndim != 1 or len(shape) > 32:
        raise ValueError(f"tag {tag.tag} holds no pair of shape and values")
    lengths = shape.tolist()
    if min(lengths, default=0) < 0 or math.prod(lengths) != values.size:
        raise ValueError(f"tag {tag.tag}: {values.size} values for the shape {lengths}")
    return values.reshape(lengths, order="C" if tag.tag == MULTI_DIMENSIONAL else "F")
