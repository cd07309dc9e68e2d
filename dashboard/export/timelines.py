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
from pva.plot.lanes import Timeline
from pva.trace import Trace

Integers = npt.NDArray[Any]

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


def kept(whole: Timeline, limit: int) -> Kept:
    """Return all events of a timeline, or about `limit` rectangles of more."""
    events = len(whole.tracks.begin)
    return _every(whole) if events <= limit else _joined(whole, limit)


def _every(whole: Timeline) -> Kept:
    tracks = whole.tracks
    length = np.diff(tracks.before)
    size = len(length)
    return Kept(
        tracks.offset, tracks.begin, length, tracks.label.astype(np.int64),
        whole.item(np.arange(size)), np.ones(size, np.int64), length, np.full(size, 255),
    )  # fmt: skip


def _joined(whole: Timeline, limit: int) -> Kept:
    """Put short neighbours together, the fewer in the rows that stand for their lanes."""
    tracks = whole.tracks
    every = np.arange(tracks.rows)
    of_lane = whole.is_overview(every)
    sizes = np.diff(tracks.offset)
    first = int(min(sizes[of_lane].sum(), max(OF_LANES * limit, limit * _part(sizes, of_lane))))
    parts = [
        *_levels(whole, every[of_lane], first),
        *_levels(whole, every[~of_lane], limit - first),
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
    item[alone] = whole.item(event[alone])
    share = np.where(time > 0, np.rint(255 * of_label / np.maximum(time, 1)), 255)
    offset = np.searchsorted(row, np.arange(tracks.rows + 1))
    return Kept(offset, begin, end - begin, label.astype(np.int64), item, count, time,
                share.astype(np.int64))  # fmt: skip


def _part(sizes: Integers, chosen: npt.NDArray[np.bool_]) -> float:
    return float(sizes[chosen].sum() / max(int(sizes.sum()), 1))


def _levels(whole: Timeline, rows: Integers, limit: int) -> list[Rectangles]:
    """Return about `limit` rectangles of rows: what one leaves is there for the next, and again."""
    tracks, window = whole.tracks, whole.tracks.extent
    ordered = rows[np.argsort(np.diff(tracks.offset)[rows], kind="stable")].tolist()
    found: dict[int, Rectangles] = {}
    left = limit
    for again in (False, True):
        for place, row in enumerate(ordered):
            before = len(found[row].row) if again else 0
            share = left + before if again else left // (len(ordered) - place)
            room = max(share, LEAST)
            made = viewport(tracks, *window, window[1] - window[0], np.array([row]), room)
            left -= len(made.row) - before
            found[row] = made
    return list(found.values())


def finest(whole: Timeline, found: Kept) -> dict[str, int]:
    """Return by kind of row how long the longest rectangle of several events is."""
    sizes = np.diff(found.offset)
    longest = np.zeros(len(sizes), dtype=np.int64)
    filled = np.flatnonzero(sizes)
    if len(filled):
        several = np.where(found.count > 1, found.length, 0)
        longest[filled] = np.maximum.reduceat(several, found.offset[:-1][filled])
    by_kind: dict[str, int] = {}
    for lane in whole.lanes:
        for row, kind in zip(range(lane.first, lane.stop), lane.kinds, strict=True):
            by_kind[kind] = max(by_kind.get(kind, 0), int(longest[row]))
    return {kind: length for kind, length in by_kind.items() if length}


def timeline_bytes(whole: Timeline, limit: int, trace: Trace | None = None) -> bytes:
    """Pack a timeline: a document of what a view has to know first, and the columns."""
    found = kept(whole, limit)
    used, label = np.unique(found.label, return_inverse=True)
    layout = whole.layout()
    charts: dict[str, Any] = {}
    if trace is not None:
        layout["charts"] = chart_list(trace)
        charts = charts_in(trace, 0, trace.duration_ns)
    begin, end = found.begin.astype(np.int64), (found.begin + found.length).astype(np.int64)
    before = np.append(0, end[:-1])[: len(begin)]
    starts = found.offset[:-1][np.diff(found.offset) > 0]
    before[starts] = 0  # each row by itself
    head = {
        "layout": layout,
        "charts": charts,
        "labels": [shortened(whole.labels[number]) for number in used.tolist()],
        "kinds": whole.tracks.kind[used].tolist() if len(used) else [],
        "offset": found.offset.tolist(),
        "rectangles": len(begin),
        "events": len(whole.tracks.begin),
        "finest": finest(whole, found),
    }
    parts = {
        "gap": packed.signed(begin - before),
        "length": found.length,
        "label": label,
        "item": packed.signed(np.diff(found.item, prepend=0)),
    }
    if (found.count > 1).any():
        parts |= {"more": found.count - 1, "idle": found.length - found.time, "share": found.share}
    return packed.columns(head, parts)
