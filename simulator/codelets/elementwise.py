"""Vertices that work element by element.

Sources: PopLibs lib/popops/popopsCycleEstimators.{hpp,cpp} (op table, BinaryOp, UnaryOp),
lib/popops/PerformanceEstimation.cpp (ScaledAdd, Cast), lib/popnn/popnnCycleEstimators.cpp and
PerformanceEstimation.hpp (nonlinearities, losses).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div
from simulator.graph.errors import PoplarError
from simulator.graph.target import Target
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertex import Codelet, Operands, VertexGroup

Cycles = Callable[[IntArray], IntArray]


@dataclass(frozen=True, slots=True)
class Operation:
    """An element-wise operation: NumPy's function and the cycles of its inner loop.

    `cycles[type]` is (cycles a step, elements a step); 0 elements stands for one vector, which
    costs `overhead` cycles a step more.
    """

    name: str
    compute: Callable[..., Array]
    cycles: dict[str, tuple[int, int]]
    overhead: int = 0

    def step(self, dtype: Type, target: Target) -> tuple[int, int]:
        """Give the cycles and the elements of one step of the inner loop."""
        if dtype.name not in self.cycles:
            known = ", ".join(self.cycles)
            raise PoplarError(f"operation {self.name} on {dtype}: known for {known}")
        cycles, elements = self.cycles[dtype.name]
        if elements:
            return cycles, elements
        return cycles + self.overhead, target.getVectorWidth(dtype)


def _square(x: Array) -> Array:
    return x * x


def _sigmoid(x: Array) -> Array:
    # The same as 1 / (1 + exp(-x)), without its overflow.
    half = x.dtype.type(0.5)
    values: Array = (np.tanh(x * half) + 1) * half
    return values


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


_INTEGER = {"int": (7, 1), "unsigned int": (7, 1)}
_VECTOR = {"float": (1, 0), "half": (1, 0)}

# Add, subtract and multiply have assembly loops with 2 cycles of overhead a vector.
BINARY = {
    "ADD": Operation("ADD", np.add, _VECTOR | _INTEGER, overhead=2),
    "SUBTRACT": Operation("SUBTRACT", np.subtract, _VECTOR | _INTEGER, overhead=2),
    "MULTIPLY": Operation("MULTIPLY", np.multiply, _VECTOR | _INTEGER, overhead=2),
    "DIVIDE": Operation("DIVIDE", np.divide, {"float": (10, 2), "half": (21, 4)}),
    "MAXIMUM": Operation("MAXIMUM", np.maximum, {"float": (3, 2), "half": (4, 4)}),
    "MINIMUM": Operation("MINIMUM", np.minimum, {"float": (3, 2), "half": (4, 4)}),
}

UNARY = {
    "NEGATE": Operation("NEGATE", np.negative, {"float": (2, 2), "half": (2, 4)}),
    "SQUARE": Operation("SQUARE", _square, {"float": (2, 2), "half": (2, 4)}),
    "EXPONENT": Operation("EXPONENT", np.exp, {"float": (6, 2), "half": (4, 4)}),
    "LOGARITHM": Operation("LOGARITHM", np.log, {"float": (12, 2), "half": (4, 4)}),
    "SQRT": Operation("SQRT", np.sqrt, {"float": (10, 2), "half": (23, 4)}),
    "INVERSE": Operation("INVERSE", np.reciprocal, {"float": (8, 2), "half": (8, 4)}),
    "ABSOLUTE": Operation("ABSOLUTE", np.abs, {"float": (1, 1), "half": (1, 1)}),
}


@dataclass(frozen=True, slots=True)
class ElementwiseVertices:
    """The two vertex types of one operation: one region a vertex (1D), or a list of regions (2D).

    The 1D type is a supervisor vertex with cycles by its number of elements; the 2D type a worker
    with `base_2d` plus `region_2d` of each region.
    """

    one: Codelet
    several: Codelet
    cycles_1d: Cycles
    base_2d: int
    region_2d: Cycles


def _pair(
    names: tuple[str, str], compute: Callable[[Operands], dict[str, Array]], flops: int
) -> tuple[Codelet, Codelet]:
    """Make the 1D and the 2D codelet: state is a pointer a field and a count (2D: with lists)."""

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * flops

    one = Codelet(names[0], compute, True, state_bytes=16, code_bytes=150, flops=operations)
    return one, Codelet(names[1], compute, False, state_bytes=24, code_bytes=170, flops=operations)


@cache
def binary(operation: str, dtype: Type, target: Target, in_place: bool) -> ElementwiseVertices:
    """Give the vertices of a binary operation; fields in1, in2 and out (in place: out, in2)."""
    entry = BINARY[operation]
    cycles, step = entry.step(dtype, target)
    workers = target.workers
    base = 58 if in_place else 29 if dtype == FLOAT else 26

    def compute(operands: Operands) -> dict[str, Array]:
        left = operands.arrays["out" if in_place else "in1"]
        return {"out": entry.compute(left, operands.arrays["in2"])}

    def loop(n: IntArray) -> IntArray:
        return ceil_div(n, step) * cycles

    place = "InPlace" if in_place else ""
    kind = f"<popops::expr::BinaryOpType::{operation},{dtype}>"
    names = f"popops::BinaryOp1D{place}Supervisor{kind}", f"popops::BinaryOp2D{place}{kind}"
    return ElementwiseVertices(
        *_pair(names, compute, 1),
        lambda n: workers * (base + loop(ceil_div(n, workers))) + SUPERVISOR_CALL,
        20 if in_place else 5,
        loop,
    )


@cache
def unary(operation: str, dtype: Type, target: Target, in_place: bool) -> ElementwiseVertices:
    """Give the vertices of a unary operation; fields in and out (in place: out)."""
    entry = UNARY[operation]
    cycles, step = entry.step(dtype, target)
    workers = target.workers
    base = 55 if in_place else 33 if operation == "EXPONENT" else 17

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": entry.compute(operands.arrays["out" if in_place else "in"])}

    def loop(n: IntArray) -> IntArray:
        return ceil_div(n, step) * cycles

    place = "InPlace" if in_place else ""
    kind = f"<popops::expr::UnaryOpType::{operation},{dtype}>"
    names = f"popops::UnaryOp1D{place}Supervisor{kind}", f"popops::UnaryOp2D{place}{kind}"
    return ElementwiseVertices(
        *_pair(names, compute, 1),
        lambda n: workers * (base + loop(ceil_div(n, workers))) + 9 + SUPERVISOR_CALL,
        20,
        loop,
    )


@cache
def scaled_add(dtype: Type, target: Target) -> ElementwiseVertices:
    """Give the vertices of A += scale * B; fields A (in and out), B and the value `scale`."""
    if dtype not in (FLOAT, HALF):
        raise PoplarError(f"scaledAddTo on {dtype}: known for float, half")
    width, workers = target.getVectorWidth(dtype), target.workers

    def compute(operands: Operands) -> dict[str, Array]:
        prepared = operands.prepared
        if "scale" not in prepared:
            scale = operands.group.parameters["scale"]
            prepared["scale"] = np.repeat(scale, operands.counts["out"]).astype(dtype.numpy)
        return {"out": operands.arrays["out"] + prepared["scale"] * operands.arrays["in2"]}

    def worker(vectors: IntArray, tail: IntArray) -> IntArray:
        body = np.where(vectors > 0, 6 + 3 * (vectors - 1), 0)
        return 15 + body + 2 + np.where(tail > 0, 9, 0) + 1

    def whole_tile(n: IntArray) -> IntArray:
        supervisor = 21 + SUPERVISOR_CALL + np.where(n % width == 0, 7, 13) + 12 + 6
        return supervisor + workers * worker(n // width // workers, n % width)

    names = (
        f"popops::ScaledAddSupervisor<{dtype},{dtype},true>",
        f"popops::ScaledAdd2D<{dtype},true>",
    )
    return ElementwiseVertices(
        *_pair(names, compute, 2), whole_tile, 12, lambda n: worker(n // width, n % width)
    )


# Cycles a pair of floats (popnn/PerformanceEstimation.hpp), values, and gradient from the output.
NONLINEARITIES: dict[str, tuple[int, Callable[[Array], Array], Callable[[Array], Array]]] = {
    "SIGMOID": (5, _sigmoid, lambda out: out * (1 - out)),
    "TANH": (5, np.tanh, lambda out: 1 - out * out),
    "RELU": (1, _relu, lambda out: out > 0),
}


def _nonlinearity_worker(n: IntArray, workers: int, op: int) -> IntArray:
    """Cost of the busiest worker: two elements a step, the odd one after them."""
    steps = ceil_div(n // 2, workers)
    body = np.where(steps > 0, 3 + 2 * op + (steps - 1) * 2 * op, 0)
    return 20 + body + 3 + np.where(n % 2 == 1, 2 + op, 0)


def _gradient_worker(n: IntArray, workers: int) -> IntArray:
    steps = ceil_div(n // 2, workers)
    return 25 + np.where(steps > 0, 5 + 3 * (steps - 1), 0) + 4 + np.where(n % 2 == 1, 4, 0)


def _nonlinearity(name: str, dtype: Type) -> tuple[int, Any, Any]:
    if name not in NONLINEARITIES or dtype not in (FLOAT, HALF):
        known = ", ".join(NONLINEARITIES)
        raise PoplarError(f"nonlinearity {name} on {dtype}: known are {known} on float and half")
    return NONLINEARITIES[name]


@cache
def nonlinearity(
    name: str, dtype: Type, target: Target, in_place: bool = False
) -> ElementwiseVertices:
    """Give the vertices of out = f(in); in place: of the one field out."""
    op, values, _ = _nonlinearity(name, dtype)
    workers = target.workers

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": values(operands.arrays["out" if in_place else "in"])}

    place = "InPlace" if in_place else ""
    kind = f"<{dtype},popnn::NonLinearityType::{name}>"
    names = f"popnn::NonLinearity{place}Supervisor{kind}", f"popnn::NonLinearity2D{place}{kind}"
    return ElementwiseVertices(
        *_pair(names, compute, 4),
        lambda n: 9 + workers * _nonlinearity_worker(n, workers, op),
        5,
        lambda n: _nonlinearity_worker(n, 1, op) - 20 + 8,
    )


@cache
def nonlinearity_gradient(name: str, dtype: Type, target: Target) -> ElementwiseVertices:
    """Give the vertices of out = in1 * f'(x), where in2 is f(x)."""
    _, _, gradient = _nonlinearity(name, dtype)
    workers = target.workers

    def compute(operands: Operands) -> dict[str, Array]:
        slope = gradient(operands.arrays["in2"])
        return {"out": (operands.arrays["in1"] * slope).astype(dtype.numpy, copy=False)}

    kind = f"<{dtype},popnn::NonLinearityType::{name}>"
    names = f"popnn::NonLinearityGradSupervisor{kind}", f"popnn::NonLinearityGrad2D{kind}"
    return ElementwiseVertices(
        *_pair(names, compute, 3),
        lambda n: 9 + workers * _gradient_worker(n, workers),
        5,
        lambda n: _gradient_worker(n, 1) - 25 + 8,
    )


