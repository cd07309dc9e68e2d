"""Vertices that work element by element.

Sources: PopLibs lib/popops/popopsCycleEstimators.{hpp,cpp} (BinaryOp, BroadcastScalar, UnaryOp),
lib/popops/PerformanceEstimation.cpp (Cast).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np

from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.elementwise import operator_cycles as cycles
from simulator.codelets.elementwise.operation import step_of
from simulator.codelets.elementwise.operations import BINARY, UNARY
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
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        supervisor(
            "popops::BinaryOp1DSupervisor<op,type>",
            "in1 in2 out",
            partial(cycles.binary_1d, in_place=False),
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        supervisor(
            "popops::BinaryOp1DInPlaceSupervisor<op,type>",
            "out in2",
            partial(cycles.binary_1d, in_place=True),
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        worker(
            "popops::BinaryOp2D<op,type>",
            "in1 in2 out",
            partial(cycles.binary_2d, in_place=False),
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        worker(
            "popops::BinaryOp2DInPlace<op,type>",
            "out in2",
            partial(cycles.binary_2d, in_place=True),
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::UnaryOp1DSupervisor<op,type>",
            "in out",
            partial(cycles.unary_1d, in_place=False),
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        supervisor(
            "popops::UnaryOp1DInPlaceSupervisor<op,type>",
            "out",
            partial(cycles.unary_1d, in_place=True),
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        worker(
            "popops::UnaryOp2D<op,type>",
            "in out",
            partial(cycles.unary_2d, in_place=False),
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        worker(
            "popops::UnaryOp2DInPlace<op,type>",
            "out",
            partial(cycles.unary_2d, in_place=True),
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::BroadcastScalar1DSupervisor<op,type>",
            "data B out",
            cycles.broadcast_1d,
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        supervisor(
            "popops::BroadcastScalar1DInPlaceSupervisor<op,type>",
            "out B",
            cycles.broadcast_1d,
            POPOPS_CYCLES,
            ONE_REGION,
        ),
        worker(
            "popops::BroadcastScalar2DData<op,type>",
            "data B out",
            cycles.broadcast_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        worker(
            "popops::BroadcastScalar2DDataInPlace<op,type>",
            "out B",
            cycles.broadcast_2d,
            POPOPS_CYCLES,
            SEVERAL_REGIONS,
        ),
        supervisor(
            "popops::Cast1D<from,to>",
            "in out",
            elementwise_cycles.cast_1d,
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        worker(
            "popops::Cast1DSingleWorker<from,to>",
            "in out",
            elementwise_cycles.cast_1d_single_worker,
            POPOPS_ESTIMATES,
            ONE_REGION,
        ),
        worker(
            "popops::Cast2D<from,to>",
            "in out",
            elementwise_cycles.cast_2d,
            POPOPS_ESTIMATES,
            SEVERAL_REGIONS,
        ),
    )
)

Cycles = Callable[[IntArray], IntArray]
Compute = Callable[[Operands], dict[str, Array]]


@dataclass(frozen=True, slots=True)
class ElementwiseVertices:
    """The two vertex types of one operation: one region a vertex (1D), or a list of regions (2D).

    The 1D type is a supervisor vertex with cycles by its number of elements; some operations have
    none. The 2D type is a worker with `base_2d` plus `region_2d` of each region.
    """

    one: Codelet | None
    several: Codelet
    cycles_1d: Cycles
    base_2d: int
    region_2d: Cycles


def codelet_pair(
    types: VertexTypes,
    names: tuple[str, str],
    compute: Compute,
    flops: int,
    apart: Literal["", "outputs"] = "",
) -> tuple[Codelet, Codelet]:
    """Make the 1D and the 2D codelet of declared types; `flops` are those of an element."""

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * flops

    one, codelet_2d = (types.codelet(name, compute, operations, apart=apart) for name in names)
    return one, codelet_2d


def values_of(operands: Operands, name: str) -> Array:
    """Return a field's values, one for each output; a vertex's one number stands for all of its."""
    values, counts = operands.arrays[name], operands.counts
    if name == "out" or len(values) == int(counts["out"].sum()):
        return values
    return np.repeat(values, counts["out"])


def computing(compute: Callable[..., Array], fields: Sequence[str]) -> Compute:
    """Make what a codelet computes from a function of the values of its fields."""
    return lambda operands: {"out": compute(*(values_of(operands, name) for name in fields))}


def flops_of(dtype: Type, flops: int = 1) -> int:
    """Count an element's floating-point operations: none of integers and truth values."""
    return flops if dtype in (FLOAT, HALF) else 0


