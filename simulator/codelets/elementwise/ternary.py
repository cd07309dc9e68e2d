"""Vertices of the operators with three operands: workers alone, as in PopLibs.

Source: PopLibs lib/popops/popopsCycleEstimators.cpp (Select, BroadcastSelect,
BroadcastSelectorSelect, Clamp, BroadcastClamp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from simulator.codelets.costs import sum_by_vertex
from simulator.codelets.elementwise.operation import step_of
from simulator.codelets.elementwise.operations import TERNARY
from simulator.codelets.elementwise.vertices import Cycles, ElementwiseVertices, computing, flops_of
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexType, VertexTypes, worker
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type
from simulator.graph.vertices.vertex import VertexGroup

FIELDS = ("in1", "in2", "in3")


@cache
def ternary(
    operation: str, dtype: Type, target: Target, in_place: bool, scalars: tuple[bool, bool, bool]
) -> ElementwiseVertices:
    """Return the vertices of an operation; `scalars` tells which operands are one number.

    Fields are in1, in2, in3 and out; in place out stands for in1.
    """
    entry = TERNARY[operation]
    step = step_of(entry.steps, entry, dtype)
    fields = ("out", *FIELDS[1:]) if in_place else FIELDS
    name = BROADCASTS.get((operation, scalars), operation.capitalize())
    base, region = 5, _loop(step.width(dtype, target), step.cycles)
    if name in _SPECIAL:
        base, region = _SPECIAL[name](dtype)
    place = "InPlace" if in_place else ""
    element_flops = flops_of(dtype, entry.flops)

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * element_flops

    codelet = TYPES.codelet(
        f"popops::{name}{place}<{dtype}>", computing(entry.compute, fields), operations
    )
    return ElementwiseVertices(None, codelet, region, base, region)


# The operands that may be one number for all, and the names of the vertices that take them so.
BROADCASTS = {
    ("SELECT", (True, True, False)): "BroadcastSelect",
    ("SELECT", (False, False, True)): "BroadcastSelectorSelect",
    ("CLAMP", (False, True, True)): "BroadcastClamp",
}


def _loop(step: int, cycles: int) -> Cycles:
    return lambda n: 6 + cycles * (n + step - 1) // step


def _choose_numbers(dtype: Type) -> tuple[int, Cycles]:
    """Return the cycles of choosing between two numbers, by the bytes of their type."""
    regions: dict[int, Cycles] = {
        1: lambda n: 66 + n // 4 * 17,
        2: lambda n: np.where(n % 2 == 1, 23, 30) + 4 * n,
        4: lambda n: 8 + 4 * n,
        8: lambda n: 8 + 8 * n,  # our estimate: twice as many words
    }
    return 10, regions[dtype.size]


def _choose_rows(dtype: Type) -> tuple[int, Cycles]:
    """Return the cycles of copying the rows of one of two tensors."""
    return 12, lambda n: 35 + n * dtype.size // 4 + n * dtype.size % 4 * 5


_SPECIAL = {"BroadcastSelect": _choose_numbers, "BroadcastSelectorSelect": _choose_rows}


# Cycles of a worker: `lengths` are the elements of all regions, vertex by vertex, `ranges` how many
# regions each vertex has.
def ternary_2d(
    lengths: IntArray,
    ranges: IntArray,
    operation: str,
    dtype: Type,
    target: Target,
    scalars: tuple[bool, bool, bool] = (False, False, False),
) -> IntArray:
    """5 + the sum of 6 and the loop over the regions."""
    vertices = ternary(operation, dtype, target, False, scalars)
    return vertices.base_2d + sum_by_vertex(vertices.region_2d(lengths), ranges)


def select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 + 5n over the regions; lines 2235-2300."""
    return ternary_2d(lengths, ranges, "SELECT", dtype, target)


def broadcast_select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """10 + the sum of 8 + 4n over the regions of 4-byte types: one of two numbers."""
    return ternary_2d(lengths, ranges, "SELECT", dtype, target, (True, True, False))


def selector_select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """12 + the sum of 35 and a cycle for 4 bytes over the regions: rows of one of two tensors."""
    return ternary_2d(lengths, ranges, "SELECT", dtype, target, (False, False, True))


def clamp(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 and the loop over the regions."""
    return ternary_2d(lengths, ranges, "CLAMP", dtype, target)


def broadcast_clamp(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 and the loop over the regions, between two numbers."""
    return ternary_2d(lengths, ranges, "CLAMP", dtype, target, (False, True, True))


_CYCLES: dict[str, Callable[..., IntArray]] = {
    "Select": select,
    "BroadcastSelect": broadcast_select,
    "BroadcastSelectorSelect": selector_select,
    "Clamp": clamp,
    "BroadcastClamp": broadcast_clamp,
}


def _types() -> Iterator[VertexType]:
    """Declare the vertices of each operator, and those that take numbers."""
    usual = {kind.capitalize(): partial(ternary_2d, operation=kind) for kind in TERNARY}
    for name, cycles in (usual | _CYCLES).items():
        for place, fields in (("", "in1 in2 in3 out"), ("InPlace", "out in2 in3")):
            yield worker(f"popops::{name}{place}<type>", fields, cycles, POPOPS_CYCLES, (32, 150))


TYPES = VertexTypes(tuple(_types()))
