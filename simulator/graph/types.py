"""The element types of tensors, under Poplar's names."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simulator.graph.errors import PoplarError

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Type:
    """An element type: its Poplar name, its bytes and its NumPy name.

    >>> HALF.name, HALF.size
    ('half', 2)
    """

    name: str
    size: int
    numpy_name: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """Return the NumPy type of the values.

        >>> HALF.numpy.name
        'float16'
        """
        return np.dtype(self.numpy_name)

    def __str__(self) -> str:
        return self.name


# User guide "Programming with Poplar", 2.3.1: char is signed, long is as wide as int.
BOOL = Type("bool", 1, "?")
CHAR = Type("char", 1, "i1")
SIGNED_CHAR = Type("signed char", 1, "i1")
UNSIGNED_CHAR = Type("unsigned char", 1, "u1")
SHORT = Type("short", 2, "<i2")
UNSIGNED_SHORT = Type("unsigned short", 2, "<u2")
INT = Type("int", 4, "<i4")
UNSIGNED_INT = Type("unsigned int", 4, "<u4")
LONG = Type("long", 4, "<i4")
UNSIGNED_LONG = Type("unsigned long", 4, "<u4")
LONGLONG = Type("long long", 8, "<i8")
UNSIGNED_LONGLONG = Type("unsigned long long", 8, "<u8")
HALF = Type("half", 2, "<f2")
FLOAT = Type("float", 4, "<f4")
DOUBLE = Type("double", 8, "<f8")


@dataclass(frozen=True, slots=True)
class equivalent_device_type:  # noqa: N801 - Poplar's name
    """The element type of values of a type of Python or NumPy: `equivalent_device_type(float)`.

    >>> equivalent_device_type(np.float16).value.name
    'half'
    """

    of: object

    @property
    def value(self) -> Type:
        """Return the type; float is FLOAT and int is INT, as in C++.

        >>> equivalent_device_type(float).value.name
        'float'
        """
        plain = {float: FLOAT, int: INT, bool: BOOL}
        if isinstance(self.of, type) and self.of in plain:
            return plain[self.of]
        dtype = np.dtype(self.of)  # type: ignore[call-overload]
        integers = (CHAR, UNSIGNED_CHAR, SHORT, UNSIGNED_SHORT, INT, UNSIGNED_INT)
        longs = (LONGLONG, UNSIGNED_LONGLONG)
        for one in (BOOL, *integers, *longs, HALF, FLOAT, DOUBLE):
            if one.numpy == dtype:
                return one
        raise PoplarError(f"equivalent_device_type: no type of the device is as {self.of!r}")


def element_count(shape: tuple[int, ...]) -> int:
    """Count the elements of a shape."""
    return prod(shape)


def checked_type(dtype: object, subject: str) -> Type:
    """Return `dtype` back when it is an element type, or raise PoplarError naming `subject`."""
    if not isinstance(dtype, Type):
        raise PoplarError(f"{subject}: type is {dtype!r}; one such as poplar.FLOAT is needed")
    return dtype


def checked_name(name: object, subject: str) -> str:
    """Return a name back when it is a text, or raise PoplarError naming `subject` it is of."""
    if not isinstance(name, str):
        raise PoplarError(f"{subject}: its name is {name!r}; a text is needed")
    return name


def checked_shape(shape: object, subject: str) -> tuple[int, ...]:
    """Return `shape` as a tuple of sizes, or raise PoplarError naming `subject`."""
    try:
        sizes = tuple(index(size) for size in shape)  # type: ignore[attr-defined]
    except TypeError:
        raise PoplarError(f"{subject}: shape is {shape!r}; a list of sizes is needed") from None
    if any(size < 0 for size in sizes):
        raise PoplarError(f"{subject}: shape is {list(sizes)}; sizes cannot be negative")
    return sizes


def checked_values(
    values: object, dtype: Type, subject: str, error: type[PoplarError] = PoplarError
) -> Array:
    """Return values as an array of an element type; floating point is rounded to the nearest.

    Raises `error` with `subject` and the value for what is no number, and for what an integer type
    or bool cannot hold.
    """
    numpy_type = dtype.numpy
    if isinstance(values, np.ndarray) and values.dtype == numpy_type:
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise error(f"{subject}: rows of values are not equally long") from None
    if array.dtype.kind not in "biuf" and not _whole_numbers(array):
        raise error(f"{subject}: values are of type {array.dtype}; numbers are needed")
    if numpy_type.kind == "f":
        with np.errstate(over="ignore"):  # what is too large for the type is infinite
            return array.astype(numpy_type)
    if array.dtype.kind == "O" or not np.can_cast(array.dtype, numpy_type, "safe"):
        least, most = _limits(dtype)
        wrong = np.flatnonzero(~_fits(array, least, most))
        if len(wrong):
            first = int(wrong[0])
            raise error(
                f"{subject}: value {array.flat[first]} at element {first}; "
                f"{dtype} holds whole numbers from {least} to {most}"
            )
    return array.astype(numpy_type)


def _whole_numbers(array: Array) -> bool:
    """Return whether an array of objects holds integers, too large for any type of NumPy."""
    return array.dtype.kind == "O" and all(isinstance(value, int) for value in array.flat)


def _limits(dtype: Type) -> tuple[int, int]:
    """Return the least and the largest number of an integer type or bool."""
    if dtype.numpy.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def _fits(array: Array, least: int, most: int) -> npt.NDArray[np.bool_]:
    """Return which values are whole numbers between two limits, both included."""
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        # The largest of 64 bits is no float: 2^63 and above are too large, all below fit.
        within = (array >= least) & (array < float(most + 1)) & (array == np.floor(array))
    else:
        within = (array >= least) & (array <= most)
    return np.asarray(within, dtype=np.bool_)