@cache
def binary(operation: str, dtype: Type, target: Target, in_place: bool) -> ElementwiseVertices:
    """Return the vertices of a binary operation; fields in1, in2 and out (in place: out, in2)."""
    entry = BINARY[operation]
    step_of(entry.steps, entry, dtype)
    kind = f"<popops::expr::BinaryOpType::{operation},{dtype}>"
    compute = computing(entry.compute, ("out" if in_place else "in1", "in2"))
    return ElementwiseVertices(
        *codelet_pair(
            TYPES, _names("BinaryOp", "", in_place, kind), compute, flops_of(dtype, entry.flops)
        ),
        lambda n: cycles.binary_1d(n, operation, dtype, target, in_place),
        cycles.BINARY_2D_IN_PLACE if in_place else cycles.BINARY_2D,
        lambda n: cycles.binary_loop(n, operation, dtype, target),
    )


def has_broadcast(operation: str, dtype: Type) -> bool:
    """Return whether an operation has vertices whose second operand is one number."""
    return dtype.name in (BINARY[operation].with_number or {})


@cache
def broadcast_scalar(
    operation: str, dtype: Type, target: Target, in_place: bool
) -> ElementwiseVertices:
    """Return the vertices of an operation with one number; fields data, B and out (in place: B)."""
    kind = f"<popops::expr::BinaryOpType::{operation},{dtype}>"
    compute = computing(BINARY[operation].compute, ("out" if in_place else "data", "B"))
    return ElementwiseVertices(
        *codelet_pair(
            TYPES, _names("BroadcastScalar", "Data", in_place, kind), compute, flops_of(dtype)
        ),
        lambda n: cycles.broadcast_1d(n, operation, dtype, target),
        cycles.BROADCAST_2D,
        lambda n: cycles.BROADCAST_REGION + cycles.broadcast_loop(n, operation, dtype, target),
    )


@cache
def unary(operation: str, dtype: Type, target: Target, in_place: bool) -> ElementwiseVertices:
    """Return the vertices of a unary operation; fields in and out (in place: out)."""
    entry = UNARY[operation]
    step_of(entry.steps, entry, dtype)
    kind = f"<popops::expr::UnaryOpType::{operation},{dtype}>"
    compute = computing(entry.compute, ("out" if in_place else "in",))
    return ElementwiseVertices(
        *codelet_pair(
            TYPES, _names("UnaryOp", "", in_place, kind), compute, flops_of(dtype, entry.flops)
        ),
        lambda n: cycles.unary_1d(n, operation, dtype, target, in_place),
        cycles.UNARY_2D,
        lambda n: cycles.unary_loop(n, operation, dtype, target, in_place),
    )


def _names(family: str, suffix: str, in_place: bool, kind: str) -> tuple[str, str]:
    """Return the names of a 1D and a 2D vertex type."""
    place = "InPlace" if in_place else ""
    return f"popops::{family}1D{place}Supervisor{kind}", f"popops::{family}2D{suffix}{place}{kind}"


@cache
def cast(source: Type, destination: Type, target: Target) -> ElementwiseVertices:
    """Return the vertices of a change of type; fields in and out."""

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": operands.arrays["in"].astype(destination.numpy)}

    names = f"popops::Cast1D<{source},{destination}>", f"popops::Cast2D<{source},{destination}>"
    return ElementwiseVertices(
        *codelet_pair(TYPES, names, compute, 0, apart="outputs"),
        lambda n: elementwise_cycles.cast_1d(n, source, destination, target),
        elementwise_cycles.CAST_2D,
        lambda n: elementwise_cycles.cast_region(n, source, destination, target),
    )
