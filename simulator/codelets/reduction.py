"""Vertices that add many values into one.

Sources: PopLibs lib/popops/reduction/CycleEstimationFunctions.cpp (Reduce), lib/poplin/
PerformanceEstimation.hpp (ReduceAdd of partial convolution results).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div, runs_of_equals
from simulator.graph.errors import PoplarError
from simulator.graph.intervals import offsets_of
from simulator.graph.target import Target
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup

REDUCTIONS: dict[str, np.ufunc] = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
}


def accumulator(dtype: Type) -> np.dtype[Any]:
    """Give the type in which a vertex adds up: PopLibs sums halves as floats and rounds once."""
    return FLOAT.numpy if dtype == HALF else dtype.numpy


def _operations(group: VertexGroup) -> IntArray:
    name = "partials" if "partials" in group.fields else "in"
    return group.fields[name].counts() - group.fields["out"].counts()


def reduce_codelet(operation: str, dtype: Type, specialisation: int) -> Codelet:
    """Give popops::Reduce; parameter `partials` holds the inputs of each output.

    The values of `in` come output by output. The specialisation is PopLibs' number: 2 for one
    output, 3 for a region of outputs.
    """
    if operation not in REDUCTIONS:
        raise PoplarError(f"reduce: operation {operation}; known are {', '.join(REDUCTIONS)}")
    function = REDUCTIONS[operation]

    def compute(operands: Operands) -> dict[str, Array]:
        starts = operands.prepared.get("starts")
        if starts is None:
            sizes = operands.group.parameters["partials"]
            starts = operands.prepared["starts"] = offsets_of(sizes)[:-1]
        reduced = function.reduceat(operands.arrays["in"], starts, dtype=accumulator(dtype))
        return {"out": reduced.astype(dtype.numpy, copy=False)}

    reduction = f"popops::Reduce{operation.capitalize()}"
    name = f"popops::Reduce<{reduction},{dtype},{dtype},false,{specialisation}>"
    return Codelet(name, compute, False, 16, 150, _operations)


def scalar_reduce_cycles(n: IntArray, dtype: Type) -> IntArray:
    """Cycles of a worker that reduces one region of n elements to one output."""
    width = 16 // dtype.size
    return 17 + 2 * n // width + n % width


def strided_reduce_cycles(outs: IntArray, partials: IntArray, dtype: Type) -> IntArray:
    """Cycles of a worker that reduces `partials` values into each of `outs` outputs."""
    width = 8 // dtype.size
    post = 5  # float, add
    return 16 + ceil_div(outs, width) * (3 + post + 3 + (partials - 1))


def reduce_add_codelet(dtype: Type) -> Codelet:
    """Give poplin::ReduceAdd: out = sum of the equally long rows of `partials`.

    Parameter `splits` is the number of rows of each vertex; the same for the whole group.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        if "runs" not in operands.prepared:
            outs = operands.counts["out"]
            operands.prepared["runs"] = (runs_of_equals(outs[:, None]), offsets_of(outs))
        runs, starts = operands.prepared["runs"]
        splits = int(operands.group.parameters["splits"][0])
        partials = operands.arrays["partials"]
        out = np.empty(int(starts[-1]), dtype=partials.dtype)
        for first, end, (outs,) in runs:
            low, high = starts[first], starts[end]
            rows = partials[low * splits : high * splits].reshape(-1, splits, outs)
            out[low:high] = rows.sum(axis=1, dtype=accumulator(dtype)).reshape(-1)
        return {"out": out}

    return Codelet(f"poplin::ReduceAdd<{dtype},{dtype}>", compute, True, 16, 150, _operations)


def _bits(values: IntArray) -> IntArray:
    """Count the ones of small numbers."""
    ones: IntArray = (values & 1) + (values >> 1 & 1) + (values >> 2 & 1)
    return ones


def reduce_add_cycles(target: Target, dtype: Type) -> Callable[[IntArray, int], IntArray]:
    """Give the whole-tile cycles of ReduceAdd for `outs` outputs of `partials` rows."""
    width, workers = 16 // dtype.size, target.workers

    def cycles(outs: IntArray, partials: int) -> IntArray:
        loop = 3 * partials + 7
        loops = outs // width + _bits(outs % width)
        left_over = np.where(
            loops % workers == 0, 0, np.where(outs % width, 2 * partials + 13, loop)
        )
        total: IntArray = workers * (32 + loop * (loops // workers) + left_over)
        return total

    return cycles
