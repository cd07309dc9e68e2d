"""Deviations of variances and back, in a type of their own."""

from __future__ import annotations

from typing import Any

from simulator.codelets.elementwise.operations import BINARY
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast_into
from simulator.poplibs.popops.elementwise.pointwise import apply
from simulator.poplibs.popops.overloads import NEEDED, arguments_of


@library_call("POPOPS")
def varianceToInvStdDev(
    graph: Graph,
    src: Tensor | float,
    epsilon: Tensor | float,
    prog: Sequence,
    *arguments: Any,
    **named: Any,
) -> Tensor:
    """Return 1 / sqrt(src + epsilon): `[dstType,] debugContext`, or `debugContext, options`.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([3.0, 0.0])
    >>> trial.values(popops.varianceToInvStdDev(trial.graph, a, 1.0, trial.prog))
    [0.5, 1.0]
    """
    return _converted(graph, "VARIANCE_TO_INV_STD_DEV", (src, epsilon), prog, arguments, named)


@library_call("POPOPS")
def invStdDevToVariance(
    graph: Graph,
    src: Tensor | float,
    epsilon: Tensor | float,
    prog: Sequence,
    *arguments: Any,
    **named: Any,
) -> Tensor:
    """Return 1 / src^2 - epsilon: `[dstType,] debugContext`, or `debugContext, options`.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([0.5, 1.0])
    >>> trial.values(popops.invStdDevToVariance(trial.graph, a, 1.0, trial.prog))
    [3.0, 0.0]
    """
    return _converted(graph, "INV_STD_DEV_TO_VARIANCE", (src, epsilon), prog, arguments, named)


def _converted(
    graph: Graph,
    kind: str,
    operands: tuple[Tensor | float, Tensor | float],
    prog: Sequence,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
) -> Tensor:
    """Compute an operator, and change the type of its result when one is given."""
    typed = "dstType" in named or (arguments and isinstance(arguments[0], Type))
    form: dict[str, object] = {"debugContext": "", "options": None}
    if typed:
        form = {"dstType": NEEDED, "debugContext": ""}
    call_args = arguments_of(kind, form, arguments, named)
    name = call_args["debugContext"]
    out = apply(graph, BINARY[kind], [*operands], prog, name, options=call_args.get("options"))
    if typed and out.dtype != call_args["dstType"]:
        return cast_into(graph, out, call_args["dstType"], prog, name, None)
    return out
