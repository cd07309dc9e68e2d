"""How much memory the values of a document may take, and rows that take little of it.

A file of three bytes a value could fill the memory with Python objects thirty times its size: what
is kept is counted while it is made, and refused before it is too much.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np

from pva.errors import DamagedFileError
from pva.formats.values import Rows

LEAST, TIMES_THE_FILE = 256 << 20, 4  # bytes that reading a file may take
SMALLER = "profile.pop takes less"
SHORTER = "a shorter trace; trace.window reads a part of one"
ASIDE = 64 << 20  # of them, for what is decoded and let go of
ALWAYS = 24 << 20  # of these, for what is always made anew
POINTER, NUMBER, ROW = 8, 32, 32  # bytes; a row is one of several columns
LIST, LISTS = 72, {list, type(None)}
SHAPED = 256  # bytes of an array of arrays, beside what it tells
TEXT = 76  # bytes of one without a character, at most
SMALL, TEXTS = {int, float, bool, type(None)}, {str, type(None)}


def reading_limit(size: int) -> int:
    """Return how many bytes what is read of a file of a size may take, beside what is let go of."""
    return max(LEAST, TIMES_THE_FILE * size) - ASIDE


class Budget:
    """The memory that is left for the values of a file, of which some bytes are held, too.

    Those are all of a document; `otherwise` tells what takes less.
    """

    def __init__(
        self, file: object, size: int, *, held: int | None = None, otherwise: str = SMALLER
    ) -> None:
        self.file = file
        self.size = size
        self.otherwise = otherwise
        self.hold(size if held is None else held)

    def hold(self, amount: int) -> None:
        """Count anew: this much is held, and nothing else."""
        self.left = reading_limit(self.size) - amount

    def spend(self, amount: int, place: str = "") -> None:
        """Take from what is left; raises DamagedFileError when it is not enough."""
        self.check(amount, place)
        self.left -= amount

    def check(self, amount: int, place: str = "") -> None:
        """Raise DamagedFileError when less is left."""
        if self.left < amount:
            raise self.exceeded(place)

    @contextmanager
    def aside(self, amount: int, place: str) -> Iterator[None]:
        """Take from what is left for a while."""
        self.spend(amount, place)
        try:
            yield
        finally:
            self.left += amount

    def check_whole(self, amount: int, place: str = "") -> None:
        """Do the same where nothing is decoded."""
        self.check(amount - ASIDE + ALWAYS, place)

    def exceeded(self, place: str) -> DamagedFileError:
        """Make the error for more than is left."""
        limit = max(LEAST, TIMES_THE_FILE * self.size) >> 20
        problem = f"more values than fit into {limit} MB of memory"
        remedy = f"at most that for a file of {self.size} bytes; {self.otherwise}"
        return DamagedFileError(self.file, problem, remedy, place=place)


def check_size(file: object, place: str, rows: int, columns: int) -> None:
    """Refuse a table of a file that takes more memory than the file may; raises DamagedFileError.

    A row of nothing, three bytes of a document, is a value in every column.
    """
    needed = rows * columns * POINTER
    if needed > LEAST // 4 and isinstance(file, os.PathLike):
        Budget(file, os.stat(file).st_size).check(2 * needed, place)


class ManyRows:
    """Many rows of an object each, of which the columns are kept, numbers as arrays.

    Built from some rows at a time; keys other than those named are left out.
    """

    def __init__(self, keys: frozenset[str], budget: Budget, place: str) -> None:
        self._keys, self._budget, self._place = keys, budget, place
        self._parts: list[tuple[int, dict[str, Rows]]] = []
        self.rows = 0

    def __len__(self) -> int:
        return self.rows

    def add(self, rows: Sequence[dict[str, object]]) -> None:
        """Take rows in."""
        self._budget.spend(ROW * len(rows), self._place)
        alike = set(map(tuple, rows))
        part: dict[str, Rows] = {}
        for key, values in _columns(rows, alike, self._keys):
            part[key] = column = compact(values)
            size = weighed(values) if column is values else POINTER * len(rows)
            self._budget.spend(size, f"{self._place}.{key}")
        self._parts.append((len(rows), part))
        self.rows += len(rows)

    def column(self, key: str) -> Rows | None:
        """Return the values of a key, None where a row has none, or when no row has it."""
        if not any(key in part for _, part in self._parts):
            return None
        parts = [part.get(key, [None] * count) for count, part in self._parts]
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.concatenate(parts)
        return list(chain.from_iterable(map(listed, parts)))


def _columns(
    rows: Sequence[dict[str, object]], alike: Collection[tuple[str, ...]], needed: frozenset[str]
) -> Iterator[tuple[str, Sequence[object]]]:
    """Assign each key that is wanted and its values; `alike` are the keys that rows have."""
    if len(alike) == 1:  # most lists; one pass is several times as fast as one for each key
        for keys in alike:
            columns = zip(*map(dict.values, rows), strict=True)
            yield from ((k, v) for k, v in zip(keys, columns, strict=True) if k in needed)
        return
    for key in needed.intersection(chain.from_iterable(alike)):
        yield key, values_at(rows, key)


def values_at(rows: Sequence[dict[str, object]], key: str) -> list[object]:
    """Return the values of a key, None where a row has none."""
    try:
        return list(map(itemgetter(key), rows))
    except KeyError:
        return list(map(dict.get, rows, repeat(key)))


def compact(values: Sequence[object]) -> Rows:
    """Make an array of numbers of one type."""
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            return values
    return np.array(values) if kinds == {float} else values


def listed(values: Rows) -> Sequence[Any]:
    """Make a list of an array."""
    items: Sequence[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return items


def keys_in(values: Sequence[object]) -> int:
    """Count the keys of the objects among values, and inside them."""
    keys, level = 0, values
    while not set(map(type, level)).isdisjoint((dict, list)):
        objects = [value for value in level if type(value) is dict]
        keys += sum(map(len, objects))
        lists = [value for value in level if type(value) is list]
        level = list(chain.from_iterable([*map(dict.values, objects), *lists]))
    return keys


def weighed(values: Sequence[Any]) -> int:
    """Count the bytes of values, and of what is in them."""
    size, level = POINTER * len(values), values
    while level:
        kinds = set(map(type, level))
        if kinds == {int} and level is values:  # as which they are kept for want of 64 bits
            return size + 2 * NUMBER * len(level) + sum(map(sys.getsizeof, level))
        if kinds <= SMALL:
            return size + NUMBER * len(level)
        if kinds <= TEXTS:
            texts = [text for text in level if text] if type(None) in kinds else level
            return size + TEXT * len(texts) + sys.getsizeof("".join(texts))
        if kinds <= LISTS:  # most of what stands inside rows
            lists = [value for value in level if value]
            size += LIST * len(level) + 9 * sum(map(len, lists))  # with some room to grow
            level = list(chain.from_iterable(lists))
            continue
        size += sum(map(sys.getsizeof, level)) + (SHAPED if np.ndarray in kinds else 0) * len(level)
        objects = [value for value in level if type(value) is dict]
        lists = [value for value in level if type(value) is list]
        if objects:  # keys by themselves, as texts are weighed at once
            size += weighed(list(chain.from_iterable(objects)))
        level = list(chain.from_iterable([*map(dict.values, objects), *lists]))
    return size
