"""JSON whose long lists of whole numbers become arrays, without a Python object for each number.

Objects are cut into their values as text (msgspec checks the syntax of what it skips); the text of
a list of numbers goes to NumPy, which reads it three times as fast and in a quarter of the memory.
Long lists of objects are read some rows at a time, and kept by column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from pva import kernels
from pva.array_types import Values
from pva.formats.documents.nested import FURTHER_KEYS, ROW_KEYS
from pva.formats.memory_limit import Budget, ManyRows, keys_in
from pva.formats.values import narrowed

if TYPE_CHECKING:
    import msgspec

LONG = 4096  # bytes of text from which on cutting pays
MANY = 1 << 20  # bytes of text that are rows, or numbers, read at once
TRIES = 8  # places where the text of rows may be cut
DEPTH = 6  # of objects that are cut; each level is read once more
KEYS_LIMIT = 1 << 16  # of an object that is cut; none has a hundred
DIGITS, NUMBERS, SPACE = b"0123456789-", b"0123456789,-[]", b" \t\r\n"
LIMITS = np.iinfo(np.int64)
BETWEEN_ROWS = re.compile(rb"\}\s*(,)\s*\{")
# Bytes that CPython takes at most for what a character begins, or ends: an object with a first
# value, a list, a value in an object, half a text, a number or its place in a list.
COSTS = {b"{": 90, b"[": 80, b":": 100, b'"': 28, b",": 40}
SIGNED, UNSIGNED = ("i1", "i2", "i4", "i8"), ("u1", "u2", "u4", "i8")


class DuplicateKeyError(Exception):
    """An object has a key twice; `args` are its place and the key."""


def decoded(
    data: bytes,
    budget: Budget,
    *,
    plain: bool = False,
    tell: Callable[[int], None] = lambda size: None,
) -> object:
    """Decode JSON, into plain values if asked to; `tell` is told how many bytes are done.

    Raises what msgspec.json.decode raises, DuplicateKeyError and DamagedFileError.
    """
    import msgspec  # profile.pop does without

    try:
        cut = _Cut(budget, tell)
        return cut.whole(data, "") if plain else cut.file(memoryview(data))
    except msgspec.DecodeError:
        msgspec.json.decode(data, type=msgspec.Raw)  # its error counts from the begin of the file
        raise


class _Key(str):
    """A key of an object that is cut; the same again is a fault."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other):
            raise DuplicateKeyError("", str(self))
        return False

    __hash__ = str.__hash__


class _Cut:
    """A file that is cut into values, within a budget of memory."""

    def __init__(self, budget: Budget, tell: Callable[[int], None]) -> None:
        self._budget = budget
        self._tell = tell
        self._done = 0

    def value(self, text: memoryview, place: str, depth: int) -> Any:
        """Decode a value."""
        if len(text) >= LONG and depth and bytes(text[:LONG]).lstrip(SPACE)[:1] == b"{":
            return self._parts(text, place, depth - 1)
        value = self._leaf(text, place, depth)
        self._done += len(text)
        self._tell(self._done)
        return value

    def _leaf(self, text: memoryview, place: str, depth: int) -> object:
        """Decode what is no long object."""
        import msgspec

        if len(text) >= LONG and depth:
            first = bytes(text[:LONG]).lstrip(SPACE)[:1]
            if first == b"[":
                with self._budget.aside(len(text), place):
                    return self._list(bytes(text).strip(SPACE), place)
            if first == b'"':
                self._budget.spend(5 * len(text), place)
                return msgspec.json.decode(text)
        return self.whole(bytes(text), place)

    def file(self, text: memoryview) -> Any:
        """Decode a file, one of several documents being read over once less so."""
        import msgspec

        try:
            documents = self._keyed(text, dict[_Key, dict[_Key, msgspec.Raw]], "")
        except msgspec.ValidationError:
            return self.value(text, "", DEPTH)
        return {
            str(name): self._values(parts, str(name), DEPTH - 2)
            for name, parts in documents.items()
        }

    def _parts(self, text: memoryview, place: str, depth: int) -> dict[str, Any]:
        import msgspec

        return self._values(self._keyed(text, dict[_Key, msgspec.Raw], place), place, depth)

    def _values(self, parts: Mapping[_Key, msgspec.Raw], place: str, depth: int) -> dict[str, Any]:
        named = [(str(name), memoryview(part)) for name, part in parts.items()]
        return {name: self.value(part, _inside(place, name), depth) for name, part in named}

    def _keyed(self, text: memoryview, kind: object, place: str) -> Any:
        """Decode objects of which each key is looked at."""
        import msgspec

        count = 0

        def key(_: type, name: str) -> _Key:
            nonlocal count
            count += 1
            if count > KEYS_LIMIT or len(name) > MANY:
                raise self._budget.exceeded(place)
            return _Key(name)

        try:
            return msgspec.json.decode(text, type=kind, dec_hook=key)
        except DuplicateKeyError as error:
            raise DuplicateKeyError(place, error.args[1]) from None

    def _list(self, text: bytes, place: str) -> object:
        numbers = numbers_in(text)
        if numbers is not None:
            self._budget.spend(numbers.nbytes, place)
            return numbers
        rows = self._rows(text, place) if len(text) > MANY else None
        return self.whole(text, place) if rows is None else rows

    def _rows(self, text: bytes, place: str) -> ManyRows | None:
        """Decode a list of objects; None when it is none, or cannot be cut."""
        if text[1:LONG].lstrip(SPACE)[:1] != b"{" or place.endswith(FURTHER_KEYS):
            return None
        many_rows = ManyRows(ROW_KEYS, self._budget, place)
        for part, rows in self._cut(text, place):
            if set(map(type, rows)) != {dict}:
                return None
            many_rows.add(rows)
            _check_keys(part, keys_in(rows), place)
        return many_rows

    def _cut(self, text: bytes, place: str) -> Iterator[tuple[bytes, list[Any]]]:
        """Cut the text of a list of objects, and decode each part: what decodes was cut well."""
        import msgspec

        begin, last = 1, len(text) - 1
        while begin < last:
            places = (match.start(1) for match in BETWEEN_ROWS.finditer(text, begin + MANY))
            for end in (*islice(places, TRIES), last):
                if end - begin > 2 * MANY:
                    self._budget.check(_cost(text, begin, end), place)
                part = b"[" + text[begin:end] + b"]"
                with suppress(msgspec.DecodeError):
                    yield part, msgspec.json.decode(part)
                    begin = end + 1
                    break
            else:
                raise msgspec.DecodeError("rows are expected")

    def whole(self, text: bytes, place: str) -> Any:
        """Decode a value into Python objects."""
        import msgspec

        self._budget.spend(_cost(text), place)
        value = msgspec.json.decode(text)
        if b"{" in text:
            _check_keys(text, keys_in([value]), place)
        return value


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _cost(text: bytes, begin: int = 0, end: int | None = None) -> int:
    """Return how much memory decoded text, or a part of it, takes at most."""
    length = (len(text) if end is None else end) - begin
    return length + sum(text.count(sign, begin, end) * cost for sign, cost in COSTS.items())


