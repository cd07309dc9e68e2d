"""The host timeline with the threads of each process in one lane.

Where threads overlap at one depth, the event that began first is seen, and of others what is left
behind its end. Events keep the numbers that they have in the timeline of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pva.analysis.spans import without_overlap
from pva.analysis.timeline.pyramid import build
from pva.array_types import Integers
from pva.plot.host import flag_names
from pva.plot.lanes import Lane, RowItems, Timeline

Row = tuple[Integers, Integers, Integers]


def merged_timeline(host: Timeline) -> Timeline:
    """Lay out the threads of each process in one lane."""
    lanes: list[Lane] = []
    items: list[RowItems] = []
    tracks = build(_rows(host, lanes, items), lambda: host.tracks.kind)
    return replace(host, lanes=tuple(lanes), tracks=tracks, items=tuple(items))


def _rows(host: Timeline, lanes: list[Lane], items: list[RowItems]) -> Iterator[Row]:
    by_process: dict[tuple[str, ...], list[Lane]] = {}
    for lane in host.lanes:
        by_process.setdefault(lane.path, []).append(lane)
    first = 0
    for path, merged in by_process.items():
        rows = _by_depth(merged)
        for kind, numbers in rows:
            row, events = _merged_row(host, numbers, kind)
            items.append(RowItems(events.astype(np.int32)))
            yield row
        kinds = tuple(kind for kind, _ in rows)
        stop = first + len(rows)
        overview = first + (1 if kinds[:2] == ("flag", "event") else 0)
        name = merged[0].name if len(merged) == 1 else f"{len(merged):,} threads"
        names = merged[0].names
        if len(merged) > 1:
            names = flag_names(_events(host, rows[0][1]) if kinds[0] == "flag" else 0, len(kinds))
        lanes.append(Lane(name, path, first, stop, names, kinds, overview))
        first = stop


def _events(host: Timeline, rows: list[int]) -> int:
    offset = host.tracks.offset
    return sum(int(offset[row + 1] - offset[row]) for row in rows)


def _by_depth(lanes: list[Lane]) -> list[tuple[str, list[int]]]:
    """Return kind and rows of what stands in each row of the merged lane: flags, then depths."""
    flags = [lane.first for lane in lanes if "flag" in lane.kinds]
    depths: list[list[int]] = []
    for lane in lanes:
        for depth, row in enumerate(range(lane.first + lane.kinds.count("flag"), lane.stop)):
            if depth == len(depths):
                depths.append([])
            depths[depth].append(row)
    kind = "derived" if "derived" in lanes[0].kinds else "event"
    return [*([("flag", flags)] if flags else []), *((kind, rows) for rows in depths)]


def _merged_row(host: Timeline, rows: list[int], kind: str) -> tuple[Row, Integers]:
    """Return a row of the events of several, and their numbers."""
    tracks = host.tracks
    events = np.concatenate([np.arange(*tracks.offset[row : row + 2]) for row in rows])
    if len(rows) > 1:
        events = events[np.argsort(tracks.begin[events], kind="stable")]
    begin, end = tracks.begin[events], tracks.ends(events)
    if kind != "flag" and len(rows) > 1:
        seen = end > np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end)[:-1])
        events, begin, end = events[seen], *without_overlap(begin[seen], end[seen])
    return (begin, end, tracks.label[events]), events
