"""Cycles of the vertices of unary and binary operators.

Each function takes element counts and gives cycles: `_1d` of the whole tile, `_loop` of a worker's
inner loop. Source: PopLibs lib/popops/popopsCycleEstimators.cpp.
"""

from __future__ import annotations

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div, sum_by_vertex
from simulator.codelets.elementwise.operation import Step, step_of
from simulator.codelets.elementwise.operations import BINARY, UNARY
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray, Type

# Cycles of a 2D vertex before its first region, and of a broadcast one for each region.
BINARY_2D, BINARY_2D_IN_PLACE, UNARY_2D, BROADCAST_2D, BROADCAST_REGION = 5, 20, 20, 20, 28


def binary_loop(n: IntArray, operation: str, dtype: Type, target: Target) -> IntArray:
    """Cycles over n elements; a vector costs 2 more where the loop is in assembly, else 5."""
    entry = BINARY[operation]
    step = step_of(entry.steps, entry, dtype)
    extra = (2 if entry.assembly else 5) if step.overhead else 0
    return ceil_div(n, step.width(dtype, target)) * (step.cycles + extra)


def binary_1d(n: IntArray, operation: str, dtype: Type, target: Target, in_place: bool) -> IntArray:
    """W * (29 float, 26 else, 58 in place, + loop of a worker's share) + 11."""
    base = 58 if in_place else 29 if dtype == FLOAT else 26
    loop = binary_loop(ceil_div(n, target.workers), operation, dtype, target)
    return target.workers * (base + loop) + SUPERVISOR_CALL


def unary_step(operation: str, dtype: Type, in_place: bool) -> Step:
    """Return the step of a unary operator, which may have another one in place."""
    entry = UNARY[operation]
    return step_of(entry.in_place if in_place and entry.in_place else entry.steps, entry, dtype)


def unary_loop(
    n: IntArray, operation: str, dtype: Type, target: Target, in_place: bool
) -> IntArray:
    """Cycles over n elements.

    Where a step has overhead, 4 cycles, the source multiplies before it divides: 4 floats of an
    operation of 2 cycles cost 6 * 5 // 2 = 15, not two steps of 6.
    """
    step = unary_step(operation, dtype, in_place)
    width = step.width(dtype, target)
    if step.overhead:
        return (step.cycles + 4) * (n + width - 1) // width
    return ceil_div(n, width) * step.cycles


def unary_1d(n: IntArray, operation: str, dtype: Type, target: Target, in_place: bool) -> IntArray:
    """W * (17, 33 for exp, 55 in place, + loop of a worker's share) + 20."""
    base = 55 if in_place else UNARY[operation].start
    loop = unary_loop(ceil_div(n, target.workers), operation, dtype, target, in_place)
    return target.workers * (base + loop) + 9 + SUPERVISOR_CALL


def broadcast_loop(n: IntArray, operation: str, dtype: Type, target: Target) -> IntArray:
    """Cycles over n elements and one number; a vector costs 1 more in assembly, else 4."""
    entry = BINARY[operation]
    step = step_of(entry.with_number, entry, dtype)
    extra = (1 if entry.assembly else 4) if step.overhead else 0
    return ceil_div(n, step.width(dtype, target)) * (step.cycles + extra)


def broadcast_1d(n: IntArray, operation: str, dtype: Type, target: Target) -> IntArray:
    """W * (20 + loop of a worker's share) + 11."""
    loop = broadcast_loop(ceil_div(n, target.workers), operation, dtype, target)
    return target.workers * (20 + loop) + SUPERVISOR_CALL


# Of vertices with lists of regions: `lengths` are the elements of all regions, vertex by vertex,
# `ranges` how many regions each vertex has. Cycles of a worker.
def binary_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target, in_place: bool
) -> IntArray:
    """5 (in place 20) + the loop of every region; lines 1591-1651."""
    base = BINARY_2D_IN_PLACE if in_place else BINARY_2D
    return base + sum_by_vertex(binary_loop(lengths, operation, dtype, target), ranges)


def unary_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target, in_place: bool
) -> IntArray:
    """20 + the loop of every region; lines 1526-1589."""
    loops = unary_loop(lengths, operation, dtype, target, in_place)
    return UNARY_2D + sum_by_vertex(loops, ranges)


def broadcast_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target
) -> IntArray:
    """20 + the loop of every region and 28 for each; lines 303-372."""
    loops = BROADCAST_REGION + broadcast_loop(lengths, operation, dtype, target)
    return BROADCAST_2D + sum_by_vertex(loops, ranges)