def _check_keys(text: bytes, keys: int, place: str) -> None:
    """Look for a key that an object has twice, when there are more of them than were read."""
    if text.count(b'":') != keys:
        json.loads(  # numbers may be of any length
            text, object_pairs_hook=lambda pairs: _once(pairs, place),
            parse_int=str, parse_float=str, parse_constant=str,
        )  # fmt: skip


def _once(pairs: list[tuple[str, object]], place: str) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise DuplicateKeyError(place, next(key for key in keys if keys.count(key) > 1))


def numbers_in(text: bytes) -> Values | None:
    """Read a list of whole numbers of 64 bits, or of equal rows of them; None for what is none.

    They come in the narrowest type. The syntax of the text must have been checked.
    """
    numbers = _numbers_in_c(text) if kernels.compiled else None
    if numbers is not None:
        return numbers
    if text[:LONG].translate(None, NUMBERS + SPACE):
        return None
    remainder = text.translate(None, NUMBERS)
    if remainder.translate(None, SPACE):
        return None
    if remainder:
        text = text.translate(None, SPACE)
    return _long_row(text) if text[:2] != b"[[" else _table(text)


def _numbers_in_c(text: bytes) -> Values | None:
    """Read the same, some at a time, in one pass; None also for rows of megabytes."""
    parts: list[Values] = []
    begin, width = 1, 0
    while begin > 0:
        read = kernels.compiled.numbers(text, begin, MANY, width)
        if read is None:
            return None
        data, width, begin = read
        parts.append(narrowed(np.frombuffer(data, np.int64), SIGNED, UNSIGNED))
    numbers = _joined(parts)
    return numbers if width < 0 else numbers.reshape(-1, width)


def _joined(parts: list[Values]) -> Values:
    """Join parts to one, in the narrowest type of all."""
    if len(parts) == 1:
        return parts[0]
    return narrowed(np.concatenate(parts), SIGNED, UNSIGNED)


def _table(text: bytes) -> Values | None:
    """Read equal rows, some of them at a time."""
    parts: list[Values] = []
    begin, last = 1, len(text) - 1
    while begin < last:
        end = text.find(b"],[", begin + MANY, last) + 1 or last
        part = _equal_rows(text[begin:end])
        if part is None or part.shape[1] != (parts or [part])[0].shape[1]:
            return None
        parts.append(part)
        begin = end + 1
    return _joined(parts)


def _equal_rows(text: bytes) -> Values | None:
    """Read rows with commas between them."""
    count, first = text.count(b"]"), text[: text.find(b"]") + 1]
    same = b",".join([first.translate(None, DIGITS)] * count)
    if first.count(b"[") != 1 or text.translate(None, DIGITS) != same:
        return None
    if b"[]" in text:  # without digits, a row of nothing looks like one of a number
        return None
    numbers = _row(text.translate(None, b"[]"))
    return None if numbers is None else numbers.reshape(count, first.count(b",") + 1)


def _long_row(text: bytes) -> Values | None:
    """Read numbers, some of them at a time."""
    parts: list[Values] = []
    begin, last = 1, len(text) - 1
    while begin <= last:
        end = text.find(b",", begin + MANY, last)
        end = last if end < 0 else end
        row = _row(text[begin:end])
        if row is None:
            return None
        parts.append(row)
        begin = end + 1
    return _joined(parts)


def _row(text: bytes) -> Values | None:
    """Read numbers with commas between them; those at the limits are some that do not fit."""
    if not text or b"[" in text or b"]" in text:
        return None
    numbers = np.fromstring(text, np.int64, sep=",")
    if numbers.min() == LIMITS.min or numbers.max() == LIMITS.max:
        return None
    return narrowed(numbers, SIGNED, UNSIGNED)
