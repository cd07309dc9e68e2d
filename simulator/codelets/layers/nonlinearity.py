"""Vertices of non-linearities and of their gradients, element by element.

Values: PopLibs lib/popnn/codelets/NonLinearity.hpp. Cycles: `nonlinearity_cycles`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi, sqrt

import numpy as np

from simulator.codelets.elementwise.operator_values import as_float, erf, gelu, relu, sigmoid, tanh
from simulator.codelets.elementwise.vertices import ElementwiseVertices, codelet_pair
from simulator.codelets.layers import nonlinearity_cycles as cycles
from simulator.codelets.vertex_type import POPNN_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Array, Type
from simulator.graph.vertices.vertex import Operands

TYPES = VertexTypes(
    (
        supervisor(
            "popnn::NonLinearitySupervisor<type,kind>",
            "in out",
            cycles.nonlinearity_1d,
            POPNN_CYCLES,
            (16, 150),
        ),
        supervisor(
            "popnn::NonLinearityInPlaceSupervisor<type,kind>",
            "out",
            cycles.nonlinearity_1d,
            POPNN_CYCLES,
            (16, 150),
        ),
        worker(
            "popnn::NonLinearity2D<type,kind>",
            "in out",
            cycles.nonlinearity_2d,
            POPNN_CYCLES,
            (24, 170),
        ),
        worker(
            "popnn::NonLinearity2DInPlace<type,kind>",
            "out",
            cycles.nonlinearity_2d,
            POPNN_CYCLES,
            (24, 170),
        ),
        supervisor(
            "popnn::NonLinearityGradSupervisor<type,kind>",
            "outGrad act inGrad",
            cycles.gradient_1d,
            POPNN_CYCLES,
            (16, 150),
        ),
        worker(
            "popnn::NonLinearityGrad2D<type,kind>",
            "outGrad act inGrad",
            cycles.gradient_2d,
            POPNN_CYCLES,
            (24, 170),
        ),
    )
)

Function = Callable[[Array], Array]
ALPHA, BETA = 0.7978845608, 0.044715  # of GELU: sqrt(2 / pi), and the usual fit


@dataclass(frozen=True, slots=True)
class NonLinearity:
    """A function, its slope, and the operations of both.

    The slope is one of the function's value; of GELU, GELU_ERF and SWISH, of what they are of.
    """

    values: Function
    slope: Function
    flops: int
    slope_flops: int


def _normal(x: Array) -> Array:
    """Return the hyperbolic tangent by which GELU comes near to the normal distribution."""
    values: Array = np.tanh(x * x.dtype.type(ALPHA) * (1 + x.dtype.type(BETA) * x * x))
    return values


def _gelu_tanh(x: Array) -> Array:
    values: Array = x * x.dtype.type(0.5) * (1 + _normal(x))
    return values


def _gelu_tanh_slope(x: Array) -> Array:
    tangent, kind = _normal(x), x.dtype.type
    inner = x * (kind(ALPHA) + kind(3 * ALPHA * BETA) * x * x)
    values: Array = kind(0.5) * (1 + tangent + (1 - tangent * tangent) * inner)
    return values


def _gelu_erf_slope(x: Array) -> Array:
    y = x / x.dtype.type(sqrt(2))
    density = y * np.exp(-y * y) * x.dtype.type(2 / sqrt(pi))
    values: Array = x.dtype.type(0.5) * (1 + erf(y) + density)
    return values


def _swish(x: Array) -> Array:
    values: Array = x * sigmoid(x)
    return values


def _swish_slope(x: Array) -> Array:
    part = sigmoid(x)
    values: Array = part * (1 + x * (1 - part))
    return values


def _positive(out: Array) -> Array:
    return (out > 0).astype(out.dtype)


NONLINEARITIES = {
    "SIGMOID": NonLinearity(sigmoid, lambda out: out * (1 - out), 1, 2),
    "TANH": NonLinearity(tanh, lambda out: 1 - out * out, 1, 2),
    "RELU": NonLinearity(relu, _positive, 1, 1),
    "GELU": NonLinearity(_gelu_tanh, _gelu_tanh_slope, 8, 15),
    "GELU_ERF": NonLinearity(gelu, _gelu_erf_slope, 8, 15),
    "SWISH": NonLinearity(_swish, _swish_slope, 2, 5),
}


def _nonlinearity(name: str, dtype: Type) -> NonLinearity:
    if name not in NONLINEARITIES or dtype not in (FLOAT, HALF):
        names = ", ".join(NONLINEARITIES)
        raise PoplarError(f"nonlinearity {name} on {dtype}: known are {names} on float and half")
    return NONLINEARITIES[name]


@cache
def nonlinearity(
    name: str, dtype: Type, target: Target, in_place: bool = False
) -> ElementwiseVertices:
    """Return the vertices of out = f(in); in place: of the one field out."""
    entry = _nonlinearity(name, dtype)
    values = as_float(entry.values)

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": values(operands.arrays["out" if in_place else "in"])}

    place = "InPlace" if in_place else ""
    kind = f"<{dtype},popnn::NonLinearityType::{name}>"
    names = f"popnn::NonLinearity{place}Supervisor{kind}", f"popnn::NonLinearity2D{place}{kind}"
    return ElementwiseVertices(
        *codelet_pair(TYPES, names, compute, entry.flops),
        lambda n: cycles.nonlinearity_1d(n, name, dtype, target),
        cycles.NONLINEARITY_2D,
        lambda n: cycles.nonlinearity_region(n, name, dtype, target),
    )


@cache
def nonlinearity_gradient(name: str, dtype: Type, target: Target) -> ElementwiseVertices:
    """Return the vertices of inGrad = outGrad * f'(x), by out: f(x), or x where the slope is of it.

    The written field is called `out` in all element-wise vertices; `act` are the activations.
    """
    entry = _nonlinearity(name, dtype)
    slope = as_float(lambda gradient, act: gradient * entry.slope(act))

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": slope(operands.arrays["outGrad"], operands.arrays["act"])}

    kind = f"<{dtype},popnn::NonLinearityType::{name}>"
    names = f"popnn::NonLinearityGradSupervisor{kind}", f"popnn::NonLinearityGrad2D{kind}"
    return ElementwiseVertices(
        *codelet_pair(TYPES, names, compute, entry.slope_flops),
        lambda n: cycles.gradient_1d(n, name, dtype, target),
        cycles.GRADIENT_2D,
        lambda n: cycles.gradient_region(n, name, dtype, target),
    )
