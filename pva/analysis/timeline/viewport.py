"""What a window of some rows shows: rectangles of a timeline's levels, and of its events.

Two neighbours of a row, events or rectangles known before, stand together from that level on whose
cells have both begin in one cell and are longer than either: the bits of the difference of their
begins, or of their lengths. So one look at the neighbours tells how many rectangles a row has at
each level, and only the level that is then chosen is put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva.analysis.timeline.level_of_detail import SMALL, Tracks, tops
from pva.array_types import Integers

MAX_RECTANGLES = 2400  # an answer
LOOKED_AT = 2  # times the rectangles of an answer: events, and rectangles worked out before
MAX_ROWS = 400  # an answer
BITS = 64  # more than any level has


@dataclass(frozen=True, slots=True)
class Rectangles:
    """What to draw, by row and begin: `count` events from `event` on stand together in each.

    `time` is how long they are together, `label_time` how long those of `label` are, the label with
    the largest share (of two alike the one with the lower number); `kind` has the largest share
    among the kinds.
    """

    row: Integers
    begin: Integers
    end: Integers
    event: Integers
    count: Integers
    label: Integers
    time: Integers
    label_time: Integers
    kind: Integers


@dataclass(frozen=True, slots=True)
class _Window:
    """Rows, and of each the events that a window touches: the first, and one behind the last."""

    tracks: Tracks
    rows: Integers
    first: Integers
    stop: Integers


@dataclass(frozen=True, slots=True)
class _Items:
    """Rectangles known before and the events between them, in the order of each place.

    A place is that of a row in the window; places stand in any order. `known` are the columns of
    the rectangles: stop, label, label_time, kind. `length` is that of an event, 0 of a rectangle.
    `together` is the level from which on an item stands together with the one before it.
    """

    place: Integers
    first: Integers
    begin: Integers
    length: Integers
    is_known: npt.NDArray[np.bool_]
    known: tuple[Integers, ...]
    together: Integers


def viewport(
    tracks: Tracks,
    begin: int,
    end: int,
    pixels: int,
    rows: Integers | None = None,
    limit: int = MAX_RECTANGLES,
) -> Rectangles:
    """Return the rectangles of rows that touch the window, at most `limit` of them.

    A cell is at most a pixel at first; a row that has too many rectangles gets wider cells, the
    first rows last. Rows beyond MAX_ROWS, or beyond the limit itself, are left out.
    """
    selected = np.arange(tracks.rows) if rows is None else rows
    selected = selected[: min(MAX_ROWS, limit)]
    first, stop = tracks.touched(selected, begin, end)
    filled = stop > first
    window = _Window(tracks, selected[filled], first[filled], stop[filled])
    finest = min(_level_of(max((end - begin) // max(pixels, 1), 1)), len(tracks.levels) - 1)
    looked = _lookable(window, finest, LOOKED_AT * limit)
    items = _items(window, looked)
    levels = _shared(_counts(items, looked), looked, limit, len(tracks.levels) - 1)
    if (levels != looked).any():
        items = _items(window, levels)
    return _drawn(window, items, levels, limit)


def _level_of(width: int) -> int:
    """Return the level whose cells are at most so wide."""
    return max(width.bit_length() - 1, 0)


def _lookable(window: _Window, finest: int, limit: int) -> Integers:
    """Assign each row the finest level at which all together are at most so many items."""
    count = window.stop - window.first
    most = _ceiling(count, limit)
    levels = np.full(len(count), finest)
    todo = np.flatnonzero(count > most)
    for level in range(finest, len(window.tracks.levels)):
        if not len(todo):
            break
        covered = window.tracks.levels[level].covered
        low, high = _touching(window, level, todo)
        items = count[todo] - (covered[high].astype(np.int64) - covered[low]) + high - low
        levels[todo] = level
        todo = todo[items > most]
    return levels


def _touching(window: _Window, level: int, places: Integers) -> tuple[Integers, Integers]:
    """Return the known rectangles that rows touch: the first, and one behind the last."""
    rectangles = window.tracks.levels[level]
    # Of two types NumPy would copy the longer array to one of both.
    first, stop = (events[places].astype(np.uint32) for events in (window.first, window.stop))
    before = np.maximum(rectangles.first.searchsorted(first, side="right") - 1, 0)
    if not len(rectangles.first):
        return before, before
    low = before + (rectangles.stop(before) <= first)
    high = rectangles.first.searchsorted(stop, side="left")
    return low, np.maximum(high, low)


def _cells(window: _Window, levels: Integers) -> tuple[Integers, Integers]:
    """Return the events of the small rectangles that rows touch: first, one behind the last."""
    tracks, rows, size = window.tracks, window.rows, len(window.rows)
    event = np.concatenate((window.first, window.stop - 1))
    way = np.repeat((-1, 1), size)[:, None]
    first, stop, seam = tracks.offset[rows], tracks.offset[rows + 1], tracks.seam[rows]
    first = np.where(window.first >= seam, seam, first)
    stop = np.where(window.stop <= seam, seam, stop)
    last = np.concatenate((first, stop - 1))[:, None]
    level = np.tile(levels, 2)[:, None]
    steps = event[:, None] + way * np.arange(SMALL + 1)
    inside = way * steps <= way * last
    steps = np.where(inside, steps, event[:, None])
    begin = tracks.begin[steps] >> level
    short = (tracks.before[steps + 1] - tracks.before[steps]) >> level == 0
    same = inside & short & (begin == begin[:, :1])
    edge = event + way[:, 0] * np.maximum(np.cumprod(same, axis=1).sum(axis=1) - 1, 0)
    return edge[:size], edge[size:] + 1


def _items(window: _Window, levels: Integers) -> _Items:
    """Return the items of rows, each at its level."""
    tracks = window.tracks
    order = np.argsort(levels, kind="stable")
    count, first, *columns = _rectangles(window, levels, order)
    # What is between the known rectangles of a row, before the first and behind the last.
    low, high = (edge[order] for edge in _cells(window, levels))
    behind = np.cumsum(count)
    begins = np.insert(columns[0], behind - count, low)
    sizes = np.maximum(np.insert(first, behind, high) - begins, 0)
    between = np.cumsum(sizes)
    number = np.arange(len(first))
    is_known = np.zeros(len(first) + int(sizes.sum()), dtype=np.bool_)
    is_known[number + between[number + np.repeat(np.arange(len(count)), count)]] = True
    every = np.empty(len(is_known), dtype=np.int64)
    every[is_known], every[~is_known] = first, ranges(begins, begins + sizes)
    of_place = np.diff(between[behind + np.arange(len(count))], prepend=0)
    place = np.repeat(order, count + of_place)
    begin = tracks.begin[every]
    events = every[~is_known]
    length = np.zeros(len(every), dtype=np.int64)
    length[~is_known] = tracks.before[events + 1] - tracks.before[events]
    # After a long event the next one begins in another cell.
    together = _bits((begin[1:] ^ begin[:-1]) | length[1:])
    seam = tracks.seam[window.rows[place[1:]]]
    together[(place[1:] != place[:-1]) | (every[1:] == seam)] = BITS - 1
    return _Items(place, every, begin, length, is_known, tuple(columns), together)


def _rectangles(window: _Window, levels: Integers, order: Integers) -> list[Integers]:
    """Return the known rectangles of rows in the order of their levels.

    How many each row has; and of each first, stop, label, label_time, kind.
    """
    parts = []
    edges = np.flatnonzero(np.diff(levels[order], prepend=-1, append=-1)).tolist()
    for places in np.split(order, edges[1:-1]):
        level = int(levels[places[0]]) if len(places) else 0
        drawn = window.tracks.levels[level]
        low, high = _touching(window, level, places)
        span = ranges(low, high)
        first = drawn.first[span].astype(np.int64)
        parts.append((high - low, first, drawn.stop(span),
                      drawn.label[span], drawn.label_time[span], drawn.kind[span]))  # fmt: skip
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _counts(items: _Items, levels: Integers) -> Integers:
    """Count the rectangles of each row at each level from its own on: [place][level]."""
    size = len(levels)
    apart = np.bincount(items.place[1:] * BITS + items.together, minlength=size * BITS)
    joined = np.cumsum(apart.reshape(size, BITS), axis=1)
    first = np.bincount(items.place, minlength=size)
    counts: Integers = first[:, None] - joined
    counts[np.arange(BITS) < levels[:, None]] = np.iinfo(np.int64).max
    return counts


def _shared(counts: Integers, levels: Integers, limit: int, coarsest: int) -> Integers:
    """Assign each row the finest level at which all together have at most `limit` rectangles.

    Seams may leave more even at the coarsest.
    """
    places = np.arange(len(levels))
    most = _ceiling(counts[places, levels], limit)
    level = np.minimum(np.argmax(counts <= most, axis=1), coarsest)
    room = limit - counts[places, level].sum()
    # A level finer is about twice as much: the first rows that have room for it get one.
    extra = np.where(level > levels, counts[places, level - 1] - counts[places, level], 0)
    finer: Integers = level - ((level > levels) & (np.cumsum(extra) <= room))
    return finer


def _drawn(window: _Window, items: _Items, levels: Integers, limit: int) -> Rectangles:
    """Put the rectangles together, those of the first rows first."""
    tracks = window.tracks
    starts = np.ones(len(items.place), dtype=np.bool_)
    starts[1:] = items.together > levels[items.place[1:]]
    stops = np.flatnonzero(np.append(starts[1:], True)[: len(starts)])
    is_known, first = items.is_known[starts], items.first[starts]
    stop = items.first[stops] + 1
    stop[is_known] = items.known[0]
    small = ~items.is_known
    label, length = tracks.label[items.first[small]], items.length[small]
    put = tops(np.flatnonzero(starts[small]), label, length, tracks.kind)
    top = np.empty((3, len(first)), dtype=np.int64)
    for column, stored, computed in zip(top, items.known[1:], put, strict=True):
        column[is_known], column[~is_known] = stored, computed
    place = items.place[starts].astype(np.uint16)  # NumPy sorts 16 bits in linear time
    order = np.argsort(place, kind="stable")[:limit]
    first, stop, top = first[order], stop[order], top[:, order]
    before = tracks.before[stop]
    return Rectangles(
        row=window.rows[place[order]],
        begin=items.begin[starts][order],
        end=tracks.begin[stop - 1] + before - tracks.before[stop - 1],
        event=first,
        count=stop - first,
        label=top[0],
        time=before - tracks.before[first],
        label_time=top[1],
        kind=top[2],
    )


def _bits(values: Integers) -> Integers:
    """Count the bits of whole numbers, or one more from 2**53 on."""
    bits: Integers = np.frexp(values.astype(np.float64))[1]
    return bits


def ranges(first: Integers, stop: Integers) -> Integers:
    """Count from each `first` to before its `stop`, one range behind the other."""
    size = stop - first
    shift = np.repeat(first - (np.cumsum(size) - size), size)
    return shift + np.arange(len(shift))


def _ceiling(counts: Integers, most: int) -> int:
    """Return the largest ceiling under which all counts, cut to it, sum to at most `most`."""
    ordered = np.sort(np.append(counts, 0))
    size = len(ordered)
    below = np.cumsum(ordered) - ordered
    room = (most - below) // np.arange(size, 0, -1)
    cut = np.flatnonzero(ordered > room)
    return max(int(room[cut[0]]), 1) if len(cut) else most
