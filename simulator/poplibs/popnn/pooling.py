"""Pooling over the field of activations, forward and backward (popnn::pooling)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, overload

import numpy as np

from simulator.graph.arguments import refusing
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popnn.pools.implementation import Request, add_pass
from simulator.poplibs.popnn.pools.transforms import inside
from simulator.poplibs.popnn.pools.windows import PoolShape, Window
from simulator.poplibs.popops.ordered_copy import ordered_copy
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

OPTIONS = {
    "poolUseIntrospectiveMapping": Option(True, "choose tiles by where the input lies"),
    "optimizeForSpeed": Option(False, "taken, and without effect here"),
    "useFloatPartialsWhereBeneficial": Option(False, "taken, and without effect here"),
}
Options = Mapping[str, object] | None


class PoolingType(Enum):
    """What a pooling gives for the inputs of a window."""

    MAX = "MAX"
    AVG = "AVG"
    SUM = "SUM"


@library_call("POPNN")
def asString(method: PoolingType) -> str:
    """Return the name of a type of pooling.

    >>> from simulator import popnn
    >>> popnn.pooling.asString(popnn.PoolingType.MAX)
    'max'
    """
    return PoolingType(method).value.lower()


@dataclass(frozen=True, slots=True)
class PoolParams:
    """A pooling: numbers by dimension of the field; negative paddings leave inputs out."""

    poolingType: PoolingType
    inputFieldShape: Many[int]
    kernelShape: Many[int]
    stride: Many[int]
    inputTruncationOrPaddingLower: Many[int]
    inputTruncationOrPaddingUpper: Many[int]
    numChannels: int
    batchSize: int
    dType: Type = FLOAT

    def getOutputFieldShape(self) -> list[int]:
        """Return the size of each dimension of the output's field."""
        return list(_shape(self, "PoolParams").outputs)


@refusing
def _shape(params: PoolParams, name: str) -> PoolShape:
    """Check the parameters; give their windows."""
    if not isinstance(params.poolingType, PoolingType):
        raise poplibs_error(f"{name}: type {params.poolingType!r}; a PoolingType is needed")
    columns = [
        list(params.inputFieldShape),
        list(params.kernelShape),
        list(params.stride),
        list(params.inputTruncationOrPaddingLower),
        list(params.inputTruncationOrPaddingUpper),
    ]
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1 or not sizes[0]:
        raise poplibs_error(
            f"{name}: field, kernel, stride and paddings have {sizes} numbers; "
            "as many as the field has dimensions are needed"
        )
    counts = [params.numChannels, params.batchSize]
    if not all(isinstance(n, int | np.integer) for column in [*columns, counts] for n in column):
        raise poplibs_error(f"{name}: {params!r}; whole numbers are needed")
    if any(min(column) < 1 for column in columns[:3]):
        raise poplibs_error(f"{name}: field, kernel and stride {columns[:3]} need positive numbers")
    if min(counts) < 1:
        raise poplibs_error(
            f"{name}: {params.numChannels} channels of {params.batchSize} samples; "
            "at least one of each is needed"
        )
    windows = tuple(Window.forward(*numbers) for numbers in zip(*columns, strict=True))
    if min(window.outputs for window in windows) < 1:
        raise poplibs_error(
            f"{name}: kernel {columns[1]} is larger than the padded field of {columns[0]}"
        )
    return PoolShape(params.batchSize, params.numChannels, windows)


@library_call("POPNN")
def getOutputFieldShape(params: PoolParams) -> list[int]:
    """Return the size of each dimension of the output's field.

    >>> from simulator import popnn
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> popnn.pooling.getOutputFieldShape(params)
    [2]
    """
    return params.getOutputFieldShape()


@library_call("POPNN")
def getFwdFlops(params: PoolParams) -> int:
    """Count the operations of the forward pass: one an input of a window, and one to average.

    >>> from simulator import popnn
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> popnn.pooling.getFwdFlops(params)  # 2 windows of 2 inputs
    4
    """
    return _flops(_shape(params, "getFwdFlops"), params.poolingType)


@library_call("POPNN")
def getBwdFlops(params: PoolParams) -> int:
    """Count the operations of the gradient.

    >>> from simulator import popnn
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> popnn.pooling.getBwdFlops(params)
    4
    """
    return _flops(_shape(params, "getBwdFlops").gradient(), params.poolingType)


def _flops(shape: PoolShape, kind: PoolingType) -> int:
    used = shape.used_positions()
    divisions = np.count_nonzero(used) if kind is PoolingType.AVG else 0
    return int(used.sum() + divisions) * shape.batch * shape.channels


