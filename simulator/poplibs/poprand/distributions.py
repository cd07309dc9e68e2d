"""Tensors of random numbers, laid out like a reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.random.values import truncation_tries
from simulator.codelets.random.vertices import random_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, IntArray, Type, checked_type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popops.regions import Operand, debug_name, result_like
from simulator.poplibs.poprand.seeds import seeded
from simulator.poplibs.poprand.vertices import add_supervisors

_INT_LIMITS = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Call:
    """What all distributions are given."""

    graph: Graph
    seed: Tensor | None
    modifier: int
    reference: Tensor
    dtype: Type
    prog: Sequence
    name: str


@library_call("POPRAND")
def uniform(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: Type,
    minVal: float,
    maxVal: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Draw numbers of type float, half or int, all between two equally probable.

    Both limits are among the integers. Without a master seed the tiles' generators go on.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like = trial.tensor([0.0] * 100)
    >>> operands = None, 0, like, poplar.FLOAT, 2.0, 3.0, trial.prog
    >>> values = trial.values(poprand.uniform(trial.graph, *operands))
    >>> 2 <= min(values) < max(values) <= 3
    True
    """
    name = debug_name(debugContext, "uniform")
    call = _Call(graph, masterSeed, seedModifier, reference, outType, prog, name)
    return _uniform(call, minVal, maxVal)


@library_call("POPRAND")
def logUniform(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: Type,
    minVal: float,
    maxVal: float,
    prog: Sequence,
    base: float = math.e,
    debugContext: str = "",
) -> Tensor:
    """Draw numbers whose logarithms to a base are uniform; integers are rounded down.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like = trial.tensor([0.0] * 100)
    >>> operands = None, 0, like, poplar.FLOAT, 1.0, 8.0, trial.prog
    >>> values = trial.values(poprand.logUniform(trial.graph, *operands))
    >>> 1 <= min(values) < max(values) <= 8
    True
    """
    name = debug_name(debugContext, "logUniform")
    if not 1 <= minVal < maxVal:
        raise poplibs_error(f"{name}: from {minVal} to {maxVal}; needs 1 <= minVal < maxVal")
    if not base > 1:
        raise poplibs_error(f"{name}: base is {base}; one above 1 is needed")
    _check_type(outType, (FLOAT, HALF, INT), name)
    _check_integers(outType, minVal, maxVal, name)
    exponents = FLOAT if outType == INT else outType
    call = _Call(graph, masterSeed, seedModifier, reference, exponents, prog, name)
    logarithms = _uniform(call, math.log(minVal, base), math.log(maxVal, base))
    expression = popops.expr.Exp(popops.expr._1 * popops.expr.Const(math.log(base)))
    popops.mapInPlace(graph, expression, [logarithms], prog, name)
    limited = popops.expr.Clamp(
        popops.expr._1, popops.expr.Const(minVal), popops.expr.Const(maxVal)
    )
    popops.mapInPlace(graph, limited, [logarithms], prog, name)
    return popops.cast(graph, logarithms, INT, prog, name) if outType == INT else logarithms


