"""Losses and the gradients of the model's outputs."""

from __future__ import annotations

from enum import Enum

import numpy as np

from simulator.codelets.elementwise import sum_squared_transform
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.vertex import Field, VertexGroup, cut_field
from simulator.poplibs.popops.reduce import Operation, reduceWithOutput
from simulator.poplibs.popops.regions import Operand, debug_name, in_memory_order, regions_of


class LossType(Enum):
    """The losses."""

    SUM_SQUARED_LOSS = "SumSquared"


def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    lossType: LossType,
    prog: Sequence,
    debugContext: str = "",
) -> None:
    """Compute `loss` and `deltas`, the gradient of the model's outputs.

    Outputs, expected and deltas are [batch, classes]; the loss is one number a sample, or one of
    the whole batch. Sum-squared: half the sum of (output - expected)^2.
    """
    name = debug_name(debugContext, f"Loss{lossType.value}")
    if not modelOutputs.shape == expected.shape == deltas.shape or modelOutputs.rank() != 2:
        raise PoplarError(f"{name}: {modelOutputs!r}, {expected!r} and {deltas!r} differ in shape")
    if loss.numElements() not in (1, modelOutputs.dim(0)):
        raise PoplarError(f"{name}: {loss!r} is neither one number nor one for each sample")
    with graph.debug_scope(name, "popnn"):
        transformed = graph.clone(deltas, f"{name}/transformed")
        operands: dict[str, Operand] = {
            "probs": ("input", modelOutputs),
            "expected": ("input", expected),
            "deltas": ("output", deltas),
            "transformed": ("output", transformed),
        }
        _transform(graph, operands, prog, name)
        dims = [1] if loss.numElements() == modelOutputs.dim(0) > 1 else [0, 1]
        reduceWithOutput(graph, transformed, loss, dims, Operation.ADD, prog, f"{name}/reduce_loss")


def _transform(graph: Graph, operands: dict[str, Operand], prog: Sequence, name: str) -> None:
    """Add a worker for each region of the deltas."""
    compute_set = graph.addComputeSet(name)
    ordered = in_memory_order(operands, "deltas")
    regions = regions_of(graph, ordered["deltas"][1])
    codelet, cycles = sum_squared_transform(ordered["deltas"][1].dtype)
    fields: dict[str, Field] = {
        field: cut_field(field, direction, tensor, regions.low, regions.high)
        for field, (direction, tensor) in ordered.items()
    }
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=codelet,
            tile=regions.tile,
            fields=fields,
            parameters={"size": np.asarray(regions.high - regions.low)},
            cycles=cycles(regions.high - regions.low),
        )
    )
    prog.add(Execute(compute_set))
