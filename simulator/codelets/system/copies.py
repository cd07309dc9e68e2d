"""Cycles of the vertices of Poplar's run-time library: copies, zeroing, counters of loops.

Their source is closed. What the user guide's sample and tutorial 7 show is used as it is: 72 cycles
of every ShortMemcpy, 15 and 13 of the small zeroing vertices. For the other copies there are only
means of whole programs; a call of 40 cycles and 8 bytes a cycle give the observed mean of
Memcpy64BitSupervisor (291) for 2 kB. Sizes are in bytes by vertex.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import VertexTypes, supervisor, worker
from simulator.graph.types import IntArray

SHORT_CYCLES = 72
CALL_CYCLES, BYTES_A_CYCLE = 40, 8
ROW_CYCLES = 12  # our estimate: a pointer set-up for each row
ROW_64_CYCLES = 6  # our estimate: rows of whole 64-bit words, by a worker
ZERO_CYCLES, ZERO_64_CYCLES = 15, 13
COUNTER_CYCLES = 26


def short_copy(size: IntArray) -> IntArray:
    """72, whatever the size, a worker: observed for 4 to 128 bytes on Mk1 and Mk2."""
    return np.full_like(size, SHORT_CYCLES)


def long_copy(size: IntArray) -> IntArray:
    """40 + a cycle for 8 bytes, of the tile: our estimate, 291 of the sample's mean at 2 kB."""
    return CALL_CYCLES + ceil_div(size, BYTES_A_CYCLE)


def strided_copy(size: IntArray, rows: IntArray) -> IntArray:
    """40 + a cycle for 8 bytes + 12 a row, of the tile: our estimate."""
    return CALL_CYCLES + ceil_div(size, BYTES_A_CYCLE) + ROW_CYCLES * rows


def strided_copy_64(size: IntArray, rows: IntArray) -> IntArray:
    """20 + a cycle for 8 bytes + 6 a row, a worker: our estimate; the sample's means are 42, 59."""
    return 20 + ceil_div(size, BYTES_A_CYCLE) + ROW_64_CYCLES * rows


def zero(size: IntArray) -> IntArray:
    """15 up to 4 bytes, then a cycle for 4 more, a worker: 15 observed, the rest our estimate."""
    return ZERO_CYCLES + np.maximum(ceil_div(size, 4) - 1, 0)


def zero_64(size: IntArray) -> IntArray:
    """13 up to 8 bytes, then a cycle for 8 more, a worker: 13 observed, the rest our estimate."""
    return ZERO_64_CYCLES + np.maximum(ceil_div(size, 8) - 1, 0)


def strided_zero_64(size: IntArray, rows: IntArray) -> IntArray:
    """20 + a cycle for 8 bytes + 6 a row, a worker: our estimate; the sample's mean is 41."""
    return strided_copy_64(size, rows)


def loop_counter(vertices: IntArray) -> IntArray:
    """26 for each of an array of vertices, a worker: our estimate.

    Two loads, add, subtract, compare and two stores of a C++ codelet.
    """
    return np.full_like(vertices, COUNTER_CYCLES)


_GUIDE = "closed source; cycles observed in the user guide's sample"
_CLOSED = "closed source; our estimate after means in the user guide's sample"
TYPES = VertexTypes(
    (
        worker("poplar_rt::ShortMemcpy", "src dst", short_copy, _GUIDE, (8, 72)),
        supervisor(
            "poplar_rt::Memcpy64BitSupervisor",
            "src dst",
            long_copy,
            _CLOSED,
            (12, 100),
            exact=False,
        ),
        supervisor(
            "poplar_rt::StridedCopyDA32",
            "src dst",
            strided_copy,
            _CLOSED,
            (16, 170),
            exact=False,
        ),
        supervisor(
            "poplar_rt::DstStridedCopyDA32",
            "src dst",
            strided_copy,
            _CLOSED,
            (16, 170),
            exact=False,
        ),
        worker(
            "poplar_rt::StridedCopy64BitMultiAccess",
            "src dst",
            strided_copy_64,
            _CLOSED,
            (16, 120),
            exact=False,
        ),
        worker(
            "poplar_rt::DstStridedCopy64BitMultiAccess",
            "src dst",
            strided_copy_64,
            _CLOSED,
            (16, 120),
            exact=False,
        ),
        worker("poplar_rt::MemsetZero", "dst", zero, _CLOSED, (8, 70), exact=False),
        worker("poplar_rt::MemsetZero64Bit", "dst", zero_64, _CLOSED, (8, 70), exact=False),
        worker(
            "poplar_rt::DstStridedMemsetZero64Bit",
            "dst",
            strided_zero_64,
            _CLOSED,
            (12, 90),
            exact=False,
        ),
    )
)
