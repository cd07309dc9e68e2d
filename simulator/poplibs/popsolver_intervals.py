"""How each constraint of popsolver narrows the intervals of its variables."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isqrt, prod


class EmptyError(Exception):
    """No value is left of a variable."""


class Box:
    """The intervals [low, high] of all variables; `changed` lists those that became narrower."""

    __slots__ = ("changed", "high", "low")

    def __init__(self, low: list[int], high: list[int]) -> None:
        self.low, self.high = low, high
        self.changed: list[int] = []

    def clip(self, variable: int, low: int, high: int) -> None:
        """Keep what lies in an interval too; raises EmptyError when nothing does."""
        least, most = self.low[variable], self.high[variable]
        if low <= least and high >= most:
            return
        low, high = max(low, least), min(high, most)
        if low > high:
            raise EmptyError
        self.low[variable], self.high[variable] = low, high
        self.changed.append(variable)


Narrow = Callable[[Box], None]


def summed(result: int, parts: Sequence[int]) -> Narrow:
    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        least, most = sum([low[p] for p in parts]), sum([high[p] for p in parts])
        box.clip(result, least, most)
        if low[result] > least or high[result] < most:
            above, below = low[result] - most, high[result] - least
            for p in parts:
                box.clip(p, above + high[p], below + low[p])

    return narrow


def difference(result: int, parts: Sequence[int]) -> Narrow:
    left, right = parts
    return summed(left, (result, right))


def multiplied(result: int, parts: Sequence[int]) -> Narrow:
    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        least, most = prod([low[p] for p in parts]), prod([high[p] for p in parts])
        box.clip(result, least, most)
        if low[result] > least:  # so most, which is no less, is not 0
            for p in parts:
                box.clip(p, -(-low[result] * high[p] // most), high[p])
        if high[result] < most:
            for place, p in enumerate(parts):
                others = prod([low[o] for o in (*parts[:place], *parts[place + 1 :])])
                box.clip(p, 0, high[result] // others if others else high[p])

    return narrow


def largest(result: int, parts: Sequence[int]) -> Narrow:
    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(result, max(low[p] for p in parts), max(high[p] for p in parts))
        able = [p for p in parts if high[p] >= low[result]]
        for p in parts:
            box.clip(p, low[result] if able == [p] else low[p], high[result])

    return narrow


def least(result: int, parts: Sequence[int]) -> Narrow:
    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(result, min(low[p] for p in parts), min(high[p] for p in parts))
        able = [p for p in parts if low[p] <= high[result]]
        for p in parts:
            box.clip(p, low[result], high[result] if able == [p] else high[p])

    return narrow


def divided_down(result: int, parts: Sequence[int]) -> Narrow:
    a, b = parts

    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(b, low[a] // (high[result] + 1) + 1, high[b])
        box.clip(result, low[a] // high[b], high[a] // low[b])
        box.clip(a, low[result] * low[b], (high[result] + 1) * high[b] - 1)
        if low[result]:
            box.clip(b, low[b], high[a] // low[result])

    return narrow


def divided_up(result: int, parts: Sequence[int]) -> Narrow:
    a, b = parts

    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(b, 1, high[b])
        box.clip(result, -(-low[a] // high[b]), -(-high[a] // low[b]))
        box.clip(a, max(low[result] - 1, -1) * low[b] + 1, high[result] * high[b])
        if high[result]:
            box.clip(b, -(-low[a] // high[result]), high[b])
        if low[result] > 1:
            box.clip(b, low[b], (high[a] - 1) // (low[result] - 1))

    return narrow


def remainder(result: int, parts: Sequence[int]) -> Narrow:
    a, b = parts

    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(b, low[result] + 1, high[b])
        box.clip(result, 0, min(high[a], high[b] - 1))
        box.clip(a, low[result], high[a])
        if high[a] < low[b]:
            box.clip(result, low[a], high[a])
            box.clip(a, low[result], high[result])
        elif low[a] == high[a] and low[b] == high[b]:
            box.clip(result, low[a] % low[b], low[a] % low[b])

    return narrow


def called(result: int, parts: Sequence[int], function: Callable[[list[int]], object]) -> Narrow:
    known: dict[tuple[int, ...], object] = {}

    def narrow(box: Box) -> None:
        low = box.low
        if any(low[p] != box.high[p] for p in parts):
            return
        values = tuple([low[p] for p in parts])
        if values not in known:
            known[values] = function(list(values))
        found = known[values]
        if found is None:
            raise EmptyError
        box.clip(result, int(found), int(found))  # type: ignore[call-overload]

    return narrow


def at_most(parts: Sequence[int], less: int = 0) -> Narrow:
    a, b = parts

    def narrow(box: Box) -> None:
        box.clip(a, 0, box.high[b] - less)
        box.clip(b, box.low[a] + less, box.high[b])

    return narrow


def less(parts: Sequence[int]) -> Narrow:
    return at_most(parts, 1)


def different(parts: Sequence[int]) -> Narrow:
    a, b = parts

    def narrow(box: Box) -> None:
        for one, other in ((a, b), (b, a)):
            value, low, high = box.low[one], box.low[other], box.high[other]
            if value == box.high[one]:
                box.clip(other, low + (low == value), high - (high == value))

    return narrow


@lru_cache(maxsize=4096)
def divisors(value: int) -> tuple[int, ...]:
    """List what divides a number above 0."""
    small = [number for number in range(1, isqrt(value) + 1) if value % number == 0]
    return tuple(sorted({*small, *(value // number for number in small)}))


def divides(parts: Sequence[int]) -> Narrow:
    value, factor = parts

    def narrow(box: Box) -> None:
        low, high = box.low, box.high
        box.clip(factor, 1, high[factor])
        if low[value]:
            box.clip(factor, low[factor], high[value])
        if low[factor] == high[factor]:
            step = low[factor]
            box.clip(value, -(-low[value] // step) * step, high[value] // step * step)
        elif 0 < low[value] == high[value]:
            inside = [d for d in divisors(low[value]) if low[factor] <= d <= high[factor]]
            if not inside:
                raise EmptyError
            box.clip(factor, inside[0], inside[-1])

    return narrow


def one_of(variable: int, values: Sequence[int]) -> Narrow:
    """Let a variable be one of ascending values."""

    def narrow(box: Box) -> None:
        first = bisect_left(values, box.low[variable])
        last = bisect_right(values, box.high[variable]) - 1
        if first > last:
            raise EmptyError
        box.clip(variable, values[first], values[last])

    return narrow
