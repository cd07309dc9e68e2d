"""Softmax over the last dimension, by popops (PopLibs lib/popnn/NonLinearity.cpp)."""

from __future__ import annotations

from math import log

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popops.regions import debug_name

ADD, MAX = popops.Operation.ADD, popops.Operation.MAX
SCALING = 62000.0  # of SOFTMAX_SCALED: close to the largest half


def softmax(
    graph: Graph, t: Tensor, kind: str, prog: Sequence, context: str, *, in_place: bool
) -> Tensor:
    """Return exp(x) / sum of exp(x) for each row; stable: of x less the largest of its row.

    SOFTMAX_SCALED gives the stable one times `SCALING`, so that halves keep small outputs.
    """
    name, last = debug_name(context, "SoftMax"), t.rank() - 1
    powers, copied = t, in_place
    if kind != "SOFTMAX":
        largest = _column(popops.reduce(graph, t, [last], MAX, prog, name))
        powers = _sub(graph, t, largest, prog, name, copied)
        copied = True
    if kind == "SOFTMAX_SCALED":
        popops.addInPlace(graph, powers, log(SCALING), prog, name)
    if copied:
        popops.expInPlace(graph, powers, prog, name)
    else:
        powers = popops.exp(graph, powers, prog, name)
    sums = popops.reduce(graph, powers, FLOAT, [last], ADD, prog, name)
    # One inverse a row is fewer than a quotient an element.
    popops.invInPlace(graph, sums, prog, name)
    if kind == "SOFTMAX_SCALED":
        popops.mulInPlace(graph, sums, SCALING, prog, name)
    if t.dtype == HALF:
        sums = popops.cast(graph, sums, HALF, prog, name)
    popops.mulInPlace(graph, powers, _column(sums), prog, f"{name}/invScale")
    return powers


@library_call("POPNN")
def logSoftmax(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return the logarithm of the stable softmax of each row of the last dimension.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popnn.logSoftmax(trial.graph, trial.tensor([[9.0, 9.0]]), trial.prog))
    [[-0.6931..., -0.6931...]]
    """
    return _log_softmax(graph, t, prog, debugContext, in_place=False)


@library_call("POPNN")
def logSoftmaxInPlace(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None:
    """Replace each row by the logarithm of its stable softmax.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[9.0, 9.0]])
    >>> popnn.logSoftmaxInPlace(trial.graph, a, trial.prog)
    >>> trial.values(a)
    [[-0.6931..., -0.6931...]]
    """
    _log_softmax(graph, t, prog, debugContext, in_place=True)


def _log_softmax(
    graph: Graph, t: Tensor, prog: Sequence, context: str, *, in_place: bool
) -> Tensor:
    """Return x - max - log(sum of exp(x - max)) for each row; the sum and its logarithm are float.

    PopLibs lib/popnn/LogSoftmax.cpp.
    """
    name, last = debug_name(context, "LogSoftmax"), t.rank() - 1
    if t.rank() < 1:
        raise poplibs_error(f"{name}: {t!r}; at least one dimension is needed")
    largest = _column(popops.reduce(graph, t, [last], MAX, prog, name))
    less = _sub(graph, t, largest, prog, name, in_place)
    powers = popops.exp(graph, less, prog, name)
    sums = popops.reduce(graph, powers, FLOAT, [last], ADD, prog, name)
    popops.logInPlace(graph, sums, prog, name)
    if t.dtype == HALF:
        sums = popops.cast(graph, sums, HALF, prog, name)
    popops.subInPlace(graph, less, _column(sums), prog, name)
    return less


def _sub(
    graph: Graph, t: Tensor, column: Tensor, prog: Sequence, name: str, in_place: bool
) -> Tensor:
    if not in_place:
        return popops.sub(graph, t, column, prog, name)
    popops.subInPlace(graph, t, column, prog, name)
    return t


def softmax_gradient(
    graph: Graph, out: Tensor, out_gradient: Tensor, prog: Sequence, context: str
) -> Tensor:
    """Return out * gradient - out * (sum of out * gradient), for each row."""
    name = debug_name(context, "SoftMaxGradient")
    weighted = popops.mul(graph, out, out_gradient, prog, name)
    sums = popops.reduce(graph, weighted, [out.rank() - 1], ADD, prog, name)
    common = popops.mul(graph, out, _column(sums), prog, name)
    popops.subInPlace(graph, weighted, common, prog, name)
    return weighted


def _column(tensor: Tensor) -> Tensor:
    """View a value a row so that it broadcasts over the row."""
    return tensor.reshape((*tensor.shape, 1))