@cache
def cast(source: Type, destination: Type, target: Target) -> ElementwiseVertices:
    """Give the vertices of a change of type; fields in and out."""
    workers = target.workers
    load, store = target.getVectorWidth(source), target.getVectorWidth(destination)
    width = min(2 * load, store)
    per_vector = max(width // load, width // store, 1)

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": operands.arrays["in"].astype(destination.numpy)}

    def core(n: IntArray) -> IntArray:
        # The source charges each remainder bit; one step an element bounds it.
        return 19 + per_vector * (n // width) + n % width

    names = f"popops::Cast1D<{source},{destination}>", f"popops::Cast2D<{source},{destination}>"
    return ElementwiseVertices(
        *_pair(names, compute, 0),
        lambda n: 12 + workers * (18 + core(ceil_div(n, workers))),
        5,
        lambda n: 11 + core(n),
    )


def sum_squared_transform(dtype: Type) -> tuple[Codelet, Cycles]:
    """Give the loss vertex: deltas = probs - expected, loss = deltas^2 / 2; 19 + 4n a worker."""

    def compute(operands: Operands) -> dict[str, Array]:
        deltas = operands.arrays["probs"] - operands.arrays["expected"]
        return {"deltas": deltas, "transformed": deltas * deltas * deltas.dtype.type(0.5)}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["deltas"].counts() * 3

    name = f"popnn::LossSumSquaredTransform<{dtype}>"
    return Codelet(name, compute, False, 20, 100, operations), lambda n: 19 + 4 * n
