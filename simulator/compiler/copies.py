"""Copies on one tile: the vertices of Poplar's run-time library that the compiler adds."""

from __future__ import annotations

import numpy as np

from simulator.codelets.copy_cycles import TYPES, long_copy, short_copy, strided_copy
from simulator.graph.types import Array, IntArray
from simulator.graph.vertex import Operands, VertexGroup

SHORT_BYTES = 16  # what the short copy takes at most; our choice, its limit is not public


def _values(_: Operands) -> dict[str, Array]:
    """Compute nothing: the values of a copy are those of the program that it belongs to."""
    return {}


SHORT = TYPES.codelet("poplar_rt::ShortMemcpy", _values, kind="copy")
LONG = TYPES.codelet("poplar_rt::Memcpy64BitSupervisor", _values, kind="copy")
STRIDED = TYPES.codelet("poplar_rt::StridedCopyDA32", _values, kind="copy")


def copy_vertices(
    compute_set: int, tile: IntArray, size: IntArray, rows: IntArray
) -> list[VertexGroup]:
    """Make one copy vertex a tile that moves `size` bytes in `rows` contiguous rows."""
    strided = rows > 1
    short = ~strided & (size <= SHORT_BYTES)
    long = ~strided & ~short
    cycles = np.where(strided, strided_copy(size, rows), long_copy(size))
    cycles = np.where(short, short_copy(size), cycles)
    chosen = ((SHORT, short), (LONG, long), (STRIDED, strided))
    return [
        VertexGroup(compute_set, codelet, tile[which], {}, {"rows": rows[which]}, cycles[which])
        for codelet, which in chosen
        if which.any()
    ]


def short_copies(compute_set: int, tile: IntArray) -> VertexGroup:
    """Make one short copy in one row for each entry of `tile`."""
    rows = np.ones(len(tile), dtype=np.int64)
    return VertexGroup(compute_set, SHORT, tile, {}, {"rows": rows}, short_copy(rows))
