"""Building the levels of a timeline (`level_of_detail`), each from the one below."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.analysis.timeline.level_of_detail import (
    SMALL,
    Level,
    Tracks,
    group_starts,
    largest,
    summed_pairs,
)
from pva.analysis.timeline.stepped import shortened
from pva.array_types import Values

PART = 1 << 18  # events


@dataclass(slots=True)
class _Items:
    """What the next level is made of: known rectangles, and events that are in none.

    `length` is 0 for a rectangle, as none of its events ever stands alone again.
    """

    row: Values
    first: Values
    stop: Values
    length: Values
    known: npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Shares:
    """How long each label, or kind, is in each known rectangle: by rectangle, then label."""

    group: Values
    label: Values
    time: Values


def build(rows: Iterable[tuple[Values, Values, Values]], kind: Any = None) -> Tracks:
    """Put rows together, each (begin, end, label) without overlap, and work out their levels.

    `kind` gives that of each label once all rows were given out; without it there is one kind.
    """
    begins: list[Values] = []
    lengths: list[Values] = []
    labels: list[Values] = []
    for begin, end, label in rows:
        begins.append(begin)
        lengths.append(_short(end - begin))
        labels.append(_narrow(label))
    offset = np.append(0, np.cumsum([len(begin) for begin in begins], dtype=np.int64))
    before = np.zeros(int(offset[-1]) + 1, dtype=np.int64)
    for first, length in zip(offset[:-1].tolist(), lengths, strict=True):
        sums = before[first + 1 : first + 1 + len(length)]
        np.cumsum(length, dtype=np.int64, out=sums)
        sums += before[first]
    lengths.clear()
    begin, label = _whole(begins, np.int64), _whole(labels, np.uint16)
    size = int(label.max(initial=0)) + 1
    kinds = np.zeros(size, np.uint16) if kind is None else np.asarray(kind(), dtype=np.uint16)
    levels = _levels(begin, before, (label, kinds), offset)
    return Tracks(*shortened(begin, before), label, kinds, offset, offset[1:], levels)


def _whole(parts: list[Values], dtype: npt.DTypeLike) -> Values:
    """Join columns to one of a type, or a wider one, and let go of the parts."""
    array = np.concatenate([np.zeros(0, dtype), *parts])
    parts.clear()
    return array


def _narrow(values: Values) -> Values:
    """Convert whole numbers from 0 on to as few bytes as they need, 2 or 4."""
    most = int(values.max(initial=0))
    return values.astype(np.uint16 if most < 1 << 16 else np.uint32, copy=False)


def _short(times: Values) -> Values:
    """Convert times to four bytes where they fit."""
    fit = int(times.min(initial=0)) >= 0 and int(times.max(initial=0)) < 1 << 32
    return times.astype(np.uint32, copy=False) if fit else times


def _levels(
    begin: Values, before: Values, labels: tuple[Values, Values], offset: Values
) -> tuple[Level, ...]:
    """Work out the rectangles of more than SMALL events at every level."""
    if kernels.compiled:
        columns = _rectangles(begin, before, labels, offset)
        if columns:
            return _by_level(*columns)
    return _levels_by_parts(begin, np.diff(before), labels, offset)


def _rectangles(
    begin: Values, before: Values, labels: tuple[Values, Values], offset: Values
) -> tuple[list[Values], int] | None:
    """Return the columns of all rectangles, and the last end; None where C does not take these.

    Two halves of the rows are worked out at once.
    """

    def half(rows: Values) -> Any:
        part = slice(first := int(offset[rows[0]]), stop := int(offset[rows[-1]]))
        of_part = begin[part], before[first : stop + 1], labels[0][part], labels[1]
        return kernels.compiled.levels(*of_part, offset[rows] - first, SMALL)

    halves = _parts(offset, max(int(offset[-1]) // 2 + 1, PART))
    if len(halves) > 1:
        with ThreadPoolExecutor(len(halves)) as threads:
            made = list(threads.map(half, halves))
    else:
        made = [half(rows) for rows in halves]
    if not made or None in made:
        return None
    *parts, ends = zip(*made, strict=True)
    types = np.uint8, np.uint8, np.uint32, np.uint32, np.uint32, np.int64, np.uint16
    first = np.repeat([offset[rows[0]] for rows in halves], [len(part) for part in parts[0]])
    columns = [
        np.concatenate([np.frombuffer(part, dtype) for part in of_parts])
        for of_parts, dtype in zip(parts, types, strict=True)
    ]
    columns[2] += first.astype(np.uint32)
    return columns, max(ends)


def _by_level(columns: list[Values], end: int) -> tuple[Level, ...]:
    """Put rectangles, which tell their first and last level, at each of these."""
    low, high, first, count, label, time, kind = columns
    made = np.bincount(low)
    levels: list[Level] = []
    for level in range(end.bit_length() + 1):
        if level and not (level < len(made) and made[level]):
            levels.append(levels[-1])
            continue
        here = np.flatnonzero((low <= level) & (level <= high))
        covered = np.append(0, np.cumsum(count[here], dtype=np.int64)).astype(np.uint32)
        of_label = _narrow(label[here]), _short(time[here])
        levels.append(Level(first[here], covered, *of_label, kind[here]))
    return tuple(levels)


def _levels_by_parts(
    begin: Values, length: Values, labels: tuple[Values, Values], offset: Values
) -> tuple[Level, ...]:
    """Work the same out with NumPy, by parts of the rows.

    What is made on the way is much more than what is left; that of a part is soon used again.
    """
    top = int((begin + length).max(initial=0)).bit_length()
    label, kind = labels
    parts = []
    for rows in _parts(offset, PART):
        first, stop = int(offset[rows[0]]), int(offset[rows[-1]])
        events = slice(first, stop)
        of_part = begin[events], _short(length[events]), (label[events], kind), offset[rows] - first
        parts.append((first, _levels_of(*of_part, top)))
    levels: list[Level] = []
    for level in range(top + 1):
        alike = level > 0 and all(of[level] is of[level - 1] for _, of in parts)
        levels.append(levels[-1] if alike else _beside([(at, of[level]) for at, of in parts]))
    return tuple(levels)


def _parts(offset: Values, size: int) -> list[Values]:
    """Cut rows into parts of about so many events: the numbers of their rows and of the next."""
    number = (offset[:-1] + np.diff(offset) // 2) // size
    cuts = np.flatnonzero(np.diff(number)) + 1
    edges = [0, *cuts.tolist(), len(number)]
    return [np.arange(low, high + 1) for low, high in itertools.pairwise(edges) if high > low]


def _beside(parts: list[tuple[int, Level]]) -> Level:
    """Put the rectangles of parts of the rows together, each with the first of its events."""
    nothing = np.zeros(0, dtype=np.uint32)

    def of_all(name: str) -> Values:
        return np.concatenate([*(getattr(level, name) for _, level in parts)] or [nothing])

    sizes = np.concatenate([nothing, *(np.diff(level.covered) for _, level in parts)])
    return Level(
        first=np.concatenate([nothing, *(level.first + np.uint32(at) for at, level in parts)]),
        covered=np.append(0, np.cumsum(sizes, dtype=np.int64)).astype(np.uint32),
        label=_narrow(of_all("label")),
        label_time=_short(of_all("label_time")),
        kind=of_all("kind").astype(np.uint16, copy=False),
    )


def _levels_of(
    begin: Values,
    length: Values,
    labels: tuple[Values, Values],
    offset: Values,
    top: int,
) -> list[Level]:
    """Work out the rectangles of some rows, up to a level."""
    size, (label, kind) = len(begin), labels
    row = np.repeat(np.arange(len(offset) - 1, dtype=np.int32), np.diff(offset))
    number = np.arange(size, dtype=np.uint32)
    items = _Items(row, number, number + 1, length, np.zeros(size, dtype=np.bool_))
    nothing = number[:0]
    shares = tuple(_Shares(nothing, of[:0], length[:0]) for of in (label, kind))
    last = Level(nothing, np.zeros(1, dtype=np.uint32), nothing, nothing, nothing)
    lowest = min(_lowest(begin, row), top)
    levels = [last] * lowest
    for level in range(lowest, top + 1):
        starts = group_starts(items.row, begin[items.first] >> level, items.length >= 1 << level)
        stops = np.append(starts[1:], len(items.first))[: len(starts)]
        big = items.stop[stops - 1] - items.first[starts] > SMALL
        starts, stops = starts[big], stops[big]
        if len(starts) != len(last.first) or int((stops - starts).sum()) != len(starts):
            items, shares = _risen(items, shares, (starts, stops), (length, label, kind))
            last = _level(items, *shares)
        levels.append(last)
    return levels


def _lowest(begin: Values, row: Values) -> int:
    """Return the first level at which more than SMALL events of a row can begin in one cell."""
    apart = begin[SMALL:] - begin[:-SMALL] if len(begin) > SMALL else begin[:0]
    together = row[SMALL:] == row[:-SMALL] if len(apart) else np.zeros(0, dtype=np.bool_)
    return int(apart[together].min(initial=np.iinfo(np.int64).max)).bit_length()


def _risen(
    items: _Items,
    shares: tuple[_Shares, ...],
    groups: tuple[Values, Values],
    events: tuple[Values, Values, Values],
) -> tuple[_Items, tuple[_Shares, ...]]:
    """Make rectangles of groups of items; give the items of the next level, and the shares."""
    starts, stops = groups
    size = len(items.first)
    change = np.zeros(size + 1, dtype=np.int8)
    np.add.at(change, starts, 1)
    np.add.at(change, stops, -1)
    inside = np.cumsum(change[:size], dtype=np.int8).astype(np.bool_)
    group = np.repeat(np.arange(len(starts), dtype=np.uint32), stops - starts)
    was_known = items.known[inside]
    length, label, kind = events
    new = items.first[inside][~was_known]
    old, group = group[was_known], group[~was_known]
    label = label[new]
    pairs = zip(shares, (label, kind[label]), strict=True)
    risen = tuple(_joined(was, old, _Shares(group, of, length[new])) for was, of in pairs)
    remaining = ~inside
    remaining[starts] = True
    stop, is_known, alone = items.stop.copy(), items.known.copy(), items.length.copy()
    stop[starts], is_known[starts], alone[starts] = items.stop[stops - 1], True, 0
    above = _Items(
        items.row[remaining],
        items.first[remaining],
        stop[remaining],
        alone[remaining],
        is_known[remaining],
    )
    return above, risen


def _joined(shares: _Shares, places: Values, added: _Shares) -> _Shares:
    """Add up shares whose rectangles are now those at some places, and more of the same."""
    pairs, time = summed_pairs(
        np.concatenate((places[shares.group], added.group)),
        np.concatenate((shares.label, added.label)),
        np.concatenate((shares.time, added.time)),
    )
    return _Shares(*pairs, _short(time))


def _level(items: _Items, shares: _Shares, kinds: _Shares) -> Level:
    first, stop = items.first[items.known], items.stop[items.known]
    best = largest(shares.group, shares.time)
    return Level(
        first=first,
        covered=np.append(0, np.cumsum(stop - first, dtype=np.int64)).astype(np.uint32),
        label=shares.label[best],
        label_time=shares.time[best],
        kind=kinds.label[largest(kinds.group, kinds.time)],
    )
