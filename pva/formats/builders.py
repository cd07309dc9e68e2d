"""Columns, texts and numbers of things that grow as a file is read; nothing is joined at the end.

A large block that grows is moved by the system, not copied; a text is a part of one run of bytes,
which takes a fifth of what an object of it would.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers, Values

Codes = npt.NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)

BLOCK = 1 << 16  # rows that are looked at at once
# Columns of a trace that are held so: texts, and numbers in bytes.
IN_RUNS = frozenset({"metadata", "counts"})
MISSING = -1  # the size of a text that is not there


class Numbers(dict[Any, int]):
    """Things -> their number, in the order in which they were first seen."""

    def __missing__(self, thing: object) -> int:
        number = self[thing] = len(self)
        return number

    def of(self, things: Iterable[object], count: int) -> Codes:
        """Number many things."""
        return np.fromiter(map(self.__getitem__, things), np.int32, count)


class Once(dict[str, str]):
    """Texts -> the first one that was equal, so that each is held once."""

    def __missing__(self, text: str) -> str:
        self[text] = text
        return text


class Growing:
    """A column of numbers."""

    __slots__ = ("_data", "_dtype")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._data = bytearray()

    def extend(self, values: npt.ArrayLike) -> int:
        """Take values in; give the bytes that they take beside those of the rows, none."""
        self._data.extend(np.ascontiguousarray(values, self._dtype).view(np.uint8).data)
        return 0

    def __len__(self) -> int:
        return len(self._data) // self._dtype.itemsize

    def taken(self) -> Values:
        """Return all values as an array, and keep none."""
        data, self._data = self._data, bytearray()
        return np.frombuffer(data, self._dtype) if data else np.zeros(0, self._dtype)


class Texts(Sequence[str | None]):
    """Texts in one run of bytes, some of them missing; takes rows as an array does."""

    __slots__ = ("_data", "_first", "_size")

    def __init__(
        self, data: bytes | bytearray, first: Integers, size: npt.NDArray[np.int32]
    ) -> None:
        self._data = data
        self._first = first
        self._size = size

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """Put texts after each other."""
        before = list(accumulate((len(part._data) for part in parts), initial=0))
        first = [part._first + at for part, at in zip(parts, before, strict=False)]
        data = b"".join(part._data for part in parts)
        return cls(data, np.concatenate(first), np.concatenate([part._size for part in parts]))

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return len(self._data) + self._first.nbytes + self._size.nbytes

    def run(self, size: int) -> bytes | memoryview:
        """Return all as one run of bytes when each is of this size."""
        if np.array_equal(self._first, self._first[:1] + size * np.arange(len(self))):
            first = int(self._first[0])
            return memoryview(self._data)[first : first + size * len(self)]
        return b"".join(self._data[first : first + size] for first in self._first.tolist())

    @property
    def sizes(self) -> set[int]:
        """Different sizes in bytes."""
        return set(np.unique(self._size).tolist())

    @property
    def there(self) -> Integers:
        """Rows with a text."""
        return np.flatnonzero(self._size >= 0)

    def without(self, head: bytes) -> Texts:
        """Leave out a wrapping: this begin and the last byte, where a text begins so."""
        begins = np.zeros(len(self), np.bool_)
        for low in range(0, len(self), BLOCK):
            places = self._first[low : low + BLOCK].tolist()
            begins[low : low + BLOCK] = [self._data.startswith(head, at) for at in places]
        begins &= self._size > len(head)
        cut = begins.astype(np.int32)
        return Texts(self._data, self._first + cut * len(head), self._size - cut * (len(head) + 1))

    def at(self, rows: Integers, count: int) -> Texts:
        """Return `count` texts, these at the rows told, the others missing."""
        first, size = np.zeros(count, np.int64), np.full(count, MISSING, np.int32)
        first[rows], size[rows] = self._first, self._size
        return Texts(self._data, first, size)

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[str | None]:
        for low in range(0, len(self), BLOCK):
            rows = slice(low, low + BLOCK)
            for first, size in zip(self._first[rows].tolist(), self._size[rows].tolist(),
                                   strict=True):  # fmt: skip
                text = self._data[first : first + size] if size >= 0 else None
                yield None if text is None else text.decode(errors="replace")

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice | np.ndarray):
            return Texts(self._data, self._first[place], self._size[place])
        first, size = int(self._first[place]), int(self._size[place])
        return self._data[first : first + size].decode(errors="replace") if size >= 0 else None

    def tolist(self) -> list[str | None]:
        """Return the texts themselves."""
        return list(self)


class GrowingTexts:
    """Texts as they are read."""

    __slots__ = ("_data", "_size")

    def __init__(self) -> None:
        self._data = bytearray()
        self._size = Growing(np.int32)

    def extend(self, texts: Sequence[bytes | str | None]) -> int:
        """Take texts in; give the bytes that they take."""
        parts = [text.encode("utf-8", "replace") if isinstance(text, str) else text or b""
                 for text in texts]  # fmt: skip
        size = np.fromiter(map(len, parts), np.int32, len(parts))
        size[[text is None for text in texts]] = MISSING
        self._size.extend(size)
        data = b"".join(parts)
        self._data.extend(data)
        return len(data) * 9 // 8  # with some room to grow

    def extend_run(self, data: bytes | bytearray, sizes: npt.ArrayLike) -> None:
        """Take texts of these sizes in, which are one run of bytes."""
        self._size.extend(sizes)
        self._data.extend(data)

    def taken(self) -> Texts:
        """Return all texts, and keep none."""
        data, self._data = self._data, bytearray()
        size = self._size.taken()
        first = np.cumsum(np.maximum(size, 0), dtype=np.int64)
        np.subtract(first, np.maximum(size, 0), out=first)
        return Texts(data, first, size)


def looked_up(table: npt.NDArray[Scalar], places: npt.NDArray[np.integer]) -> npt.NDArray[Scalar]:
    """Return the value at each place, some at a time: NumPy makes places of eight bytes of them."""
    values = np.empty(len(places), table.dtype)
    for low in range(0, len(places), BLOCK):
        values[low : low + BLOCK] = table[places[low : low + BLOCK]]
    return values


def used(codes: Iterable[npt.NDArray[np.integer]], count: int) -> Integers:
    """Return which of the codes below `count` there are, ascending."""
    is_used = np.zeros(count, np.bool_)
    for column in codes:
        for low in range(0, len(column), BLOCK):
            is_used[column[low : low + BLOCK]] = True
    return np.flatnonzero(is_used)
