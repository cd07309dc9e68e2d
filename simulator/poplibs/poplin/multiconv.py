"""Several convolutions in one call (PopLibs poplin/MultiConvolution.hpp).

They run one after another, as PopLibs' plan "serial" runs them; its plan "parallel", which shares
the tiles out among them, is taken and runs alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.convolution import (
    calculateWeightDeltas as calculateOneGradient,
)
from simulator.poplibs.poplin.convolutions.convolution import convolution as convolve
from simulator.poplibs.poplin.convolutions.convolution import (
    convolutionWeightUpdate as updateOneWeights,
)
from simulator.poplibs.poplin.convolutions.convolution import createInput as createOneInput
from simulator.poplibs.poplin.convolutions.convolution import createWeights as createOneWeights
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.convolutions.weights import flip_weights
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.popops.regions import debug_name

Options = Mapping[str, object] | None
OPTIONS = {
    "planType": Option(
        "parallel", "taken; all run one after another", allowed=("serial", "parallel")
    ),
    "perConvReservedTiles": Option(50, "taken, and without effect here"),
    "cycleBackOff": Option("0.1", "taken, and without effect here"),
}


@dataclass(frozen=True)
class CreateTensorArgs:
    """A convolution whose input or weights are to be created."""

    params: ConvParams
    options: Options = None
    name: str = ""


@dataclass(frozen=True)
class ConvolutionArgs:
    """The operands of a convolution."""

    inputs: Tensor
    weights: Tensor
    params: ConvParams
    options: Options = None


@dataclass(frozen=True)
class CalculateWeightDeltasArgs:
    """The operands of a gradient of weights."""

    zDeltas: Tensor
    activations: Tensor
    params: ConvParams
    options: Options = None


@dataclass(frozen=True)
class ConvWeightUpdateArgs:
    """The operands of an update of weights; the scale is a tensor or a number."""

    zDeltas: Tensor
    weights: Tensor
    activations: Tensor
    scale: Tensor | float
    params: ConvParams
    options: Options = None


ConvWeightUpdateArgsScalar = ConvWeightUpdateArgs


@library_call("POPLIN")
def createWeights(
    graph: Graph,
    args: Sequence[CreateTensorArgs],
    weightsIndex: int,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the weights of one of several convolutions, laid out as its plan wants them.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> several = [poplin.multiconv.CreateTensorArgs(params)] * 2
    >>> poplin.multiconv.createWeights(trial.graph, several, 1).shape
    (1, 1, 1, 2)
    """
    arg = _one(args, weightsIndex, options, "multiconv::createWeights")
    return createOneWeights(graph, arg.params, arg.name, arg.options, cache)


@library_call("POPLIN")
def createInput(
    graph: Graph,
    args: Sequence[CreateTensorArgs],
    inputIndex: int,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the input of one of several convolutions, laid out as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> several = [poplin.multiconv.CreateTensorArgs(params)] * 2
    >>> poplin.multiconv.createInput(trial.graph, several, 1).shape
    (1, 1, 4)
    """
    arg = _one(args, inputIndex, options, "multiconv::createInput")
    return createOneInput(graph, arg.params, arg.name, arg.options, cache)


def _one(
    args: Sequence[CreateTensorArgs], number: int, options: Options, name: str
) -> CreateTensorArgs:
    checked(OPTIONS, options or {}, name)
    if not 0 <= number < len(args):
        raise poplibs_error(f"{name}: convolution {number}; there are 0 to {len(args) - 1}")
    return args[number]


@library_call("POPLIN")
def convolution(
    graph: Graph,
    args: Sequence[ConvolutionArgs],
    transposeAndFlipWeights: bool,
    prog: Program,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> list[Tensor]:
    """Convolve each input with its weights; raises poplibs_error.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, weights = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[[1.0, 10.0]]]])
    >>> several = [poplin.multiconv.ConvolutionArgs(x, weights, params)]
    >>> (out,) = poplin.multiconv.convolution(trial.graph, several, False, trial.prog)
    >>> trial.values(out)
    [[[21.0, 32.0, 43.0]]]
    """
    names = _names(args, debugContext, options)
    return [
        convolve(
            graph,
            arg.inputs,
            arg.weights,
            arg.params,
            transposeAndFlipWeights,
            prog,
            name,
            arg.options,
            cache,
        )
        for arg, name in zip(args, names, strict=True)
    ]


@library_call("POPLIN")
def calculateWeightDeltas(
    graph: Graph,
    args: Sequence[CalculateWeightDeltasArgs],
    prog: Program,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> list[Tensor]:
    """Return the gradients of the weights of each convolution; raises poplibs_error.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, gradient = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[1.0, 0.0, 10.0]]])
    >>> several = [poplin.multiconv.CalculateWeightDeltasArgs(gradient, x, params)]
    >>> (deltas,) = poplin.multiconv.calculateWeightDeltas(trial.graph, several, trial.prog)
    >>> trial.values(deltas)  # 1 + 30 and 2 + 40
    [[[[31.0, 42.0]]]]
    """
    names = _names(args, debugContext, options)
    return [
        calculateOneGradient(
            graph, arg.zDeltas, arg.activations, arg.params, prog, name, arg.options, cache
        )
        for arg, name in zip(args, names, strict=True)
    ]


@library_call("POPLIN")
def convolutionWeightUpdate(
    graph: Graph,
    args: Sequence[ConvWeightUpdateArgs],
    prog: Program,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Add their scaled gradients to the weights of each convolution; raises poplibs_error.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, gradient = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[1.0, 0.0, 10.0]]])
    >>> weights = trial.tensor([[[[100.0, 100.0]]]])
    >>> several = [poplin.multiconv.ConvWeightUpdateArgs(gradient, weights, x, -1.0, params)]
    >>> poplin.multiconv.convolutionWeightUpdate(trial.graph, several, trial.prog)
    >>> trial.values(weights)  # less 1 + 30 and 2 + 40
    [[[[69.0, 58.0]]]]
    """
    for arg, name in zip(args, _names(args, debugContext, options), strict=True):
        updateOneWeights(
            graph,
            arg.zDeltas,
            arg.weights,
            arg.activations,
            arg.params,
            arg.scale,
            prog,
            name,
            arg.options,
            cache,
        )


@library_call("POPLIN")
def weightsTransposeChansFlipXY(
    graph: Graph,
    args: Sequence[ConvolutionArgs],
    weightsIn: Sequence[Tensor],
    prog: Program,
    options: Options = None,
    debugContext: str = "",
    cache: PlanningCache | None = None,
) -> None:
    """Copy weights to those of each convolution, channels swapped and kernels turned round.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> x, flipped = trial.tensor([[[1.0, 2.0, 3.0, 4.0]]]), trial.tensor([[[[0.0, 0.0]]]])
    >>> several = [poplin.multiconv.ConvolutionArgs(x, flipped, params)]
    >>> weights = [trial.tensor([[[[1.0, 2.0]]]])]
    >>> poplin.multiconv.weightsTransposeChansFlipXY(trial.graph, several, weights, trial.prog)
    >>> trial.values(flipped)
    [[[[2.0, 1.0]]]]
    """
    names = _names(args, debugContext, options)
    for arg, source, name in zip(args, weightsIn, names, strict=True):
        flip_weights(graph, source, arg.weights, prog, name, arg.options)


def _names(args: Sequence[object], context: str, options: Options) -> list[str]:
    """Return the debug name of each convolution; raises InvalidOptionError."""
    name = debug_name(context, "MultiConv")
    checked(OPTIONS, options or {}, name)
    return [f"{name}/{number}" for number in range(len(args))]
