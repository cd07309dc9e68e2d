"""Cycles of operators whose vertices have lists of regions, and of fused expressions.

All are of a worker, but `fused_1d`. `lengths` are the elements of all regions, vertex by vertex,
`ranges` how many regions each vertex has. Source: PopLibs lib/popops/popopsCycleEstimators.cpp.
"""

from __future__ import annotations

from simulator.codelets import operator_cycles as cycles
from simulator.codelets.costs import sum_by_vertex
from simulator.codelets.fused import Node, fused
from simulator.codelets.ternary import ternary
from simulator.graph.target import Target
from simulator.graph.types import IntArray, Type


def binary_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target, in_place: bool
) -> IntArray:
    """5 (in place 20) + the loop of every region; lines 1591-1651."""
    base = cycles.BINARY_2D_IN_PLACE if in_place else cycles.BINARY_2D
    return base + sum_by_vertex(cycles.binary_loop(lengths, operation, dtype, target), ranges)


def unary_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target, in_place: bool
) -> IntArray:
    """20 + the loop of every region; lines 1526-1589."""
    loops = cycles.unary_loop(lengths, operation, dtype, target, in_place)
    return cycles.UNARY_2D + sum_by_vertex(loops, ranges)


def broadcast_2d(
    lengths: IntArray, ranges: IntArray, operation: str, dtype: Type, target: Target
) -> IntArray:
    """20 + the loop of every region and 28 for each; lines 303-372."""
    loops = cycles.BROADCAST_REGION + cycles.broadcast_loop(lengths, operation, dtype, target)
    return cycles.BROADCAST_2D + sum_by_vertex(loops, ranges)


def _ternary(
    lengths: IntArray,
    ranges: IntArray,
    operation: str,
    dtype: Type,
    target: Target,
    scalars: tuple[bool, bool, bool] = (False, False, False),
) -> IntArray:
    vertices = ternary(operation, dtype, target, False, scalars)
    return vertices.base_2d + sum_by_vertex(vertices.region_2d(lengths), ranges)


def select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 + 5n over the regions; lines 2235-2300."""
    return _ternary(lengths, ranges, "SELECT", dtype, target)


def broadcast_select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """10 + the sum of 8 + 4n over the regions of 4-byte types: one of two numbers."""
    return _ternary(lengths, ranges, "SELECT", dtype, target, (True, True, False))


def selector_select(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """12 + the sum of 35 and a cycle for 4 bytes over the regions: rows of one of two tensors."""
    return _ternary(lengths, ranges, "SELECT", dtype, target, (False, False, True))


def clamp(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 and the loop over the regions."""
    return _ternary(lengths, ranges, "CLAMP", dtype, target)


def broadcast_clamp(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """5 + the sum of 6 and the loop over the regions, between two numbers."""
    return _ternary(lengths, ranges, "CLAMP", dtype, target, (False, True, True))


def fused_1d(n: IntArray, expression: Node, target: Target) -> IntArray:
    """W * (29 + 5 a vector + the loop of every operation on a share) + 11, of the tile."""
    return fused(expression, target).cycles_1d(n)


def fused_2d(lengths: IntArray, ranges: IntArray, expression: Node, target: Target) -> IntArray:
    """5 + 5 a vector and the loop of every operation, for every region."""
    vertices = fused(expression, target)
    return vertices.base_2d + sum_by_vertex(vertices.region_2d(lengths), ranges)
