"""The addresses from which the canvas fetches. SOURCE is `device`, `host` or `together`.

    /timeline/SOURCE/layout       what a view has to know first, as JSON (pva/plot/lanes.py)
    /timeline/SOURCE              a window of rows as bytes (timeline/packing.py): `begin`, `end`,
                                  `pixels`, and `rows` such as `0-5,9-12`, each half-open
    /timeline/SOURCE/search       events by a part `q` of their name, or one by `rank` (search.py)
    /timeline/SOURCE/export.KIND  the events of a window as csv, json (Chrome) or pftrace (Perfetto)
    /timeline/device/waits        which IPUs wait for which in a window, as JSON (waits.py)
    /timeline/device/tiles        what `tiles` such as `0-100` do, an image (tiles.py) of `columns`
                                  times `height`
    /timeline/host/flows          which events led to which in a window, as JSON (flows.py)
    /timeline/host/charts         line graphs and heat maps in a window, as JSON (charts.py)

`device` has the options `against`, a second report, and `filter`, as in `name~conv`: only steps and
blocks whose name it lets through are there (timeline/filtered.py), and `path=on`, a lane of the
critical path (timeline/critical_path.py), and `show=modules`, layers of modules; `together` has
`axis`: `device`, or `simulated`; `host` has `align`, whether several files lie by the `wall` clock
or from their `start`, and `merged=on`, the threads of a process in one lane; with `sketch=on` the
layout of a long trace that is not ready, and windows of it, tell when threads had events
(pva/plot/host_sketch.py).
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dashboard.exports import KINDS, exported
from dashboard.memory import give_back
from dashboard.store import Align, Store, Trace
from dashboard.timeline.charts import chart_list, charts_in
from dashboard.timeline.compared import compared_timeline
from dashboard.timeline.critical_path import with_critical_path
from dashboard.timeline.filtered import Filtered, filter_of, filtered_timeline
from dashboard.timeline.flows import flows_in, flows_of, shown_rows
from dashboard.timeline.host_growth import grown_timeline
from dashboard.timeline.merged import merged_timeline
from dashboard.timeline.packing import pack
from dashboard.timeline.search import search
from dashboard.timeline.tiles import tiles_answer
from dashboard.timeline.together import together_timeline
from dashboard.timeline.waits import waits_in
from pva.analysis.host.alignment import AXES, Alignment, Axis, align
from pva.analysis.host.flows import HostFlows
from pva.analysis.operations.modules import has_modules
from pva.analysis.timeline.viewport import MAX_ROWS, viewport
from pva.errors import NotFoundError, NotRecordedError, PvaError
from pva.plot.device import device_timeline, run_label
from pva.plot.host import HostTimeline, host_timeline
from pva.plot.host_sketch import host_sketch
from pva.plot.lanes import Timeline

if TYPE_CHECKING:
    from flask import Flask, Response

MAX_PIXELS = 8192
# The option `show` of an address, which hides the rows of layers, or has those of modules.
FLAT, MODULES = "flat", "modules"
HOST = "host timeline"  # the name of what is kept
SKETCHED = 1 << 20  # events, of which more are sketched until they are read
BY_MODULE = " by module"  # of the name of what is kept


def timeline(
    store: Store, source: str, report: str, options: Mapping[str, str] = MappingProxyType({})
) -> Timeline:
    """Return the whole timeline of a source, made once a state of its files. Raises PvaError."""
    if source == "device":
        path = options.get("path") == "on"
        against, text = options.get("against", ""), options.get("filter", "")
        modules = options.get("show") == MODULES
        return filtered(store, report, against, text, path=path, modules=modules)
    if source == "host":
        align = align_of(options.get("align", ""))
        return (merged if options.get("merged") == "on" else unmerged)(store, report, align)
    if source == "together":
        return together(store, report, axis_of(options.get("axis", "")))
    raise NotFoundError(f"timeline {source}", "not there", f"known: {', '.join(SOURCES)}")


SOURCES = ("device", "host", "together")


def filtered(
    store: Store,
    report: str,
    against: str,
    text: str,
    *,
    path: bool = False,
    modules: bool = False,
) -> Timeline:
    """Return the device timeline, of two reports when there are two, as a filter leaves it.

    With `path` the critical path of the first is a lane of it. With `modules` its layers are those
    of PyTorch, where there is one report and it tells them.
    """
    modules = modules and not against and has_modules(store.report(report))
    timeline = compared(store, report, against) if against else _device(store, report, modules)
    if path:
        timeline = _with_path(store, report, against, timeline, modules)
    condition = filter_of(text)
    if condition is None:
        return timeline
    name = f"filtered with {against} {store.shown(against)}" if against else "filtered"
    name += " and the critical path" if path else ""
    name += BY_MODULE if modules else ""
    cache = store.derived(report, name, lambda: Filtered(len(timeline.tracks.begin)))

    def make() -> Timeline:
        matching = filtered_timeline(timeline, condition)
        give_back()
        return matching

    return cache.get(str(condition), make)


def _with_path(
    store: Store, report: str, against: str, timeline: Timeline, modules: bool
) -> Timeline:
    """Return a device timeline with the lane of the critical path, made once; raises PvaError."""
    below = f" over {against} {store.shown(against)}" if against else ""
    make = partial(with_critical_path, timeline, store.report(report))
    return store.derived(report, f"critical path{below}{BY_MODULE if modules else ''}", make)


def _device(store: Store, report: str, modules: bool = False) -> Timeline:
    make = partial(_device_anew, store, report, modules)
    return store.derived(report, f"device timeline{BY_MODULE if modules else ''}", make)


def _device_anew(store: Store, report: str, modules: bool) -> Timeline:
    # Of a report of its own, so that the columns that it is made of are let go.
    timeline = device_timeline(store.report_anew(report), modules=modules)
    give_back()
    return timeline


def compared(store: Store, report: str, against: str) -> Timeline:
    """Return the device timelines of two reports on one axis; raises PvaError."""
    second = _device(store, against)
    name = f"device timeline with {against} {store.shown(against)}"
    names = (report or store.keys[0], against)
    return store.derived(
        report, name, lambda: compared_timeline(_device(store, report), second, names)
    )


def host_trace(store: Store, report: str, align: Align = "wall") -> Trace:
    """Return the host trace of a source; raises NotRecordedError when it has none."""
    trace = store.trace(report, align)
    if trace is None:
        raise NotRecordedError(
            store.path(report).name, "no host trace", "set PVTI_OPTIONS and run again"
        )
    return trace


def host(store: Store, report: str, align: Align = "wall") -> HostTimeline:
    """Return the timeline of the host trace of a source; raises PvaError."""

    def make(former: HostTimeline | None) -> HostTimeline:
        return _host_continued(store, report, align, former)

    return store.continued(report, f"{HOST} {align}", make)


def _host_continued(
    store: Store, report: str, align: Align, former: HostTimeline | None
) -> HostTimeline:
    trace = host_trace(store, report, align)
    if align == "start" and len(trace.paths) > 1:
        timeline: HostTimeline = host_timeline(trace, from_start=True)
    else:
        timeline = grown_timeline(trace, former)
    give_back()
    return timeline


def unmerged(store: Store, report: str, align: Align = "wall") -> Timeline:
    """Return the timeline of threads; raises PvaError."""
    return host(store, report, align).timeline


def merged(store: Store, report: str, align: Align = "wall") -> Timeline:
    """Return the timeline with the threads of each process in one lane; raises PvaError."""
    name = f"merged timeline {align}"
    return store.derived(report, name, lambda: merged_timeline(unmerged(store, report, align)))


def host_flows(store: Store, report: str, align: Align = "wall") -> HostFlows:
    """Return what led to what among the events of the host, found once; raises PvaError."""
    whole, trace = unmerged(store, report, align), host_trace(store, report, align)
    return store.derived(report, f"flows {align}", lambda: flows_of(trace, whole))


def align_of(text: str) -> Align:
    """Read the option `align`: by the wall clock unless the other is named."""
    return "start" if text == "start" else "wall"


def axis_of(text: str) -> Axis:
    """Read the option `axis`: that of the device unless the other is named."""
    return next((axis for axis in AXES if axis == text), AXES[0])


def alignment(store: Store, report: str) -> Alignment:
    """Match the runs of a report to its host trace; raises PvaError."""
    return store.derived(
        report, "alignment", lambda: align(store.report(report), host_trace(store, report))
    )


def together(store: Store, report: str, axis: Axis) -> Timeline:
    """Return both timelines on an axis; raises PvaError."""

    def make() -> Timeline:
        offset = alignment(store, report)
        stretched = ", stretched" if axis == "simulated" else ""
        runs = zip(offset.run.tolist(), offset.name, strict=True)
        texts = [run_label(run, name) + stretched for run, name in runs]
        parts = _device(store, report), host(store, report).timeline
        return together_timeline(*parts, offset, axis, texts)

    return store.derived(report, f"both timelines, {axis}", make)


def answer(
    timeline: Timeline,
    begin: int | None,
    end: int | None,
    pixels: int,
    rows: npt.NDArray[np.int64] | None = None,
) -> bytes:
    """Pack what a window of some rows shows; all of the time when the window is none."""
    window = window_in(timeline.extent, (begin, end))
    visible_rows = np.arange(min(timeline.tracks.rows, MAX_ROWS)) if rows is None else rows
    of_lane = timeline.is_overview(visible_rows)
    visible_rows = np.concatenate((visible_rows[of_lane], visible_rows[~of_lane]))
    rectangles = viewport(timeline.tracks, *window, min(max(pixels, 1), MAX_PIXELS), visible_rows)
    item = np.full(len(rectangles.event), -1)
    alone = rectangles.count == 1
    item[alone] = timeline.item(rectangles.event[alone])
    return pack(rectangles, timeline.labels, item, {"window": window})


def rows_asked(text: str, count: int) -> npt.NDArray[np.int64]:
    """Read `0-5,9-12` as the rows that there are among these; what is no range names none."""
    parts = []
    for part in text.split(",")[:MAX_ROWS]:
        first, _, stop = part.partition("-")
        if first.isdecimal() and stop.isdecimal() and len(part) < 40:
            parts.append(np.arange(int(first), min(int(stop), int(first) + MAX_ROWS, count)))
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return np.unique(rows[rows < count])[:MAX_ROWS]


def window_in(extent: tuple[int, int], limits: tuple[int | None, int | None]) -> tuple[int, int]:
    """Return the window asked for, all there is when that is none."""
    begin, end = limits
    return extent if begin is None or end is None or begin >= end else (begin, end)


def moment(text: str | None) -> int | None:
    """Read a place on the time line; None for what is no finite number below 2**62."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return int(value) if math.isfinite(value) and abs(value) < 1 << 62 else None


