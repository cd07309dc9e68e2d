"""CBOR decoded some values at a time, so that it is known what they take before it is too much.

Maps, typed arrays (RFC 8746) and long lists are taken apart here, down to a few levels; what is in
them is decoded by cbor2. Numbers become arrays, and long lists of maps are kept by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, NoReturn, cast

import cbor2
import numpy as np

from pva.array_types import Values
from pva.errors import DamagedFileError
from pva.formats.documents import typed_arrays
from pva.formats.documents.nested import FURTHER_KEYS, ROW_KEYS
from pva.formats.memory_limit import ROW, Budget, ManyRows, compact, listed, weighed
from pva.formats.values import Rows, narrowed, shown

BYTES, TEXT, LIST, MAP, TAG = 2, 3, 4, 5, 6  # major types (RFC 8949, section 3.1)
INDEFINITE, BREAK = 31, b"\xff"
SMALL_NUMBER = 23  # the last that is in the head of an item
DEPTH = 8  # of maps and lists that are taken apart
MAX_DEPTH = 100  # documents keep trees flat
KEYS_LIMIT = 1 << 16  # of a map that is taken apart; none has a hundred
FEW = 1024  # items that are decoded one by one
MANY = 4096  # items that are decoded at once
WORST = 96  # bytes that an item of one byte, an empty map, takes in CPython
READ, READ_ONE = 1 << 16, 1 << 12


class _TooMuchError(Exception):
    """More bytes are being read than their values may take."""


class _Source:
    """A file for cbor2: bytes put before others, which are read up to a limit."""

    def __init__(self, head: bytes, data: bytes, begin: int, limit: int) -> None:
        self._head, self._data, self._limit = head, data, limit
        self.at = begin - len(head)
        self._begin = begin
        self.exceeded = False

    def read(self, size: int) -> bytes:
        if self.at < self._begin:
            head = self._head
        else:
            if self.at - self._begin > self._limit:
                self.exceeded = True
                raise _TooMuchError
            head = self._data[self.at : self.at + size]
        self.at += len(head)
        return head

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = (0, self.at, len(self._data))[whence] + offset
        return self.at


def _refused(*_: object) -> NoReturn:
    raise ValueError("shared values, which documents do not have")


# Lists that contain themselves, or each other many times, would be without end as arrays.
REFUSED = {28: _refused, 29: _refused}


def _array(tag: cbor2.CBORTag, _immutable: bool) -> object:
    return typed_arrays.decoded(tag)


class Decoder:
    """A file that is decoded from its begin on, within a budget of memory."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        self._data, self._budget, self._at = data, budget, 0
        self.place = ""  # of what is being decoded

    def file(self) -> Any:
        """Decode what the file holds; raises what cbor2 raises, ValueError, DamagedFileError."""
        return self._value("", DEPTH)

    def _value(self, place: str, depth: int) -> Any:
        major, argument, end = self._head(self._at)
        if major == MAP and depth:
            self._at = end
            return self._map(argument, place, depth - 1)
        if major == LIST and depth:
            self._at = end
            return self._list(argument, place, depth - 1)
        if major == TAG and argument in typed_arrays.DTYPES:
            return self._typed(argument, end)
        if major == TAG and argument in typed_arrays.SHAPED and depth:
            self._at = end
            return typed_arrays.decoded(cbor2.CBORTag(argument, self._value(place, depth - 1)))
        size = argument if major in (BYTES, TEXT) and argument else 0
        self._budget.check(4 * size, place)  # a character may take as much
        try:
            (value,) = self._decoded(1, place, size + READ)
        except _TooMuchError:
            raise self._budget.exceeded(place) from None
        self._budget.spend(weighed([value]), place)
        return value

    def _head(self, at: int) -> tuple[int, int | None, int]:
        """Read the head of an item: its major type, its argument, and where it ends."""
        first = self._data[at : at + 1]
        if not first:
            raise ValueError(f"cut short at byte {at}")
        major, info = first[0] >> 5, first[0] & 31
        if info < 24:
            return major, info, at + 1
        if info == INDEFINITE and major in (BYTES, TEXT, LIST, MAP):
            return major, None, at + 1
        if info > 27:
            raise ValueError(f"byte {first[0]:#x} at byte {at}, which begins no value")
        end = at + 1 + (1 << info - 24)
        return major, int.from_bytes(self._data[at + 1 : end]), end

    def _typed(self, tag: int, at: int) -> object:
        """Take the bytes of an array as they are."""
        major, size, begin = self._head(at)
        if major != BYTES or size is None or begin + size > len(self._data):
            raise ValueError(f"tag {tag} at byte {self._at} holds no bytes, or some are missing")
        self._at = begin + size
        dtype = np.dtype(typed_arrays.DTYPES[tag])
        if size % dtype.itemsize:
            raise ValueError(f"tag {tag}: {size} bytes are no numbers of {dtype.itemsize}")
        return np.frombuffer(self._data, dtype, size // dtype.itemsize, begin)

    def _map(self, count: int | None, place: str, depth: int) -> dict[object, object]:
        self._budget.spend(WORST, place)
        mapping: dict[Any, Any] = {}
        for number in self._counted(count):
            if number > KEYS_LIMIT:
                raise self._budget.exceeded(place)
            key = self._key(place)
            self._budget.spend(2 * WORST, place)  # the entry, and the key
            if key in mapping:
                problem = f"the key {shown(key)} twice"
                raise DamagedFileError(self._budget.file, problem, "once", place=place)
            inside = f"{place}.{key}" if place else str(key)
            mapping[key] = self._value(inside, depth)
        return mapping

    def _key(self, place: str) -> object:
        major, size, begin = self._head(self._at)
        if major != TEXT or size is None or begin + size > len(self._data):
            (key,) = self._decoded(1, place)
            return key
        self._at = begin + size
        return self._data[begin : self._at].decode()

    def _counted(self, count: int | None) -> Iterator[int]:
        number = 0
        while not self._is_end(count, number):
            yield number
            number += 1

    def _list(self, count: int | None, place: str, depth: int) -> object:
        self._budget.spend(WORST, place)
        is_short = count is not None and 0 < count <= FEW
        if is_short and self._head(self._at)[0] in (LIST, MAP, TAG):
            return [self._value(place, depth) for _ in self._counted(count)]
        parts, at_once = _Parts(self._budget, place), MANY
        while not self._is_end(count, parts.count):
            remaining = READ if count is None else count - parts.count
            if parts.add_numbers(self._small_numbers(remaining)):
                continue
            items = self._some(min(at_once, remaining, MANY), place, depth, told=count is not None)
            parts.add(items)
            at_once = min(4 * len(items), MANY)
        return parts.joined()

    def _small_numbers(self, remaining: int) -> Values:
        """Take the whole numbers below 24 that come next, when they are many: each is a byte."""
        size = min(remaining, READ, len(self._data) - self._at)
        numbers = np.frombuffer(self._data, np.uint8, max(size, 0), self._at if size > 0 else 0)
        if size < FEW or numbers[0] > SMALL_NUMBER or (numbers[:FEW] > SMALL_NUMBER).any():
            return numbers[:0]
        larger = np.flatnonzero(numbers > SMALL_NUMBER)
        numbers = numbers[: larger[0]] if len(larger) else numbers
        self._at += len(numbers)
        return numbers

    def _is_end(self, count: int | None, number: int) -> bool:
        """Return whether a map or list has no more items; a break ends what does not tell."""
        if count is not None:
            return number == count
        ends = self._data[self._at : self._at + 1] == BREAK
        self._at += ends
        return ends

    def _some(self, count: int, place: str, depth: int, told: bool) -> list[object]:
        """Decode some items, fewer when they are large, or when the end comes first."""
        while count > 1:
            try:
                return self._decoded(count, place)
            except _TooMuchError:
                count //= 4
            except cbor2.CBORDecodeError:
                if told:
                    raise
                count //= 4
        return [self._value(place, depth)]

    def _decoded(self, count: int, place: str, limit: int = 0) -> list[object]:
        """Decode items as a list, which is what cbor2 is told that they are."""
        self.place = place
        head = b"\x99" + count.to_bytes(2)
        source = _Source(head, self._data, self._at, max(self._budget.left // WORST, limit))
        decoder = cbor2.CBORDecoder(
            cast("IO[bytes]", source),
            tag_hook=_array,
            semantic_decoders=REFUSED,
            max_depth=MAX_DEPTH,
            allow_duplicate_keys=False,
            read_size=READ if count > 1 else READ_ONE,
        )
        try:
            items: list[Any] = decoder.decode()
        except cbor2.CBORError:
            if source.exceeded:
                raise _TooMuchError from None
            raise
        self._at = source.at
        return items


class _Parts:
    """Some items of a list after others: arrays of numbers, rows by column, or as they are."""

    def __init__(self, budget: Budget, place: str) -> None:
        self._budget, self._place = budget, place
        self._rows: ManyRows | None = None
        self._parts: list[Rows] = []
        self._as_they_are = place.endswith(FURTHER_KEYS)
        self.count = 0

    def add(self, items: list[Any]) -> None:
        kinds = set(map(type, items))
        if kinds == {dict} and not self.count and not self._as_they_are:
            self._rows = ManyRows(ROW_KEYS, self._budget, self._place)
        self.count += len(items)
        if self._rows is None:
            part = items if self._as_they_are else _compact(items, kinds)
            size = weighed(items) if part is items else np.asarray(part).nbytes
            size += ROW * len(items) * (kinds == {list})
            self._budget.spend(size, self._place)
            self._parts.append(part)
        elif kinds == {dict}:
            self._rows.add(items)
        else:
            raise ValueError("a list of maps and of other values")

    def add_numbers(self, numbers: Values) -> bool:
        """Add numbers that are an array, if there are any."""
        if len(numbers) and self._rows is not None:
            raise ValueError("a list of maps and of other values")
        if len(numbers):
            self._budget.spend(numbers.nbytes, self._place)
            self._parts.append(numbers)
            self.count += len(numbers)
        return bool(len(numbers))

    def joined(self) -> Any:
        if self._rows is not None:
            return self._rows
        arrays = [part for part in self._parts if isinstance(part, np.ndarray)]
        alike = {(part.dtype.kind == "f", part.shape[1:]) for part in arrays}
        if len(arrays) == len(self._parts) and len(alike) == 1:
            return np.concatenate(arrays)
        return list(chain.from_iterable(map(listed, self._parts)))


def _compact(rows: list[object], kinds: set[type]) -> Rows:
    array = typed_arrays.whole_numbers(rows) if kinds == {list} else compact(rows)
    if isinstance(array, np.ndarray) and array.dtype.kind == "i":
        return narrowed(array, typed_arrays.SIGNED, typed_arrays.UNSIGNED)
    return rows if array is None else array
