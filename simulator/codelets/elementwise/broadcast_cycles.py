"""Cycles of vertices whose second operand is a vector that repeats along the first.

Inner: the vector lies along the data, which is some blocks of its length. Outer: each of its
elements goes with a row of the data. Those with `ranges` are of a worker, the others of a tile.
Source: PopLibs lib/popops/popopsCycleEstimators.cpp (BroadcastVectorInner, BroadcastVectorOuter).
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div, sum_by_vertex
from simulator.codelets.elementwise.operation import step_of
from simulator.codelets.elementwise.operations import BINARY
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type

_DIVISION = 3  # cycles of a float's division, the most that it takes
_LONGEST_SUM, _LONGEST_PRODUCT = 2048, 2044  # halves that the vectors' loops can step over
# Cycles beside what all have, of a worker and of the supervisor: of a new tensor, and in place.
_EXTRA_1D = {
    "ADD": ((3, 6), (2, 0)),
    "SUBTRACT": ((3, 6), (3, 6)),
    "MULTIPLY": ((26, 0), (27, 6)),
    "DIVIDE": ((5, 5), (5, 3)),
}
_EXTRA_2D = {"ADD": (7, 6), "SUBTRACT": (8, 8), "MULTIPLY": (6, 7), "DIVIDE": (10, 9)}


def _sum_of_halves(length: IntArray, blocks: IntArray) -> IntArray:
    """Cycles of a sum: in pairs of vectors, in vectors of two blocks, or half by half."""
    pairs, vectors = length // 8, length // 4
    of_pairs = 2 + np.where(blocks == 1, 4 + 7 * pairs, 5 + pairs * (15 + 2 * (blocks - 1)))
    of_vectors = 6 + vectors * (13 + 2 * (blocks // 2 - 1) + blocks % 2)
    alone = 6 + length * (5 + 9 * blocks)
    short = np.where(length % 8 == 0, 5 + of_pairs, 9 + of_vectors)
    by_halves = (length % 4 != 0) | ((length % 8 != 0) & (blocks < 2))
    short = np.where(by_halves, np.where(blocks < 2, 7, 9) + alone, short)
    return np.where(length > _LONGEST_SUM, 3 + alone, short)


def _product_of_halves(length: IntArray, blocks: IntArray, in_place: bool) -> IntArray:
    """Cycles of a product: a vector a cycle where it is read and written at once, else two."""
    vectors = length // 4
    apart = 4 + vectors * (7 + 2 * blocks)
    if in_place:
        by_vectors = 5 + apart
    else:
        single = np.where(length > _LONGEST_PRODUCT, 7, 9) + apart
        at_once = (length <= _LONGEST_PRODUCT) & (blocks >= 2)
        by_vectors = np.where(at_once, 13 + vectors * (9 + blocks), single)
    return np.where(length % 4 == 0, by_vectors, 8 + length * (5 + 9 * blocks))


def _quotient_of_floats(length: IntArray, blocks: IntArray) -> IntArray:
    odd = 8 + length * (9 + (blocks - 1) * (_DIVISION + 1))
    return 1 + np.where(length % 2 == 1, odd, 9 + length // 2 * (11 + (blocks - 1) * 6))


def _quotient_of_halves(length: IntArray, blocks: IntArray) -> IntArray:
    pairs, last = length // 2, blocks % 2
    even = 12 + pairs * (13 + (blocks - 1) * 8)
    first = 12 + (pairs - 1) * 9
    odd = 8 + blocks // 2 * (first + 24 + (pairs - 1) * 10) + last * (first + 8)
    single = np.where(blocks == 1, 22, 26 + (blocks // 2 - 1) * 8 + last * 8)
    return 2 + np.where(length % 2 == 0, even, np.where(length == 1, single, odd))


def _core(
    length: IntArray, blocks: IntArray, operation: str, dtype: Type, in_place: bool
) -> IntArray:
    """Cycles of a worker for some blocks of a vector."""
    if operation == "DIVIDE":
        of_type = _quotient_of_halves if dtype == HALF else _quotient_of_floats
        return of_type(length, blocks)
    if operation == "MULTIPLY":
        return _product_of_halves(length, blocks, in_place)
    return _sum_of_halves(length, blocks)


def inner_1d(
    length: IntArray,
    slices: IntArray,
    blocks: IntArray,
    operation: str,
    dtype: Type,
    target: Target,
    in_place: bool,
) -> IntArray:
    """13 + W * (some 20 + for each of several vectors 17 and a worker's share of its blocks)."""
    share = ceil_div(blocks, target.workers)
    core = _core(length, share, operation, dtype, in_place)
    worker, supervisor = _EXTRA_1D[operation][in_place]
    start = 14 if dtype == FLOAT else 19
    odd = 0 if operation == "DIVIDE" else 7 * (length % 2)
    loops = slices * (core + np.where(slices > 1, 17, 0))
    return 13 + supervisor + target.workers * (start + worker + odd + loops)


def inner_2d(
    length: IntArray,
    blocks: IntArray,
    ranges: IntArray,
    operation: str,
    dtype: Type,
    in_place: bool,
) -> IntArray:
    """Some 7 + for every region some 14 and its blocks."""
    region_overhead = 9 if dtype == FLOAT else 13 if operation == "MULTIPLY" else 15
    core = _core(length, blocks, operation, dtype, False)
    return _EXTRA_2D[operation][in_place] + sum_by_vertex(region_overhead + core, ranges)


def outer_1d(
    columns: IntArray, rows: IntArray, operation: str, dtype: Type, target: Target
) -> IntArray:
    """W * (15 + for a worker's rows 7, or 25 where they are not whole vectors, and the loop) + 11.

    Rows that have a vector for each worker are shared by their columns, others are whole.
    """
    width = target.getVectorWidth(dtype)
    shared = columns >= target.workers * width
    elements = np.where(shared, ceil_div(columns, target.workers), columns)
    turns = np.where(shared, rows, ceil_div(rows, target.workers))
    entry = BINARY[operation]
    step = step_of(entry.with_number, entry, dtype)
    loop = (step.cycles + 1) * (elements + width - 1) // width
    start = np.where(columns % width == 0, 7, 25)
    cycles: IntArray = target.workers * (15 + turns * (start + loop)) + SUPERVISOR_CALL
    return cycles