Options = Mapping[str, str]
Body = tuple[bytes | str, str, dict[str, str]]  # what is answered, its type, headers
BINARY, JSON = "application/octet-stream", "application/json"


def _asked_for(store: Store, source: str, options: Options) -> Timeline:
    return timeline(store, source, options.get("report", ""), options)


def _asked_trace(store: Store, options: Options) -> Trace:
    return host_trace(store, options.get("report", ""), align_of(options.get("align", "")))


def _asked_window(options: Options) -> tuple[int | None, int | None]:
    return moment(options.get("begin")), moment(options.get("end"))


def _whole(options: Options, key: str, default: int) -> int:
    """Read a whole number, or give the default."""
    number = re.fullmatch(r"-?\d{1,18}", options.get(key, ""))
    return int(number[0]) if number else default


def sketched(store: Store, source: str, options: Options) -> Timeline | None:
    """Return when the threads of a long trace had events, where that is asked for and told."""
    align = align_of(options.get("align", ""))
    is_other = source != "host" or options.get("merged") == "on" or align == "start"
    if options.get("sketch") != "on" or is_other:
        return None
    report = options.get("report", "")
    trace = host_trace(store, report)
    is_long = len(trace.threads) <= MAX_ROWS and sum(t.count for t in trace.threads) > SKETCHED
    return store.derived(report, "host sketch", lambda: host_sketch(trace)) if is_long else None


