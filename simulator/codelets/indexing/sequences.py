"""Vertices that copy sequences of rows, and count in a ring of tensors.

Source: PopLibs lib/popops/popopsCycleEstimators.cpp.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands


def sequence_slice(
    length: IntArray, rows: int, sequences: int, dtype: Type, target: Target
) -> IntArray:
    """60 + 60 a sequence + W * rounds * half the bytes of all rows / sequences; 2195-2221.

    Of the tile: `length` are the elements of a row of a vertex, `rows` the fewer of both tensors.
    Workers take a sequence each, in rounds; without sequences it takes 40.
    """
    if not sequences:
        return np.full_like(length, 40)
    copied = ceil_div(rows * length * dtype.size // 4 * 2, sequences)
    rounds = ceil_div(sequences, target.workers)
    return 60 + copied * target.workers * rounds + 60 * sequences


def increment_index(vertices: IntArray) -> IntArray:
    """8, a worker; 2224."""
    return np.full_like(vertices, 8)


def ring_offset(vertices: IntArray) -> IntArray:
    """10, a worker; 2230."""
    return np.full_like(vertices, 10)


TYPES = VertexTypes(
    (
        supervisor(
            "popops::SequenceSlice<type>",
            "srcT dstT srcOffsetT dstOffsetT nElementsT",
            sequence_slice,
            POPOPS_CYCLES,
            (40, 260),
        ),
        worker("popops::CircBufIncrIndex", "index", increment_index, POPOPS_CYCLES, (8, 40)),
        worker("popops::CircOffset", "indexIn indexOut", ring_offset, POPOPS_CYCLES, (16, 50)),
    )
)


@cache
def sequence_slice_codelet(dtype: Type) -> Codelet:
    """Return the supervisor that copies rows [from, from + n) to [to, to + n) of each sequence.

    Rows beyond either tensor are left out.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        arrays, length = operands.arrays, operands.group.parameters["length"]
        first = int(operands.counts["nElementsT"][0])
        counts, source, target = (
            arrays[name].astype(np.int64)[:first]
            for name in ("nElementsT", "srcOffsetT", "dstOffsetT")
        )
        pairs = spread(source, counts), spread(target, counts)
        limits = (operands.counts[name] // np.maximum(length, 1) for name in ("srcT", "dstT"))
        inside = [rows < limit[0] for rows, limit in zip(pairs, limits, strict=True)]
        rows_in, rows_out = (rows[inside[0] & inside[1]] for rows in pairs)
        places = []
        for name, rows in (("srcT", rows_in), ("dstT", rows_out)):
            base = offsets_of(operands.counts[name])[:-1]
            begins = base[:, None] + rows[None, :] * length[:, None]
            places.append(spread(begins.reshape(-1), np.repeat(length, len(rows))))
        out = arrays["dstT"]
        out[places[1]] = arrays["srcT"][places[0]]
        return {"dstT": out}

    return TYPES.codelet(f"popops::SequenceSlice<{dtype}>", compute)


@cache
def increment_codelet(size: int) -> Codelet:
    """Return the worker that goes on to the next place of a ring."""

    def compute(operands: Operands) -> dict[str, Array]:
        index: Array = (operands.arrays["index"] + 1) % size
        return {"index": index.astype(np.uint32)}

    return TYPES.codelet("popops::CircBufIncrIndex", compute)


@cache
def offset_codelet(size: int, offset: int) -> Codelet:
    """Return the worker that finds the place `offset` places on in a ring."""

    def compute(operands: Operands) -> dict[str, Array]:
        index: Array = (operands.arrays["indexIn"] + offset) % size
        return {"indexOut": index.astype(np.uint32)}

    return TYPES.codelet("popops::CircOffset", compute)
