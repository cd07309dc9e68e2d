"""Statistics of activations by channel, normalising by them, and the gradients (poplin).

Activations are [sample][channel][field...]. Sums over all but the channels are reductions, the rest
is element-wise. PopLibs lib/poplin/Norms.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.codelets.layers.deviation import inverse_deviation_vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops.ordered_copy import ordered_copy
from simulator.poplibs.popops.regions import add_elementwise, debug_name
from simulator.poplibs.poputil.mapping_by_use import joint_broadcast_operand

AllReduce = Callable[..., list[Tensor]]  # (graph, tensors, prog, replicas, debugContext, options)
SPLIT = 3 / 4  # how much of 1 / n scales the sums, so that halves neither vanish nor overflow


def check_activations(name: str, operand_name: str, acts: Tensor) -> None:
    """Raise poplibs_error for what has no channels, no elements or no real numbers."""
    if acts.rank() < 2 or not acts.numElements():
        raise poplibs_error(
            f"{name}: {operand_name} {acts!r}; needs samples, channels and elements"
        )
    if acts.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {operand_name} {acts!r}; it takes float and half")


def _by_channel(name: str, operand_name: str, acts: Tensor, tensor: Tensor) -> Tensor:
    """View a tensor of one element a channel so that it broadcasts to the activations."""
    check_activations(name, "activations", acts)
    if tensor.numElements() != acts.dim(1):
        raise poplibs_error(
            f"{name}: {operand_name} {tensor!r}; one for each of the {acts.dim(1)} channels "
            "is needed"
        )
    return tensor.flatten().expand([1] * (acts.rank() - 2))


def _check_alike(name: str, one: Tensor, gradients: Tensor) -> None:
    check_activations(name, "activations", one)
    if one.shape != gradients.shape or one.dtype != gradients.dtype:
        raise poplibs_error(f"{name}: gradients {gradients!r} are not like activations {one!r}")


def _values(acts: Tensor) -> int:
    """Count the values of a channel."""
    return acts.numElements() // acts.dim(1)


# Parameters
@library_call("POPLIN")
def createNormGamma(
    graph: Graph, acts: Tensor, type: Type | None = None, debugContext: str = ""
) -> Tensor:
    """Add a factor for each channel, near its activations.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createNormGamma(trial.graph, trial.tensor([[1.0, 2.0], [3.0, 6.0]])).shape
    (2,)
    """
    return _parameter(graph, acts, type, debug_name(debugContext, "gamma"))


@library_call("POPLIN")
def createNormBeta(
    graph: Graph, acts: Tensor, type: Type | None = None, debugContext: str = ""
) -> Tensor:
    """Add an addend for each channel, near its activations.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createNormBeta(trial.graph, trial.tensor([[1.0, 2.0], [3.0, 6.0]])).shape
    (2,)
    """
    return _parameter(graph, acts, type, debug_name(debugContext, "beta"))


@library_call("POPLIN")
def createNormParams(graph: Graph, acts: Tensor, debugContext: str = "") -> tuple[Tensor, Tensor]:
    """Add a factor and an addend for each channel.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> gamma, beta = poplin.createNormParams(trial.graph, trial.tensor([[1.0, 2.0], [3.0, 6.0]]))
    >>> gamma.shape, beta.shape
    ((2,), (2,))
    """
    gamma = createNormGamma(graph, acts, debugContext=debugContext)
    return gamma, createNormBeta(graph, acts, debugContext=debugContext)


def _parameter(graph: Graph, acts: Tensor, dtype: Type | None, name: str) -> Tensor:
    check_activations(name, "activations", acts)
    return poputil.createBroadcastOperand(graph, acts, dtype or acts.dtype, 1, True, name)


# Statistics
@library_call("POPLIN")
def normStatistics(
    graph: Graph,
    actsUngrouped: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the mean and the inverse of the standard deviation of each channel.

    The variance is a mean of squares less the square of the mean, or with `stableAlgo` the mean of
    squares of activations less the mean; `eps` is added to it, after it is scaled by n / (n - 1)
    when `unbiasedVarEstimate` is true.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> trial.values(*poplin.normStatistics(trial.graph, acts, 0.0, trial.prog, False))
    [[2.0, 4.0], [1.0, 0.5]]
    """
    name = debug_name(debugContext, "Norm/statistics")
    mode = (unbiasedVarEstimate, stableAlgo, partialsType)
    return _statistics(graph, actsUngrouped, eps, prog, mode, None, name)


