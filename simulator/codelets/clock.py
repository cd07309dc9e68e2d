"""Vertices that read their tile's clock, for a program that measures itself.

The first reads at its end and the second as it begins, so that what is counted is what lies between
them and none of their own cycles.

Source: PopLibs lib/popsys of 2019, popsysCycleEstimators.cpp.
"""

from __future__ import annotations

import numpy as np

from simulator.graph.types import Array, IntArray
from simulator.graph.vertex import Codelet, Operands

# Among the registers of a run: the clocks of all tiles before and after what runs now.
CLOCKS = "clocks"
LOW_WORD = np.uint64(0xFFFF_FFFF)
WORD_BITS = np.uint64(32)


def start_cycles(vertices: IntArray) -> IntArray:
    """39: it reads both words of the clock and stores them."""
    return np.full_like(vertices, 39)


def end_cycles(vertices: IntArray) -> IntArray:
    """75: it reads them, loads and subtracts the first reading, and stores the difference."""
    return np.full_like(vertices, 75)


def _start(operands: Operands) -> dict[str, Array]:
    _, after = operands.registers[CLOCKS]
    return {"out": _words(after[operands.group.tile])}


def _end(operands: Operands) -> dict[str, Array]:
    before, _ = operands.registers[CLOCKS]
    low, high = operands.arrays["startCount"].reshape(-1, 2).T.astype(np.uint64)
    return {
        "out": _words(before[operands.group.tile].astype(np.uint64) - (high << WORD_BITS | low))
    }


def _words(cycles: Array) -> Array:
    """Return numbers of 64 bits as two words each, the low one first."""
    whole = cycles.astype(np.uint64)
    return np.stack([whole & LOW_WORD, whole >> WORD_BITS], axis=1).astype(np.uint32).reshape(-1)


START = Codelet("popsys::TimeItStart", _start, True, 4, 40, reads_clock=True)
END = Codelet("popsys::TimeItEnd", _end, True, 8, 76, reads_clock=True)
