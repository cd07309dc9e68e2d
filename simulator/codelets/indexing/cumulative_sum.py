"""Vertices that sum up the rows of a block as they go, and add what came before the block.

PopLibs has no such vertex: these, and their cycles, are ours. A worker goes down the rows of one
vector of columns after another.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

CALL, COLUMN = 20, 8  # of a worker, and of a vector of columns, before the first row


def partials_of(dtype: Type) -> Type:
    """Return the type in which sums are kept: halves are added up as floats."""
    return FLOAT if dtype == HALF else dtype


def cumulative_sum_cycles(
    rows: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """20 + (8 + 2 a row) a vector of columns, a worker: our estimate; integers take 3 a row.

    A row is a load, an addition and a store, of which two go together; halves take 4, as they are
    converted to floats and back.
    """
    step = {FLOAT: 2, HALF: 4}.get(dtype, 3)
    vectors = ceil_div(columns, target.getVectorWidth(dtype) if dtype in (FLOAT, HALF) else 1)
    return CALL + vectors * (COLUMN + step * rows)


@cache
def cumulative_sum_codelet(dtype: Type, exclusive: bool, reverse: bool) -> Codelet:
    """Return the vertex whose row i of `out` is the sum of the rows of `in` up to the i-th.

    `exclusive` sums leave the i-th out, `reverse` ones begin at the last row. `total` is the sum of
    all rows. Parameters by vertex: `rows` and `columns`.
    """
    partials = partials_of(dtype)

    def compute(operands: Operands) -> dict[str, Array]:
        values = operands.arrays["in"]
        out = np.empty_like(values)
        total = np.empty(int(operands.counts["total"].sum()), partials.numpy)
        for places, ends in _blocks(operands):
            rows = values[places][:, ::-1] if reverse else values[places]
            sums = np.cumsum(rows, axis=1, dtype=partials.numpy)
            total[ends] = sums[:, -1]
            if exclusive:
                sums = np.roll(sums, 1, axis=1)
                sums[:, 0] = 0
            out[places] = (sums[:, ::-1] if reverse else sums).astype(dtype.numpy)
        return {"out": out, "total": total}

    name = f"popops::CumulativeSum<{dtype},{str(exclusive).lower()},{str(reverse).lower()}>"
    return TYPES.codelet(name, compute, _additions)


@cache
def add_carry_codelet(dtype: Type) -> Codelet:
    """Return the vertex that adds `carry`, one for each column, to all rows of `out`."""

    def compute(operands: Operands) -> dict[str, Array]:
        out, carry = operands.arrays["out"], operands.arrays["carry"]
        for places, ends in _blocks(operands):
            out[places] = (out[places] + carry[ends][:, None]).astype(dtype.numpy)
        return {"out": out}

    return TYPES.codelet(f"popops::CumulativeSumCarry<{dtype}>", compute, _additions)


def _additions(group: VertexGroup) -> IntArray:
    real = group.fields["out"].dtype in (FLOAT, HALF)
    return group.fields["out"].counts() * real


def _blocks(operands: Operands) -> list[tuple[IntArray, IntArray]]:
    """Return, for all blocks of one size, the places of their elements and of their columns.

    [block][row][column] and [block][column]; there are only a few sizes.
    """
    if not operands.prepared:
        rows, columns = (operands.group.parameters[name] for name in ("rows", "columns"))
        first, column = offsets_of(rows * columns)[:-1], offsets_of(columns)[:-1]
        places = []
        for height, width in np.unique(np.stack([rows, columns], 1), axis=0).tolist():
            members = (rows == height) & (columns == width)
            inside = np.arange(height * width, dtype=np.int64).reshape(height, width)
            ends = column[members][:, None] + np.arange(width, dtype=np.int64)
            places.append((first[members][:, None, None] + inside, ends))
        operands.prepared["blocks"] = places
    blocks: list[tuple[IntArray, IntArray]] = operands.prepared["blocks"]
    return blocks


TYPES = VertexTypes(
    (
        worker(
            "popops::CumulativeSum<type,exclusive,reverse>",
            "in out total",
            cumulative_sum_cycles,
            "our estimate",
            (20, 130),
            exact=False,
        ),
        worker(
            "popops::CumulativeSumCarry<type>",
            "out carry",
            cumulative_sum_cycles,
            "our estimate",
            (16, 100),
            exact=False,
        ),
    )
)
