"""Losses, and the gradients of the model's outputs (popnn/Loss.hpp)."""

from __future__ import annotations

from enum import Enum
from typing import Any, overload

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.layers.losses import cross_entropy_transform, sum_squared_transform
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT
from simulator.graph.vertices.vertex import VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popnn.classes import calcAccuracy
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.encoding import encodeOneHot
from simulator.poplibs.popops.operators import mulInPlace, neq
from simulator.poplibs.popops.reduction.reduce import Operation, reduceWithOutput
from simulator.poplibs.popops.regions import (
    Operand,
    debug_name,
    in_memory_order,
    regions_of,
    split_among_workers,
)

MASKED_LABEL_CODE = 0xFFFFFFFF  # a label of no class; of an int, -1
LEAST_A_WORKER = 4095  # outputs; below, one worker has all of a tile: PopLibs lib/popnn/Loss.cpp


class LossType(Enum):
    """The losses."""

    SUM_SQUARED_LOSS = "SumSquared"
    CROSS_ENTROPY_LOSS = "CrossEntropy"


SUM_SQUARED_LOSS, CROSS_ENTROPY_LOSS = LossType.SUM_SQUARED_LOSS, LossType.CROSS_ENTROPY_LOSS
_TRANSFORMS = {
    SUM_SQUARED_LOSS: sum_squared_transform,
    CROSS_ENTROPY_LOSS: cross_entropy_transform,
}
# The tensors that may stand after the deltas, by how many there are.
_TENSORS = {
    0: (),
    1: ("numCorrect",),
    2: ("deltasScale", "modelOutputScaling"),
    3: ("deltasScale", "modelOutputScaling", "numCorrect"),
}


@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    lossType: LossType,
    debugContext: str = "",
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
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    deltasScale: Tensor,
    modelOutputScaling: Tensor,
    lossType: LossType,
    debugContext: str = "",
) -> Program: ...
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    deltasScale: Tensor,
    modelOutputScaling: Tensor,
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
    *arguments: object,
    **named: object,
) -> Program:
    """Return a program that computes `loss` and `deltas`, the gradient of the model's outputs.

    calcLoss(..., deltas, [deltasScale, modelOutputScaling,] [numCorrect,] lossType, debugContext).
    Outputs and deltas are [batch, classes], `expected` is a label a sample or, beyond PopLibs, of
    the shape of the outputs; the loss is one number a sample, or one of the whole batch.
    Sum-squared: half the sum of (output - expected)^2; cross entropy, of what a softmax gave:
    -expected * log(output). The outputs may be multiplied by `modelOutputScaling` (SOFTMAX_SCALED),
    then the deltas are multiplied by deltasScale / modelOutputScaling. A label MASKED_LABEL_CODE
    adds nothing to a cross entropy. To `numCorrect` the right answers are added.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> outputs, expected = trial.tensor([[1.0, 2.0]]), trial.tensor([[0.0, 5.0]])
    >>> loss, deltas = trial.tensor([0.0]), trial.tensor([[0.0, 0.0]])
    >>> kind = popnn.LossType.SUM_SQUARED_LOSS
    >>> trial.prog.add(popnn.calcLoss(trial.graph, outputs, expected, loss, deltas, kind))
    >>> trial.values(loss, deltas)  # (1 + 9) / 2, and outputs less what is expected
    [[5.0], [[1.0, -3.0]]]
    """
    kind, context, tensors = _sorted(arguments, named)
    name = debug_name(context, f"Loss{kind.value}")
    _check_shapes(name, modelOutputs, expected, loss, deltas)
    prog = Sequence()
    with graph.debug_scope(name, "popnn"):
        rows = expected
        if expected.rank() == 1:
            rows = graph.clone(modelOutputs, f"{name}/OneHotEncoded")
            encodeOneHot(graph, expected, rows, prog, name)
        scales = _scales(graph, kind, tensors, deltas, name)
        operands = {"probs": modelOutputs, "expected": rows, "deltas": deltas}
        transformed = _transform(graph, operands, scales, kind, prog, name)
        if kind is CROSS_ENTROPY_LOSS and expected.rank() == 1:
            _mask(graph, expected, deltas, prog, name)
        dims = [1] if loss.numElements() == modelOutputs.dim(0) > 1 else [0, 1]
        reduceWithOutput(graph, transformed, loss, dims, Operation.ADD, prog, f"{name}/reduce_loss")
    if "numCorrect" in tensors:
        prog.add(calcAccuracy(graph, modelOutputs, expected, tensors["numCorrect"], context))
    return prog


