"""How gradients change the weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.poplibs import popops
from simulator.poplibs.popops.expr import _1, _2


@dataclass(frozen=True, slots=True, init=False)
class SGD:
    """Stochastic gradient descent: w -= rate (gradient + decay w).

    The rate can be changed between runs: session.updateOptimizer(SGD(0.01)), optimizerFromHost().
    """

    rate: float
    decay: float
    constant = False

    def __init__(
        self, learning_rate: float, weight_decay: float = 0.0, *, learningRate: float | None = None
    ) -> None:
        rate = learning_rate if learningRate is None else learningRate
        for name, value in (("learning rate", rate), ("weight decay", weight_decay)):
            if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
                raise popart_exception(
                    f"{type(self).__name__}: {name} is {value!r}; a number is needed"
                )
        object.__setattr__(self, "rate", float(rate))
        object.__setattr__(self, "decay", float(weight_decay))

    def learnRate(self) -> float:
        return self.rate

    def weightDecay(self) -> float:
        return self.decay


class ConstSGD(SGD):
    """Stochastic gradient descent whose rate is part of the program."""

    __slots__ = ()
    constant = True


def update(
    graph: Graph, weight: Tensor, gradient: Tensor, rate: Tensor | float, decay: float,
    prog: Sequence, name: str,
) -> None:  # fmt: skip
    """Add the change of a weight to a program."""
    if decay:
        gradient = popops.map(graph, _1 + _2 * decay, [gradient, weight], prog, f"{name}/Decay")
    popops.scaledSubtractFrom(graph, weight, gradient, rate, prog, f"{name}/UpdateWeights")
