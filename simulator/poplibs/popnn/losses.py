"""Losses, the gradients of the model's outputs, and how often the model is right."""

from __future__ import annotations

from enum import Enum
from typing import overload

import numpy as np

from simulator.codelets.classification import (
    accuracy_codelet,
    class_gather_codelet,
    cross_entropy_transform,
)
from simulator.codelets.elementwise import sum_squared_transform
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Program, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, IntArray
from simulator.graph.vertex import Field, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.encoding import encodeOneHot
from simulator.poplibs.popops.reduce import Operation, reduceWithOutput
from simulator.poplibs.popops.regions import Operand, debug_name, in_memory_order, regions_of


class LossType(Enum):
    """The losses."""

    SUM_SQUARED_LOSS = "SumSquared"
    CROSS_ENTROPY_LOSS = "CrossEntropy"


SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS = LossType.SUM_SQUARED_LOSS, LossType.CROSS_ENTROPY_LOSS
_TRANSFORMS = {
    SUM_SQUARED_LOSS: sum_squared_transform,
    CROSS_ENTROPY_LOSS: cross_entropy_transform,
}


@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    numCorrect: LossType,
    lossType: str = "",
) -> Program: ...
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    numCorrect: Tensor,
    lossType: LossType,
    debugContext: str = "",
) -> Program: ...
@library_call("POPNN")
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    numCorrect: Tensor | LossType,
    lossType: LossType | str = "",
    debugContext: str = "",
) -> Program:
    """Give a program that computes `loss` and `deltas`, the gradient of the model's outputs.

    Outputs and deltas are [batch, classes], expected is the same or a label a sample; the loss is
    one number a sample, or one of the whole batch. As in PopLibs `numCorrect`, to which the right
    answers are added, may be left out before `lossType`. Sum-squared: half the sum of
    (output - expected)^2; cross entropy, of what a softmax gave: -expected * log(output).
    """
    if isinstance(numCorrect, LossType):
        kind, context, counter = numCorrect, lossType, None
    else:
        kind, context, counter = LossType(lossType), debugContext, numCorrect
    if not isinstance(context, str):
        raise PoplarError(f"calcLoss: debug context is {context!r}; it gives its program back")
    name = debug_name(context, f"Loss{kind.value}")
    _check_shapes(name, modelOutputs, expected, loss, deltas)
    prog = Sequence()
    with graph.debug_scope(name, "popnn"):
        rows = expected
        if expected.rank() == 1:
            rows = graph.clone(deltas, f"{name}/expectedOneHot")
            encodeOneHot(graph, expected, rows, prog, name)
        transformed = graph.clone(deltas, f"{name}/transformed")
        operands: dict[str, Operand] = {
            "probs": ("input", modelOutputs),
            "expected": ("input", rows),
            "deltas": ("output", deltas),
            "transformed": ("output", transformed),
        }
        _transform(graph, operands, kind, prog, name)
        dims = [1] if loss.numElements() == modelOutputs.dim(0) > 1 else [0, 1]
        reduceWithOutput(graph, transformed, loss, dims, Operation.ADD, prog, f"{name}/reduce_loss")
    if counter is not None:
        prog.add(calcAccuracy(graph, modelOutputs, expected, counter, context))
    return prog


def _check_shapes(
    name: str, outputs: Tensor, expected: Tensor, loss: Tensor, deltas: Tensor
) -> None:
    if outputs.rank() != 2 or deltas.shape != outputs.shape:
        raise PoplarError(f"{name}: {outputs!r} and {deltas!r} differ in shape; both [batch, n]")
    if expected.shape not in (outputs.shape, outputs.shape[:1]):
        raise PoplarError(f"{name}: {expected!r} is neither like {outputs!r} nor a label a sample")
    if loss.numElements() not in (1, outputs.dim(0)):
        raise PoplarError(f"{name}: {loss!r} is neither one number nor one for each sample")


def _transform(
    graph: Graph, operands: dict[str, Operand], kind: LossType, prog: Sequence, name: str
) -> None:
    """Add a worker for each region of the deltas."""
    compute_set = graph.addComputeSet(name)
    ordered = in_memory_order(operands, "deltas")
    regions = regions_of(graph, ordered["deltas"][1])
    codelet, cycles = _TRANSFORMS[kind](ordered["deltas"][1].dtype)
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


@library_call("POPNN")
def argMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Give the index of the largest element of each row, the first of equals."""
    return _class_of(graph, input, prog, debug_name(debugContext, "ArgMax"), largest=True)


@library_call("POPNN")
def argMin(graph: Graph, input: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Give the index of the smallest element of each row, the first of equals."""
    return _class_of(graph, input, prog, debug_name(debugContext, "ArgMin"), largest=False)


def _class_of(graph: Graph, values: Tensor, prog: Sequence, name: str, *, largest: bool) -> Tensor:
    """Add a vertex a row, on the tile of the row's first element."""
    if values.rank() != 2 or values.dim(1) == 0:
        raise PoplarError(f"{name}: {values!r}; rows of at least one element are needed")
    codelet, cycles = class_gather_codelet(values.dtype, largest=largest)
    with graph.debug_scope(name, "popnn"):
        compute_set = graph.addComputeSet(name)
        index = graph.addVariable(UNSIGNED_INT, [values.dim(0)], f"{name}/index")
        row = np.arange(values.dim(0), dtype=np.int64)
        first = values.slice(0, 1, 1).flatten()
        low, high, tiles = graph.tile_ranges(first)
        tile: IntArray = np.repeat(tiles, high - low)
        graph.map_ranges(index, row, row + 1, tile)
        bounds = row * values.dim(1)
        fields = {
            "activations": cut_field(
                "activations", "input", values, bounds, bounds + values.dim(1)
            ),
            "index": cut_field("index", "output", index, row, row + 1),
        }
        cost = cycles(np.full(len(row), values.dim(1), dtype=np.int64))
        graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, {}, cost))
        prog.add(Execute(compute_set))
    return index


@library_call("POPNN")
def calcAccuracy(
    graph: Graph, modelOutputs: Tensor, expected: Tensor, numCorrect: Tensor, debugContext: str = ""
) -> Program:
    """Give a program that adds to `numCorrect` how many rows have their largest output right.

    Expected is a label a row, or the one-hot rows of the labels.
    """
    name = debug_name(debugContext, "Accuracy")
    if numCorrect.numElements() != 1 or numCorrect.dtype != UNSIGNED_INT:
        raise PoplarError(f"{name}: counts into {numCorrect!r}; one unsigned int is needed")
    prog = Sequence()
    found = argMax(graph, modelOutputs, prog, name)
    labels = expected
    if expected.rank() == 2:
        labels = argMax(graph, expected, prog, f"{name}/expected")
    if labels.shape != found.shape:
        raise PoplarError(f"{name}: {expected!r} does not label the rows of {modelOutputs!r}")
    codelet, cycles = accuracy_codelet(labels.dtype)
    with graph.debug_scope(name, "popnn"):
        compute_set = graph.addComputeSet(name)
        batch = found.numElements()
        fields = {
            "found": cut_field("found", "input", found, 0, batch),
            "expected": cut_field("expected", "input", labels, 0, batch),
            "numCorrect": cut_field("numCorrect", "inout", numCorrect, 0, 1),
        }
        tile = graph.tile_ranges(numCorrect)[2]
        cost = cycles(np.array([batch], dtype=np.int64))
        graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, {}, cost))
        prog.add(Execute(compute_set))
    return prog
