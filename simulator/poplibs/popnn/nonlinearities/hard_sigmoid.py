"""The hard sigmoid, by expressions of popops (PopLibs lib/popnn/HardSigmoid.cpp)."""

from __future__ import annotations

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs import popops
from simulator.poplibs.popops.expr import Abs, Cast, Clamp, Lte, PlaceHolder

KNEE = 2.5  # beyond it the function is flat
SLOPE = 0.5 / KNEE
_1, _2 = PlaceHolder(1), PlaceHolder(2)


def hard_sigmoid(graph: Graph, t: Tensor, prog: Sequence, name: str) -> None:
    """Replace each element by itself times 0.2, plus 0.5, between 0 and 1."""
    line = Clamp(_1 * SLOPE + 0.5, 0.0, 1.0)
    popops.mapInPlace(graph, line, [t], prog, f"{name}/hardSigmoidActivation")


def hard_sigmoid_gradient(
    graph: Graph, act: Tensor, out_gradient: Tensor, prog: Sequence, name: str
) -> Tensor:
    """Return 0.2 times the gradient where the activation is within [-2.5, 2.5], else 0."""
    slope = Cast(Lte(Abs(_1), KNEE), act.dtype) * SLOPE * _2
    return popops.map(graph, slope, [act, out_gradient], prog, f"{name}/HardSigmoidGradient")
