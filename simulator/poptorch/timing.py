"""When inputs and outputs moved and how long batches took, in seconds by the device's cycles.

The figures follow from the profile of the last recorded call: they are those of its model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.graph.types import Array
from simulator.poptorch.errors import Error

if TYPE_CHECKING:
    from pva.report import Report


INPUTS, OUTPUTS = "input/", "anchor/"  # what the streams of a session are called
WAYS = ("host to IPU", "compute", "IPU to host", "round trip")
Counters = tuple[list[list[float]], list[list[float]], list[list[float]], list[list[float]]]


class Timing:
    """The clock of a session's calls."""

    def __init__(self) -> None:
        self._session: Any = None

    def note(self, session: object) -> None:
        """Take note of a call."""
        self._session = session

    def counters(self) -> Counters:
        """Return when each input began and ended to move, and each output, by tensor and time."""
        if self._session is None:
            raise Error("getPerfCounters: nothing has run yet")
        received, sent = stream_times(self._session.getReport())
        rows = [[one[way].tolist() for one in side] for side in (received, sent) for way in (0, 1)]
        return rows[0], rows[1], rows[2], rows[3]

    def latency(self, way: str) -> tuple[float, float, float]:
        """Return the least, the most and the mean of one of WAYS over the micro-batches."""
        begin, complete, out, finish = (_joined(rows) for rows in self.counters())
        if not len(begin) or len(begin) != len(out):
            raise Error(f"latency, {way}: inputs and outputs do not move once a micro-batch")
        first, last, start, end = begin.min(1), complete.max(1), out.min(1), finish.max(1)
        durations = dict(
            zip(WAYS, (last - first, start - last, end - start, end - first), strict=True)
        )
        seconds = durations[way]
        return float(seconds.min()), float(seconds.max()), float(seconds.mean())


def _joined(rows: list[list[float]]) -> Array:
    """Return the times as [micro-batch, tensor], of the tensors that move most often."""
    count = max(map(len, rows), default=0)
    full_rows = [row for row in rows if len(row) == count]
    return np.array(full_rows).T if full_rows else np.zeros((0, 0))


def stream_times(report: Report) -> tuple[list[tuple[Array, Array]], list[tuple[Array, Array]]]:
    """Return begins and ends, in seconds, of each input and of each output of the last run."""
    data = report.dataset
    last = data.length("runs") - 1
    first, stop = (int(data.column("runs", name)[last]) for name in ("first_step", "end_step"))
    steps = first + np.flatnonzero(data.texts("steps", "type")[first:stop] == "StreamCopy")
    programs = data.column("steps", "program")[steps]
    names = data.column("programs", "name")[programs]
    clock = float(data.value("target", "clock_frequency"))
    begins, ends = (
        data.column("steps", name)[steps] / clock for name in ("cycles_from", "cycles_to")
    )
    sides = []
    for side in (INPUTS, OUTPUTS):
        streams = dict.fromkeys(name for name in names.tolist() if name.startswith(side))
        sides.append([(begins[names == name], ends[names == name]) for name in streams])
    return sides[0], sides[1]
