"""Vertices of sums with a scaled tensor. Source: PopLibs lib/popops/PerformanceEstimation.cpp.

ScaledAdd takes the cycles that it took in 2019, when the guide's sample was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.elementwise.vertices import (
    Cycles,
    ElementwiseVertices,
    codelet_pair,
    values_of,
)
from simulator.codelets.vertex_type import (
    ONE_REGION,
    POPOPS_CYCLES,
    POPOPS_ESTIMATES,
    SEVERAL_REGIONS,
    VertexTypes,
    supervisor,
    worker,
)
from simulator.graph.machine.target import Target
from simulator.graph.types import INT, UNSIGNED_INT, Array, Type
from simulator.graph.vertices.vertex import Operands

TYPES = VertexTypes(
    (
        supervisor(
            "popops::ScaledAddSupervisor<type,type,constant>, 2019",
            "A B scale",
            elementwise_cycles.scaled_add_1d_2019,
            f"{POPOPS_CYCLES} of 2019",
            ONE_REGION,
        ),
        worker(
            "popops::ScaledAdd2D<type,constant>, 2019",
            "A B scale",
            elementwise_cycles.scaled_add_2d_2019,
            f"{POPOPS_CYCLES} of 2019",
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::ScaledAddSupervisor<type,type,constant>",
            "A B scale",
            elementwise_cycles.scaled_add_1d,
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        supervisor(
            "popops::ScaledAddSupervisor<type,type,constant> of integers",
            "A B scale",
            elementwise_cycles.scaled_add_integers,
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        worker(
            "popops::ScaledAdd2D<type,constant> of integers",
            "A B scale",
            elementwise_cycles.scaled_add_2d_integers,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::XMinusaXPlusbYSupervisor<type,constant>",
            "A B scaleA scaleB",
            partial(elementwise_cycles.scaled_add_1d, axpby=True),
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        worker(
            "popops::XMinusaXPlusbY2D<type,constant>",
            "A B scaleA scaleB",
            elementwise_cycles.scaled_add_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
            exact=False,
        ),
        supervisor(
            "popops::ScaledSubtractSupervisor<type,type>",
            "A B scale",
            partial(elementwise_cycles.scaled_add_1d, subtract=True),
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        supervisor(
            "popops::aXPlusbYSupervisor<type,constant>",
            "A B scaleA scaleB",
            partial(elementwise_cycles.scaled_add_1d, axpby=True),
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        worker(
            "popops::ScaledAdd2D<type,constant>",
            "A B scale",
            elementwise_cycles.scaled_add_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        worker(
            "popops::ScaledSubtract2D<type,constant>",
            "A B scale",
            elementwise_cycles.scaled_add_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::aXMinusbYSupervisor<type,constant>",
            "A B scaleA scaleB",
            partial(elementwise_cycles.scaled_add_1d, axpby=True, subtract=True),
            POPOPS_ESTIMATES,
            ONE_REGION,
            exact=False,
        ),
        worker(
            "popops::aXPlusbY2D<type,constant>",
            "A B scaleA scaleB",
            elementwise_cycles.scaled_add_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
            exact=False,
        ),
        worker(
            "popops::aXMinusbY2D<type,constant>",
            "A B scaleA scaleB",
            elementwise_cycles.scaled_add_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
            exact=False,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """Which sum it is: A + scaleB B, with `subtract` A - scaleB B, with `both` scaleA A + scaleB B.

    With `rest` too it is A - scaleA A + scaleB B.

    `constant`: the scales are numbers that the vertex holds, else tensors of one element.
    """

    constant: bool
    subtract: bool = False
    both: bool = False
    rest: bool = False

    @property
    def family(self) -> str:
        """Return the name of the vertices in PopLibs."""
        if self.rest:
            return "XMinusaXPlusbY"
        if self.both:
            return "aXMinusbY" if self.subtract else "aXPlusbY"
        return "ScaledSubtract" if self.subtract else "ScaledAdd"


@cache
def scaled_sum(which: ScaledSum, dtype: Type, target: Target) -> ElementwiseVertices:
    """Return the vertices; fields out (A), in2 (B) and the fields, or values, scaleA and scaleB."""

    def scale(operands: Operands, name: str) -> Array:
        if not which.constant:
            return values_of(operands, name).astype(dtype.numpy)
        factors: dict[str, Array] = operands.prepared
        if name not in factors:
            factors[name] = operands.group.parameters[name].astype(dtype.numpy)
        return factors[name].repeat(operands.counts["out"])

    def compute(operands: Operands) -> dict[str, Array]:
        left = operands.arrays["out"]
        scaled = scale(operands, "scaleA") * left if which.both else left
        left = left - scaled if which.rest else scaled
        right = scale(operands, "scaleB") * operands.arrays["in2"]
        return {"out": left - right if which.subtract else left + right}

    cycles_1d, base_2d, region_2d = _cycles(which, dtype, target)
    kind = str(which.constant).lower()
    names = (
        f"popops::{which.family}Supervisor<{dtype},{dtype},{kind}>",
        f"popops::{which.family}2D<{dtype},{kind}>",
    )
    return ElementwiseVertices(
        *codelet_pair(TYPES, names, compute, 3 if which.both else 2, apart="outputs"),
        cycles_1d,
        base_2d,
        region_2d,
    )


def _cycles(which: ScaledSum, dtype: Type, target: Target) -> tuple[Cycles, int, Cycles]:
    """Return the cycles of the 1D vertex, of the 2D one without its regions, and of a region."""
    if dtype in (INT, UNSIGNED_INT):
        return (
            lambda n: elementwise_cycles.scaled_add_integers(n, subtract=which.subtract),
            elementwise_cycles.SCALED_ADD_2D_INTEGERS + which.subtract,
            lambda n: 7 + 5 * n,
        )
    if which.subtract or which.both:
        return (
            lambda n: elementwise_cycles.scaled_add_1d(
                n, dtype, target, subtract=which.subtract, axpby=which.both
            ),
            elementwise_cycles.SCALED_ADD_2D,
            lambda n: elementwise_cycles.scaled_add_region(n, dtype, target),
        )
    return (
        lambda n: elementwise_cycles.scaled_add_1d_2019(n, dtype, target, constant=which.constant),
        elementwise_cycles.SCALED_ADD_2D_2019 + (not which.constant),
        lambda n: elementwise_cycles.scaled_add_region_2019(n, dtype, target),
    )
