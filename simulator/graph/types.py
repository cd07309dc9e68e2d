"""The element types of tensors, under Poplar's names."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simulator.graph.errors import PoplarError

IntArray: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Type:
    """An element type: its Poplar name, its bytes and its NumPy name."""

    name: str
    size: int
    numpy_name: str

    @property
    def numpy(self) -> np.dtype[Any]:
        """Give the NumPy type of the values."""
        return np.dtype(self.numpy_name)

    def __str__(self) -> str:
        return self.name


FLOAT = Type("float", 4, "<f4")
HALF = Type("half", 2, "<f2")
INT = Type("int", 4, "<i4")
UNSIGNED_INT = Type("unsigned int", 4, "<u4")
BOOL = Type("bool", 1, "?")
CHAR = Type("char", 1, "i1")
UNSIGNED_CHAR = Type("unsigned char", 1, "u1")
SHORT = Type("short", 2, "<i2")
UNSIGNED_SHORT = Type("unsigned short", 2, "<u2")
LONGLONG = Type("long long", 8, "<i8")
UNSIGNED_LONGLONG = Type("unsigned long long", 8, "<u8")

TYPES = (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    BOOL,
    CHAR,
    UNSIGNED_CHAR,
    SHORT,
    UNSIGNED_SHORT,
    LONGLONG,
    UNSIGNED_LONGLONG,
)


def element_count(shape: tuple[int, ...]) -> int:
    """Count the elements of a shape."""
    count = 1
    for dimension in shape:
        count *= dimension
    return count


def checked_type(dtype: object, what: str) -> Type:
    """Give `dtype` back when it is an element type, or raise PoplarError naming `what`."""
    if not isinstance(dtype, Type):
        raise PoplarError(f"{what}: type is {dtype!r}; one such as poplar.FLOAT is needed")
    return dtype


def checked_shape(shape: object, what: str) -> tuple[int, ...]:
    """Give `shape` as a tuple of sizes, or raise PoplarError naming `what`."""
    try:
        sizes = tuple(index(size) for size in shape)  # type: ignore[attr-defined]
    except TypeError:
        raise PoplarError(f"{what}: shape is {shape!r}; a list of sizes is needed") from None
    if any(size < 0 for size in sizes):
        raise PoplarError(f"{what}: shape is {list(sizes)}; sizes cannot be negative")
    return sizes
