"""How the events of a thread lie in each other: one sweep over them in the order of their begin.

An event is inside the last one before it that has not ended when it begins. Where blocks make
events, that is the innermost around it. A program may also begin and end in any order: of two that
overlap without one holding the other, the later is on top by the same rule. A depth never holds two
events at once. Self time is that on top: over all events it adds up to the time inside of events.

The sweep takes some events at a time and carries those that are open from one to the next, so that
what it needs beside its result does not grow with the trace. Nothing in it loops over events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.array_types import Integers

Rows = npt.NDArray[np.signedinteger[Any]]
Check = Callable[[int], None]  # raises PvaError when so many bytes are too many

BLOCK = 1 << 15  # events that are looked at at once: what they take stays in the processor's cache
OPEN = 480  # bytes that each event takes that is open from one part to the next, and those beside
FOREVER = np.iinfo(np.int64).max
KEY_BITS = 63  # of a begin and its place together, to be sorted as one number
ROUNDS = 64  # events around each that are looked at, on the average


class Nesting(NamedTuple):
    """How the events of one thread lie in each other; rows are in the order of their begin."""

    depth: Rows  # 0 for roots
    parent: Rows  # row of the event around it, -1 for roots
    self_ns: Integers  # on top: where blocks make events, duration without that of those inside


class Part(NamedTuple):
    """Some events: those open since an earlier part, and those from `start` to `stop`.

    `parent` is a place among them, in this order; `own` how long each was on top before the next
    part begins; each `holds` what is in it, or not.
    """

    carried: Integers
    start: int
    stop: int
    depth: Integers
    parent: Integers
    own: Integers
    holds: bool


def begin_order(begin: Integers) -> Integers:
    """Sort events, given in the order of their end, by begin; of equal begins the longest first."""
    order: Integers = np.empty(len(begin), np.int64)
    if kernels.compiled and kernels.compiled.forward(begin, order):  # not where events overlap
        return order
    last = len(begin) - 1
    bits = last.bit_length()
    least, most = (int(of(begin)) for of in (np.min, np.max)) if last > 0 else (0, 0)
    if (most - least).bit_length() + bits > KEY_BITS:
        order = np.argsort(begin[::-1], kind="stable")
        return np.subtract(last, order, out=order)
    del order
    # Numbers alone are sorted in vectors of the processor: below the begin stands the place.
    keys: Integers = (begin - least) << bits
    keys += np.arange(last, -1, -1)
    keys.sort()
    keys &= (1 << bits) - 1
    return np.subtract(last, keys, out=keys)


def nest(begin: Integers, end: Integers, check: Check, into: Nesting | None = None) -> Nesting:
    """Compute depth, parent and self time of events sorted by `begin_order`; fills `into`."""
    count = len(begin)
    depth, parent, self_times_ns = into or (
        np.empty(count, np.int32),
        np.empty(count, np.int32 if count < 1 << 31 else np.int64),
        np.empty(count, np.int64),
    )
    if _swept(begin, end, self_times_ns, depth, parent):
        return Nesting(depth, parent, self_times_ns)
    for part in parts(begin, end, check):
        carried, new = len(part.carried), slice(part.start, part.stop)
        depth[new] = part.depth[carried:]
        around = part.parent[carried:]
        parent[new] = around + (part.start - carried)
        early = np.flatnonzero(around < carried)
        parent[part.start + early] = np.append(part.carried, -1)[around[early]]
        _add_own(self_times_ns, part)
    return Nesting(depth, parent, self_times_ns)


def self_times(begin: Integers, end: Integers, check: Check) -> Integers:
    """Compute the self time alone, in half of the memory of `nest`."""
    self_times_ns = np.empty(len(begin), np.int64)
    if _swept(begin, end, self_times_ns):
        return self_times_ns
    for part in parts(begin, end, check):
        _add_own(self_times_ns, part)
    return self_times_ns


def _swept(begin: Integers, end: Integers, self_times_ns: Integers, *into: Rows) -> bool:
    """Do the sweep in C, where that is there and not more than BLOCK events are open at once."""
    kernel = kernels.compiled
    return bool(kernel) and kernel.nest(begin, end, self_times_ns, BLOCK, *into) is not None


def lying_across(begin: Integers, end: Integers, parent: Rows) -> npt.NDArray[np.bool_]:
    """Return which events end later than one that was open when they began.

    What was open is around it, the innermost first. Where more than ROUNDS of an event would have
    to be looked at, some that do not are told to.
    """
    across: npt.NDArray[np.bool_] = (parent >= 0) & (end > end[np.maximum(parent, 0)])
    # An earlier end is further out only where an event around lies across it.
    inside, up = _below(across, parent), parent.copy()
    rows = np.flatnonzero(inside & ~across)
    remaining = ROUNDS * len(begin)
    while len(rows) and remaining >= 0:
        remaining -= len(rows)
        above = up[rows]
        is_open = end[above] > begin[rows]
        across[rows] = is_open & (end[above] < end[rows])
        up[rows] = parent[above]
        further = (inside[above] | ~is_open) & (parent[above] >= 0)
        rows = rows[~across[rows] & further]
    across[rows] = True
    return across


def _below(mask: npt.NDArray[np.bool_], parent: Rows) -> npt.NDArray[np.bool_]:
    """Return which events are chosen, or inside of one, looking twice as far up each time."""
    is_below, up = mask.copy(), parent.copy()
    rows = np.flatnonzero(~is_below & (up >= 0)) if is_below.any() else up[:0]
    while len(rows):
        is_below[rows] = is_below[up[rows]]
        up[rows] = up[up[rows]]
        rows = rows[~is_below[rows] & (up[rows] >= 0)]
    return is_below


def _add_own(self_times_ns: Integers, part: Part) -> None:
    """Take over the time on top of new events, and add that of those still open."""
    carried = len(part.carried)
    self_times_ns[part.carried] += part.own[:carried]
    self_times_ns[part.start : part.stop] = part.own[carried:]


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
        last = np.concatenate((end[carried], end[start:stop]))
        # An event of no duration is around what begins with it, and ended for what begins later.
        # Whoever is in no other is in the last one, which never ends.
        ends = np.append(np.maximum(last, begins + 1), FOREVER)
        depth, parent, holds = _placed(begins, ends, carried_depth)
        window = int(begin[start]), int(begin[stop]) if stop < count else FOREVER
        on_top = _held(begins, last, parent, window) if holds else _on_top(begins, last, window)
        yield Part(carried, start, stop, depth, parent, on_top, holds)
        if stop < count:
            is_open = np.flatnonzero(ends[:-1] > begin[stop])
            carried_count = len(carried)
            late = is_open[np.searchsorted(is_open, carried_count) :] - carried_count + start
            carried = np.concatenate((carried[is_open[: len(is_open) - len(late)]], late))
            carried_depth = depth[is_open]
        start = stop


def _held(begins: Integers, ends: Integers, parent: Integers, window: tuple[int, int]) -> Integers:
    """Compute the self time of each event in a window, for events that hold what is in them.

    Sums below 2**53 ns (104 days) are exact in the doubles that bincount adds.
    """
    lasting = np.minimum(ends, window[1]) - np.maximum(begins, window[0])
    inside = np.bincount(parent + 1, weights=lasting, minlength=len(begins) + 1)
    return lasting - inside[1:].astype(np.int64)


def _on_top(begins: Integers, ends: Integers, window: tuple[int, int]) -> Integers:
    """Compute how long in a window each event was the last begun of those open."""
    since, until = window[0], min(window[1], int(ends.max()))
    times = np.concatenate((begins, ends, window))
    edges = np.sort(times[(times >= since) & (times <= until)])
    top = _last_open(ends, np.searchsorted(begins, edges[:-1], "right"), edges[:-1])
    lasting = np.bincount(top + 1, weights=np.diff(edges), minlength=len(begins) + 1)
    durations: Integers = lasting[1:].astype(np.int64)
    return durations


def _placed(begins: Integers, ends: Integers, carried: Integers) -> tuple[Integers, Integers, bool]:
    """Compute depth and parent, and whether each event holds what is in it.

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
    """Return the last event before each that is one less deep; the first is of depth 0."""
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
    """Compute depth and parent of events that need not hold each other."""
    parent = _last_open(ends[:-1], np.arange(len(begins)), begins)
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


def _last_open(ends: Integers, places: Integers, times: Integers) -> Integers:
    """Return the last event before each place that ends after a time, -1 where there is none.

    By halves, in a tree of maxima.
    """
    levels = [np.append(ends, np.iinfo(np.int64).min)]  # a place may be that after the last event
    while len(levels[-1]) > 1:
        below = levels[-1]
        if len(below) % 2:
            below = levels[-1] = np.append(below, np.iinfo(np.int64).min)
        levels.append(np.maximum(below[::2], below[1::2]))
    node, height = places.copy(), np.full(len(places), -1)
    looking = np.arange(len(places))
    for level, greatest in enumerate(levels[:-1]):
        at = node[looking]
        sibling = at - 1
        is_last = (at & 1 == 1) & (greatest[sibling] > times[looking])
        height[looking[is_last]] = level
        node[looking[is_last]] = sibling[is_last]
        looking = looking[~is_last]
        node[looking] >>= 1
    for level in range(len(levels) - 2, -1, -1):
        inside = np.flatnonzero(height > level)
        right = 2 * node[inside] + 1
        node[inside] = right - (levels[level][right] <= times[inside])
    return np.where(height >= 0, node, -1)
