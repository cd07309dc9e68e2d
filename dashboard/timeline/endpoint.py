"""The addresses from which the canvas fetches. SOURCE is `device`, `host` or `together`.

    /timeline/SOURCE/layout       what a view has to know first, as JSON (timeline/lanes.py)
    /timeline/SOURCE              a window of rows as bytes (timeline/packing.py): `begin`, `end`,
                                  `pixels`, and `rows` such as `0-5,9-12`, each half-open
    /timeline/SOURCE/search       events by a part `q` of their name, or one by `rank` (search.py)
    /timeline/SOURCE/export.KIND  the events of a window as csv, json (Chrome) or pftrace (Perfetto)
    /timeline/device/tiles        what `tiles` such as `0-100` do, an image (tiles.py) of `columns`
                                  times `height`
    /timeline/host/charts         line graphs and heat maps in a window, as JSON (charts.py)

`together` has the option `axis`: `device`, or `simulated`.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dashboard.exports import KINDS, exported
from dashboard.memory import give_back
from dashboard.store import Store, Trace
from dashboard.timeline.charts import chart_list, charts_in
from dashboard.timeline.device import device_timeline
from dashboard.timeline.host import HostTimeline, host_timeline
from dashboard.timeline.lanes import Timeline
from dashboard.timeline.packing import pack
from dashboard.timeline.search import search
from dashboard.timeline.tiles import tiles_answer
from dashboard.timeline.together import together_timeline
from pva.analysis.alignment import AXES, Alignment, Axis, align
from pva.analysis.level_of_detail import MAX_ROWS, viewport
from pva.errors import NotFoundError, PvaError

if TYPE_CHECKING:
    from flask import Flask, Response

MAX_PIXELS = 8192
FLAT = "flat"  # the option `show` of an address that hides the rows of layers


def timeline(store: Store, source: str, report: str, axis: str = "") -> Timeline:
    """Give the whole timeline of a source, made once a state of its files. Raises PvaError."""
    if source == "device":
        return _device(store, report)
    if source == "host":
        return host(store, report).timeline
    if source == "together":
        return together(store, report, axis_of(axis))
    raise NotFoundError(f"timeline {source}", "not there", f"known: {', '.join(SOURCES)}")


SOURCES = ("device", "host", "together")


def _device(store: Store, report: str) -> Timeline:
    return store.derived(report, "device timeline", partial(_device_anew, store, report))


def _device_anew(store: Store, report: str) -> Timeline:
    # Of a report of its own, so that the columns that it is made of are let go.
    whole = device_timeline(store.report_anew(report))
    give_back()
    return whole


def host_trace(store: Store, report: str) -> Trace:
    """Give the host trace of a source; raises NotFoundError when it has none."""
    trace = store.trace(report)
    if trace is None:
        raise NotFoundError(
            store.path(report).name, "no host trace", "set PVTI_OPTIONS and run again"
        )
    return trace


def host(store: Store, report: str) -> HostTimeline:
    """Give the timeline of the host trace of a source; raises PvaError."""
    return store.derived(report, "host timeline", partial(_host_anew, store, report))


def _host_anew(store: Store, report: str) -> HostTimeline:
    whole = host_timeline(host_trace(store, report))
    give_back()
    return whole


def axis_of(text: str) -> Axis:
    """Read the option `axis`: that of the device unless the other is named."""
    return next((axis for axis in AXES if axis == text), AXES[0])


def alignment(store: Store, report: str) -> Alignment:
    """Find the runs of a report in its host trace; raises PvaError."""
    return store.derived(
        report, "alignment", lambda: align(store.report(report), host_trace(store, report))
    )


def together(store: Store, report: str, axis: Axis) -> Timeline:
    """Give both timelines on an axis; raises PvaError."""

    def make() -> Timeline:
        found, data = alignment(store, report), store.report(report).dataset
        names = data.column("runs", "name")[found.run].tolist()
        stretched = ", stretched" if axis == "simulated" else ""
        texts = [
            f"Engine::run #{run}: {name}".removesuffix(": ") + stretched
            for run, name in zip(found.run.tolist(), names, strict=True)
        ]
        parts = _device(store, report), host(store, report).timeline
        return together_timeline(*parts, found, axis, texts)

    return store.derived(report, f"both timelines, {axis}", make)


def answer(
    whole: Timeline,
    begin: int | None,
    end: int | None,
    pixels: int,
    rows: npt.NDArray[np.int64] | None = None,
) -> bytes:
    """Pack what a window of some rows shows; all of the time when the window is none."""
    window = window_in(whole.extent, (begin, end))
    asked = np.arange(min(whole.tracks.rows, MAX_ROWS)) if rows is None else rows
    asked = np.concatenate(
        [asked[of_lane] for of_lane in (whole.is_overview(asked), ~whole.is_overview(asked))]
    )
    found = viewport(whole.tracks, *window, min(max(pixels, 1), MAX_PIXELS), asked)
    return pack(
        found,
        whole.labels,
        whole.item(found.event),
        {"window": window},
    )


def rows_asked(text: str, count: int) -> npt.NDArray[np.int64]:
    """Read `0-5,9-12` as the rows that there are among these; what is no range names none."""
    parts = []
    for part in text.split(",")[:MAX_ROWS]:
        first, _, stop = part.partition("-")
        if first.isdecimal() and stop.isdecimal() and len(part) < 40:
            parts.append(np.arange(int(first), min(int(stop), int(first) + MAX_ROWS, count)))
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return np.unique(rows[rows < count])[:MAX_ROWS]


def window_in(extent: tuple[int, int], asked: tuple[int | None, int | None]) -> tuple[int, int]:
    """Give the window asked for, all there is when that is none."""
    begin, end = asked
    return extent if begin is None or end is None or begin >= end else (begin, end)


def moment(text: str | None) -> int | None:
    """Read a place on the time line; None for what is no finite number below 2**62."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return int(value) if math.isfinite(value) and abs(value) < 1 << 62 else None


