"""Device and host on one axis, in nanoseconds since the trace began.

As on the device it begins with the model's first run.

An event of the host is numbered 2 n, a step of the device 2 n + 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pva.analysis.host.alignment import PHASES, Alignment, Axis
from pva.analysis.spans import without_overlap
from pva.analysis.timeline.pyramid import build
from pva.array_types import Integers
from pva.plot.lanes import Lane, RowItems, Timeline

Row = tuple[Integers, Integers, Integers]

DEVICE, HOST = "Device", "Host"


def together_timeline(
    device: Timeline, host: Timeline, alignment: Alignment, axis: Axis, names: list[str]
) -> Timeline:
    """Lay both timelines out below each other on an axis; `names` are those of the runs."""
    items: list[RowItems] = []
    shift = len(device.labels)
    runs = len(device.labels) + len(host.labels) + np.arange(len(names))

    def rows() -> Iterator[Row]:
        for lane in device.lanes:
            for row in range(lane.first, lane.stop):
                if lane.kinds[row - lane.first] == "run":
                    items.append(RowItems())
                    yield (
                        alignment.host(alignment.begin, axis),
                        alignment.host(alignment.end, axis),
                        runs,
                    )
                else:
                    yield _device_row(device, row, alignment, axis, items)
        hidden = _phases(host, axis)
        for row in range(host.tracks.rows):
            yield _host_row(host, row, (alignment, axis, hidden, shift), items)

    colours = [*device.colours, *host.colours]
    kinds = np.zeros(len(device.labels) + len(host.labels) + len(names) + 1, dtype=np.int64)
    of_device, of_host = device.tracks.kind[:shift], host.tracks.kind[: len(host.labels)]
    kinds[: len(of_device)] = of_device
    kinds[shift : shift + len(of_host)] = of_host.astype(np.int64) + len(device.colours)
    tracks = build(rows(), lambda: kinds)
    above = device.tracks.rows
    moved = [
        replace(lane, path=(HOST, *lane.path[1:]), first=lane.first + above,
                stop=lane.stop + above, overview=lane.overview + above)
        for lane in host.lanes
    ]  # fmt: skip
    lanes: list[Lane] = [replace(lane, path=(DEVICE,)) for lane in device.lanes]
    first = int(alignment.host(alignment.begin[alignment.first : alignment.first + 1], axis)[0])
    return Timeline(
        unit="ns",
        clock=1e9,
        lanes=(*lanes, *moved),
        tracks=tracks,
        labels=[*device.labels, *host.labels, *names],
        colours=colours,
        items=tuple(items),
        stretched=axis == "simulated",
        bounds=(first, max(tracks.extent[1], first + 1)) if axis == "device" else None,
    )


def _events(timeline: Timeline, row: int) -> Integers:
    low, high = timeline.tracks.offset[row : row + 2].tolist()
    return np.arange(low, high)


def _device_row(
    device: Timeline, row: int, alignment: Alignment, axis: Axis, items: list[RowItems]
) -> Row:
    """Move a row of the device to the axis, without what belongs to no run of the trace."""
    events = _events(device, row)
    begin, end = device.tracks.begin[events], device.tracks.ends(events)
    place = np.searchsorted(alignment.cycles_from, begin, side="right") - 1
    within = (place >= 0) & (
        begin < (alignment.cycles_from + alignment.cycles)[np.maximum(place, 0)]
    )
    events, begin, end = events[within], begin[within], end[within]
    item = device.item(events)
    named = len(item) > 0 and int(item[0]) >= 0
    items.append(RowItems(2 * item.astype(np.int64) + 1) if named else RowItems())
    return *without_overlap(*alignment.spans(begin, end, axis)), device.tracks.label[events]


def _phases(host: Timeline, axis: Axis) -> object:
    """Return which labels are the simulator's own, which the axis of the device hides."""
    return np.array([axis == "device" and text in PHASES for text in host.labels] or [False])


def _host_row(
    host: Timeline, row: int, placed: tuple[Alignment, Axis, Any, int], items: list[RowItems]
) -> Row:
    alignment, axis, hidden, shift = placed
    events = _events(host, row)
    events = events[~hidden[host.tracks.label[events]]] if len(events) else events
    begin = alignment.host(host.tracks.begin[events], axis)
    end = alignment.host(host.tracks.ends(events), axis)
    items.append(RowItems(2 * events))
    return begin, end, host.tracks.label[events].astype(np.int64) + shift