def _layout(store: Store, source: str, options: Options) -> Body:
    """Return a layout: of a sketch where all is not ready, and that was asked for."""
    is_ready = store.knows(options.get("report", ""), f"{HOST} wall")
    early = None if is_ready else sketched(store, source, options)
    document = (early or _asked_for(store, source, options)).layout()
    if source == "host":
        trace = _asked_trace(store, options)
        flows = 0 if early else len(trace.flows)
        document |= {"charts": chart_list(trace), "flows": flows, "sketch": bool(early)}
    return json.dumps(document), JSON, {}


def _window(store: Store, source: str, options: Options) -> Body:
    started = time.thread_time()
    timeline = sketched(store, source, options) or _asked_for(store, source, options)
    rows = rows_asked(options["rows"], timeline.tracks.rows) if "rows" in options else None
    body = answer(timeline, *_asked_window(options), _whole(options, "pixels", 1000), rows)
    spent = f"window;dur={1e3 * (time.thread_time() - started):.3f}"
    return body, BINARY, {"Server-Timing": spent}


def _found(store: Store, source: str, options: Options) -> Body:
    rank = _whole(options, "rank", 0) if "rank" in options else None
    hits = search(_asked_for(store, source, options), options.get("q", ""), rank)
    return json.dumps(hits), JSON, {}


