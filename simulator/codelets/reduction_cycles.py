"""Cycles of reductions, beside those in `reduction`: whole vertices, and other forms.

`n`, `outs` and `partials` are counts by vertex; cycles come by vertex.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.reduction import GENERAL_START, general_reduce_cycles
from simulator.graph.target import Target
from simulator.graph.types import FLOAT, IntArray, Type


def general_reduce(
    outs: IntArray, regions: IntArray, partials: IntArray, ranges: IntArray, dtype: Type
) -> IntArray:
    """33 + 28 (half 30) a region of outputs + its passes: 11, 10 a piece, 9 a partial, a worker.

    lib/popops/reduction/CycleEstimationFunctions.cpp 64-205. `outs`, `regions` (pieces of the
    input) and `partials` (of an output) are by region of outputs, `ranges` counts these by vertex.
    A pass of a sum of floats fills an accumulator of 4 (halves: 8); what is left of the outputs
    takes a shorter pass for each power of two. `reduction` has the other operations.
    """
    found = general_reduce_cycles(outs, regions, partials, dtype)
    return GENERAL_START + sum_by_vertex(found, ranges)


def scalar_reduce_2019(n: IntArray, dtype: Type, out_type: Type = FLOAT) -> IntArray:
    """26 + (6 for fewer than 6 elements, else 2 a wide vector and 1 for each left), a worker.

    The form of April 2019 of lib/popops/reduction/CycleEstimationFunctions.cpp: it gives the 32
    cycles of each small reduction of the user guide's sample.
    """
    width = 16 // dtype.size
    body = np.where(n < 6, 6, 2 * (n // width) + n % width)
    cycles: IntArray = 26 + body + (5 if out_type != FLOAT else 0)
    return cycles


def continuous_reduce(
    outs: IntArray, partials: IntArray, dtype: Type, update: bool = False
) -> IntArray:
    """17 + 12 an output + a cycle a vector of its partials (+ 2 if their number is odd), a worker.

    One more to update.

    Source: lib/popops/reduction/CycleEstimationFunctions.cpp (ReduceAllRegionsContinuous).
    """
    cycles: IntArray = 17 + outs * (partials // (8 // dtype.size) + 12) + 2 * (partials & 1)
    return cycles + update


def _bits(values: IntArray) -> IntArray:
    """Count the ones of small numbers."""
    ones: IntArray = (values & 1) + (values >> 1 & 1) + (values >> 2 & 1)
    return ones


def reduce_add(
    outs: IntArray, partials: IntArray, dtype: Type, target: Target, out_type: Type = FLOAT
) -> IntArray:
    """W * (32 + (3d + 6 to 9) a loop of a worker + the loop left over), of the tile; 930-975."""
    width, workers, single = 16 // dtype.size, target.workers, dtype == FLOAT
    loop, over = 3 * partials + (6 if single else 8) + (out_type == FLOAT), outs % width
    loops = outs // width + _bits(over)
    turns = loops // workers
    last = np.where(over, 2 * partials + (13 if single else 11), loop)
    left_over = np.where(loops == workers * turns, 0, last)
    total: IntArray = workers * (32 + loop * turns + left_over)
    return total


def reduce_add_single_input(
    outs: IntArray,
    partials: IntArray,
    dtype: Type,
    target: Target,
    step: int = 2,
    out_type: Type = FLOAT,
) -> IntArray:
    """33 + W * (20 + (step * d + 7 to 10) a vector of a worker), of the tile; lines 901-928.

    All partials but one lie in one region, of which d is the rows. `step` is the cycles to load a
    vector of accumulators: 2, or 1 from interleaved memory.
    """
    vectors = ceil_div(outs // (16 // dtype.size), target.workers)
    end = (7 if dtype == FLOAT else 9) + (out_type == FLOAT)
    cycles: IntArray = 33 + target.workers * (20 + (step * partials + end) * vectors)
    return cycles