@library_call("POPNN")
def getFwdPerfectCycleCount(graph: Graph, params: PoolParams) -> float:
    """Return the cycles if every tile did a vector of operations a cycle.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> popnn.pooling.getFwdPerfectCycleCount(trial.graph, params)  # 4 operations, 8 a cycle
    0.5
    """
    target = graph.getTarget()
    width = target.getDataPathWidth() // (8 * params.dType.size)
    return getFwdFlops(params) / (width * target.getNumTiles())


@library_call("POPNN")
def getBwdPerfectCycleCount(graph: Graph, params: PoolParams) -> float:
    """Return twice the cycles of the forward pass, as PopLibs does.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> popnn.pooling.getBwdPerfectCycleCount(trial.graph, params)  # twice the forward pass
    1.0
    """
    return 2 * getFwdPerfectCycleCount(graph, params)


def _layer(params: PoolParams, context: str, direction: str) -> str:
    kernel = "x".join(map(str, params.kernelShape))
    return debug_name(context, f"{asString(params.poolingType)}Pool{kernel}/{direction}")


def _check(name: str, operand_name: str, tensor: Tensor, shape: list[int]) -> None:
    if list(tensor.shape) != shape:
        raise poplibs_error(f"{name}: {operand_name} is {tensor!r}; shape {shape} is needed")
    if tensor.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {operand_name} is {tensor!r}; it takes float and half")


def _covers_field(shape: PoolShape) -> bool:
    """Return whether one window takes in the whole field: a reduction, and a broadcast back."""
    return all(w.kernel == w.inputs and w.padding == 0 and w.outputs == 1 for w in shape.windows)


