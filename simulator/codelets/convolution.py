"""The matrix unit's vertex: a block of a matrix product.

Source: PopLibs lib/poplin/PerformanceEstimation.hpp of 2019, whose formula gives exactly the cycles
of the user guide's profile sample (999 for 8 positions, two groups of outputs, one of inputs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div, runs_of_equals
from simulator.codelets.reduction import accumulator
from simulator.graph.intervals import offsets_of
from simulator.graph.target import Target
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup

WORKLIST_ENTRIES = 3  # offset of the output, positions, offset of the input; of 2 bytes each


def input_group(target: Target, dtype: Type) -> int:
    """Give the input channels that one pass of the matrix unit takes."""
    return target.getWeightsPerConvUnit(dtype)


def _worker(positions: Any, zeroing: bool) -> Any:
    extra = 2 + 8 * positions if zeroing else 0
    return np.where(positions == 0, 28, 50 + extra + 8 * np.maximum(positions - 3, 0))


def _inner(positions: Any, workers: int, zeroing: bool) -> Any:
    slowest = _worker(ceil_div(positions, workers), zeroing)
    fastest = _worker(positions // workers, zeroing)
    return np.maximum(workers * slowest, workers * fastest + 14)


def conv_cycles(target: Target, dtype: Type, positions: Any, outputs: Any, inputs: Any) -> Any:
    """Whole-tile cycles for a block of `positions` x `inputs` times `inputs` x `outputs`."""
    out_groups = ceil_div(outputs, target.getNumConvUnits(dtype, dtype))
    in_groups = ceil_div(inputs, input_group(target, dtype))
    units = target.getNumConvUnits(dtype, dtype)
    weight_bytes = units * input_group(target, dtype) * dtype.size
    loads = weight_bytes // target.getConvUnitCoeffLoadBytesPerCycle()
    accumulate = 13 + out_groups * (18 + 6 + loads + _inner(positions, target.workers, False))
    zero = 18 + 6 + loads + _inner(positions, target.workers, True)
    return 50 + 11 + (in_groups - 1) * accumulate + 10 + out_groups * zero


def worklists(positions: IntArray, workers: int) -> Array:
    """Give each worker's share of the positions: offset out, count, offset in; by vertex."""
    worker = np.arange(workers)[None, :]
    share = positions[:, None] // workers + (worker < positions[:, None] % workers)
    first = np.cumsum(share, axis=1) - share
    return np.stack([first, share, first], axis=2).astype(np.uint16)


def conv_codelet(dtype: Type) -> Codelet:
    """Give poplin::ConvPartial1x1Out; parameters `positions`, `outputs`, `inputs` a vertex.

    Fields: `in` [positions][inputs], `weights` [inputs][outputs], `out` [positions][outputs].
    """

    def operations(group: VertexGroup) -> IntArray:
        p = group.parameters
        return 2 * p["positions"] * p["inputs"] * p["outputs"]

    name = f"poplin::ConvPartial1x1Out<{dtype},{dtype},true,false>"
    return Codelet(name, _multiply, True, 28, 400, operations)


def _multiply(operands: Operands) -> dict[str, Array]:
    """Multiply all blocks, neighbours of one shape in one batched product."""
    if "runs" not in operands.prepared:
        p = operands.group.parameters
        shapes = np.stack([p["positions"], p["inputs"], p["outputs"]], axis=1)
        starts = {name: offsets_of(operands.counts[name]) for name in ("in", "weights", "out")}
        operands.prepared["runs"] = (runs_of_equals(shapes), starts)
    runs, starts = operands.prepared["runs"]
    dtype = operands.group.fields["out"].dtype
    left, right = (
        operands.arrays[name].astype(accumulator(dtype), copy=False) for name in ("in", "weights")
    )
    out = np.empty(int(starts["out"][-1]), dtype=left.dtype)
    for first, end, (positions, inputs, outputs) in runs:
        part = {name: slice(start[first], start[end]) for name, start in starts.items()}
        np.matmul(
            left[part["in"]].reshape(-1, positions, inputs),
            right[part["weights"]].reshape(-1, inputs, outputs),
            out=out[part["out"]].reshape(-1, positions, outputs),
        )
    return {"out": out.astype(dtype.numpy, copy=False)}
