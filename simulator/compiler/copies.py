"""Copies on one tile: the vertices of Poplar's run-time library that the compiler adds."""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.system.copies import (
    TYPES,
    long_copy,
    short_copy,
    strided_copy,
    strided_copy_64,
)
from simulator.graph.geometry.intervals import spread
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Operands, VertexGroup

SHORT_BYTES = 16  # what the short copy takes at most; our choice, its limit is not public
WORD_BYTES = 8  # of which a copy reads one and writes one in a cycle, from two memory elements


def _values(_: Operands) -> dict[str, Array]:
    """Compute nothing: the values of a copy are those of the program that it belongs to."""
    return {}


SHORT = TYPES.codelet("poplar_rt::ShortMemcpy", _values, kind="copy")
LONG = TYPES.codelet("poplar_rt::Memcpy64BitSupervisor", _values, kind="copy")
STRIDED = TYPES.codelet("poplar_rt::StridedCopyDA32", _values, kind="copy")
STRIDED_64 = TYPES.codelet(
    "poplar_rt::StridedCopy64BitMultiAccess", _values, kind="copy", apart="outputs"
)


def copy_vertices(
    compute_set: int,
    tile: IntArray,
    size: IntArray,
    rows: IntArray,
    in_words: Array,
    workers: int,
) -> list[VertexGroup]:
    """Make the copy vertices of tiles that move `size` bytes in `rows` contiguous rows.

    One a tile, but rows that are whole words (`in_words`) are shared by the workers.
    """
    strided = rows > 1
    short = ~strided & (size <= SHORT_BYTES)
    long = ~strided & ~short
    shared = strided & in_words
    cycles = np.where(strided, strided_copy(size, rows), long_copy(size))
    cycles = np.where(short, short_copy(size), cycles)
    selections = ((SHORT, short), (LONG, long), (STRIDED, strided & ~shared))
    groups = [
        VertexGroup(compute_set, codelet, tile[which], {}, {"rows": rows[which]}, cycles[which])
        for codelet, which in selections
        if which.any()
    ]
    if shared.any():
        groups.append(_shared(compute_set, tile[shared], size[shared], rows[shared], workers))
    return groups


def _shared(
    compute_set: int, tile: IntArray, size: IntArray, rows: IntArray, workers: int
) -> VertexGroup:
    """Share the rows of each tile evenly among its workers."""
    shares = np.minimum(rows, workers)
    number, share = np.repeat(np.arange(len(rows)), shares), spread(np.zeros_like(shares), shares)
    worker_rows = (
        rows[number] * (share + 1) // shares[number] - rows[number] * share // shares[number]
    )
    moved = ceil_div(size[number] * worker_rows, rows[number])
    cycles = strided_copy_64(moved, worker_rows)
    return VertexGroup(compute_set, STRIDED_64, tile[number], {}, {"rows": worker_rows}, cycles)


def short_copies(compute_set: int, tile: IntArray) -> VertexGroup:
    """Make one short copy in one row for each entry of `tile`."""
    rows = np.ones(len(tile), dtype=np.int64)
    return VertexGroup(compute_set, SHORT, tile, {}, {"rows": rows}, short_copy(rows))
