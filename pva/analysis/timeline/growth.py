"""Timelines that grow: what came is put behind what was, without working all levels out anew."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np

from pva.analysis.timeline.level_of_detail import Level, Tracks
from pva.analysis.timeline.stepped import Column, shortened
from pva.analysis.timeline.viewport import ranges
from pva.array_types import Integers


def joined(first: Tracks, places: Integers, second: Tracks) -> Tracks:
    """Put the rows of `second` behind what is before the seam in the rows of `first`.

    `places` tells which rows of `second` those of `first` are, ascending; its labels are those of
    `first`, and may be more.
    """
    rows = second.rows
    begins, sizes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    begins[places] = first.offset[:-1]
    sizes[places] = first.seam - first.offset[:-1]
    added = np.diff(second.offset)
    offset = np.append(0, np.cumsum(sizes + added))
    old = [
        slice(low, low + size) for low, size in zip(begins.tolist(), sizes.tolist(), strict=True)
    ]
    new = [slice(*pair) for pair in zip(second.offset[:-1].tolist(), second.offset[1:].tolist(),
                                        strict=True)]  # fmt: skip

    def column(one: Column, appended: Column) -> Integers:
        parts = (part for a, b in zip(old, new, strict=True) for part in (one[a], appended[b]))
        return np.concatenate([np.zeros(0, appended.dtype), *parts])

    before = np.zeros(int(offset[-1]) + 1, np.int64)
    np.cumsum(column(np.diff(first.before[:]), np.diff(second.before[:])), out=before[1:])
    times = shortened(column(first.begin, second.begin), before)
    return Tracks(
        *times,
        label=column(first.label, second.label),
        kind=second.kind,
        offset=offset,
        seam=offset[:-1] + sizes,
        levels=tuple(_levels(first, second, (begins, sizes, offset))),
    )


def _levels(
    first: Tracks, second: Tracks, rows: tuple[Integers, Integers, Integers]
) -> Iterator[Level]:
    """Join level by level; beyond the last one of `first` its rectangles stay as they are."""
    begins, sizes, offset = rows
    last: tuple[tuple[Level, Level], Level] | None = None
    for one, appended in zip_longest(first.levels, second.levels):
        pair = one or first.levels[-1], appended or second.levels[-1]
        if last is None or any(a is not b for a, b in zip(last[0], pair, strict=True)):
            last = pair, _level(pair, begins, sizes, (offset, second.offset))
        yield last[1]


def _level(
    pair: tuple[Level, Level], begins: Integers, sizes: Integers, offsets: tuple[Integers, Integers]
) -> Level:
    """Put the rectangles of two levels together, row by row."""
    (one, appended), (offset, second) = pair, offsets
    # Of two types NumPy would copy the longer array to one of both.
    edges = begins, begins + sizes, second[:-1], second[1:]
    low, high, low2, high2 = (
        level.first.searchsorted(edge.astype(np.uint32))
        for level, edge in zip((one, one, appended, appended), edges, strict=True)
    )
    counts = np.stack((high - low, high2 - low2), axis=1).ravel()
    starts = np.stack((low, low2 + len(one.first)), axis=1).ravel()
    shift = np.stack((offset[:-1] - begins, offset[:-1] + sizes - second[:-1]), axis=1).ravel()
    order = ranges(starts, starts + counts)

    def column(a: Integers, b: Integers) -> Integers:
        joint: Integers = np.concatenate((a, b))[order]
        return joint

    events = column(np.diff(one.covered), np.diff(appended.covered)).astype(np.int64)
    return Level(
        first=(column(one.first, appended.first) + np.repeat(shift, counts)).astype(np.uint32),
        covered=np.append(0, np.cumsum(events)).astype(np.uint32),
        label=column(one.label, appended.label),
        label_time=column(one.label_time, appended.label_time),
        kind=column(one.kind, appended.kind),
    )
