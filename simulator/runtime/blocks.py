"""What the buffers of recorded Blocks hold when the host has read them, as blocks of a report.

The events of a run are its steps that record, in their order; the same on the recording tile of
each IPU, at times of its own. A full buffer drops events until it is flushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva import schema
from simulator.compiler.executable import Executable, LoweredProgram
from simulator.compiler.lowering.block_recording import recording_tiles
from simulator.graph.types import IntArray

Flags = npt.NDArray[np.bool_]
NO_PROGRAM = -1
KIND = {name: code for code, name in enumerate(schema.BLOCK_KINDS)}
# Of each event (LoweredProgram): how deep the program is inside Blocks after it, against before.
DEEPER = {"blockBegin": 1, "copyBegin": 1, "blockEnd": -1, "copyEnd": -1, "flush": 0}


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """Rows of the table `blocks` of one run, by IPU and begin; clocks count from its begin.

    program is the row of programs, -1 for an overflow; kind a code of schema.BLOCK_KINDS.
    """

    ipu: IntArray
    tile: IntArray
    program: IntArray
    kind: IntArray
    cycles_from: IntArray
    cycles_to: IntArray


class BlockRecorder:
    """Knows which programs (rows) are events, and what the events of a run become."""

    def __init__(self, executable: Executable) -> None:
        programs = executable.lowered.programs
        options = executable.instrumentation.blocks
        self.events = np.array([bool(program.event) for program in programs], dtype=np.bool_)
        self.tiles = recording_tiles(options, executable.graph.target)
        self._capacity = options.capacity
        self._deeper = np.array([DEEPER.get(p.event, 0) for p in programs], dtype=np.int64)
        self._shown, self._kind = _shown(programs)

    def blocks(self, rows: IntArray, begin: IntArray, end: IntArray, last: IntArray) -> BlockRows:
        """Return the blocks of a run from its events.

        `begin` and `end` are clocks before and after each of them, by [event][IPU], `last` that of
        each IPU's tile at the end of the run. An event's own cycles are outside its Block.
        """
        deeper = self._deeper[rows]
        flushes, marks = np.flatnonzero(deeper == 0), np.flatnonzero(deeper)
        stamp = np.where(deeper[:, None] > 0, end, begin)[marks]
        partner = _partners(deeper[marks])
        mask, lost_from = _kept(
            np.searchsorted(flushes, marks), deeper[marks] > 0, partner, self._capacity
        )
        first = np.flatnonzero(mask & mask[partner] & (deeper[marks] > 0))
        common, flush_rows = rows[marks[first]], self._shown[rows[flushes]]
        # After the last flush there is what the host reads when the run has ended.
        until = np.concatenate([begin[flushes], last[None, :]])
        gap = until[np.searchsorted(flushes, marks[lost_from])]
        none = np.full(len(lost_from), NO_PROGRAM, dtype=np.int64)
        overflow = np.full_like(none, KIND["overflow"])
        return self._rows(
            np.concatenate([self._shown[common], flush_rows, none]),
            np.concatenate([self._kind[common], self._kind[rows[flushes]], overflow]),
            np.concatenate([stamp[first], begin[flushes], stamp[lost_from]]),
            np.concatenate([stamp[partner[first]], end[flushes], gap]),
        )

    def _rows(self, program: IntArray, kind: IntArray, begin: IntArray, end: IntArray) -> BlockRows:
        """Lay out what each IPU has, the outer one first of two that begin together."""
        ipus, count = len(self.tiles), len(program)
        ipu = np.repeat(np.arange(ipus, dtype=np.int64), count)
        start, stop = begin.T.reshape(-1), end.T.reshape(-1)
        order = np.lexsort((-stop, start, ipu))
        return BlockRows(
            ipu=ipu[order],
            tile=self.tiles[ipu[order]],
            program=np.tile(program, ipus)[order],
            kind=np.tile(kind, ipus)[order],
            cycles_from=start[order],
            cycles_to=stop[order],
        )


def _shown(programs: Sequence[LoweredProgram]) -> tuple[IntArray, IntArray]:
    """Return by row the program that a begin or a flush tells of, and the kind of its block."""
    shown = np.full(len(programs), NO_PROGRAM, dtype=np.int64)
    kind = np.zeros(len(programs), dtype=np.int64)
    for row, program in enumerate(programs):
        match program.event:
            case "copyBegin":
                shown[row], kind[row] = row + 1, KIND["streamCopy"]
            case "flush":
                shown[row], kind[row] = row, KIND["blockFlush"]
        for child in program.children:
            if programs[child].event == "blockBegin":
                shown[child], kind[child] = row, KIND["common"]
    return shown, kind


def _partners(deeper: IntArray) -> IntArray:
    """Assign each begin its end and to each end its begin; they nest."""
    depth = np.cumsum(deeper) + (deeper < 0)
    order = np.argsort(depth, kind="stable")  # at each depth begins and ends take turns
    partner = np.empty_like(order)
    partner[order[0::2]], partner[order[1::2]] = order[1::2], order[0::2]
    return partner


def _kept(
    flushed: IntArray, begins: Flags, partner: IntArray, capacity: int
) -> tuple[Flags, IntArray]:
    """Return which events the buffer had room for, and list those with which dropping began.

    `flushed` counts the flushes before each event. An end whose begin was dropped takes no room.
    """
    mask = np.ones(len(flushed), dtype=np.bool_)
    overflows: list[int] = []
    counts = np.bincount(flushed)
    ends = np.cumsum(counts)
    for part in np.flatnonzero(counts > capacity).tolist():
        span = slice(ends[part] - counts[part], ends[part])
        full = np.flatnonzero(mask[span])[capacity:] + span.start
        if len(full):
            overflows.append(int(full[0]))
            mask[full] = False
            mask[partner[full[begins[full]]]] = False
    return mask, np.array(overflows, dtype=np.int64)
