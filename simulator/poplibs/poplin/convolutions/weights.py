"""Weights of the forward pass as the backward pass takes them (poplin/Convolution.hpp)."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.poplin.planning.options import CONVOLUTION, settings_of
from simulator.poplibs.popops.regions import debug_name

Options = Mapping[str, object] | None


@library_call("POPLIN")
def weightsTransposeChansFlipXY(
    graph: Graph,
    weightsIn: Tensor,
    weightsOut: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None:
    """Copy [groups, a, b, *kernel] to [groups, b, a, *kernel], the kernel turned round.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> weights, flipped = trial.tensor([[[[1.0, 2.0]]]]), trial.tensor([[[[0.0, 0.0]]]])
    >>> poplin.weightsTransposeChansFlipXY(trial.graph, weights, flipped, trial.prog)
    >>> trial.values(flipped)
    [[[[2.0, 1.0]]]]
    """
    flip_weights(graph, weightsIn, weightsOut, prog, debugContext, options)


def flip_weights(
    graph: Graph, source: Tensor, out: Tensor, prog: Sequence, context: str, options: Options
) -> None:
    """Copy weights with their channels swapped and their kernel turned round."""
    name = debug_name(context, "WeightsTranspose")
    settings_of(graph.target, CONVOLUTION, options, name)
    if source.rank() < 3:
        raise poplibs_error(f"{name}: {source!r}; [groups, outputs, inputs, *kernel] is needed")
    turned = source.dimShufflePartial([1], [2])
    for axis in range(3, turned.rank()):
        turned = turned.reverse(axis)
    if out.shape != turned.shape or out.dtype != source.dtype:
        needed = f"{source.dtype}{list(turned.shape)}"
        raise poplibs_error(f"{name}: output {out!r}; {needed} is needed")
    prog.add(Copy(turned, out, name=name))