@library_call("POPNN")
def pool(
    graph: Graph,
    params: PoolParams,
    in_: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    """Pool activations [sample][channel][field...]; PopLibs' name of `in_` is a Python keyword.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> x = trial.tensor([[[1.0, 3.0, 2.0, 5.0]]])
    >>> trial.values(popnn.pooling.pool(trial.graph, params, x, trial.prog))
    [[[3.0, 5.0]]]
    """
    name = _layer(params, debugContext, "Fwd")
    settings = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    shape = _shape(params, name)
    _check(name, "input", in_, [shape.batch, shape.channels, *shape.inputs])
    with graph.debug_scope(name, "popnn"):
        if _covers_field(shape):
            return _reduced(graph, params, in_, prog, name)
        kind = {"MAX": "max", "AVG": "average", "SUM": "sum"}[params.poolingType.value]
        introspective = bool(settings["poolUseIntrospectiveMapping"])
        request = Request(graph, kind, shape, prog, name, introspective, forward=True)
        return add_pass(request, inside(in_))


def _reduced(graph: Graph, params: PoolParams, in_: Tensor, prog: Sequence, name: str) -> Tensor:
    """Reduce the whole field of each channel."""
    dims = list(range(2, in_.rank()))
    operation = popops.Operation.MAX
    scale = None
    if params.poolingType is not PoolingType.MAX:
        operation = popops.Operation.ADD
        scale = 1 / prod(params.kernelShape) if params.poolingType is PoolingType.AVG else None
    how = popops.ReduceParams(operation, False, scale)
    out = popops.reduce(graph, in_, in_.dtype, dims, how, prog, name)
    return out.reshape([*out.shape, *[1] * len(dims)])


@overload
def poolInputGradient(
    graph: Graph,
    params: PoolParams,
    in_: Tensor,
    pooled: Tensor,
    pooledGradient: Tensor,
    useScaledGradient: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
@overload
def poolInputGradient(
    graph: Graph,
    params: PoolParams,
    fwdChansPerGroup: int,
    pooledGradient: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
def poolInputGradient(graph: Graph, params: PoolParams, *arguments: Any, **named: Any) -> Tensor:
    """Return the gradient of the input from that of the output.

    Of a maximum, with its input and output: poolInputGradient(graph, params, in, pooled,
    pooledGradient, useScaledGradient, prog); scaled, equal inputs share it. Of a sum or an average:
    poolInputGradient(graph, params, fwdChansPerGroup, pooledGradient, prog).

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.pooling.PoolParams(
    ...     popnn.PoolingType.MAX, [4], [2], [2], [0], [0], numChannels=1, batchSize=1
    ... )
    >>> x, out = trial.tensor([[[1.0, 3.0, 2.0, 5.0]]]), trial.tensor([[[3.0, 5.0]]])
    >>> gradient = trial.tensor([[[10.0, 20.0]]])
    >>> operands = x, out, gradient, False, trial.prog
    >>> trial.values(popnn.pooling.poolInputGradient(trial.graph, params, *operands))
    [[[0.0, 10.0, 0.0, 20.0]]]
    """
    if "in_" in named or (arguments and isinstance(arguments[0], Tensor)):
        return _gradient_of_maximum(graph, params, *arguments, **named)
    return _gradient_of_sum(graph, params, *arguments, **named)


def _of_maximum(
    graph: Graph,
    params: PoolParams,
    in_: Tensor,
    pooled: Tensor,
    pooledGradient: Tensor,
    useScaledGradient: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    name = _layer(params, debugContext, "Bwd")
    settings = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    shape = _shape(params, name)
    if params.poolingType is not PoolingType.MAX:
        raise poplibs_error(f"{name}: takes no activations; only the gradient of a maximum does")
    outputs = [shape.batch, shape.channels, *shape.outputs]
    _check(name, "input", in_, [shape.batch, shape.channels, *shape.inputs])
    _check(name, "pooled", pooled, outputs)
    _check(name, "gradient", pooledGradient, outputs)
    introspective = bool(settings["poolUseIntrospectiveMapping"])
    with graph.debug_scope(name, "popnn"):
        gradient = pooledGradient
        if useScaledGradient:
            request = Request(graph, "maxScale", shape, prog, f"{name}/Scale", introspective)
            scale = add_pass(request, inside(in_), like_out=inside(pooled))
            gradient = popops.mul(graph, gradient, scale, prog, f"{name}/ScaleGrad")
        # An explicit copy to where the pooled values are: the exchange is then simpler.
        rearranged = graph.clone(pooled, f"{name}/gradsRearranged")
        prog.add(ordered_copy(gradient, rearranged, f"{name}/gradsRearranged"))
        request = Request(graph, "maxGradient", shape.gradient(), prog, name, introspective)
        return add_pass(request, inside(rearranged), inside(pooled), inside(in_))


def _of_sum(
    graph: Graph,
    params: PoolParams,
    fwdChansPerGroup: int,
    pooledGradient: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    name = _layer(params, debugContext, "Bwd")
    settings = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    shape = _shape(params, name)
    if params.poolingType is PoolingType.MAX:
        raise poplibs_error(f"{name}: the gradient of a maximum needs its input and output")
    _check(name, "gradient", pooledGradient, [shape.batch, shape.channels, *shape.outputs])
    if fwdChansPerGroup < 1 or shape.channels % fwdChansPerGroup:
        raise poplibs_error(
            f"{name}: {shape.channels} channels in groups of {fwdChansPerGroup}; "
            "they must divide evenly"
        )
    with graph.debug_scope(name, "popnn"):
        gradient = pooledGradient
        if params.poolingType is PoolingType.AVG:
            gradient = _scaled(graph, shape, gradient, prog, name)
        if _covers_field(shape):
            return _broadcast(graph, shape, gradient, fwdChansPerGroup, prog, name)
        introspective = bool(settings["poolUseIntrospectiveMapping"])
        request = Request(graph, "sum", shape.gradient(), prog, name, introspective)
        return add_pass(request, inside(gradient))


def _scaled(graph: Graph, shape: PoolShape, gradient: Tensor, prog: Sequence, name: str) -> Tensor:
    """Divide gradients by how many inputs each output is the mean of."""
    used = np.maximum(shape.used_positions(), 1)
    factor = graph.addConstant(gradient.dtype, list(shape.outputs), 1 / used, f"{name}/scaleTensor")
    graph.setTileMapping(factor, 0)
    return popops.mul(graph, gradient, factor, prog, f"{name}/preScale")


def _broadcast(
    graph: Graph, shape: PoolShape, gradient: Tensor, group: int, prog: Sequence, name: str
) -> Tensor:
    """Copy the gradient of each channel to all of its field."""
    groups = shape.channels // group
    out = graph.addVariable(
        gradient.dtype, [groups, shape.batch, *shape.inputs, group], f"{name}/out"
    )
    mapTensorLinearly(graph, out)
    view = out.dimShufflePartial([0, out.rank() - 1], [1, 2])
    view = view.reshapePartial(1, 3, [shape.channels])
    spread = gradient
    for axis, size in enumerate(shape.inputs, 2):
        spread = spread.broadcast(size, axis)
    prog.add(ordered_copy(spread, view, f"{name}/out"))
    return view


# What errors and log lines call them.
_of_maximum.__name__ = _of_sum.__name__ = "poolInputGradient"
_gradient_of_maximum = library_call("POPNN")(_of_maximum)
_gradient_of_sum = library_call("POPNN")(_of_sum)

__all__ = [
    "PoolParams",
    "PoolingType",
    "asString",
    "getBwdFlops",
    "getBwdPerfectCycleCount",
    "getFwdFlops",
    "getOutputFieldShape",
    "getFwdPerfectCycleCount",
    "pool",
    "poolInputGradient",
]
