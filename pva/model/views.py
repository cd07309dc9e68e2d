"""What the objects of a report are made of: items by row and sequences that make them on access."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from pva.array_types import Values
from pva.model.completion import complete, complete_behind_items
from pva.model.rows import Row, Rows
from pva.model.show import Shown, table

T = TypeVar("T")

_printed = {"items": 10}


class Item(Row, Shown):
    """A row of a dataset. Two views of one row are equal, and one key in sets and dicts."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Item):
            return NotImplemented
        return (type(self), self._row, id(self._data)) == (
            type(other),
            other._row,
            id(other._data),
        )

    def __hash__(self) -> int:
        return hash((type(self), self._row, id(self._data)))

    def _title(self) -> tuple[str, ...]:
        return (str(self._row), *super()._title())

    def _value(self, table: str, column: str) -> Any:
        """Return the value in this row of a column, as a Python object."""
        return self._data.stored(table, column).item(self._row)

    def _text(self, table: str, column: str) -> str:
        return str(self._data.stored(table, column)[self._row])


class Listed(Sequence[T]):
    """What is compared, added and pickled like a list, which libpva has in its place."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        complete(cls, items=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Listed):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __add__(self, other: list[T] | Listed[T]) -> list[T]:
        return [*self, *other] if isinstance(other, list | Listed) else NotImplemented

    def __radd__(self, other: list[T]) -> list[T]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __reduce__(self) -> tuple[type, tuple[list[T]]]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return _listed(self)

    def _outside(self, place: object) -> IndexError:
        return IndexError(f"index {place} is not there; there are {len(self):,}")


class Items(Rows[T], Listed[T]):
    """A sequence that makes its items when they are asked for."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        first = [item for item in self[: _printed["items"]] if isinstance(item, Shown)]
        return table(first, len(self) - len(first))


class Numbers(list[int]):
    """A row of an array as a list, of which the first few are shown when it is printed."""

    def __init__(self, values: Values) -> None:
        super().__init__(values.tolist())

    def __reduce__(self) -> tuple[type, tuple[list[int]]]:
        return list, (self[:],)

    def __repr__(self) -> str:
        return _listed(self)


def _listed(items: Sequence[object]) -> str:
    """Write the first of some items, and how many there are."""
    first = [repr(item) for item in items[: _printed["items"]]]
    ending = [] if len(first) == len(items) else [f"... {len(items)} in all"]
    return f"[{', '.join(first + ending)}]"


def print_length(items: int) -> None:
    """Set how many items a list shows when printed."""
    _printed["items"] = max(items, 0)


def chosen(noun: str, index: int, count: int) -> int:
    """Check an index given by a caller; raises IndexError."""
    if not 0 <= index < count:
        raise IndexError(f"{noun} {index} is not there; {noun}s are 0 to {count - 1}")
    return index


complete_behind_items()
