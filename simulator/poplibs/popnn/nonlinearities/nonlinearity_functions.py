"""The non-linearities under names of their own: with a new result, and in place."""

from __future__ import annotations

from typing import Protocol

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.popnn.nonlinearities.activations import (
    NonLinearityType,
    nonLinearity,
    nonLinearityInPlace,
)


class NonLinearityFunction(Protocol):
    """A function that gives a new tensor."""

    def __call__(
        self, graph: Graph, t: Tensor, prog: Sequence, debugContext: str = ""
    ) -> Tensor: ...


class InPlaceFunction(Protocol):
    """A function that changes its tensor."""

    def __call__(self, graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None: ...


_EXAMPLE = """

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor({values})
"""
_NEW = """    >>> trial.values(popnn.{name}(trial.graph, a, trial.prog))
    {result}
    """
_IN_PLACE = """    >>> popnn.{name}(trial.graph, a, trial.prog)
    >>> trial.values(a)
    {result}
    """


def _named(
    name: str, kind: NonLinearityType, values: str, result: str
) -> tuple[NonLinearityFunction, InPlaceFunction]:
    """Return both functions of a non-linearity; its values of some inputs are their example."""

    def new(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
        return nonLinearity(graph, kind, t, prog, debugContext)

    def in_place(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None:
        nonLinearityInPlace(graph, kind, t, prog, debugContext)

    new.__name__ = new.__qualname__ = name
    in_place.__name__ = in_place.__qualname__ = f"{name}InPlace"
    texts = {"values": values, "result": result}
    new.__doc__ = f"Return {kind.value} of every element." + (_EXAMPLE + _NEW).format(
        name=name, **texts
    )
    in_place.__doc__ = f"Replace every element by its {kind.value}." + (
        _EXAMPLE + _IN_PLACE
    ).format(name=f"{name}InPlace", **texts)
    return library_call("POPNN")(new), library_call("POPNN")(in_place)


sigmoid, sigmoidInPlace = _named(
    "sigmoid", NonLinearityType.SIGMOID, "[0.0, 1.0]", "[0.5, 0.7310...]"
)
relu, reluInPlace = _named("relu", NonLinearityType.RELU, "[-1.0, 2.0]", "[0.0, 2.0]")
tanh, tanhInPlace = _named("tanh", NonLinearityType.TANH, "[0.0, 1.0]", "[0.0, 0.7615...]")
gelu, geluInPlace = _named("gelu", NonLinearityType.GELU, "[0.0, 1.0]", "[0.0, 0.8411...]")
swish, swishInPlace = _named("swish", NonLinearityType.SWISH, "[0.0, 1.0]", "[0.0, 0.7310...]")
hardSigmoid, hardSigmoidInPlace = _named(
    "hardSigmoid", NonLinearityType.HARD_SIGMOID, "[-3.0, 0.0, 3.0]", "[0.0, 0.5, 1.0]"
)
softmax, softmaxInPlace = _named(
    "softmax", NonLinearityType.SOFTMAX, "[[0.0, 0.0]]", "[[0.5, 0.5]]"
)
softmaxStable, softmaxStableInPlace = _named(
    "softmaxStable", NonLinearityType.SOFTMAX_STABLE, "[[9.0, 9.0]]", "[[0.5, 0.5]]"
)
scaledSoftmaxStable, scaledSoftmaxStableInPlace = _named(
    "scaledSoftmaxStable", NonLinearityType.SOFTMAX_SCALED, "[[9.0, 9.0]]", "[[31000.0, 31000.0]]"
)
