"""Biases of convolutions (PopLibs lib/poplin/Convolution.cpp)."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs import popops, poputil
from simulator.poplibs.poplin.convolutions.create import PlanningCache
from simulator.poplibs.poplin.planning.options import CONVOLUTION, settings_of
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.popops.regions import debug_name

Options = Mapping[str, object] | None


@library_call("POPLIN")
def createBiases(
    graph: Graph,
    activations: Tensor,
    params: ConvParams | str | None = None,
    debugContext: str = "biases",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add a bias for each channel of activations, near them; raises poplibs_error.

    As in PopLibs the parameters of the convolution may be left out.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createBiases(trial.graph, trial.tensor([[[1.0, 2.0], [3.0, 4.0]]])).shape
    (2,)
    """
    name = params if isinstance(params, str) else debugContext or "biases"
    _check(name, activations)
    settings_of(graph.target, CONVOLUTION, options, name)
    return poputil.createBroadcastOperand(graph, activations, activations.dtype, 1, True, name)


@library_call("POPLIN")
def addBias(
    graph: Graph, activations: Tensor, biases: Tensor, prog: Sequence, debugContext: str = ""
) -> None:
    """Add the bias of its channel to each activation, in place; raises poplibs_error.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> activations = trial.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    >>> poplin.addBias(trial.graph, activations, trial.tensor([10.0, 20.0]), trial.prog)
    >>> trial.values(activations)
    [[[11.0, 12.0], [23.0, 24.0]]]
    """
    name = debug_name(debugContext, "addBias")
    _check(name, activations)
    _check_biases(name, activations, biases)
    broadcast = biases.expand([1] * (activations.rank() - 2))
    popops.addInPlace(graph, activations, broadcast, prog, debugContext)


@library_call("POPLIN")
def convolutionBiasUpdate(
    graph: Graph,
    zDeltas: Tensor,
    biases: Tensor,
    scale: Tensor | float,
    options: Options,
    prog: Sequence,
    debugContext: str = "",
) -> None:
    """Add `scale` times the sum of each channel's gradients to its bias; raises poplibs_error.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> gradients, biases = trial.tensor([[[1.0, 2.0], [3.0, 4.0]]]), trial.tensor([10.0, 20.0])
    >>> poplin.convolutionBiasUpdate(trial.graph, gradients, biases, -1.0, {}, trial.prog)
    >>> trial.values(biases)
    [7.0, 13.0]
    """
    name = debug_name(debugContext, "BiasUpdate")
    _check(name, zDeltas)
    _check_biases(name, zDeltas, biases)
    partials = str(settings_of(graph.target, CONVOLUTION, options, name).partials)
    popops.reduceWithOutput(
        graph,
        zDeltas,
        biases,
        [0, *range(2, zDeltas.rank())],
        popops.ReduceParams(popops.Operation.ADD, True, scale),
        prog,
        name,
        {"accumType.interTile": partials, "accumType.inVertex": partials},
    )


def _check(name: str, activations: Tensor) -> None:
    if activations.rank() < 2:
        raise poplibs_error(f"{name}: {activations!r}; [batch, channels, *field] is needed")


def _check_biases(name: str, activations: Tensor, biases: Tensor) -> None:
    if biases.shape != (activations.dim(1),):
        channels = activations.dim(1)
        raise poplibs_error(f"{name}: biases {biases!r}; one for each of {channels} channels")