@library_call("POPRAND")
def normal(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: Type,
    mean: float,
    stdDev: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Draw numbers of type float or half from the normal distribution.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like = trial.tensor([0.0] * 100)
    >>> operands = None, 0, like, poplar.FLOAT, 5.0, 1.0, trial.prog
    >>> values = trial.values(poprand.normal(trial.graph, *operands))
    >>> 4 < sum(values) / 100 < 6  # the mean is 5, give or take 0.1
    True
    """
    name = debug_name(debugContext, "normal")
    _check_type(outType, (FLOAT, HALF), name)
    _check_deviation(stdDev, name)
    call = _Call(graph, masterSeed, seedModifier, reference, outType, prog, name)
    return _drawn(call, "Normal", random_cycles.normal, mean=mean, stdDev=stdDev)


@library_call("POPRAND")
def truncatedNormal(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: Type,
    mean: float,
    stdDev: float,
    alpha: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Draw from the normal distribution, nothing further from the mean than alpha * stdDev.

    A number that lies outside is drawn again; at most one in 10,000 is drawn uniformly at last.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like = trial.tensor([0.0] * 100)
    >>> operands = None, 0, like, poplar.FLOAT, 5.0, 1.0, 2.0, trial.prog
    >>> values = trial.values(poprand.truncatedNormal(trial.graph, *operands))
    >>> 3 <= min(values) < max(values) <= 7
    True
    """
    name = debug_name(debugContext, "truncatedNormal")
    _check_type(outType, (FLOAT, HALF), name)
    _check_deviation(stdDev, name)
    if not alpha >= 1:
        raise poplibs_error(f"{name}: alpha is {alpha}; at least 1 is needed")
    call = _Call(graph, masterSeed, seedModifier, reference, outType, prog, name)
    tries = truncation_tries(alpha)
    return _drawn(
        call,
        "TruncatedNormal",
        lambda n, dtype, target: random_cycles.truncated_normal(n, tries, dtype, target),
        mean=mean,
        stdDev=stdDev,
        alpha=alpha,
    )


@library_call("POPRAND")
def bernoulli(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: Type,
    prob: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Draw ones with a probability, else zeros, of type float, half or int.

    >>> from simulator import poplar, poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> like = trial.tensor([0.0] * 100)
    >>> operands = None, 0, like, poplar.INT, 0.5, trial.prog
    >>> values = trial.values(poprand.bernoulli(trial.graph, *operands))
    >>> sorted(set(values))
    [0, 1]
    """
    name = debug_name(debugContext, "bernoulli")
    _check_type(outType, (FLOAT, HALF, INT), name)
    check_probability(prob, name)
    call = _Call(graph, masterSeed, seedModifier, reference, outType, prog, name)
    return _drawn(call, "Bernoulli", random_cycles.bernoulli, prob=prob)


def check_probability(probability: float, name: str) -> None:
    """Raise poplibs_error for what is no probability."""
    if not 0 <= probability <= 1:
        raise poplibs_error(f"{name}: probability is {probability}; one from 0 to 1 is needed")


def _uniform(call: _Call, least: float, most: float) -> Tensor:
    _check_type(call.dtype, (FLOAT, HALF, INT), call.name)
    if not -math.inf < least <= most < math.inf:
        raise poplibs_error(f"{call.name}: from {least} to {most}; needs minVal <= maxVal")
    _check_integers(call.dtype, least, most, call.name)
    return _drawn(call, "Uniform", random_cycles.uniform, minVal=least, maxVal=most)


def _check_integers(dtype: Type, least: float, most: float, name: str) -> None:
    if dtype == INT and not (_INT_LIMITS[0] <= least and most <= _INT_LIMITS[1]):
        raise poplibs_error(f"{name}: from {least} to {most}; int has {_INT_LIMITS}")


def _check_type(dtype: Type, types: tuple[Type, ...], name: str) -> None:
    if checked_type(dtype, name) not in types:
        names = ", ".join(map(str, types))
        raise poplibs_error(f"{name}: type is {dtype}; known for {names}")


def _check_deviation(deviation: float, name: str) -> None:
    if not 0 <= deviation < math.inf:
        raise poplibs_error(f"{name}: standard deviation is {deviation}; needs 0 or more")


def _drawn(call: _Call, kind: str, cycles: Callable[..., IntArray], **parameters: float) -> Tensor:
    """Add the vertices that draw a distribution, on the tiles of the reference."""
    graph, reference = call.graph, call.reference
    with graph.debug_scope(call.name, "poprand"):
        name = f"{call.name}/out"
        out = result_like(graph, [reference], reference.shape, call.dtype, name)
        with seeded(graph, call.seed, call.modifier, call.prog, call.name):
            codelet = random_codelet(kind, call.dtype, graph.target)
            fields: dict[str, Operand] = {"out": ("output", out)}
            add_supervisors(graph, call.prog, call.name, codelet, fields, cycles, parameters)
    return out