def _sorted(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[LossType, str, dict[str, Tensor]]:
    """Separate the arguments after the deltas: tensors, the type of the loss, the name."""
    count = next((i for i, x in enumerate(arguments) if not isinstance(x, Tensor)), len(arguments))
    if count not in _TENSORS:
        raise poplibs_error(f"calcLoss: {count} tensors after the deltas; 0 to 3 are needed")
    names = (*_TENSORS[count], "lossType", "debugContext")
    twice = [name for name in names[: len(arguments)] if name in named]
    if len(arguments) > len(names) or twice:
        raise TypeError(f"calcLoss: takes {', '.join(names)} after the deltas; {twice} twice")
    call_args = dict(zip(names, arguments, strict=False)) | named
    wrong = [name for name in call_args if name not in (*_TENSORS[3], "lossType", "debugContext")]
    if wrong or "lossType" not in call_args:
        raise TypeError(f"calcLoss: lossType is needed; unknown: {', '.join(wrong) or 'none'}")
    kind, context = LossType(call_args.pop("lossType")), call_args.pop("debugContext", "")
    if not isinstance(context, str):
        raise poplibs_error(f"calcLoss: debug context is {context!r}; it gives its program back")
    if ("deltasScale" in call_args) != ("modelOutputScaling" in call_args):
        raise poplibs_error("calcLoss: deltasScale and modelOutputScaling are given together")
    return kind, context, call_args


def _check_shapes(
    name: str, outputs: Tensor, expected: Tensor, loss: Tensor, deltas: Tensor
) -> None:
    if outputs.rank() != 2 or deltas.shape != outputs.shape:
        raise poplibs_error(f"{name}: {outputs!r} and {deltas!r} differ in shape; both [batch, n]")
    if outputs.dtype not in (FLOAT, HALF) or deltas.dtype != outputs.dtype:
        raise poplibs_error(f"{name}: {outputs!r} and {deltas!r}; both float or both half")
    if expected.shape not in (outputs.shape, outputs.shape[:1]):
        raise poplibs_error(f"{name}: {expected!r} is neither like {outputs!r} nor labels of it")
    if loss.numElements() not in (1, outputs.dim(0)):
        raise poplibs_error(f"{name}: {loss!r} is neither one number nor one for each sample")


def _scales(
    graph: Graph, kind: LossType, tensors: dict[str, Tensor], deltas: Tensor, name: str
) -> dict[str, Tensor]:
    """Return the two scales of a cross entropy: ones where they are not given."""
    if kind is SUM_SQUARED_LOSS:
        if "deltasScale" in tensors:
            raise poplibs_error(f"{name}: scales are given; only a cross entropy takes them")
        return {}
    scales = {}
    for key in ("deltasScale", "modelOutputScaling"):
        if key in tensors:
            scale = tensors[key]
            if scale.numElements() != 1 or scale.dtype != deltas.dtype:
                raise poplibs_error(f"{name}: {key} is {scale!r}; one {deltas.dtype} is needed")
        else:
            scale = graph.addConstant(deltas.dtype, [], 1.0, f"{name}/{key}")
            graph.setTileMapping(scale, 0)
        scales[key] = scale.flatten()
    return scales


def _transform(
    graph: Graph,
    operands: dict[str, Tensor],
    scales: dict[str, Tensor],
    kind: LossType,
    prog: Sequence,
    name: str,
) -> Tensor:
    """Add a worker on each tile of the outputs, several where it has thousands of them."""
    outputs, target = operands["probs"], graph.target
    transformed = graph.clone(outputs, f"{name}/Transformed")
    if not len(graph.tile_ranges(operands["deltas"])[2]):
        graph.copy_mapping(outputs, operands["deltas"])
    directed: dict[str, Operand] = {
        "probs": ("input", outputs),
        "expected": ("input", operands["expected"]),
        "deltas": ("output", operands["deltas"]),
        "transformed": ("output", transformed),
    }
    ordered = in_memory_order(directed, "probs")
    least = ceil_div(LEAST_A_WORKER, target.getVectorWidth(outputs.dtype))
    regions = regions_of(graph, ordered["probs"][1])
    pieces, ranges = split_among_workers(target, regions, outputs.dtype, least)
    first = np.zeros(len(ranges), dtype=np.int64)
    fields = {
        field: cut_ranges(field, way, tensor, pieces.low, pieces.high, ranges)
        for field, (way, tensor) in ordered.items()
    } | {
        field: cut_field(field, "input", scale, first, first + 1) for field, scale in scales.items()
    }
    codelet, cycles = _TRANSFORMS[kind](outputs.dtype)
    sizes = sum_by_vertex(pieces.high - pieces.low, ranges)
    compute_set = graph.addComputeSet(f"{name}/on_tile_transform")
    tile = pieces.tile[offsets_of(ranges)[:-1]]
    graph.add_vertices(
        VertexGroup(compute_set.id, codelet, tile, fields, {"size": sizes}, cycles(sizes))
    )
    prog.add(Execute(compute_set))
    return transformed


def _mask(graph: Graph, labels: Tensor, deltas: Tensor, prog: Sequence, name: str) -> None:
    """Take the gradients of masked samples away."""
    code = -1 if labels.dtype == INT else MASKED_LABEL_CODE
    is_kept = neq(graph, labels, code, prog, name)
    factors = cast(graph, is_kept, deltas.dtype, prog, name)
    mulInPlace(graph, deltas, factors.expand([1]), prog, name)
