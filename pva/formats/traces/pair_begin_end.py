"""Begins and ends that are recorded apart, paired as brackets are, without a loop over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pva.array_types import Values

Rows = npt.NDArray[np.signedinteger[Any]]


class Pairs(NamedTuple):
    """Places of begins and of their ends; those of begins without end, and ends without begin."""

    begin: Rows
    end: Rows
    unended: Rows
    unbegun: Rows


def paired(group: npt.NDArray[np.int32], time: Rows, begins: npt.NDArray[np.bool_]) -> Pairs:
    """Pair each end with the last begin of its group that is open, in order of time.

    What happens at one time is in the order given. An end without an open begin stays alone.
    """
    rows = np.int32 if len(group) < 1 << 30 else np.int64
    order: Values = np.lexsort((time, group)).astype(rows)
    begins = begins[order]
    of: Rows = np.asarray(group[order], rows)
    level, alone = _levels(of, begins)
    candidates: Rows = np.flatnonzero(~alone).astype(rows)
    # At one level of one group, begins and ends take turns.
    candidates = candidates[np.lexsort((level[candidates], of[candidates]))]
    first, second = candidates[:-1], candidates[1:]
    pair = np.flatnonzero(
        begins[first] & ~begins[second] & (level[first] == level[second])
        & (of[first] == of[second])
    )  # fmt: skip
    is_paired = np.zeros(len(candidates), np.bool_)
    is_paired[pair] = True
    unended = candidates[begins[candidates] & ~is_paired]
    return Pairs(
        order[candidates[pair]],
        order[candidates[pair + 1]],
        order[unended],
        order[np.flatnonzero(alone)],
    )


def _levels(of: Rows, begins: npt.NDArray[np.bool_]) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Return how many are open around each, and which are ends without a begin."""
    change = np.flatnonzero(np.diff(of, prepend=-1))
    counts = np.diff(change, append=len(of))
    step = np.where(begins, np.int8(1), np.int8(-1))
    open_now = np.cumsum(step, dtype=of.dtype)
    open_now -= np.repeat(open_now[change] - step[change], counts)
    lowest = _lowest(of, open_now)
    np.minimum(lowest, 0, out=lowest)
    # An end that brings the count below all before it in its group has no begin.
    before = np.roll(lowest, 1)
    before[change] = 0
    alone = ~begins & (lowest < before)
    open_now -= lowest
    open_now -= begins
    return open_now, alone


def _lowest(group: Rows, values: Rows) -> Rows:
    """Return the least value up to each place of its group."""
    apart = group * np.int64(2 * len(group) + 2)
    running = values - apart
    np.minimum.accumulate(running, out=running)
    running += apart
    lowest: Rows = running.astype(values.dtype)
    return lowest