@library_call("POPLIN")
def distributedNormStatistics(
    replicatedGraph: Graph,
    actsUngrouped: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    allReduceCallback: AllReduce | None,
    normSize: int,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return what `normStatistics` does, over the `normSize` samples of several replicas.

    `allReduceCallback(graph, tensors, prog, replicas, debugContext, options)` adds sums over them
    and returns the tensors of the totals; it is not called when all samples are here.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> trial.values(
    ...     *poplin.distributedNormStatistics(trial.graph, acts, 0.0, trial.prog, False, None, 2)
    ... )
    [[2.0, 4.0], [1.0, 0.5]]
    """
    name = debug_name(debugContext, "Norm/distributedStatistics")
    mode = (unbiasedVarEstimate, stableAlgo, partialsType)
    shared = _shared(name, actsUngrouped, normSize, allReduceCallback)
    return _statistics(replicatedGraph, actsUngrouped, eps, prog, mode, shared, name)


@dataclass(frozen=True, slots=True)
class _Shared:
    """How many replicas share a norm, and what adds over them."""

    replicas: int
    callback: AllReduce

    def total(self, graph: Graph, tensors: list[Tensor], prog: Sequence, name: str) -> list[Tensor]:
        return self.callback(graph, tensors, prog, self.replicas, f"{name}/allReduce", {})


def _shared(name: str, acts: Tensor, samples: int, callback: AllReduce | None) -> _Shared | None:
    """Return how a norm is shared; None for one of which all samples are here."""
    check_activations(name, "activations", acts)
    here = acts.dim(0)
    if callback is None or not here or samples <= here:
        return None
    if samples % here:
        raise poplibs_error(f"{name}: normSize is {samples}; a multiple of {here} is needed")
    return _Shared(samples // here, callback)


def _statistics(
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    mode: tuple[bool, bool, Type],
    shared: _Shared | None,
    name: str,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the inverse deviation of each channel; `mode` as the last arguments."""
    unbiased, stable, partials = mode
    check_activations(name, "activations", acts)
    count = _values(acts) * (shared.replicas if shared else 1)
    factor = count / (count - 1) if unbiased and count > 1 else 1.0
    with graph.debug_scope(name, "poplin"):
        mean = poputil.createBroadcastOperand(graph, acts, acts.dtype, 1, True, f"{name}/mean")
        power = graph.clone(mean, f"{name}/power", partials)
        sums = _sum(acts, 1 / count, squares=False)
        if stable:
            _reduce(graph, [sums], [mean], prog, f"{name}/mean")
            if shared:
                (mean,) = shared.total(graph, [mean], prog, name)
            centred = popops.sub(
                graph, acts, _by_channel(name, "mean", acts, mean), prog, f"{name}/removeMean"
            )
            squares = [_sum(centred, 1 / count, squares=True)]
            _reduce(graph, squares, [power], prog, f"{name}/power")
            if shared:
                (power,) = shared.total(graph, [power], prog, name)
        else:
            squares = [sums, _sum(acts, 1 / count, squares=True)]
            _reduce(graph, squares, [mean, power], prog, name)
            if shared:
                mean, power = shared.total(graph, [mean, power], prog, name)
        deviation = graph.clone(mean, f"{name}/iStdDev")
        compute_set = graph.addComputeSet(f"{name}/iStdDev")
        add_elementwise(
            graph,
            compute_set,
            inverse_deviation_vertices(mean.dtype, power.dtype, mean.dtype, bool(stable)),
            {"mean": ("input", mean), "power": ("input", power), "out": ("output", deviation)},
            {"eps": float(eps), "scaleVar": factor},
        )
        prog.add(Execute(compute_set))
    return mean, deviation


def _sum(acts: Tensor, scale: float, *, squares: bool) -> popops.SingleReduceOp:
    """Ask for the sums of each channel."""
    operation = popops.Operation.SQUARE_ADD if squares else popops.Operation.ADD
    dims = [0, *range(2, acts.rank())]
    return popops.SingleReduceOp(acts, dims, popops.ReduceParams(operation, False, scale))


def _reduce(
    graph: Graph,
    sums: list[popops.SingleReduceOp],
    outputs: list[Tensor],
    prog: Sequence,
    name: str,
) -> None:
    """Make sums in compute sets that they share."""
    popops.reduceMany(graph, sums, outputs, prog, name)


# Forward
@library_call("POPLIN")
def normWhiten(
    graph: Graph,
    acts: Tensor,
    mean: Tensor,
    iStdDev: Tensor,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Return (acts - mean) * iStdDev, by channel.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> mean, factor = trial.tensor([2.0, 4.0]), trial.tensor([1.0, 0.5])
    >>> trial.values(poplin.normWhiten(trial.graph, acts, mean, factor, trial.prog))
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    name = debug_name(debugContext, "Whiten")
    means = _by_channel(name, "mean", acts, mean)
    deviations = _by_channel(name, "inverse standard deviation", acts, iStdDev)
    whitened = popops.sub(graph, acts, means, prog, f"{name}/mean")
    popops.mulInPlace(graph, whitened, deviations, prog, f"{name}/istdDev")
    return whitened


@library_call("POPLIN")
def normalise(
    graph: Graph,
    actsWhitened: Tensor,
    gamma: Tensor,
    beta: Tensor,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Return actsWhitened * gamma + beta, by channel.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[-1.0, -1.0], [1.0, 1.0]])
    >>> gamma, beta = trial.tensor([1.0, 3.0]), trial.tensor([0.0, 5.0])
    >>> trial.values(poplin.normalise(trial.graph, acts, gamma, beta, trial.prog))
    [[-1.0, 2.0], [1.0, 8.0]]
    """
    name = debug_name(debugContext, "Norm/normalise")
    factors = _by_channel(name, "gamma", actsWhitened, gamma)
    addends = _by_channel(name, "beta", actsWhitened, beta)
    out = popops.mul(graph, actsWhitened, factors, prog, f"{name}/gamma")
    popops.addInPlace(graph, out, addends, prog, f"{name}/beta")
    return out


# Gradients
@library_call("POPLIN")
def normParamGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    prog: Sequence,
    partialsType: Type = FLOAT,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the gradients of gamma and beta; PopLibs, too, makes nothing of `partialsType`.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[-1.0, -1.0], [1.0, 1.0]])
    >>> gradients = trial.tensor([[1.0, 2.0], [3.0, 5.0]])
    >>> trial.values(*poplin.normParamGradients(trial.graph, acts, gradients, trial.prog))
    [[2.0, 3.0], [4.0, 7.0]]
    """
    name = debug_name(debugContext, "Norm/deltas")
    _check_alike(name, actsWhitened, gradsIn)
    return _deltas(graph, actsWhitened, gradsIn, 1.0, prog, name)


def _deltas(
    graph: Graph, whitened: Tensor, gradients: Tensor, scale: float, prog: Sequence, name: str
) -> tuple[Tensor, Tensor]:
    """Sum whitened * gradients and gradients of each channel, in the same compute sets."""
    products = popops.mul(graph, whitened, gradients, prog, name)
    dtype, label, channels = gradients.dtype, f"{name}/JointGammaDelta", whitened.dim(1)
    parts = [products, gradients]
    sums = joint_broadcast_operand(graph, parts, dtype, 1, f"{label}/ReduceResult")
    both = sums.slice(0, channels), sums.slice(channels, 2 * channels)
    reductions = [_sum(tensor, scale, squares=False) for tensor in (products, gradients)]
    _reduce(graph, reductions, [*both], prog, label)
    return both


@library_call("POPLIN")
def normGradients(
    graph: Graph, gradsIn: Tensor, gamma: Tensor, prog: Sequence, debugContext: str = ""
) -> Tensor:
    """Return gradsIn * gamma, by channel: the gradient of the whitened activations.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> gradients, gamma = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([10.0, 100.0])
    >>> trial.values(poplin.normGradients(trial.graph, gradients, gamma, trial.prog))
    [[10.0, 200.0], [30.0, 400.0]]
    """
    name = debug_name(debugContext, "NormGrad")
    return popops.mul(graph, gradsIn, _by_channel(name, "gamma", gradsIn, gamma), prog, name)


@library_call("POPLIN")
def normStatisticsGradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    partialsType: Type = FLOAT,
    debugContext: str = "",
) -> Tensor:
    """Return the gradient of the activations from that of the whitened ones.

    It is invStdDev * (gradsIn - mean of gradsIn - actsWhitened * mean of actsWhitened * gradsIn);
    PopLibs, too, makes nothing of `partialsType`.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[-1.0], [1.0], [1.0], [-1.0]])
    >>> gradients = trial.tensor([[1.0], [0.0], [0.0], [-1.0]])
    >>> factor = trial.tensor([2.0])
    >>> back = poplin.normStatisticsGradients(trial.graph, acts, gradients, factor, trial.prog)
    >>> trial.values(back)
    [[2.0], [0.0], [0.0], [-2.0]]
    """
    name = debug_name(debugContext, "Norm/gradients")
    return _gradients(graph, actsWhitened, gradsIn, invStdDev, prog, None, name)


