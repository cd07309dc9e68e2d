"""Batch norm (popnn::bn): activations are normalised by channel, over all samples and the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs import poplin
from simulator.poplibs.poplin.norms import AllReduce
from simulator.poplibs.popnn import norm_layers as layers
from simulator.poplibs.popops.overloads import NEEDED, arguments_of

Options = Mapping[str, object] | None


@library_call("POPNN")
def batchNormStatistics(
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return mean and inverse standard deviation of each channel.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> trial.values(*popnn.bn.batchNormStatistics(trial.graph, acts, 0.0, trial.prog, False))
    [[2.0, 4.0], [1.0, 0.5]]
    """
    layers.check_options("batchNormStatistics", options)
    return poplin.normStatistics(
        graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext
    )


@library_call("POPNN")
def distributedBatchNormStatistics(
    replicatedGraph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    reduceCallback: AllReduce | None,
    normBatchSize: int,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return what `batchNormStatistics` does, over `normBatchSize` samples of several replicas.

    See `poplin.distributedNormStatistics` for the callback, which adds over them.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[1.0, 2.0], [3.0, 6.0]])  # on one replica: no callback
    >>> operands = acts, 0.0, trial.prog, False, None, 2
    >>> trial.values(*popnn.bn.distributedBatchNormStatistics(trial.graph, *operands))
    [[2.0, 4.0], [1.0, 0.5]]
    """
    layers.check_options("distributedBatchNormStatistics", options)
    return poplin.distributedNormStatistics(
        replicatedGraph, acts, eps, prog, unbiasedVarEstimate, reduceCallback, normBatchSize,
        stableAlgo, partialsType, debugContext,
    )  # fmt: skip


@library_call("POPNN")
def distributedBatchNormGradients(
    replicatedGraph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    reduceCallback: AllReduce | None,
    normBatchSize: int,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    """Return the gradient of activations, of which several replicas have a part each.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> whitened = trial.tensor([[-1.0], [1.0], [1.0], [-1.0]])
    >>> gradients = trial.tensor([[1.0], [0.0], [0.0], [-1.0]])
    >>> factor, gamma = trial.tensor([2.0]), trial.tensor([10.0])
    >>> operands = whitened, gradients, factor, gamma, trial.prog, None, 4
    >>> trial.values(popnn.bn.distributedBatchNormGradients(trial.graph, *operands))
    [[20.0], [0.0], [0.0], [-20.0]]
    """
    layers.check_options("distributedBatchNormGradients", options)
    graph = replicatedGraph
    gradients = poplin.normGradients(graph, gradsIn, gamma, prog, debugContext)
    return poplin.distributedNormStatisticsGradients(
        graph, actsWhitened, gradients, invStdDev, prog, reduceCallback, normBatchSize,
        partialsType, debugContext,
    )  # fmt: skip


def _whiten(
    graph: Graph,
    acts: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    """Return (acts - mean) * invStdDev, by channel."""
    layers.check_options("batchNormWhiten", options)
    return poplin.normWhiten(graph, acts, mean, invStdDev, prog, debugContext)


batchNormWhiten = layers.public(_whiten, "batchNormWhiten")

_LAST: dict[str, object] = {"prog": NEEDED, "debugContext": "", "options": None}
_COMBINED: dict[str, object] = {"combinedMultiplicand": NEEDED, "addend": NEEDED}
_APART: dict[str, object] = dict.fromkeys(("gamma", "beta", "mean", "invStdDev"), NEEDED)


@overload
def batchNormalise(
    graph: Graph,
    acts: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def batchNormalise(
    graph: Graph,
    acts: Tensor,
    combinedMultiplicand: Tensor,
    addend: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor: ...
@library_call("POPNN")
def batchNormalise(graph: Graph, acts: Tensor, *arguments: object, **named: object) -> Any:
    """Return the normalised and the whitened activations; or only the first, of combined factors.

    These are gamma * invStdDev and beta - gamma * mean * invStdDev, by channel.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts, mean, factor = map(trial.tensor, ([[1.0], [3.0]], [2.0], [1.0]))
    >>> gamma, beta = trial.tensor([10.0]), trial.tensor([5.0])
    >>> operands = acts, gamma, beta, mean, factor, trial.prog
    >>> trial.values(*popnn.bn.batchNormalise(trial.graph, *operands))
    [[[-5.0], [15.0]], [[-1.0], [1.0]]]
    """
    combined = "addend" in named or (len(arguments) > 2 and isinstance(arguments[2], Sequence))
    form = (_COMBINED if combined else _APART) | _LAST
    call_args = arguments_of("batchNormalise", form, arguments, named)
    layers.check_options("batchNormalise", call_args["options"])
    prog, context = call_args["prog"], call_args["debugContext"]
    if combined:
        factors = (call_args["combinedMultiplicand"], call_args["addend"])
        return poplin.normalise(graph, acts, *factors, prog, context)
    whitened = poplin.normWhiten(
        graph, acts, call_args["mean"], call_args["invStdDev"], prog, context
    )
    out = poplin.normalise(graph, whitened, call_args["gamma"], call_args["beta"], prog, context)
    return out, whitened


def _gradients(
    graph: Graph,
    whitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    gamma: Tensor,
    prog: Sequence,
    partialsType: Type,
    debugContext: str,
    options: Options,
) -> Tensor:
    layers.check_options("batchNormGradients", options)
    scaled = poplin.normGradients(graph, gradsIn, gamma, prog, debugContext)
    return poplin.normStatisticsGradients(
        graph, whitened, scaled, invStdDev, prog, partialsType, debugContext
    )


batchNormParamGradients = layers.parameter_gradients("batchNormParamGradients", _whiten)
batchNormGradients = layers.input_gradients("batchNormGradients", _whiten, _gradients)
batchNormParamUpdate = layers.public(layers.update, "batchNormParamUpdate")
