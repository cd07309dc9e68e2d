"""What can be shown of a long host trace before its events are read: when threads had some."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva.analysis.spans import without_overlap
from pva.analysis.timeline.pyramid import build
from pva.plot.host import NANOSECONDS, Row, threads_in_order
from pva.plot.lanes import Lane, RowItems, Timeline
from pva.trace import Trace

WORDS = "Events that are being read"


def host_sketch(trace: Trace) -> Timeline:
    """Lay out a lane a thread, with a span for some thousands of its events; reads none of them."""
    places = list(threads_in_order(trace))
    lanes = tuple(
        Lane(name, path, row, row + 1, ("",), ("event",), row) for row, path, name in places
    )
    return Timeline(
        "ns", NANOSECONDS, lanes, build(_rows(trace)), (WORDS,), [("quiet", WORDS)],
        tuple(RowItems() for _ in lanes), trace.anchor.wall_ns,
    )  # fmt: skip


def _rows(trace: Trace) -> Iterator[Row]:
    for begin, end in trace.chunks():
        order = np.argsort(begin, kind="stable")
        yield *without_overlap(begin[order], end[order]), np.zeros(len(begin), np.int64)
