"""Activations and other functions of one element: a table of values and gradients.

Each is computed in one compute set, forward and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import pi, sqrt

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.backward import Gradient, of_one
from simulator.popart.operators.call import Call
from simulator.poplibs import popnn
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops.expr import (
    Abs,
    And,
    Asin,
    Erf,
    Exp,
    Expm1,
    Expr,
    Log1p,
    Max,
    Min,
    Rsqrt,
    Select,
    Sigmoid,
    Signum,
    Sqrt,
    _1,
    _2,
)

Given = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of x, its gradient by x, y and that of y; attributes with their defaults."""

    versions: str
    value: Callable[[Expr, Given], Expr]
    gradient: Callable[[Expr, Expr, Expr, Given], Expr]
    defaults: Given = field(default_factory=dict)

    def given(self, call: Call) -> dict[str, float]:
        """Return the attributes of a node."""
        return {name: float(call.attribute(name, n)) for name, n in self.defaults.items()}

    def lower(self, call: Call) -> Tensor:
        """Compute the function of every element."""
        return call.map(self.value(_1, self.given(call)), call[0])

    def of_function(
        self, call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """Compute the gradient of every element."""
        parameters = self.given(call)
        back: Gradient = of_one(lambda x, y, g: self.gradient(x, y, g, parameters))
        return back(call, outputs, grads)


# Where a branch is not taken its number must not matter: exponentials of large numbers are not
# multiplied by zero, and small differences from 1 are those of Expm1 and Log1p.
FUNCTIONS: dict[str, Function] = {
    "Acos": Function(
        "7 22",
        lambda x, a: pi / 2 - Asin(x),
        lambda x, y, g, a: -g * Rsqrt(1.0 - x * x),
    ),
    "Acosh": Function(
        "9 22",
        lambda x, a: Log1p(x - 1.0 + Sqrt((x - 1.0) * (x + 1.0))),
        lambda x, y, g, a: g * Rsqrt((x - 1.0) * (x + 1.0)),
    ),
    "Asinh": Function(
        "9 22",
        lambda x, a: Signum(x) * Log1p(Abs(x) + x * x / (Sqrt(x * x + 1.0) + 1.0)),
        lambda x, y, g, a: g * Rsqrt(x * x + 1.0),
    ),
    "Atanh": Function(
        "9 22",
        lambda x, a: (Log1p(x) - Log1p(-x)) * 0.5,
        lambda x, y, g, a: g / (1.0 - x * x),
    ),
    "Elu": Function(
        "6 22",
        lambda x, a: Select(x, Expm1(x) * a["alpha"], x > 0.0),
        lambda x, y, g, a: Select(g, g * (y + a["alpha"]), x > 0.0),
        {"alpha": 1.0},
    ),
    "Erf": Function(
        "9 13",
        lambda x, a: Erf(x),
        lambda x, y, g, a: g * Exp(-x * x) * (2 / sqrt(pi)),
    ),
    "HardSigmoid": Function(
        "6 22",
        lambda x, a: Max(Min(x * a["alpha"] + a["beta"], 1.0), 0.0),
        lambda x, y, g, a: Select(g * a["alpha"], g * 0.0, And(y > 0.0, y < 1.0)),
        {"alpha": 0.2, "beta": 0.5},
    ),
    "LeakyRelu": Function(
        "6 16",
        lambda x, a: Select(x * a["alpha"], x, x < 0.0),
        lambda x, y, g, a: Select(g * a["alpha"], g, x < 0.0),
        {"alpha": 0.01},
    ),
    "Selu": Function(
        "6 22",
        lambda x, a: Select(x, Expm1(x) * a["alpha"], x > 0.0) * a["gamma"],
        lambda x, y, g, a: Select(g * a["gamma"], g * (y + a["alpha"] * a["gamma"]), x > 0.0),
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Softplus": Function(
        "1 22",
        lambda x, a: Max(x, 0.0) + Log1p(Exp(-Abs(x))),
        lambda x, y, g, a: g * Sigmoid(x),
    ),
    "Softsign": Function(
        "1 22",
        lambda x, a: x / (Abs(x) + 1.0),
        lambda x, y, g, a: g / ((Abs(x) + 1.0) * (Abs(x) + 1.0)),
    ),
    "ThresholdedRelu": Function(
        "10 22",
        lambda x, a: Select(x, x * 0.0, x > a["alpha"]),
        lambda x, y, g, a: Select(g, g * 0.0, x > a["alpha"]),
        {"alpha": 1.0},
    ),
}


def exact_gelu(call: Call) -> bool:
    """Return whether a Gelu of ai.onnx is that of the error function, not of a tangent."""
    return bool(call.attribute("approximate", "none") == "none")


def of_gelu(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Tensor | None]:
    """Return g (F(x) + x f(x)) of the normal distribution, or that of the approximation."""
    kind = NonLinearityType.GELU
    if not exact_gelu(call):
        back = (kind, call[0], grads[0], call.prog, call.name)
        return [popnn.nonLinearityInputGradient(call.graph, *back)]
    density = Exp(_1 * _1 * -0.5) * (1 / sqrt(2 * pi))
    slope = (Erf(_1 * sqrt(0.5)) + 1.0) * 0.5 + _1 * density
    return [call.map(_2 * slope, call[0], grads[0])]
