"""Open the trace of Triton as a host trace: each request a span, with its parts inside.

Requests that overlap stand on rows of their own; a row is taken again when its request has ended.
Names of spans are those that our own server records: queue, upload, execute, download. What a
request was is the metadata of its span.
"""

from __future__ import annotations

import os
from heapq import heappop, heappush
from pathlib import Path

import msgspec
import numpy as np

from pva.array_types import Integers
from pva.errors import UnknownFormatError
from pva.formats.memory_limit import SHORTER, Budget
from pva.formats.traces import chrome_events as events
from pva.formats.traces import triton_trace
from pva.formats.traces.chrome_events import Read
from pva.formats.traces.chrome_file import TEXT, ChromeFile, tables_of_nothing
from pva.formats.traces.triton_trace import MISSING, TritonRequests
from pva.plain_file import opened

CHANNEL, REQUEST = "Serving", "request"
# Spans inside of a request: from one stage to another.
PARTS = {
    "receive": ("HTTP_RECV_START", "HTTP_RECV_END"),
    "queue": ("QUEUE_START", "COMPUTE_START"),
    "upload": ("COMPUTE_START", "COMPUTE_INPUT_END"),
    "execute": ("COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"),
    "download": ("COMPUTE_OUTPUT_START", "COMPUTE_END"),
    "send": ("HTTP_SEND_START", "HTTP_SEND_END"),
}
EVENT = 200  # bytes of a span while it is read


class TritonFile(ChromeFile):
    """A trace of Triton read whole into columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path, triton_trace.FORMAT) as stream:
            size = os.fstat(stream.fileno()).st_size
        self.budget = Budget(path, size, held=0, otherwise=SHORTER)
        requests = triton_trace.read(path, self.budget)
        self._about = {}
        self._own, self._finished = False, True
        self._tables = tables_of_nothing()
        read = as_events(requests, self.budget)
        self._problems = read.problems
        self._fill(read)
        self.problems = requests.problems
        self.budget.hold(TEXT * len(requests.id))


def as_events(requests: TritonRequests, budget: Budget) -> Read:
    """Return requests as complete events; those without two stages are left out."""
    moments = np.where(requests.moments >= 0, requests.moments, np.iinfo(np.int64).max)
    begin, end = moments.min(axis=0), requests.moments.max(axis=0)
    rows = np.flatnonzero((end >= 0) & (begin < end))
    if not len(rows):
        raise UnknownFormatError(requests.path, "no request with timestamps", triton_trace.FORMAT)
    rows = rows[np.argsort(begin[rows], kind="stable")]
    budget.spend(EVENT * (1 + len(PARTS)) * len(rows), "requests")
    lane = rows_of_time(begin[rows], end[rows])
    read = Read(budget)
    _add(read, REQUEST, begin[rows], end[rows], lane)
    read.told.extend(np.arange(len(rows)))
    read.texts.extend(_metadata(requests, rows))
    for name, (first, last) in PARTS.items():
        starts, stops = requests.at(first)[rows], requests.at(last)[rows]
        complete = (starts != MISSING) & (stops >= starts)
        _add(read, name, starts[complete], stops[complete], lane[complete])
    for number in range(int(lane.max()) + 1):
        read.lanes[0, number + 1]
        read.names["thread_name", (0, number + 1)] = f"requests {number + 1}"
    read.names["process_name", 0] = requests.path.name
    return read


def _add(read: Read, name: str, begin: Integers, end: Integers, lane: Integers) -> None:
    count, label = len(begin), read.labels[CHANNEL, name]
    read.phase.extend(np.full(count, events.COMPLETE))
    read.time.extend(begin)
    read.duration.extend(end - begin)
    read.lane.extend(lane)
    read.label.extend(np.full(count, label))


def rows_of_time(begin: Integers, end: Integers) -> Integers:
    """Place spans, in order of begin, on rows on which no two overlap: the lowest that is free."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    rows = []
    for start, stop in zip(begin.tolist(), end.tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        row = heappop(free) if free else len(busy)
        heappush(busy, (stop, row))
        rows.append(row)
    return np.array(rows, np.int64)


def _metadata(requests: TritonRequests, rows: Integers) -> list[bytes]:
    """Write what each request was: requests whose batch began and ended together share a batch."""
    begin, end = requests.at("COMPUTE_START")[rows], requests.at("COMPUTE_END")[rows]
    keys = zip(
        (requests.model[row] for row in rows.tolist()),
        (requests.version[row] for row in rows.tolist()), begin.tolist(), end.tolist(), strict=True,
    )  # fmt: skip
    batches: dict[tuple[str, str, int, int], int] = {}
    batch = [batches.setdefault(key, len(batches)) for key in keys]
    spans = {
        f"{name}_ns": np.where(
            (requests.at(first) >= 0) & (requests.at(last) >= 0),
            requests.at(last) - requests.at(first), 0,
        )[rows].tolist()
        for name, (first, last) in PARTS.items()
    }  # fmt: skip
    documents = []
    for place, row in enumerate(rows.tolist()):
        one = {"id": requests.request_id[row] or str(requests.id[row]),
               "model": requests.model[row], "version": requests.version[row],
               "rows": int(requests.rows[row]), "batch": batch[place]}  # fmt: skip
        documents.append(msgspec.json.encode(one | {name: spans[name][place] for name in spans}))
    return documents
