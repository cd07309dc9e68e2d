"""Spans of a timeline, as begins and ends: joined, bridged, cut so that none overlaps another."""

from __future__ import annotations

import numpy as np

from pva import kernels
from pva.array_types import Integers, Truths


def grouped(begin: Integers, end: Integers, codes: Integers) -> tuple[Integers, Integers, Integers]:
    """Join neighbours of one code to spans (begin, end, code); code -1 belongs to no span."""
    if not len(codes):
        return begin, end, codes
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    stops = np.append(starts[1:], len(codes)) - 1
    coded = codes[starts] >= 0
    return begin[starts[coded]], end[stops[coded]], codes[starts[coded]]


def bridged(codes: Integers, open_places: Truths) -> Integers:
    """Fill the open places between two equal codes with that code, so that a span covers them."""
    opened = np.flatnonzero(open_places)
    coded = np.flatnonzero(~open_places)
    if not len(coded) or not len(opened):
        return codes
    place = opened - np.arange(len(opened)) - 1  # among those with a code: the one before
    before = codes[coded[np.maximum(place, 0)]]
    after = codes[coded[np.minimum(place + 1, len(coded) - 1)]]
    joins = (place >= 0) & (place + 1 < len(coded)) & (before == after)
    found = codes.copy()
    found[opened[joins]] = before[joins]
    return found


def without_overlap(begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Begin each rectangle no earlier than all before it ended, as a track requires."""
    ended = np.maximum.accumulate(end)
    before = np.append(begin[:1], ended[:-1])
    return np.maximum(begin, before), ended


def first_places(ascending: Integers, keys: Integers) -> Integers:
    """Return of each key, which ascend as well, the first place that is not below it."""
    places = np.empty(len(keys), dtype=np.int64)
    if kernels.compiled and kernels.compiled.merge(ascending, keys, places) is not None:
        return places
    return ascending.searchsorted(keys)


def depths(begin: Integers, end: Integers) -> Integers:
    """Count around each span, sorted by begin and the longer one first, those that it lies in."""
    ended = np.searchsorted(np.sort(end), begin, side="right")
    instant = np.searchsorted(np.sort(begin[begin == end]), begin, side="left")
    among = np.searchsorted(np.sort(begin[begin == end]), begin, side="right")
    inside: Integers = np.maximum(np.arange(len(begin)) - ended + among - instant, 0)
    return inside


def merged(begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Merge spans that touch or overlap; give begins and ends in order."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    if not len(begin):
        return begin, reach
    first = np.append(True, begin[1:] > reach[:-1])
    last = np.append(np.flatnonzero(first)[1:] - 1, len(begin) - 1)
    return begin[first], reach[last]


def length(spans: tuple[Integers, Integers]) -> int:
    """Measure separate spans together."""
    begin, end = spans
    return int((end - begin).sum())


def common(left: tuple[Integers, Integers], right: tuple[Integers, Integers]) -> int:
    """Measure what two sets of separate spans have in common."""

    def covered(spans: tuple[Integers, Integers], until: Integers) -> Integers:
        """Measure what of the spans lies before each moment."""
        begin, end = spans
        before = np.append(0, np.cumsum(end - begin))
        place = np.searchsorted(begin, until, side="right")
        inside = np.maximum(np.append(end, 0)[place - 1] - until, 0) if len(begin) else 0
        return before[place] - np.where(place > 0, inside, 0)

    return int((covered(right, left[1]) - covered(right, left[0])).sum())
