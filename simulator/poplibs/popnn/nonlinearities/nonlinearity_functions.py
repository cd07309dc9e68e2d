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


def _named(name: str, kind: NonLinearityType) -> tuple[NonLinearityFunction, InPlaceFunction]:
    def new(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
        return nonLinearity(graph, kind, t, prog, debugContext)

    def in_place(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None:
        nonLinearityInPlace(graph, kind, t, prog, debugContext)

    new.__name__ = new.__qualname__ = name
    in_place.__name__ = in_place.__qualname__ = f"{name}InPlace"
    new.__doc__ = f"Give {kind.value} of every element."
    in_place.__doc__ = f"Replace every element by its {kind.value}."
    return library_call("POPNN")(new), library_call("POPNN")(in_place)


sigmoid, sigmoidInPlace = _named("sigmoid", NonLinearityType.SIGMOID)
relu, reluInPlace = _named("relu", NonLinearityType.RELU)
tanh, tanhInPlace = _named("tanh", NonLinearityType.TANH)
gelu, geluInPlace = _named("gelu", NonLinearityType.GELU)
swish, swishInPlace = _named("swish", NonLinearityType.SWISH)
hardSigmoid, hardSigmoidInPlace = _named("hardSigmoid", NonLinearityType.HARD_SIGMOID)
softmax, softmaxInPlace = _named("softmax", NonLinearityType.SOFTMAX)
softmaxStable, softmaxStableInPlace = _named("softmaxStable", NonLinearityType.SOFTMAX_STABLE)
scaledSoftmaxStable, scaledSoftmaxStableInPlace = _named(
    "scaledSoftmaxStable", NonLinearityType.SOFTMAX_SCALED
)
