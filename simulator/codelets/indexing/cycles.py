"""Cycles of vertices that look up, slice, sort and count.

Source: PopLibs lib/popops/popopsCycleEstimators.cpp, for MultiSlice and MultiUpdate that of March
2021 (8dcde1ec), which the published runs have. Counts and cycles are by vertex.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import SUPERVISOR_CALL, ceil_div, sum_by_vertex
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type

ONE_HOT_INDEX = 100  # of the C++ codelet, an index


def one_hot_levels(indices: IntArray) -> IntArray:
    """100 an index, a worker: EncodeOneHotCustomValues."""
    return ONE_HOT_INDEX * indices


def dynamic_slice_1d(region: IntArray, slices: IntArray, dtype: Type, target: Target) -> IntArray:
    """25 + W * (39 + (24 + 2 a vector of a worker's share of the region) * slices); 1755-1783.

    Of the tile. Types of one byte start with 76 and take 72 a slice.
    """
    vectors = ceil_div(region, target.workers) // target.getVectorWidth(dtype)
    start, slice_cycles = (76, 72) if dtype.size == 1 else (39, 24)
    return SUPERVISOR_CALL + 14 + target.workers * (start + (slice_cycles + 2 * vectors) * slices)


def dynamic_slice_2d(
    lengths: IntArray, ranges: IntArray, slices: IntArray, dtype: Type, target: Target
) -> IntArray:
    """27 + (29 + a vector's cycle) a slice and 13, for each region of 4-byte types; 2032-2064.

    `lengths` are the columns of the regions, `ranges` counts these by vertex, `slices` is by
    vertex. Of halves a slice takes 31 and 2 a vector, of one byte 50 and 2 for 4 elements.
    """
    return _dynamic_2d(lengths, ranges, slices, dtype, target, 2)


def dynamic_update_2d(
    lengths: IntArray, ranges: IntArray, slices: IntArray, dtype: Type, target: Target
) -> IntArray:
    """27 + (29 + a vector's cycle) a slice and 13, for each region of 4-byte types; 2032-2064.

    As `dynamic_slice_2d`; of types of one byte 4 elements take 23.
    """
    return _dynamic_2d(lengths, ranges, slices, dtype, target, 23)


def _dynamic_2d(
    lengths: IntArray,
    ranges: IntArray,
    slices: IntArray,
    dtype: Type,
    target: Target,
    byte_cycles: int,
) -> IntArray:
    start, step = {1: (50, byte_cycles), 2: (31, 2), 4: (29, 1), 8: (30, 1)}[dtype.size]
    width = 4 if dtype.size == 1 else target.getDataPathWidth() // 8 // dtype.size
    region_cycles = (start + step * ceil_div(lengths, width)) * np.repeat(slices, ranges) + 13
    return 27 + sum_by_vertex(region_cycles, ranges)


def multi_slice(offsets: IntArray, length: IntArray, dtype: Type, target: Target) -> IntArray:
    """W * (16 + (19 + 3 a vector of the slice) an offset), of the tile; lines 2361-2398.

    `offsets` are those of one worker, `length` the elements of a slice. Each offset counts as if
    its slice lay in the vertex's part. Vectors of other types than halves have two elements.
    """
    width = target.getVectorWidth(HALF if dtype == HALF else FLOAT)
    return target.workers * (16 + offsets * (19 + 3 * ceil_div(length, width)))


def multi_update(offsets: IntArray, length: IntArray, dtype: Type, target: Target) -> IntArray:
    """W * (16 + (19 + 3 a vector of the slice) an offset), of the tile; lines 2361-2398."""
    return multi_slice(offsets, length, dtype, target)


def multi_update_add(offsets: IntArray, length: IntArray, dtype: Type, target: Target) -> IntArray:
    """W * (17 + (11 + 3 an atomic store after the first) an offset), of the tile; lines 2400-2443.

    Of other types than floats 18 and 12; slices that end inside of an atomic store take 20 an
    element instead of the 3. One worker does it all, and each offset counts as one of its own rows.
    """
    wide = dtype == FLOAT
    atom = max(target.getAtomicStoreGranularity() // dtype.size, 1)
    steps = np.where(length % atom == 0, 3 * (length // atom - 1), 20 * length)
    start, offset_cycles = (17, 11) if wide else (18, 12)
    cycles: IntArray = target.workers * (start + offsets * (offset_cycles + steps))
    return cycles


def one_hot_2019(indices: IntArray, outputs: IntArray, dtype: Type, target: Target) -> IntArray:
    """118 + a worker's words of 8 bytes of outputs + 64 an index, of the tile, as of 2019."""
    return 118 + outputs * dtype.size // 8 // target.workers + 64 * indices


def one_hot(indices: IntArray, dtype: Type) -> IntArray:
    """5 + 100 an index, a worker: the C++ codelet; to halves 11 + 74 an index; 1664-1694."""
    return 11 + 74 * indices if dtype == HALF else 5 + ONE_HOT_INDEX * indices


def iota(lengths: IntArray, ranges: IntArray, dtype: Type, target: Target) -> IntArray:
    """10 + the sum of 4 + 3 a vector over the regions, a worker; 2235-2300."""
    steps = ceil_div(lengths, target.getVectorWidth(dtype))
    return 10 + sum_by_vertex(4 + 3 * steps, ranges)


def heap_sort(n: IntArray) -> IntArray:
    """8 * (19 n floor(log2 n) + 6n + 2), a worker; 2235-2300."""
    levels = np.frexp(np.maximum(n, 1))[1] - 1
    cycles: IntArray = 8 * (19 * n * levels + 6 * n + 2)
    return cycles