def register(server: Flask, store: Store) -> None:
    """Add the addresses to the server."""
    from flask import Response, request

    def asked_for(source: str) -> Timeline:
        asked = request.args
        return timeline(store, source, asked.get("report", ""), asked.get("axis", ""))

    def asked_window() -> tuple[int | None, int | None]:
        return moment(request.args.get("begin")), moment(request.args.get("end"))

    def layout(source: str) -> Response:
        document = asked_for(source).layout()
        if source == "host":
            document["charts"] = chart_list(host_trace(store, request.args.get("report", "")))
        return Response(json.dumps(document), mimetype="application/json")

    def window(source: str) -> Response:
        started = time.thread_time()
        whole, asked = asked_for(source), request.args
        rows = rows_asked(asked["rows"], whole.tracks.rows) if "rows" in asked else None
        body = answer(whole, *asked_window(), asked.get("pixels", 1000, type=int), rows)
        spent = f"window;dur={1e3 * (time.thread_time() - started):.3f}"
        headers = {"Server-Timing": spent}
        return Response(body, mimetype="application/octet-stream", headers=headers)

    def found(source: str) -> Response:
        text, rank = request.args.get("q", ""), request.args.get("rank", type=int)
        hits = search(asked_for(source), text, rank)
        return Response(json.dumps(hits), mimetype="application/json")

    def tiles(source: str) -> Response:
        asked, key = request.args, request.args.get("report", "")
        if source != "device":
            raise NotFoundError(f"tiles of {source}", "not there", "the device has tiles")
        shown = window_in(asked_for(source).extent, asked_window())
        size = (asked.get("columns", 700, type=int), asked.get("height", 100, type=int))
        chosen = re.fullmatch(r"(\d{1,9})-(\d{1,9})", asked.get("tiles", ""))
        span = (int(chosen[1]), int(chosen[2])) if chosen else None
        body = tiles_answer(store.report(key), shown, size, span)
        return Response(body, mimetype="application/octet-stream")

    def charts(source: str) -> Response:
        trace = host_trace(store, request.args.get("report", ""))
        shown = window_in((0, trace.duration_ns), asked_window())
        return Response(json.dumps(charts_in(trace, *shown)), mimetype="application/json")

    def export(source: str) -> Response:
        whole, kind = asked_for(source), request.path.rpartition(".")[2]
        body = exported(whole, kind, *window_in(whole.extent, asked_window()))
        headers = {"Content-Disposition": f'attachment; filename="{source}.{kind}"'}
        return Response(body, mimetype=KINDS[kind][1].partition(";")[0], headers=headers)

    exports = tuple((f"/export.{kind}", export) for kind in KINDS)
    routes = (("", window), ("/layout", layout), ("/search", found), ("/tiles", tiles),
              ("/charts", charts))  # fmt: skip
    for path, make in (*routes, *exports):
        address = f"/timeline/<source>{path}"
        server.add_url_rule(address, f"timeline{path}", _answered(make))


def _answered(make: Callable[[str], Response]) -> Callable[[str], Response]:
    """Answer a fault with its line."""
    from flask import Response

    def answered(source: str) -> Response:
        try:
            return make(source)
        except PvaError as fault:
            return Response(str(fault), 404, mimetype="text/plain")

    return answered
