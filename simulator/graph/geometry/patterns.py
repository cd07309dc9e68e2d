"""Places of many intervals that many tensors have, each from another element on.

The clones of a tensor, and what each call of a function leaves, lie as it does. Their intervals are
held once, with what has been found out about them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from simulator.graph.geometry.intervals import from_elements, overlap, rearranged
from simulator.graph.geometry.strides import FEW
from simulator.graph.mapping import Mapping
from simulator.graph.types import IntArray

_T = TypeVar("_T")
MAX_RECENT = 4  # of what is found out about large tensors


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Pattern:
    """Intervals from anywhere on; those of a `dense` one are 0, 1, 2, ..., in another order."""

    begins: IntArray
    lengths: IntArray
    dense: bool = False

    def known(self, key: Hashable, find: Callable[[], _T]) -> _T:
        """Return what has been found out before, or find it."""
        facts = _FACTS.setdefault(self, {})
        if key not in facts:
            facts[key] = find()
        fact: _T = facts[key]
        return fact

    def extent(self) -> tuple[int, int]:
        """Return the lowest of the elements and the end of the highest."""
        return self.known("extent", lambda: extent_of(self.begins, self.lengths))

    def aliases(self) -> bool:
        """Return whether an element stands in it twice."""
        return not self.dense and self.known("aliases", lambda: overlap(self.begins, self.lengths))

    def moved(self, outer: tuple[int, ...], order: tuple[int, ...], inner: int) -> Pattern:
        """Put dimension order[i] of `outer` in place i, of blocks of `inner` elements."""
        # What has been made is there as long as a tensor has it, or it is one of the last.
        none = WeakValueDictionary[Hashable, Pattern]
        patterns, way = self.known("moved", lambda: none()), (outer, order, inner)
        pattern: Pattern | None = patterns.get(way)
        if pattern is None:
            pattern = patterns[way] = self._in_order(*way)
            _MOVED.append(pattern)
        return pattern

    def _in_order(self, outer: tuple[int, ...], order: tuple[int, ...], inner: int) -> Pattern:
        return Pattern(*rearranged(self.begins, self.lengths, outer, order, inner), self.dense)

    def packed(self, upward: Callable[[], IntArray]) -> Pattern:
        """Return the same order without what lies between; `upward` gives that of the elements."""
        return self if self.dense else self.known("packed", lambda: packed(upward()))


class Shifted(NamedTuple):
    """The intervals of a pattern, `first` elements further on."""

    first: int
    pattern: Pattern

    def extent(self) -> tuple[int, int]:
        """Return the lowest of the elements and the end of the highest."""
        low, high = self.pattern.extent()
        return low + self.first, high + self.first


def placed(first: int, pattern: Pattern) -> Shifted | tuple[IntArray, IntArray]:
    """Return the places of a pattern from an element on: few intervals by themselves."""
    if len(pattern.begins) > FEW:
        return Shifted(first, pattern)
    return pattern.begins + first, pattern.lengths


_MOVED: deque[Pattern] = deque(maxlen=MAX_RECENT)
_FACTS: WeakKeyDictionary[Pattern, dict[Hashable, Any]] = WeakKeyDictionary()


_RECENT: OrderedDict[Hashable, Any] = OrderedDict()


def recent(key: Hashable, find: Callable[[], _T]) -> _T:
    """Return what has been found lately, or find it; what is given is not changed."""
    if key not in _RECENT:
        _RECENT[key] = find()
        while len(_RECENT) > MAX_RECENT:
            _RECENT.popitem(last=False)
    _RECENT.move_to_end(key)
    value: _T = _RECENT[key]
    return value


def relative(places: Shifted, mapping: Mapping, size: int) -> Hashable:
    """Return what tells where elements of `size` bytes lie, alike for all that lie alike."""
    first = places.first * size
    columns = (mapping.begin - first, mapping.end - first, mapping.tile)
    of_variable = mapping.variable - mapping.variable[:1]
    return places.pattern, size, *(column.tobytes() for column in (*columns, of_variable))


def packed(upward: IntArray) -> Pattern:
    """Return the pattern of adjacent elements; `upward` is the order in which they ascend."""
    elements = np.empty(len(upward), dtype=np.int64)
    elements[upward] = np.arange(len(upward))
    return Pattern(*from_elements(elements), True)


def extent_of(begins: IntArray, lengths: IntArray) -> tuple[int, int]:
    """Return the lowest of the elements and the end of the highest; there is one at least."""
    filled = slice(None) if lengths.all() else lengths > 0
    return int(begins[filled].min()), int((begins + lengths)[filled].max())


@lru_cache(1)
def intervals_from(places: Shifted) -> tuple[IntArray, IntArray]:
    """Return the intervals of places, the last ones kept; they are not changed."""
    begins = places.pattern.begins + places.first
    begins.flags.writeable = False
    return begins, places.pattern.lengths
