"""Cycles of vertices that scale and add, fill and convert.

Each function takes element counts by vertex and gives cycles by vertex: of the whole tile for the
1D (supervisor) vertices, of one worker for the others. A 2D vertex has a list of regions:
`lengths` are the elements of all regions, vertex by vertex, `ranges` how many regions each vertex
has. W are the workers of a tile. Source, where not said otherwise: PopLibs
lib/popops/PerformanceEstimation.cpp.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div, sum_by_vertex
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.types import CHAR, FLOAT, HALF, INT, SHORT, IntArray, Type

CAST_2D, SCALED_ADD_2D, SCALED_ADD_2D_2019, SCALED_ADD_2D_INTEGERS = 5, 10, 9, 9


def scaled_add_integers(n: IntArray, *, subtract: bool = False) -> IntArray:
    """73 + 26 for each three integers and each left over, of the tile (a 1D vertex).

    PopLibs lib/popops/PerformanceEstimation.cpp, getScaledArithmeticSupervisorCycleEstimate.
    """
    cycles: IntArray = 73 + 26 * (n // 3 + n % 3) + subtract
    return cycles


def scaled_add_2d_integers(
    lengths: IntArray, ranges: IntArray, *, subtract: bool = False
) -> IntArray:
    """9 + 7 a region + 5 an integer, a worker; popopsCycleEstimators.cpp."""
    return SCALED_ADD_2D_INTEGERS + subtract + sum_by_vertex(7 + 5 * lengths, ranges)


def _check_scaled(dtype: Type) -> None:
    if dtype not in (FLOAT, HALF):
        raise PoplarError(f"scaledAddTo on {dtype}: known for float, half")


def _scaled_tail(tail: IntArray, dtype: Type) -> IntArray:
    """Cycles for the elements after the last whole vector: one float; one, two or three halves."""
    cycles = np.array([0, 8] if dtype == FLOAT else [0, 5, 12, 18], dtype=np.int64)
    picked: IntArray = cycles[tail]
    return picked


def scaled_add_1d(
    n: IntArray,
    dtype: Type,
    target: Target,
    *,
    subtract: bool = False,
    axpby: bool = False,
    scaled_pointers: bool = False,
    memory_constrained: bool = False,
) -> IntArray:
    """57 (63 with a tail) + W * (19 + [6 + 3 a further vector] + the tail), of the tile; 473-628.

    Both operands are float or both half. As in the source, the vectors that are left when the
    workers share them are never charged; the worker of the tail takes a cycle to look for one.
    `memory_constrained`: operands lie in different memory elements, so that loads overlap.
    """
    _check_scaled(dtype)
    width = target.getVectorWidth(dtype)
    vectors, tail = n // width // target.workers, n % width
    step = np.where(vectors >= 16, 1, 2) if memory_constrained else 3
    extra = 6 * scaled_pointers + 12 * axpby + 7 * subtract
    supervisor = 21 + SUPERVISOR_CALL + np.where(tail == 0, 7, 13) + 12 + 6 + extra
    body = np.where(vectors > 0, 6 + step * (vectors - 1), 0)
    total: IntArray = supervisor + target.workers * (19 + body + _scaled_tail(tail, dtype))
    return total


def scaled_add_1d_2019(
    n: IntArray, dtype: Type, target: Target, *, constant: bool = True
) -> IntArray:
    """78 (84 with a tail) + W * (18 + [6 + 2 a further vector] + [1 + the tail]), of the tile.

    The form of April 2019 of lib/popops/popopsCycleEstimators.cpp, 280-385; it gives the guide's
    sample. Its tail is what the elements leave over among the workers, and worker `rem` takes it;
    the source counts seven workers, and where rem is larger, none takes it.
    """
    _check_scaled(dtype)
    width, workers = target.getVectorWidth(dtype), target.workers
    share, tail = n // workers, n % workers
    vectors, rem = share // width, share % workers + ceil_div(tail, width)
    if dtype == FLOAT:
        tail_cycles = np.where(tail > 0, 8, 0)
    else:
        tail_cycles = np.select([tail == 0, tail == 1, tail == 3], [0, 5, 18], 12)
    body = np.where(vectors > 0, 6 + 2 * (vectors - 1), 0)
    last = np.where(rem <= workers, 1 + tail_cycles, 0)
    supervisor = 12 + 47 + np.where(tail == 0, 7, 13) + 12 + (not constant)
    total: IntArray = supervisor + workers * (15 + body + 2 + last + 1)
    return total


def scaled_add_region_2019(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """11 + [5 + 2 a vector] + the tail: 7 of a float, 11, 10 or 17 of one, two or three halves.

    The region of a 2D vertex in April 2019; the same file, 418-467.
    """
    _check_scaled(dtype)
    width = target.getVectorWidth(dtype)
    vectors, tail = n // width, n % width
    tail_cycles = np.array([0, 7] if dtype == FLOAT else [0, 11, 10, 17], dtype=np.int64)[tail]
    cycles: IntArray = 11 + np.where(vectors > 0, 5 + 2 * vectors, 0) + tail_cycles
    return cycles


def scaled_add_2d_2019(
    lengths: IntArray, ranges: IntArray, dtype: Type, target: Target
) -> IntArray:
    """9 + 11 a region + [5 + 2 a vector] + the tail of each region, a worker; constant scale."""
    regions = scaled_add_region_2019(lengths, dtype, target)
    return SCALED_ADD_2D_2019 + sum_by_vertex(regions, ranges)


def scaled_add_region(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """15 + [5 + 3 a vector] + the tail: 7 of a float, 11, 10 or 17 of one, two or three halves.

    The region of a 2D vertex; lib/popops/popopsCycleEstimators.cpp (ScaledArithmetic2D).
    """
    _check_scaled(dtype)
    width = target.getVectorWidth(dtype)
    vectors, tail = n // width, n % width
    tail_cycles = np.array([0, 7] if dtype == FLOAT else [0, 11, 10, 17], dtype=np.int64)[tail]
    cycles: IntArray = 15 + np.where(vectors > 0, 5 + 3 * vectors, 0) + tail_cycles
    return cycles


def scaled_add_2d(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """10 + 15 a region + [5 + 3 a vector] + the tail of each region, a worker."""
    return SCALED_ADD_2D + sum_by_vertex(scaled_add_region(lengths, dtype, target), ranges)


def fill_1d(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """23 + n/2 (1 more if odd) of 4-byte types, a worker; lines 367-440.

    Halves: 15, 21, then 26 + n/4. Bytes: 28 + n/4 below 64
    of them, else 39 + n/8. 8 bytes: 5 + n. All divisions round down.
    """
    width = target.getVectorWidth(dtype)
    if dtype.size == 8:
        return 5 + n
    if dtype.size == 1:
        small: IntArray = np.where(n < 64, 28 + n // 4, 39 + n // 8)
        return small
    if dtype.size == 2:
        halves: IntArray = np.where(n == 1, 15, np.where(n == 2, 21, 26 + n // width))
        return halves
    cycles: IntArray = 23 + n // width + (n % width == 1)
    return cycles


def fill_2d(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """6 (half or 8 bytes: 5) + each region as a 1D fill, less the 3 (2) cycles of its call."""
    short = dtype == HALF or dtype.size == 8
    regions = fill_1d(lengths, dtype, target) - (2 if short else 3)
    return (5 if short else 6) + sum_by_vertex(regions, ranges)


def cast_core(n: IntArray, source: Type, destination: Type, target: Target) -> IntArray:
    """Cycles to convert n elements; lines 206-365.

    Between float and half: 19 + whole vectors, 1 for each bit that a remainder can have, 2 for
    each that it has. Other types go one by one, 2 cycles each; to 8 bytes 3 + 4 or 5 each.
    """
    if destination.size == 8:
        return 3 + n * (4 + (source in (INT, CHAR, SHORT)))
    if source not in (FLOAT, HALF) or destination not in (FLOAT, HALF):
        return 19 + 2 * n
    load, store = target.getVectorWidth(source), target.getVectorWidth(destination)
    width = min(2 * load, store)
    step = max(width // min(width, load), width // min(width, store))
    bits = width.bit_length() - 1
    ones = np.array([value.bit_count() for value in range(width)], dtype=np.int64)
    cycles: IntArray = 19 + step * (n // width) + bits + 2 * ones[n % width]
    return cycles


def cast_1d(n: IntArray, source: Type, destination: Type, target: Target) -> IntArray:
    """12 + W * (18 + the core of a worker's share)."""
    share = ceil_div(n, target.workers)
    return 12 + target.workers * (18 + cast_core(share, source, destination, target))


def cast_1d_single_worker(n: IntArray, source: Type, destination: Type, target: Target) -> IntArray:
    """5 + the core of all n elements."""
    return 5 + cast_core(n, source, destination, target)


def cast_region(n: IntArray, source: Type, destination: Type, target: Target) -> IntArray:
    """11 + the core of a region."""
    return 11 + cast_core(n, source, destination, target)


def cast_2d(
    lengths: IntArray, ranges: IntArray, source: Type, destination: Type, target: Target
) -> IntArray:
    """5 + 11 and the core for every region, a worker."""
    return CAST_2D + sum_by_vertex(cast_region(lengths, source, destination, target), ranges)
