"""Any window of a timeline in few rectangles: what is narrower than a pixel is merged.

A track is one row of a timeline: rectangles sorted by begin, none overlapping the next, so that
both `begin` and `end` ascend and a window is two binary searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

MAX_RECTANGLES = 3000  # a viewport; the binary answer of 29 bytes each stays under 100 kB


@dataclass(frozen=True, slots=True)
class Track:
    """One row: `begin` and `end` in one unit, and three numbers that the drawer understands."""

    begin: Integers
    end: Integers
    colour: Integers
    label: Integers
    item: Integers


@dataclass(frozen=True, slots=True)
class Rectangles:
    """What to draw, by track and begin. `count` rectangles of the track were merged into each.

    Colour, label and item are those of the longest one merged.
    """

    row: Integers
    begin: Integers
    end: Integers
    colour: Integers
    label: Integers
    item: Integers
    count: Integers


def viewport(
    tracks: Sequence[Track],
    begin: int,
    end: int,
    pixels: int,
    limit: int = MAX_RECTANGLES,
) -> Rectangles:
    """Give the rectangles that touch the window, at most `limit`: the pixel widens until they fit.

    A rectangle at least a pixel wide stands alone as long as it does; narrower ones that begin in
    the same pixel become one. Tracks beyond the limit itself are left out.
    """
    pixel = max((end - begin) / max(pixels, 1), 1e-9)
    windows = [_window(track, begin, end) for track in tracks]
    while True:
        starts = [_group_starts(track, begin, pixel) for track in windows]
        if sum(map(len, starts)) <= limit or pixel > 2 * (end - begin):
            break
        pixel *= 2
    nothing = dict.fromkeys(Rectangles.__slots__, np.zeros(0, dtype=np.int64))
    pairs = zip(windows, starts, strict=True)
    parts = [nothing, *(_merged(row, *pair) for row, pair in enumerate(pairs))]
    columns = (np.concatenate([part[name] for part in parts]) for name in Rectangles.__slots__)
    return Rectangles(*(column[:limit] for column in columns))


def _window(track: Track, begin: int, end: int) -> Track:
    """Cut a track to the rectangles that touch the window; they keep their own begin and end."""
    first = int(np.searchsorted(track.end, begin, side="right"))
    stop = max(int(np.searchsorted(track.begin, end, side="left")), first)
    cut = slice(first, stop)
    return Track(
        track.begin[cut], track.end[cut], track.colour[cut], track.label[cut], track.item[cut]
    )


def _group_starts(track: Track, origin: int, pixel: float) -> Integers:
    """Give where each group of rectangles begins that will be drawn as one."""
    if not len(track.begin):
        return np.zeros(0, dtype=np.int64)
    alone = (track.end - track.begin) >= pixel
    place = np.floor((track.begin - origin) / pixel)
    new = np.ones(len(place), dtype=np.bool_)
    new[1:] = alone[1:] | alone[:-1] | (place[1:] != place[:-1])
    return np.flatnonzero(new)


def _merged(row: int, track: Track, starts: Integers) -> dict[str, Integers]:
    """Merge each group of a track; the longest one speaks for it."""
    if not len(starts):
        return dict.fromkeys(Rectangles.__slots__, starts)
    size = len(track.begin)
    count = np.diff(np.append(starts, size))
    length = track.end - track.begin
    longest = np.repeat(np.maximum.reduceat(length, starts), count)
    position = np.where(length == longest, np.arange(size), size)
    speaker = np.minimum.reduceat(position, starts)
    return {
        "row": np.full(len(starts), row),
        "begin": track.begin[starts],
        "end": track.end[starts + count - 1],
        "colour": track.colour[speaker],
        "label": track.label[speaker],
        "item": track.item[speaker],
        "count": count,
    }


def spent(track: Track, begin: int, end: int, colours: int) -> Integers:
    """Add up the time of each colour of a track inside the window."""
    inside = _window(track, begin, end)
    clipped = np.minimum(inside.end, end) - np.maximum(inside.begin, begin)
    sums = np.bincount(inside.colour, weights=np.maximum(clipped, 0), minlength=colours)
    return sums.astype(np.int64)


def grouped(begin: Integers, end: Integers, codes: Integers) -> tuple[Integers, Integers, Integers]:
    """Join neighbours of one code to spans (begin, end, code); code -1 belongs to no span."""
    if not len(codes):
        return begin, end, codes
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    stops = np.append(starts[1:], len(codes)) - 1
    kept = codes[starts] >= 0
    return begin[starts[kept]], end[stops[kept]], codes[starts[kept]]


def bridged(codes: Integers, open_places: Truths) -> Integers:
    """Give the open places between two equal codes that code, so that a span runs through them."""
    known = np.flatnonzero(~open_places)
    if not len(known):
        return codes
    place = np.searchsorted(known, np.arange(len(codes)), side="right") - 1
    before = codes[known[np.maximum(place, 0)]]
    after = codes[known[np.minimum(place + 1, len(known) - 1)]]
    joins = open_places & (place >= 0) & (place + 1 < len(known)) & (before == after)
    return np.where(joins, before, codes)


def without_overlap(begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Begin each rectangle no earlier than all before it ended, as a track requires."""
    ended = np.maximum.accumulate(end)
    before = np.append(begin[:1], ended[:-1])
    return np.maximum(begin, before), ended
