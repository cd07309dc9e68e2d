"""The events of a window of a timeline as a file: CSV, Chrome JSON, Perfetto.

The device's cycles become nanoseconds by its clock in the last two, which know no other unit. Rows
of runs and layers go into these as threads of their own depth, as on screen.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from dashboard.downloads import csv
from dashboard.elements.components import Frame
from pva.analysis.host.events import events_in_window
from pva.errors import NotFoundError, PvaError
from pva.formats.traces import chrome_trace, perfetto_trace
from pva.model.host_trace.events import Metadata, Names, Process, Thread, ThreadColumns
from pva.model.host_trace.nesting import begin_order
from pva.model.host_trace.series import Instants, no_flows
from pva.model.host_trace.trace_content import Anchor
from pva.plot.lanes import Timeline

NANOSECONDS = 1e9  # a second
MAX_EVENTS = 2_000_000  # of a file; a larger window is refused


def exported(timeline: Timeline, kind: str, begin: int, end: int) -> bytes:
    """Write the events of all rows that touch a window; raises PvaError."""
    if kind not in KINDS:
        raise NotFoundError(f"export.{kind}", "not there", f"known: {', '.join(KINDS)}")
    frame = events_in_window(timeline.tracks, np.arange(timeline.tracks.rows), begin, end).frame()
    if len(frame) > MAX_EVENTS:
        problem = f"{len(frame):,} events in the window"
        raise PvaError(f"export.{kind}", problem, f"choose one of at most {MAX_EVENTS:,}")
    return KINDS[kind][0](timeline, frame)


def _csv(timeline: Timeline, frame: Frame) -> bytes:
    rows, lanes = frame["row"].to_numpy(), timeline.lane_of_row
    names = np.array(["/".join((*lane.path, lane.name)) for lane in timeline.lanes], dtype=object)
    plain = [text.encode(errors="replace").decode() for text in timeline.labels]
    texts = np.array(plain, dtype=object)
    kinds = np.array([words for _, words in timeline.colours], dtype=object)
    labels = frame["label"].to_numpy()
    first = np.array([lane.first for lane in timeline.lanes])
    table = frame.assign(
        lane=names[lanes[rows]] if len(rows) else [],
        row=rows - first[lanes[rows]] if len(rows) else rows,
        label=texts[labels] if len(rows) else [],
        kind=kinds[timeline.tracks.kind[labels]] if len(rows) else [],
        item=timeline.item(frame["event"].to_numpy()),
    )
    columns = ["lane", "row", "label", "kind", "begin", "length", "item"]
    unit = {"begin": f"begin_{timeline.unit}", "length": f"length_{timeline.unit}"}
    return csv(table[columns].rename(columns=unit))


def _as_trace(timeline: Timeline, frame: Frame) -> object:
    """Return the window as what the writers of traces take."""
    used = timeline.tracks.kind[: len(timeline.labels)].astype(np.int32)
    channels = tuple(words for _, words in timeline.colours)
    names = Names(tuple(timeline.labels), channels, used)
    slowest = min((lane.clock or timeline.clock for lane in timeline.lanes), default=NANOSECONDS)
    lanes, rows = timeline.lane_of_row, frame["row"].to_numpy()
    of_lane = lanes[rows] if len(rows) else rows
    is_flag = timeline.of_kinds(("flag",))[rows]
    paths: dict[tuple[str, ...], list[Thread]] = {}
    for number, lane in enumerate(timeline.lanes):
        columns = _columns(
            frame[(of_lane == number) & ~is_flag],
            NANOSECONDS / (lane.clock or timeline.clock),
            names,
        )
        pid = list(paths).index(lane.path) + 1 if lane.path in paths else len(paths) + 1
        identity = (pid, number + 1, lane.name)
        thread = Thread(identity, len(columns), names, partial(_same, columns))
        paths.setdefault(lane.path, []).append(thread)
    processes = tuple(
        Process(number, "/".join(path) or "device", tuple(threads))
        for number, (path, threads) in enumerate(paths.items(), 1)
    )
    threads = tuple(thread for process in processes for thread in process.threads)
    place = np.argsort([thread.tid for thread in threads])  # of the thread of each lane
    return SimpleNamespace(
        processes=processes,
        threads=threads,
        labels=names.labels,
        channels=names.channels,
        label_channels=names.label_channels,
        anchor=Anchor(0, timeline.wall_ns),
        duration_ns=int(timeline.extent[1] * NANOSECONDS / slowest),
        is_finished=True,
        instants=_instants(frame[is_flag], place[of_lane[is_flag]], names),
        flows=no_flows(),
        series=(),
        heatmaps=(),
    )


def _instants(frame: Frame, thread: Any, names: Names) -> Instants:
    """Return flags, which only the host has, in the order of their time."""
    order = np.argsort(frame["begin"].to_numpy(), kind="stable")
    label = frame["label"].to_numpy()[order].astype(np.int32)
    nothing = np.full(len(order), None, dtype=object)
    times = frame["begin"].to_numpy()[order]
    return Instants(times, label, names.label_channels[label], thread[order], nothing)


def _same(columns: ThreadColumns) -> ThreadColumns:
    return columns


def _columns(frame: Frame, scale: float, names: Names) -> ThreadColumns:
    """Return the events of one lane in the order of their begin, in nanoseconds."""
    start = frame["begin"].to_numpy() * scale
    end = np.rint(start + frame["length"].to_numpy() * scale).astype(np.int64)
    begin = np.rint(start).astype(np.int64)
    by_end = np.lexsort((-begin, end))
    order = by_end[begin_order(begin[by_end])]
    nothing = np.zeros(0, dtype=np.int64)
    return ThreadColumns(
        (begin[order], end[order]),
        frame["label"].to_numpy()[order].astype(np.int32),
        np.zeros(len(order), dtype=np.uint8),
        nothing,
        names,
        Metadata(nothing, ()),
    )


def _written(write: Callable[[Any, Any], None]) -> Callable[[Timeline, Frame], bytes]:
    def make(timeline: Timeline, frame: Frame) -> bytes:
        out = io.BytesIO()
        write(_as_trace(timeline, frame), out)
        return out.getvalue()

    return make


KINDS: dict[str, tuple[Callable[[Timeline, Frame], bytes], str]] = {
    "csv": (_csv, "text/csv; charset=utf-8"),
    "json": (_written(chrome_trace.write), "application/json"),
    "pftrace": (_written(perfetto_trace.write), "application/octet-stream"),
}