@library_call("POPLIN")
def distributedNormStatisticsGradients(
    replicatedGraph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    reduceCallback: AllReduce | None,
    normSize: int,
    partialsType: Type = FLOAT,
    debugContext: str = "",
) -> Tensor:
    """Return what `normStatisticsGradients` does, of samples on several replicas.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> acts = trial.tensor([[-1.0], [1.0], [1.0], [-1.0]])
    >>> gradients = trial.tensor([[1.0], [0.0], [0.0], [-1.0]])
    >>> operands = acts, gradients, trial.tensor([2.0]), trial.prog
    >>> trial.values(poplin.distributedNormStatisticsGradients(trial.graph, *operands, None, 4))
    [[2.0], [0.0], [0.0], [-2.0]]
    """
    name = debug_name(debugContext, "Norm/distributedGradients")
    shared = _shared(name, actsWhitened, normSize, reduceCallback)
    return _gradients(replicatedGraph, actsWhitened, gradsIn, invStdDev, prog, shared, name)


def _gradients(
    graph: Graph,
    actsWhitened: Tensor,
    gradsIn: Tensor,
    invStdDev: Tensor,
    prog: Sequence,
    shared: _Shared | None,
    name: str,
) -> Tensor:
    """Return the gradient of activations; see `normStatisticsGradients`."""
    _check_alike(name, actsWhitened, gradsIn)
    deviations = _by_channel(name, "inverse standard deviation", actsWhitened, invStdDev)
    share = 1 / (_values(actsWhitened) * (shared.replicas if shared else 1))
    remaining_scale = share ** (1 - SPLIT)
    if actsWhitened.dtype == HALF:
        remaining_scale = float(np.float16(remaining_scale))
    with graph.debug_scope(name, "poplin"):
        variance, mean = _deltas(graph, actsWhitened, gradsIn, -share / remaining_scale, prog, name)
        if shared:
            variance, mean = shared.total(graph, [variance, mean], prog, name)
        gradient = graph.clone(actsWhitened, f"{name}/gradsIn")
        prog.add(ordered_copy(gradsIn, gradient, f"{name}/gradsIn"))
        of_variance = _by_channel(name, "delta", actsWhitened, variance)
        varied = popops.mul(graph, actsWhitened, of_variance, prog, f"{name}/varGrads")
        popops.mulInPlace(graph, mean, remaining_scale, prog, f"{name}/scaleMeanDelta")
        of_mean = _by_channel(name, "delta", gradient, mean)
        popops.addInPlace(graph, gradient, of_mean, prog, f"{name}/meanGrads")
        popops.scaledAddTo(graph, gradient, varied, remaining_scale, prog, f"{name}/addGrads")
        popops.mulInPlace(graph, gradient, deviations, prog, name)
    return gradient