def _tiles(store: Store, source: str, options: Options) -> Body:
    if source != "device":
        raise NotFoundError(f"tiles of {source}", "not there", "the device has tiles")
    extent, report = _asked_for(store, source, options).extent, options.get("report", "")
    shown = window_in(extent, _asked_window(options))
    size = _whole(options, "columns", 700), _whole(options, "height", 100)
    tile_range = re.fullmatch(r"(\d{1,9})-(\d{1,9})", options.get("tiles", ""))
    span = (int(tile_range[1]), int(tile_range[2])) if tile_range else None

    def image() -> bytes:
        return tiles_answer(store.report(report), shown, size, span)

    if shown != extent:
        return image(), BINARY, {}
    # Each visit of the page begins with all of it.
    return store.answer(("tiles", report, store.stamp(report), size, span), image), BINARY, {}


def _waits(store: Store, source: str, options: Options) -> Body:
    if source != "device":
        raise NotFoundError(f"waits of {source}", "not there", "the device has waits")
    shown = window_in(_asked_for(store, source, options).extent, _asked_window(options))
    report = options.get("report", "")
    return json.dumps(waits_in(store, report, shown, _whole(options, "step", -1))), JSON, {}


def _flows(store: Store, source: str, options: Options) -> Body:
    if source != "host":
        raise NotFoundError(f"flows of {source}", "not there", "the host has flows")
    shown, report = _asked_for(store, source, options), options.get("report", "")
    align = align_of(options.get("align", ""))
    lanes = unmerged(store, report, align)
    rows = shown_rows(lanes.lanes, shown.lanes, lanes.tracks.rows)
    window = window_in(shown.extent, _asked_window(options))
    found = host_flows(store, report, align)
    return json.dumps(flows_in(found, rows, window, _whole(options, "event", -1))), JSON, {}


def _charts(store: Store, _source: str, options: Options) -> Body:
    trace = _asked_trace(store, options)
    shown = window_in((0, trace.duration_ns), _asked_window(options))
    return json.dumps(charts_in(trace, *shown)), JSON, {}


def _export(kind: str, store: Store, source: str, options: Options) -> Body:
    timeline = _asked_for(store, source, options)
    body = exported(timeline, kind, *window_in(timeline.extent, _asked_window(options)))
    headers = {"Content-Disposition": f'attachment; filename="{source}.{kind}"'}
    return body, KINDS[kind][1].partition(";")[0], headers


Make = Callable[[Store, str, Options], Body]
ROUTES: tuple[tuple[str, Make], ...] = (
    ("", _window),
    ("/layout", _layout),
    ("/search", _found),
    ("/tiles", _tiles),
    ("/waits", _waits),
    ("/flows", _flows),
    ("/charts", _charts),
    *((f"/export.{kind}", partial(_export, kind)) for kind in KINDS),
)


def register(server: Flask, store: Store) -> None:
    """Add the addresses to the server."""
    for path, make in ROUTES:
        address = f"/timeline/<source>{path}"
        server.add_url_rule(address, f"timeline{path}", _answered(store, make))


def _answered(store: Store, make: Make) -> Callable[[str], Response]:
    """Answer a request, and a fault with its line."""
    from flask import Response, request

    def answered(source: str) -> Response:
        try:
            body, kind, headers = make(store, source, request.args)
        except PvaError as fault:
            if "ahead" in request.args:  # nobody waits for it yet (assets/timeline_start.js)
                return Response(status=204)
            return Response(str(fault), 404, mimetype="text/plain")
        return Response(body, mimetype=kind, headers=headers)

    return answered
