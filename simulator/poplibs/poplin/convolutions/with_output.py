"""Convolutions and products into tensors that exist already (PopLibs poplin)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from simulator.codelets.products.block_layout import Layout
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.convolution import convolution
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulGroupedInputRHS,
    createMatMulInputRHS,
    matMulGrouped,
)
from simulator.poplibs.poplin.convolutions.operands import ungrouped
from simulator.poplibs.poplin.planning.options import CONVOLUTION, MATMUL, settings_of
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

Options = Mapping[str, object] | None
Shape = Sequence[int]


@library_call("POPLIN")
def createConvOutput(
    graph: Graph,
    params: ConvParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add an output of a convolution, spread over all tiles with its channels in groups.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [8, 8], [3, 3], 2, 4)
    >>> poplin.createConvOutput(trial.graph, params).shape
    (1, 4, 6, 6)
    """
    name = debugContext or "conv/output"
    settings_of(graph.target, CONVOLUTION, options, name)
    return _spread(graph, params.output_shape(), params.outputChannelsPerConvGroup, 1, params, name)


def _spread(
    graph: Graph, shape: Shape, channels: int, axis: int, params: ConvParams, name: str
) -> Tensor:
    group = gcd(channels, graph.target.getNumConvUnits(params.out_type, FLOAT))
    layout = Layout(tuple(range(len(shape))), axis, group)
    memory = graph.addVariable(params.out_type, layout.sizes(tuple(shape)), name)
    mapTensorLinearly(graph, memory)
    return ungrouped(memory, axis)


@library_call("POPLIN")
def convolutionWithOutput(
    graph: Graph,
    input: Tensor,
    weights: Tensor,
    out: Tensor,
    params: ConvParams,
    transposeAndFlipWeights: bool,
    prog: Program,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Convolve, as `convolution` does, and write the result to a tensor; raises poplibs_error.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, weights = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[[1.0, 10.0]]]])
    >>> out = poplin.createConvOutput(trial.graph, params)
    >>> poplin.convolutionWithOutput(trial.graph, x, weights, out, params, False, trial.prog)
    >>> trial.values(out)
    [[[21.0, 32.0, 43.0]]]
    """
    result = convolution(
        graph, input, weights, params, transposeAndFlipWeights, prog, debugContext, options, cache
    )
    _keep(result, out, prog, debug_name(debugContext, "Conv_1"))


def _keep(result: Tensor, out: Tensor, prog: Program, name: str) -> None:
    if out.shape != result.shape or out.dtype != result.dtype:
        needed = f"{result.dtype}{list(result.shape)}"
        raise poplibs_error(f"{name}: output {out!r}; {needed} is needed")
    prog.add(Copy(result, out, name=name))


@library_call("POPLIN")
def matMulGroupedWithOutput(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    out: Tensor,
    prog: Program,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Multiply [g, m, k] by [g, k, n] and write the products to a tensor; raises poplibs_error.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[[1.0, 2.0]]]), trial.tensor([[[3.0], [4.0]]])
    >>> out = trial.tensor([[[0.0]]])
    >>> poplin.matMulGroupedWithOutput(trial.graph, a, b, out, trial.prog)
    >>> trial.values(out)
    [[[11.0]]]
    """
    result = matMulGrouped(graph, A, B, prog, out.dtype, debugContext, options, cache)
    _keep(result, out, prog, debug_name(debugContext, "Conv_1"))


@library_call("POPLIN")
def createMatMulOutput(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add an output of a product of [m, k] and [k, n], spread over all tiles.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createMatMulOutput(trial.graph, poplar.FLOAT, poplar.FLOAT, [2, 3], [3, 4]).shape
    (2, 4)
    """
    shapes = [1, *aShape], [1, *bShape]
    arguments = (graph, inputType, outputType, *shapes, debugContext, options, cache)
    return createMatMulGroupedOutput(*arguments).squeeze([0])


@library_call("POPLIN")
def createMatMulGroupedOutput(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add an output of products of [g, m, k] and [g, k, n], spread over all tiles.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [5, 2, 3], [5, 3, 4]
    >>> poplin.createMatMulGroupedOutput(trial.graph, poplar.FLOAT, poplar.FLOAT, *shapes).shape
    (5, 2, 4)
    """
    name = debugContext or "matMul/output"
    settings_of(graph.target, MATMUL, options, name)
    groups, rows, inner = aShape
    params = ConvParams(inputType, rows, (), (), inner, bShape[2], groups, outputType=outputType)
    return _spread(graph, (groups, rows, bShape[2]), bShape[2], 2, params, name)


@library_call("POPLIN")
def preArrangeMatMulInputRHS(
    graph: Graph,
    aShape: Shape,
    B: Tensor,
    prog: Program,
    outputType: Type | None = None,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Copy [k, n] to a tensor that lies as a product of [m, k] wants it.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> b = trial.tensor([[3.0], [4.0]])
    >>> arranged = poplin.preArrangeMatMulInputRHS(trial.graph, [8, 2], b, trial.prog)
    >>> trial.values(arranged)
    [[3.0], [4.0]]
    """
    name = debug_name(debugContext, "PreArrangeMatMulInputRHS")
    types = (B.dtype, outputType or B.dtype)
    out = createMatMulInputRHS(graph, *types, aShape, B.shape, name, options, cache)
    prog.add(Copy(B, out, name=name))
    return out


@library_call("POPLIN")
def preArrangeMatMulGroupedInputRHS(
    graph: Graph,
    aShape: Shape,
    B: Tensor,
    prog: Program,
    outputType: Type | None = None,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Copy [g, k, n] to a tensor that lies as products of [g, m, k] want it.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> b = trial.tensor([[[3.0], [4.0]]])
    >>> arranged = poplin.preArrangeMatMulGroupedInputRHS(trial.graph, [1, 8, 2], b, trial.prog)
    >>> trial.values(arranged)
    [[[3.0], [4.0]]]
    """
    name = debug_name(debugContext, "PreArrangeMatMulGroupedInputRHS")
    types = (B.dtype, outputType or B.dtype)
    out = createMatMulGroupedInputRHS(graph, *types, aShape, B.shape, name, options, cache)
    prog.add(Copy(B, out, name=name))
    return out
