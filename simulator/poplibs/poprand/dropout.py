"""Dropout: some elements are kept and scaled, the others become zero."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from simulator.codelets.random import cycles as random_cycles
from simulator.codelets.random.vertices import dropout_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popops.regions import Operand, debug_name, result_like
from simulator.poplibs.poprand.distributions import bernoulli, check_probability
from simulator.poplibs.poprand.seeds import seeded
from simulator.poplibs.poprand.vertices import add_supervisors


@overload
def dropout(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor: ...
@overload
def dropout(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    outputClonesRef: bool,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor: ...
@library_call("POPRAND")
def dropout(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    *arguments: object,
    **named: object,
) -> Tensor:
    """Keep each element with a probability, times `scale`; the others become zero.

    The reference, of the same shape, says on which tiles elements are drawn: with it the same seed
    drops the same elements. The output is laid out like it, or like the input when
    `outputClonesRef` is false.

    >>> from simulator import poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([3.0] * 100)
    >>> values = trial.values(poprand.dropout(trial.graph, None, 0, x, x, 0.5, 2.0, trial.prog))
    >>> sorted(set(values))
    [0.0, 6.0]
    """
    prog, context, like_reference = _placed(arguments, named)
    name = debug_name(context, "dropout")
    if input.shape != reference.shape:
        raise poplibs_error(f"{name}: {input!r} and reference {reference!r} differ in shape")
    _check(input, keepProbability, name)
    with graph.debug_scope(name, "poprand"):
        drawn = result_like(graph, [reference], input.shape, input.dtype, f"{name}/out")
        with seeded(graph, masterSeed, seedModifier, prog, name):
            operands: dict[str, Operand] = {"in": ("input", input), "out": ("output", drawn)}
            codelet = dropout_codelet(input.dtype, graph.target)
            parameters = {"prob": keepProbability, "scale": scale}
            cycles = random_cycles.dropout
            add_supervisors(graph, prog, name, codelet, operands, cycles, parameters)
        if like_reference:
            return drawn
        out = result_like(graph, [input], input.shape, input.dtype, f"{name}/outLikeInput")
        prog.add(Copy(drawn, out, name=name))
    return out


def _placed(arguments: tuple[Any, ...], named: dict[str, object]) -> tuple[Sequence, str, bool]:
    """Sort the arguments of either form: program, debug context, whether like the reference."""
    long = bool(arguments) and not isinstance(arguments[0], Sequence)
    names = ("outputClonesRef", "prog", "debugContext")[not long :]
    by_name = dict(zip(names, arguments, strict=False)) | named
    unknown = [key for key in by_name if key not in ("outputClonesRef", "prog", "debugContext")]
    if len(arguments) > len(names) or unknown or not isinstance(by_name.get("prog"), Sequence):
        raise poplibs_error(f"dropout: {list(by_name)} are given; needs prog, a Sequence")
    return (
        by_name["prog"],
        by_name.get("debugContext", ""),
        bool(by_name.get("outputClonesRef", True)),
    )


def _check(values: Tensor, probability: float, name: str) -> None:
    if values.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {values!r}; known for float, half")
    check_probability(probability, name)


@library_call("POPRAND")
def shapedDropout(
    graph: Graph,
    masterSeed: Tensor | None,
    seedModifier: int,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Keep or drop whole slices: a mask of the reference's shape is broadcast to the input.

    >>> from simulator import poprand
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, like = trial.tensor([[3.0, 4.0]] * 100), trial.tensor([[0.0]] * 100)
    >>> operands = x, like, 0.5, 2.0, trial.prog
    >>> rows = trial.values(poprand.shapedDropout(trial.graph, None, 0, *operands))
    >>> sorted(set(map(tuple, rows)))
    [(0.0, 0.0), (6.0, 8.0)]
    """
    name = debug_name(debugContext, "shaped_dropout")
    _check(input, keepProbability, name)
    try:
        fits = np.broadcast_shapes(input.shape, reference.shape) == input.shape
    except ValueError:
        fits = False
    if not fits:
        raise poplibs_error(f"{name}: {reference!r} does not broadcast to {input!r}")
    mask = bernoulli(
        graph, masterSeed, seedModifier, reference, input.dtype, keepProbability, prog, name
    )
    popops.mulInPlace(graph, mask, scale, prog, name)
    return popops.mul(graph, input, mask, prog, name)
