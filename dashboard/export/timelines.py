"""A timeline as data of a page: its events as they are, or the levels that fit where they are many.

Up to a limit each event is there with its begin and length. Of more events those that are short and
close together become one rectangle, as in any answer of the server
(pva/analysis/timeline/viewport.py), with their number, their time, and the label that takes most.
`finest` is the longest of these by the kind of row, which the page states: what is longer is there
as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.export import packed
from dashboard.timeline.charts import chart_list, charts_in
from dashboard.timeline.packing import shortened
from pva.analysis.timeline.viewport import Rectangles, viewport
from pva.array_types import Integers
from pva.plot.lanes import Timeline
from pva.trace import Trace

LEAST = 8  # rectangles of a row, however little room there is
OF_LANES = 2 / 3  # of the rectangles, those of the rows of steps, or of outermost events


@dataclass(frozen=True, slots=True)
class Kept:
    """The rectangles of a page by row and begin; `share` of `time` is that of `label`, in 255ths.

    `offset` has the first rectangle of each row, and one behind the last.
    """

    offset: Integers
    begin: Integers
    length: Integers
    label: Integers
    item: Integers
    count: Integers
    time: Integers
    share: Integers


def kept(timeline: Timeline, limit: int) -> Kept:
    """Return all events of a timeline, or about `limit` rectangles of more."""
    events = len(timeline.tracks.begin)
    return _every(timeline) if events <= limit else _joined(timeline, limit)


def _every(timeline: Timeline) -> Kept:
    tracks = timeline.tracks
    length = np.diff(tracks.before[:])
    size = len(length)
    return Kept(
        tracks.offset, tracks.begin[:], length, tracks.label.astype(np.int64),
        timeline.item(np.arange(size)), np.ones(size, np.int64), length, np.full(size, 255),
    )  # fmt: skip


def _joined(timeline: Timeline, limit: int) -> Kept:
    """Put short neighbours together, the fewer in the rows that stand for their lanes."""
    tracks = timeline.tracks
    every = np.arange(tracks.rows)
    of_lane = timeline.is_overview(every)
    sizes = np.diff(tracks.offset)
    first = int(min(sizes[of_lane].sum(), max(OF_LANES * limit, limit * _part(sizes, of_lane))))
    parts = [
        *_levels(timeline, every[of_lane], first),
        *_levels(timeline, every[~of_lane], limit - first),
    ]
    row, begin, end, event, count, label, time, of_label = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("row", "begin", "end", "event", "count", "label", "time", "label_time")
    )
    order = np.lexsort((begin, row))
    row, begin, end, event, count, label, time, of_label = (
        values[order] for values in (row, begin, end, event, count, label, time, of_label)
    )
    alone = count == 1
    item = np.full(len(row), -1)
    item[alone] = timeline.item(event[alone])
    share = np.where(time > 0, np.rint(255 * of_label / np.maximum(time, 1)), 255)
    offset = np.searchsorted(row, np.arange(tracks.rows + 1))
    return Kept(offset, begin, end - begin, label.astype(np.int64), item, count, time,
                share.astype(np.int64))  # fmt: skip


def _part(sizes: Integers, mask: npt.NDArray[np.bool_]) -> float:
    return float(sizes[mask].sum() / max(int(sizes.sum()), 1))


def _levels(timeline: Timeline, rows: Integers, limit: int) -> list[Rectangles]:
    """Return about `limit` rectangles of rows: what one leaves is there for the next, and again."""
    tracks, window = timeline.tracks, timeline.tracks.extent
    ordered = rows[np.argsort(np.diff(tracks.offset)[rows], kind="stable")].tolist()
    by_row: dict[int, Rectangles] = {}
    budget = limit
    for again in (False, True):
        for place, row in enumerate(ordered):
            before = len(by_row[row].row) if again else 0
            share = budget + before if again else budget // (len(ordered) - place)
            room = max(share, LEAST)
            rectangles = viewport(tracks, *window, window[1] - window[0], np.array([row]), room)
            budget -= len(rectangles.row) - before
            by_row[row] = rectangles
    return list(by_row.values())


def finest(timeline: Timeline, rectangles: Kept) -> dict[str, int]:
    """Return by kind of row how long the longest rectangle of several events is."""
    sizes = np.diff(rectangles.offset)
    longest = np.zeros(len(sizes), dtype=np.int64)
    filled = np.flatnonzero(sizes)
    if len(filled):
        lengths = np.where(rectangles.count > 1, rectangles.length, 0)
        longest[filled] = np.maximum.reduceat(lengths, rectangles.offset[:-1][filled])
    by_kind: dict[str, int] = {}
    for lane in timeline.lanes:
        for row, kind in zip(range(lane.first, lane.stop), lane.kinds, strict=True):
            by_kind[kind] = max(by_kind.get(kind, 0), int(longest[row]))
    return {kind: length for kind, length in by_kind.items() if length}


def timeline_bytes(timeline: Timeline, limit: int, trace: Trace | None = None) -> bytes:
    """Pack a timeline: a document of what a view has to know first, and the columns."""
    rectangles = kept(timeline, limit)
    used, label = np.unique(rectangles.label, return_inverse=True)
    layout = timeline.layout()
    charts: dict[str, Any] = {}
    if trace is not None:
        layout["charts"] = chart_list(trace)
        charts = charts_in(trace, 0, trace.duration_ns)
    begin, end = (
        rectangles.begin.astype(np.int64),
        (rectangles.begin + rectangles.length).astype(np.int64),
    )
    before = np.append(0, end[:-1])[: len(begin)]
    starts = rectangles.offset[:-1][np.diff(rectangles.offset) > 0]
    before[starts] = 0  # each row by itself
    head = {
        "layout": layout,
        "charts": charts,
        "labels": [shortened(timeline.labels[number]) for number in used.tolist()],
        "kinds": timeline.tracks.kind[used].tolist() if len(used) else [],
        "offset": rectangles.offset.tolist(),
        "rectangles": len(begin),
        "events": len(timeline.tracks.begin),
        "finest": finest(timeline, rectangles),
    }
    parts = {
        "gap": packed.signed(begin - before),
        "length": rectangles.length,
        "label": label,
        "item": packed.signed(np.diff(rectangles.item, prepend=0)),
    }
    if (rectangles.count > 1).any():
        parts |= {
            "more": rectangles.count - 1,
            "idle": rectangles.length - rectangles.time,
            "share": rectangles.share,
        }
    return packed.columns(head, parts)
