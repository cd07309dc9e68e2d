"""How the events of a thread lie in each other: one sweep over them in the order of their begin.

An event is inside the last one before it that has not ended when it begins. Where blocks make
events, that is the innermost around it. A program may also begin and end in any order: of two that
overlap without one holding the other, the later is on top by the same rule. A depth never holds two
events at once.

The sweep takes some events at a time and carries those that are open from one to the next, so that
what it needs beside its result does not grow with the trace. Nothing in it loops over events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.signedinteger[Any]]
Check = Callable[[int], None]  # raises PvaError when so many bytes are too many

BLOCK = 1 << 15  # events that are looked at at once: what they take stays in the processor's cache
OPEN = 480  # bytes that each event takes that is open from one part to the next, and those beside
FOREVER = np.iinfo(np.int64).max


class Nesting(NamedTuple):
    """How the events of one thread lie in each other; rows are in the order of their begin."""

    depth: Rows  # 0 for roots
    parent: Rows  # row of the event around it, -1 for roots
    self_ns: Integers  # duration without that of the events directly inside


class Part(NamedTuple):
    """Some events: those open since an earlier part, and those from `start` to `stop`.

    `parent` is a place among them, in this order; `inside` how much of each lies in its parent,
    and all of it where each `holds` what is in it.
    """

    carried: Integers
    start: int
    stop: int
    depth: Integers
    parent: Integers
    inside: Integers
    holds: bool


def begin_order(begin: Integers) -> Integers:
    """Sort events, given in the order of their end, by begin; of equal begins the longest first."""
    order: Integers = np.argsort(begin[::-1], kind="stable")
    return np.subtract(len(begin) - 1, order, out=order)


def nest(begin: Integers, end: Integers, check: Check, into: Nesting | None = None) -> Nesting:
    """Find depth, parent and self time of events sorted by `begin_order`; `into` is filled."""
    count = len(begin)
    depth, parent, own = into or (
        np.empty(count, np.int32),
        np.empty(count, np.int32 if count < 1 << 31 else np.int64),
        np.empty(count, np.int64),
    )
    np.subtract(end, begin, out=own)
    for part in parts(begin, end, check):
        known, new = len(part.carried), slice(part.start, part.stop)
        depth[new] = part.depth[known:]
        around = part.parent[known:]
        parent[new] = around + (part.start - known)
        early = np.flatnonzero(around < known)
        parent[part.start + early] = np.append(part.carried, -1)[around[early]]
        _take_away(own, part)
    return Nesting(depth, parent, own)


def self_times(begin: Integers, end: Integers, check: Check) -> Integers:
    """Find the self time alone, in half of the memory of `nest`."""
    own = end - begin
    for part in parts(begin, end, check):
        _take_away(own, part)
    return own


def _take_away(own: Integers, part: Part) -> None:
    """Take from each event the time of those directly inside."""
    known = len(part.carried)
    count = known + part.stop - part.start
    around = part.parent[known:] + 1
    covered = np.bincount(around, weights=part.inside[known:], minlength=count + 1)
    own[part.carried] -= covered[1 : known + 1].astype(np.int64)
    own[part.start : part.stop] -= covered[known + 1 :].astype(np.int64)


def parts(begin: Integers, end: Integers, check: Check) -> Iterator[Part]:
    """Sweep over the events, some at a time; many that are open at once take memory."""
    count, start = len(begin), 0
    carried = carried_depth = np.zeros(0, np.int64)
    while start < count:
        if len(carried) > BLOCK:
            check(OPEN * len(carried))
        # Twice what is open, so that what is carried is at most a third of the work.
        stop = min(start + max(BLOCK, 2 * len(carried)), count)
        begins = np.concatenate((begin[carried], begin[start:stop]))
        # Whoever is in no other is in the last one, which never ends.
        last = np.concatenate((end[carried], end[start:stop], [FOREVER]))
        # An event of no duration is around what begins with it, and ended for what begins later.
        ends = np.append(np.maximum(last[:-1], begins + 1), FOREVER)
        depth, parent, holds = _placed(begins, ends, carried_depth)
        inside = np.minimum(last[:-1], last[parent]) - begins
        yield Part(carried, start, stop, depth, parent, inside, holds)
        if stop < count:
            is_open = np.flatnonzero(ends[:-1] > begin[stop])
            known = len(carried)
            late = is_open[np.searchsorted(is_open, known) :] - known + start
            carried = np.concatenate((carried[is_open[: len(is_open) - len(late)]], late))
            carried_depth = depth[is_open]
        start = stop


def _placed(begins: Integers, ends: Integers, carried: Integers) -> tuple[Integers, Integers, bool]:
    """Find depth and parent, and whether each holds what is in it.

    The first events were carried over, with these depths.
    """
    first = len(carried)
    if np.array_equal(carried, np.arange(first)):
        depth = np.arange(len(begins))
        depth[first:] -= _ended(ends[:-1], begins[first:])
        parent = _last_less_deep(depth)
        if (ends[parent] >= ends[:-1]).all():
            return depth, parent, True
    return *_overlapping(begins, ends, carried), False


def _ended(ends: Integers, begins: Integers) -> Integers:
    """Count the ends up to each of the begins, which ascend.

    To merge two sorted lists is faster than to look one up in the other.
    """
    merged = np.concatenate((np.sort(ends, kind="stable"), begins))
    places = np.flatnonzero(np.argsort(merged, kind="stable") >= len(ends))
    return np.subtract(places, np.arange(len(begins)), out=places)


def _last_less_deep(depth: Integers) -> Integers:
    """Find the last event before each that is one less deep; the first is of depth 0."""
    deepest = int(depth.max(initial=0))
    # Of 8 and 16-bit numbers NumPy sorts by radix: many times as fast.
    small = depth.astype(np.uint8 if deepest < 1 << 8 else np.uint16 if deepest < 1 << 16 else int)
    by_depth = np.argsort(small, kind="stable")
    # An event one deeper than its predecessor is the first inside it; the next ones of that depth
    # are inside it too, until there is another first. A depth's first event is always such a one.
    first = np.zeros(len(depth), np.bool_)
    first[1:] = small[1:] > small[:-1]
    group = first[by_depth] * np.arange(len(depth))
    np.maximum.accumulate(group, out=group)
    parent = np.empty(len(depth), np.int64)
    parent[by_depth] = by_depth[group] - 1
    return parent


def _overlapping(begins: Integers, ends: Integers, carried: Integers) -> tuple[Integers, Integers]:
    """Find depth and parent of events that need not hold each other."""
    parent = _last_open(begins, ends[:-1])
    parent[: len(carried)] = -1
    depth = np.zeros(len(begins), np.int64)
    depth[: len(carried)] = carried
    # Each round adds what the ancestors found so far are deep, and looks twice as far up.
    up, depth[len(carried) :] = parent.copy(), parent[len(carried) :] >= 0
    while True:
        rows = np.flatnonzero(up >= 0)
        if not len(rows):
            return depth, parent
        above = up[rows]
        depth[rows] += depth[above]
        up[rows] = up[above]


def _last_open(begins: Integers, ends: Integers) -> Integers:
    """Find the last event before each that ends after it begins: by halves, in a tree of maxima."""
    count = len(begins)
    levels = [ends]
    while len(levels[-1]) > 1:
        below = levels[-1]
        if len(below) % 2:
            below = levels[-1] = np.append(below, np.iinfo(np.int64).min)
        levels.append(np.maximum(below[::2], below[1::2]))
    node, height = np.arange(count), np.full(count, -1)
    looking = np.arange(count)
    for level, greatest in enumerate(levels[:-1]):
        at = node[looking]
        left = at - 1
        found = (at & 1 == 1) & (greatest[left] > begins[looking])
        height[looking[found]] = level
        node[looking[found]] = left[found]
        looking = looking[~found]
        node[looking] >>= 1
    for level in range(len(levels) - 2, -1, -1):
        inside = np.flatnonzero(height > level)
        right = 2 * node[inside] + 1
        node[inside] = right - (levels[level][right] <= begins[inside])
    return np.where(height >= 0, node, -1)
