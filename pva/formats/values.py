"""Plain Python values turned into columns and arrays, each checked against its declared kind."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import DTYPES
from pva.data.sources import Spend
from pva.errors import DamagedFileError

Rows = Sequence[Any] | Values  # one value a row

# What other writers call a tag: the user guide's own slips, and libpva's name.
ALIASES = {
    "sync": "Sync",
    "SharedStructureCopy": "CopySharedStructure",
    "StreamCopyMid": "StreamCopy",
}
ROUNDED = 8  # bytes by which an object is larger than it says
PART = 1 << 20  # values
EXACT = np.float64(2.0**53)  # below, fractions hold each whole number
NUMBERS = {"int": "whole numbers", "float": "numbers", "bool": "truth values"}


def column_of(file: object, place: str, column: schema.Column, values: Rows) -> Values:
    """Turn a column, None where a value is missing, into an array; raises DamagedFileError."""
    if column.kind == "code" and not isinstance(values, np.ndarray):
        return _codes(file, place, column, values)
    if column.kind == "text":
        return _texts(file, place, values)
    return array_of(file, place, column.kind, values, dimensions=1)


def columns_in_parts(
    file: object,
    table: str,
    columns: Sequence[schema.Column],
    parts: Iterable[Sequence[Rows]],
    count: int,
    spend: Spend,
) -> list[Values]:
    """Do the same with some rows of some columns at a time, `count` in all.

    Texts that are equal in a part are held once.
    """
    places = [f"table {table}, column {column.name}" for column in columns]
    arrays: list[Values] = []
    for column, place in zip(columns, places, strict=True):
        arrays.append(np.empty(count, DTYPES[column.kind]))
        spend(arrays[-1].nbytes, place)
    filled = 0
    for part in parts:
        for array, column, place, cells in zip(arrays, columns, places, part, strict=True):
            values = column_of(file, place, column, cells)
            if column.kind == "text":
                once = dict(zip(values, values, strict=True))
                spend(sum(map(sys.getsizeof, once)) + ROUNDED * len(once), place)
                values[:] = list(map(once.__getitem__, values))
            array[filled : filled + len(values)] = values[: count - filled]
        filled += len(part[0])
    if filled != count:
        remedy = f"{count}, as when it was opened"
        raise DamagedFileError(file, f"{filled} rows", remedy, place=f"table {table}")
    return arrays


def array_of(
    file: object, place: str, kind: schema.Kind, values: object, dimensions: int
) -> Values:
    """Turn nested lists, or an array, into an array of a kind of number; raises DamagedFileError.

    Nothing at all is an array of no rows, whatever its dimensions.
    """
    array = numbers_of(file, place, kind, values, dimensions)
    try:
        return array.astype(DTYPES[kind], copy=False)
    except MemoryError as error:
        remedy = "fewer values"
        raise DamagedFileError(file, "too large for the memory", remedy, place=place) from error


def numbers_of(file: object, place: str, kind: schema.Kind, values: Any, dimensions: int) -> Values:
    """Do the same, an array staying of the type that it has, which holds no other values."""
    remedy = f"{dimensions}-dimensional {NUMBERS.get(kind, 'whole numbers')}"
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            missing = schema.MISSING[kind]
            array = np.asarray([missing if value is None else value for value in values])
        if not array.size and array.ndim < dimensions:
            array = array.reshape(array.shape + (0,) * (dimensions - array.ndim))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedFileError(file, str(error), remedy, place=place) from error
    except MemoryError as error:
        raise DamagedFileError(file, "too large for the memory", remedy, place=place) from error
    if array.ndim != dimensions or not _fits(array, kind):
        problem = f"{array.ndim}-dimensional {array.dtype}"
        raise DamagedFileError(file, problem, remedy, place=place)
    return array


def _fits(array: Values, kind: schema.Kind) -> bool:
    """Return whether an array holds values of a kind without loss."""
    letter = array.dtype.kind
    if not array.size or letter == "i" or (letter == "b" and kind == "bool"):
        return (
            kind != "bool" or not array.size or letter == "b" or bool(np.isin(array, (0, 1)).all())
        )
    if letter == "u":
        return bool(array.max() <= np.iinfo(np.int64).max) and (
            kind != "bool" or bool(array.max() <= 1)
        )
    if letter == "f" and kind in ("int", "code"):
        return all(_whole(part) for part in parts_of(array.reshape(-1)))
    return letter == "f" and kind == "float"


def _whole(array: Values) -> bool:
    finite = bool(np.isfinite(array).all())
    return finite and bool(((np.abs(array) < EXACT) & (array % 1 == 0)).all())


def parts_of(values: Values) -> Iterator[Values]:
    """Cut values, so that what is worked out of them takes little memory."""
    return (values[first : first + PART] for first in range(0, len(values), PART))


def _texts(file: object, place: str, values: Rows) -> Values:
    texts = np.empty(len(values), dtype=np.object_)
    kinds = set(map(type, values))
    texts[:] = values if kinds <= {str} else ["" if value is None else value for value in values]
    if kinds - {str, type(None)}:
        wrong = next(value for value in texts if type(value) is not str)
        raise DamagedFileError(file, f"found {shown(wrong)}", "texts", place=place)
    return texts


def _codes(file: object, place: str, column: schema.Column, values: Rows) -> Values:
    table: dict[Any, int] = {text: code for code, text in enumerate(column.values)}
    table |= {
        name: table[text] for name, text in ALIASES.items() if text in table and name not in table
    }
    table[None] = int(str(schema.MISSING["code"]))
    try:
        return np.fromiter(map(table.__getitem__, values), np.int64, len(values))
    except (KeyError, TypeError):
        wrong = next(v for v in values if not isinstance(v, str | None) or v not in table)
        remedy = f"one of {', '.join(column.values)}"
        raise DamagedFileError(file, f"found {shown(wrong)}", remedy, place=place) from None


def shown(value: object) -> str:
    """Write a value that should not be there, short."""
    text = ascii(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."


def narrowed(values: Values, signed: Sequence[str], unsigned: Sequence[str]) -> Values:
    """Return numbers in the narrowest little-endian type that holds them without loss.

    Of the integer types named, unsigned ones hold what has no negative number; fractions go into
    four bytes when nothing is lost, truth values into one.
    """
    if values.dtype.kind == "b":
        return values.astype("u1")
    if values.dtype.kind == "f":
        return _narrow_float(values)
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    names = signed if low < 0 else unsigned
    for name in names:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return values.astype(np.dtype(name).newbyteorder("<"), copy=False)
    return values.astype("<i8", copy=False)


def _narrow_float(values: Values) -> Values:
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype("<f4")
    same = np.array_equal(narrow.astype("f8"), values, equal_nan=True)
    return narrow if same else values.astype("<f8", copy=False)
