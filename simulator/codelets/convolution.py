"""The matrix unit's vertex: a block of a matrix product.

Source: PopLibs lib/poplin/PerformanceEstimation.hpp of 2019, whose formula gives exactly the cycles
of the user guide's profile sample (999 for 8 positions, two groups of outputs, one of inputs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
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
    """Multiply all blocks, those of one shape in one batched product."""
    if "blocks" not in operands.prepared:
        operands.prepared["blocks"] = _blocks_by_shape(operands)
    left, right = operands.arrays["in"], operands.arrays["weights"]
    out = np.empty(int(operands.counts["out"].sum()), dtype=left.dtype)
    for in_places, weight_places, out_places in operands.prepared["blocks"]:
        out[out_places] = np.matmul(left[in_places], right[weight_places])
    return {"out": out}


def _blocks_by_shape(operands: Operands) -> list[tuple[IntArray, IntArray, IntArray]]:
    """Index each field as [block][row][column], one entry for every shape of block."""
    p = operands.group.parameters
    shapes = np.stack([p["positions"], p["inputs"], p["outputs"]], axis=1)
    distinct, which = np.unique(shapes, axis=0, return_inverse=True)
    names = ("in", "weights", "out")
    starts = {name: offsets_of(operands.counts[name])[:-1] for name in names}
    blocks = []
    for index, (positions, inputs, outputs) in enumerate(distinct.tolist()):
        vertices = np.flatnonzero(which.reshape(-1) == index)
        sizes = ((positions, inputs), (inputs, outputs), (positions, outputs))
        blocks.append(
            tuple(
                starts[name][vertices][:, None, None]
                + np.arange(rows * columns).reshape(1, rows, columns)
                for name, (rows, columns) in zip(names, sizes, strict=True)
            )
        )
    return blocks  # type: ignore[return-value]
