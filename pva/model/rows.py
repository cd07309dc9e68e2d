"""A row of a dataset as an object, and a sequence of such: from `_rows.c` where it was built.

The two in Python below do the same, and are what type checkers see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from typing import Self

    from pva.data.dataset import Dataset

INTERFACE = 1  # as in _rows.c
T = TypeVar("T")


class Row:
    """A row of a dataset."""

    __slots__ = ("_data", "_row")

    def __init__(self, data: Dataset, row: int) -> None:
        self._data = data
        self._row = row


class Rows(Generic[T]):
    """Makes its items when they are asked for; the class has the error for a place outside."""

    __slots__ = ("_make", "_rows")
    _outside: Callable[[object], IndexError]

    def __init__(self, rows: range | Sequence[int], make: Callable[[int], T]) -> None:
        self._rows = rows
        self._make = make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> Self: ...

    def __getitem__(self, place: int | slice) -> T | Self:
        if isinstance(place, slice):
            return type(self)(self._rows[place], self._make)
        try:
            row = self._rows[place]
        except IndexError:
            raise self._outside(place) from None
        return self._make(row)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._rows)


def _compiled() -> Any:
    """Return the module that is in C; None where it was not built, or from another source."""
    try:
        # For tests and comparisons: the two behave alike.
        built: Any = import_module("pva.model._rows") if os.environ.get("PVA_KERNELS") != "0" else 0
    except ImportError:
        return None
    return built if built and built.INTERFACE == INTERFACE else None


if not TYPE_CHECKING and (compiled := _compiled()):
    Row, Rows = compiled.Row, compiled.Rows
