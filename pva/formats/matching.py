"""Begins and ends, each told by itself, put together: as brackets are, without a loop over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class Matched(NamedTuple):
    """Places of begins and of the ends that belong to them; begins and ends that have no other."""

    begin: Integers
    end: Integers
    unended: Integers
    unbegun: Integers


def matched(group: npt.NDArray[np.int32], time: Integers, begins: npt.NDArray[np.bool_]) -> Matched:
    """Match each end with the last begin of its group that is open, in order of time.

    What happens at one time is in the order given. An end without an open begin stays alone.
    """
    order = np.lexsort((time, group))
    of, begins = group[order].astype(np.int64), begins[order]
    open_now = _open(of, np.where(begins, 1, -1))
    lowest = _lowest(of, open_now)
    # An end that brings the count below all before it in its group has no begin.
    before = np.where(np.diff(of, prepend=-1) != 0, 0, np.roll(lowest, 1))
    alone = ~begins & (np.minimum(lowest, 0) < np.minimum(before, 0))
    level = open_now - np.minimum(lowest, 0) - begins
    kept = np.flatnonzero(~alone)
    # At one level of one group, begins and ends take turns.
    key = of * (int(level.max(initial=0)) + 1) + level
    kept = kept[np.argsort(key[kept], kind="stable")]
    key = key[kept]
    pair = np.flatnonzero(begins[kept[:-1]] & ~begins[kept[1:]] & (key[1:] == key[:-1]))
    taken = np.zeros(len(kept), np.bool_)
    taken[pair] = True
    unended = kept[begins[kept] & ~taken]
    return Matched(
        order[kept[pair]], order[kept[pair + 1]], order[unended], order[np.flatnonzero(alone)]
    )


def _open(group: Integers, step: Integers) -> Integers:
    """Add up steps, from 0 in each group."""
    total = np.cumsum(step)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    before = total[first] - step[first]
    return total - np.repeat(before, np.diff(first, append=len(group)))


def _lowest(group: Integers, values: Integers) -> Integers:
    """Give the least value up to each place of its group."""
    apart = group * (2 * len(group) + 2)
    return np.minimum.accumulate(values - apart) + apart
