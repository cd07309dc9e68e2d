"""The matrix unit's vertex: a block of a matrix product. Its cycles: `convolution_cycles`."""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import runs_of_equals
from simulator.codelets.reduction import accumulator
from simulator.graph.intervals import offsets_of
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup

WORKLIST_ENTRIES = 3  # offset of the output, positions, offset of the input; of 2 bytes each


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
