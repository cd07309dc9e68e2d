"""The device timelines of two reports on one axis, each by its own clock.

They begin together and lie by cycles. Where a second has another number of these in each, the lanes
tell their clock, and the axis is not told as time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pva.analysis.timeline.pyramid import build
from pva.array_types import Integers
from pva.plot.lanes import Lane, RowItems, Timeline


def compared_timeline(one: Timeline, second: Timeline, names: tuple[str, str]) -> Timeline:
    """Lay one timeline out above another; events of the other have no number on this page."""
    first, shift = one.tracks.rows, len(one.labels)
    items = one.items or tuple(RowItems() for _ in range(first))
    kinds = np.concatenate((one.tracks.kind[:shift], second.tracks.kind[: len(second.labels)], [0]))
    clocks = (0.0, 0.0) if one.clock == second.clock else (one.clock, second.clock)
    lanes = [replace(lane, path=(names[0],), clock=clocks[0]) for lane in one.lanes]
    lower = (replace(_lower(lane, first, names[1]), clock=clocks[1]) for lane in second.lanes)
    return replace(
        one,
        clock=0.0 if any(clocks) else one.clock,
        lanes=(*lanes, *lower),
        tracks=build(_rows(one, second), lambda: kinds),
        labels=[*one.labels, *second.labels],
        items=(*items, *(RowItems() for _ in range(second.tracks.rows))),
    )


def _lower(lane: Lane, by: int, name: str) -> Lane:
    return replace(
        lane, path=(name,), first=lane.first + by, stop=lane.stop + by, overview=lane.overview + by
    )


def _rows(one: Timeline, second: Timeline) -> Iterator[tuple[Integers, Integers, Integers]]:
    for timeline, shift in ((one, 0), (second, len(one.labels))):
        tracks = timeline.tracks
        for row in range(tracks.rows):
            events = np.arange(*tracks.offset[row : row + 2])
            label = tracks.label[events].astype(np.int64) + shift
            yield tracks.begin[events], tracks.ends(events), label
