"""Where a dataset takes its columns and arrays from, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy.typing as npt

Values = npt.NDArray[Any]


class Source(Protocol):
    """Where a dataset takes its columns and arrays from; a format implements it."""

    limit: float  # bytes that a column or an array may take; as many are held in all

    def tables(self) -> Collection[str]:
        """Name the tables that are there."""

    def arrays(self) -> Collection[str]:
        """Name the arrays that are there."""

    def column(self, table: str, column: str) -> Values:
        """Read one column of a table that is there."""

    def rows(self, array: str, first: int, stop: int | None) -> Values:
        """Read rows `first` to `stop` (exclusive; None for the end) of an array that is there."""


class Held(dict[str | tuple[str, str], Values]):
    """Columns and arrays that were read, the oldest let go of when they are too large."""

    def __init__(self, limit: float) -> None:
        self._limit, self._bytes = limit, 0

    def hold(self, name: str | tuple[str, str], values: Values) -> Values:
        """Keep one, whatever its size, until the next comes."""
        self._drop(name)
        self[name] = values
        self._bytes += values.nbytes
        while self._bytes > self._limit and len(self) > 1:
            self._drop(*list(self)[:1])
        return values

    def make_room(self) -> None:
        """Let go of what is too large, before the next is read."""
        while self._bytes > self._limit and self:
            self._drop(*list(self)[:1])

    def _drop(self, *names: str | tuple[str, str]) -> None:
        for name in names:  # another thread may have been first
            values = self.pop(name, None)
            self._bytes -= 0 if values is None else values.nbytes


class Memory:
    """The source of a dataset that was made in memory."""

    limit = float("inf")

    def __init__(self, tables: dict[str, dict[str, Values]], arrays: dict[str, Values]) -> None:
        self._tables = tables
        self.held = arrays

    def tables(self) -> Collection[str]:
        return self._tables.keys()

    def arrays(self) -> Collection[str]:
        return self.held.keys()

    def column(self, table: str, column: str) -> Values:
        return self._tables[table][column]

    def rows(self, array: str, first: int, stop: int | None) -> Values:
        return self.held[array][first:stop]
