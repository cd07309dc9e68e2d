"""When each batch of a run began and ended: by the streams that move its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import moved_bytes
from pva.array_types import Integers, Truths
from pva.data.tile_sets import IO, has_io_tiles, sets_of_steps

if TYPE_CHECKING:
    from pva.report import Report

STREAM_COPY = "StreamCopy"
UNKNOWN = -1
NEVER = np.iinfo(np.int64).max
NONE: Integers = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When the micro-batches of a run began and ended, in cycles; none where it is not known.

    A batch has `parts` micro-batches, more than one where gradients are accumulated.
    """

    begins: Integers
    ends: Integers
    parts: int

    @property
    def latency(self) -> int:
        """Return the longest that a micro-batch took from its input to its output, -1 unknown."""
        if len(self.begins) != len(self.ends):
            return UNKNOWN
        return int((self.ends - self.begins).max(initial=UNKNOWN))

    def steady(self, stages: int) -> float:
        """Return how long a batch takes while all stages have one; not a number if they never do.

        The last stage to get one gets it when batch `stages - 1` begins, and the first one runs out
        of them after the last has begun. In between as many batches end as begin.
        """
        begins, ends = self.begins[:: self.parts], self.ends[self.parts - 1 :: self.parts]
        if not 0 < stages < len(begins):
            return float("nan")
        full = begins[[stages - 1, len(begins) - 1]]
        first, last = (int(at) for at in np.searchsorted(ends, full, side="right"))
        if first < last < len(ends):
            full, count = ends[[first, last]], last - first
        else:
            count = len(begins) - stages
        return float(full[1] - full[0]) / count


def batch_times(report: Report, run: int, batches: int) -> BatchTimes:
    """Return when the batches of a recorded run began and ended.

    A micro-batch begins with the first of its inputs that a stream brings, and ends with the last
    of its outputs that one takes away; a stream that moves less often than once a batch is of the
    whole run. Raises NotRecordedError.
    """
    data = report.dataset
    first, stop = (int(data.column("runs", name)[run]) for name in ("first_step", "end_step"))
    steps = first + np.flatnonzero(data.texts("steps", "type")[first:stop] == STREAM_COPY)
    begin, end = (times[steps] for times in clocks_of_steps(report))
    programs = data.column("steps", "program")[steps]
    received, sent = (_moves(report, programs, way) for way in moved_bytes(report, STREAM_COPY))
    names = np.append(data.column("programs", "name"), "")[programs]
    inputs = _by_name(names, received & (begin >= 0), begin, batches)
    outputs = _by_name(names, sent & (end >= 0), end, batches)
    count = max(map(len, inputs or outputs), default=0)
    begins, ends = _joined(np.minimum, inputs, count), _joined(np.maximum, outputs, count)
    return BatchTimes(begins, ends, max(count // batches, 1))


def clocks_of_steps(report: Report) -> tuple[Integers, Integers]:
    """Return when each step begins and ends: on any tile, or of the I/O tiles on its own ones.

    Raises NotRecordedError.
    """
    data = report.dataset
    begin, end = (data.column("steps", name).copy() for name in ("cycles_from", "cycles_to"))
    if has_io_tiles(data) and data.has("steps_by_ipu"):
        step, first, last = (
            data.column("steps_by_ipu", name) for name in ("step", "from_min", "to_max")
        )
        aside = np.flatnonzero(sets_of_steps(data)[step] == IO)
        begin[step[aside]], end[step[aside]] = NEVER, -1
        np.minimum.at(begin, step[aside], first[aside])
        np.maximum.at(end, step[aside], last[aside])
    return begin, end


def _moves(report: Report, programs: Integers, by_tile: Integers) -> Truths:
    """Return which stream copies move anything, in one of the two directions."""
    moving = np.append(by_tile.any(axis=1), False)
    rows = np.append(report.dataset.column("programs", "exchange"), -1)[programs]
    moves: Truths = moving[np.where((rows >= 0) & (rows < len(by_tile)), rows, -1)]
    return moves


def _by_name(
    names: npt.NDArray[np.object_], mask: Truths, times: Integers, batches: int
) -> list[Integers]:
    """Return the times of each named stream that moves in every batch."""
    of_name = [times[mask & (names == name)] for name in np.unique(names[mask]) if name]
    return [stream for stream in of_name if len(stream) % batches == 0]


def _joined(first_or_last: np.ufunc, streams: list[Integers], count: int) -> Integers:
    """Return the first or the last time of each micro-batch, of the streams that move in each."""
    complete = [times for times in streams if len(times) == count]
    return first_or_last.reduce(complete) if complete else NONE
