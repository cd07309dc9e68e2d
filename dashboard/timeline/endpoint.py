"""The address from which the canvas fetches its rectangles: /timeline/device and /timeline/host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dashboard.store import Store, Trace
from dashboard.timeline.device import device_timeline
from dashboard.timeline.host import host_timeline
from dashboard.timeline.lanes import Timeline
from dashboard.timeline.packing import pack
from pva.analysis.level_of_detail import viewport
from pva.errors import NotFoundError, PvaError

if TYPE_CHECKING:
    from flask import Flask, Response

MAX_PIXELS = 8192
FLAT = "flat"  # the option `show` of an address that hides the rows of layers


def timeline(store: Store, source: str, report: str, show: str = "") -> Timeline:
    """Give the whole timeline of a source, made once a state of its files. Raises PvaError."""
    if source not in SOURCES:
        raise NotFoundError(f"timeline {source}", "not there", f"known: {', '.join(SOURCES)}")
    whole = store.derived(report, f"timeline of {source}", lambda: SOURCES[source](store, report))
    return whole.without_layers() if show == FLAT else whole


def _device(store: Store, report: str) -> Timeline:
    return device_timeline(store.report(report))


def host_trace(store: Store, report: str) -> Trace:
    """Give the host trace of a source; raises NotFoundError when it has none."""
    trace = store.trace(report)
    if trace is None:
        raise NotFoundError(
            store.path(report).name, "no host trace", "set PVTI_OPTIONS and run again"
        )
    return trace


def _host(store: Store, report: str) -> Timeline:
    return host_timeline(host_trace(store, report))


SOURCES: dict[str, Callable[[Store, str], Timeline]] = {"device": _device, "host": _host}


def answer(whole: Timeline, begin: int | None, end: int | None, pixels: int) -> bytes:
    """Pack what a window of the timeline shows; the whole of it when no window is given."""
    extent = whole.extent
    window = extent if begin is None or end is None or begin >= end else (begin, end)
    rectangles = viewport(
        [row.track for row in whole.rows], *window, min(max(pixels, 1), MAX_PIXELS)
    )
    header = {
        "unit": whole.unit,
        "clock": whole.clock,
        "extent": extent,
        "window": window,
        "rows": [{"lane": r.lane, "name": r.name, "overview": r.overview} for r in whole.rows],
        "colours": [{"token": token, "words": words} for token, words in whole.colours],
    }
    return pack(rectangles, whole.labels, header)


def register(server: Flask, store: Store) -> None:
    """Add the address to the server."""
    from flask import Response, request

    def show(source: str) -> Response:
        asked = request.args
        try:
            whole = timeline(store, source, asked.get("report", ""), asked.get("show", ""))
        except PvaError as fault:
            return Response(str(fault), 404, mimetype="text/plain")
        begin, end = asked.get("begin", type=int), asked.get("end", type=int)
        body = answer(whole, begin, end, asked.get("pixels", 1000, type=int))
        return Response(body, mimetype="application/octet-stream")

    server.add_url_rule("/timeline/<source>", "timeline", show)
