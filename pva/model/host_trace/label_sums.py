"""The events of each label together: how many, how long in all, by themselves, and how spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.array_types import Integers, Values
from pva.model.host_trace import nesting
from pva.model.host_trace.nesting import Check, Part, parts
from pva.model.host_trace.trace_lanes import Stretch

Fractions = npt.NDArray[np.float64]

BLOCK = 1 << 15  # events that are looked at at once
SHARES = (0.5, 0.9, 0.99)
SHORT = 1 << 32  # durations below take four bytes
FEW = 1 << 14  # labels that are sorted one after another: more of them all at once


@dataclass(frozen=True, slots=True)
class LabelSums:
    """One value a label in each; where `count` is 0 the others are 0. Times in nanoseconds."""

    count: Integers
    total: Integers
    own: Integers
    shortest: Integers
    longest: Integers
    quantiles: Fractions  # [share of SHARES][label], between the two nearest as NumPy has it


def label_sums(lanes: Sequence[Stretch], labels: int, check: Check) -> LabelSums:
    """Sum up the events of each label."""
    lanes = list(lanes)
    count, total, self_time = (np.zeros(labels, np.int64) for _ in range(3))
    for place, stretch in enumerate(lanes):
        sums = _summed(stretch, labels, check)
        if sums is None and stretch.exact is not None:
            lanes[place] = stretch.exact()
            sums = _summed(lanes[place], labels, check)
        if sums is not None:
            count, total, self_time = count + sums[0], total + sums[1], self_time + sums[2]
    starts = np.zeros(labels + 1, np.int64)
    np.cumsum(count, out=starts[1:])
    grouped = _by_label(lanes, starts)
    places = _places(count)
    _order(grouped, starts)
    durations = np.zeros((len(places), labels), np.int64)
    used = np.flatnonzero(count)
    durations[:, used] = grouped[starts[used] + places[:, used]]
    shortest, longest, low, high = durations[0], durations[1], durations[2::2], durations[3::2]
    fraction = np.array(SHARES)[:, None] * np.maximum(count - 1, 0) % 1
    spread = low + (high - low) * fraction
    return LabelSums(count, total, self_time, shortest, longest, spread)


def _places(count: Integers) -> Integers:
    """Return which of the ascending durations of a label are asked for: [which][label].

    The first, the last, and of each share the two that it lies between.
    """
    last = np.maximum(count - 1, 0)
    below = [(share * last).astype(np.int64) for share in SHARES]
    between = [place for low in below for place in (low, np.minimum(low + 1, last))]
    return np.stack([np.zeros_like(last), last, *between])


def _order(grouped: Values, starts: Integers) -> None:
    """Sort the durations of each label."""
    if len(starts) > FEW:
        number = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        grouped[:] = grouped[np.lexsort((grouped, number))]
        return
    # NumPy sorts in vectors of the processor, and parts by many places without them.
    for first, stop in zip(starts.tolist(), starts[1:].tolist(), strict=False):
        grouped[first:stop].sort()


def _summed(
    stretch: Stretch, labels: int, check: Check
) -> tuple[Integers, Integers, Integers] | None:
    """Add up the events of a stretch; None where they are not to be looked at backward."""
    if kernels.compiled:
        sums = np.zeros((3, labels), np.int64)
        columns = stretch.begin, stretch.end, stretch.label
        holds = kernels.compiled.sums(*columns, nesting.BLOCK, *sums)
        if holds is not None:
            return None if stretch.exact is not None and not holds else (sums[0], sums[1], sums[2])
    count, total, self_time = (np.zeros(labels, np.int64) for _ in range(3))
    for part in parts(stretch.begin, stretch.end, check):
        if stretch.exact is not None and not part.holds:
            return None
        _add(stretch, part, (count, total, self_time))
    return count, total, self_time


def _add(columns: Stretch, part: Part, sums: tuple[Integers, Integers, Integers]) -> None:
    """Add some events to count and duration of each label, and the time on top.

    A part's sums below 2**53 ns (104 days) are exact in the doubles that bincount adds.
    """
    count, total, self_time = sums
    new, bins = slice(part.start, part.stop), len(count)
    label = columns.label[new]
    count += np.bincount(label, minlength=bins)
    total += np.bincount(label, columns.end[new] - columns.begin[new], bins).astype(np.int64)
    label = np.concatenate((columns.label[part.carried], label))
    self_time += np.bincount(label, part.own, bins).astype(np.int64)


def _by_label(lanes: Sequence[Stretch], starts: Integers) -> Values:
    """Return the durations label after label."""
    longest = max((int(d.max()) for c in lanes for _, d in _blocks(c)), default=0)
    grouped = np.empty(int(starts[-1]), np.uint32 if longest < SHORT else np.int64)
    labels = len(starts) - 1
    free = starts[:-1].copy()
    if kernels.compiled and all(_placed(columns, free, grouped) for columns in lanes):
        return grouped
    free[:] = starts[:-1]
    # Of 16-bit numbers NumPy sorts by radix: many times as fast.
    narrow = np.uint16 if labels < 1 << 16 else np.int32
    for columns in lanes:
        for block, durations in _blocks(columns):
            label = columns.label[block].astype(narrow)
            order = np.argsort(label, kind="stable")
            label = label[order]
            counts = np.bincount(label, minlength=labels)
            before = free - (np.cumsum(counts) - counts)
            grouped[before[label] + np.arange(len(label))] = durations[order]
            free += counts
    return grouped


def _placed(columns: Stretch, free: Integers, grouped: Values) -> bool:
    """Put durations at the next free places of their labels; return whether C could."""
    events = columns.begin, columns.end, columns.label
    return kernels.compiled.group(*events, free, grouped) is not None


def _blocks(columns: Stretch) -> Iterator[tuple[slice, Integers]]:
    """Return some events at a time, and their durations."""
    for first in range(0, len(columns.begin), BLOCK):
        block = slice(first, first + BLOCK)
        yield block, columns.end[block] - columns.begin[block]
