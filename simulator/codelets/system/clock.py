"""Vertices that read their tile's clock, for a program that measures itself.

The first reads at its end and the second as it begins, so that what is counted is what lies between
them and none of their own cycles.

Source: PopLibs lib/popsys of 2019, popsysCycleEstimators.cpp.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.vertex_type import VertexTypes, supervisor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Operands

# Among the registers of a run: the clocks of all tiles before and after what runs now.
CLOCKS = "clocks"
LOW_WORD = np.uint64(0xFFFF_FFFF)
WORD_BITS = np.uint64(32)


# Estimate: read both halves of the clock (2), put the number in (2), load the count (1), compare
# and branch (2), store (1), count (2), shift the bits of the open Blocks (2).
EVENT_INSTRUCTIONS = 12
EVENT_CYCLES = EVENT_INSTRUCTIONS  # the supervisor issues one a cycle while no worker runs
INSTRUCTION_BYTES = 4


def start_cycles(vertices: IntArray) -> IntArray:
    """39: it reads both words of the clock and stores them."""
    return np.full_like(vertices, 39)


def end_cycles(vertices: IntArray) -> IntArray:
    """75: it reads them, loads and subtracts the first reading, and stores the difference."""
    return np.full_like(vertices, 75)


def record_cycles(vertices: IntArray) -> IntArray:
    """12: it reads both words of the clock, and puts an event where there is room."""
    return np.full_like(vertices, EVENT_CYCLES)


def _start(operands: Operands) -> dict[str, Array]:
    _, after = operands.registers[CLOCKS]
    return {"out": _words(after[operands.group.tile])}


def _record(_: Operands) -> dict[str, Array]:
    """Compute nothing: the events are those of the model's clock."""
    return {}


def _end(operands: Operands) -> dict[str, Array]:
    before, _ = operands.registers[CLOCKS]
    low, high = operands.arrays["startCount"].reshape(-1, 2).T.astype(np.uint64)
    return {
        "out": _words(before[operands.group.tile].astype(np.uint64) - (high << WORD_BITS | low))
    }


def _words(cycles: Array) -> Array:
    """Return numbers of 64 bits as two words each, the low one first."""
    integers = cycles.astype(np.uint64)
    return (
        np.stack([integers & LOW_WORD, integers >> WORD_BITS], axis=1).astype(np.uint32).reshape(-1)
    )


_SOURCE = "PopLibs lib/popsys/popsysCycleEstimators.cpp of 2019"
TYPES = VertexTypes(
    (
        supervisor("popsys::TimeItStart", "out", start_cycles, _SOURCE, (4, 40)),
        supervisor("popsys::TimeItEnd", "startCount out", end_cycles, _SOURCE, (8, 76)),
        supervisor(
            "poplar_rt::RecordBlock",
            "buffer end",
            record_cycles,
            "closed source; our estimate by its instructions",
            (8, INSTRUCTION_BYTES * EVENT_INSTRUCTIONS),
            exact=False,
        ),
    )
)

START = TYPES.codelet("popsys::TimeItStart", _start, reads_clock=True)
END = TYPES.codelet("popsys::TimeItEnd", _end, reads_clock=True)
RECORD_BLOCK = TYPES.codelet("poplar_rt::RecordBlock", _record)
