"""The vertex that tells which numbers of a vector are greater than one number, as ones and zeros.

Values and cycles: PopLibs lib/popops/codelets/BroadcastScalar.cpp and popopsCycleEstimators.cpp.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

_NAME = "popops::BroadcastScalar1DRelationalOpDualOutput"


def mask_cycles(elements: IntArray, target: Target, dtype: Type) -> IntArray:
    """W * (35 + 8 for a worker's each element) of floats; W * (56 + 23 for each two) of halves."""
    overhead, turn = (15, 8) if dtype == FLOAT else (36, 23)
    turns = ceil_div(ceil_div(elements, target.workers), target.getVectorWidth(dtype) // 2)
    return target.workers * (20 + overhead + turns * turn) + SUPERVISOR_CALL


TYPES = VertexTypes(
    (supervisor(f"{_NAME}<op,type,outType>", "B data out outInv", mask_cycles, POPOPS_CYCLES,
                (24, 150)),)
)  # fmt: skip


@cache
def greater_than(dtype: Type) -> Codelet:
    """Return the vertex whose `out` is 1 where `data` is greater than `B`, and `outInv` 0 there."""

    def compute(operands: Operands) -> dict[str, Array]:
        arrays = operands.arrays
        limit = np.repeat(arrays["B"], operands.counts["data"])
        out = (arrays["data"] > limit).astype(dtype.numpy)
        return {"out": out, "outInv": 1 - out}

    operation = "popops::expr::BinaryOpType::GREATER_THAN"
    return TYPES.codelet(f"{_NAME}<{operation},unsigned int,{dtype}>", compute)
