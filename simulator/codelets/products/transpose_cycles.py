"""Cycles of transposes.

Sources: PopLibs lib/popsparse/PerformanceEstimation.hpp 877-914; for Transpose2d that of April 2019
(lib/poplin/poplinCycleEstimators.cpp) and of March 2021 (lib/popops/popopsCycleEstimators.cpp,
2743-2798). `count` matrices of `rows` by `columns` elements by vertex.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray, Type


def transpose(
    count: IntArray, rows: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """7 + W * what a worker needs for its matrices, of the tile.

    Rows and columns go by grains, of 2 floats (3 cycles) or 4 halves (4 cycles). For one grain:
    29, more of them 37 + m - 2 grains; for one column of R grains 27 + m(35 + R - 2 grains); else
    29 + m(18 + R(12 + C - 2 grains)), with m matrices a worker.
    """
    side, grain = (2, 3) if dtype == FLOAT else (4, 4)
    high, wide = rows // side, columns // side
    m = ceil_div(count, target.workers)
    one = np.where(m == 1, 29, 37 + (m - 2) * grain)
    column = 27 + m * (15 + 20 + grain * (high - 2))
    block = 29 + m * (18 + high * (12 + grain * (wide - 2)))
    worker = np.where(wide > 1, block, np.where(high > 1, column, one))
    total: IntArray = 7 + target.workers * worker
    return total


def transpose_2d(
    count: IntArray, rows: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """25 + M(11 + rows/2 (6 + 3(columns/2 - 1))) of 4-byte elements, a worker: Transpose2d.

    Where rows or columns are odd, or a step is too long for the stride of an instruction: 13 +
    M(8 + columns(5 + 2 rows)). The first form is of 2019, as in the guide's sample; it takes 27
    since. Of 2 bytes: 39 + M(12 + rows/4 (15 + 4(columns/4 - 2))), else 15 + M(8 + columns(5 + 5
    rows/2)).
    """
    stride = 1 << (target.getNumStrideBits() - 1)
    if dtype.size == 4:
        even = (rows % 2 == 0) & (columns % 2 == 0)
        near = (rows * (columns - 2) // 2 < stride) & (rows < stride)
        fast = 25 + count * (11 + rows // 2 * (6 + 3 * (columns // 2 - 1)))
        slow = 13 + count * (8 + columns * (5 + 2 * rows))
    else:
        even = (rows % 4 == 0) & (columns % 4 == 0) & (columns >= 8)
        near = 1 + 3 * (columns // 4) < stride
        fast = 39 + count * (12 + rows // 4 * (15 + 4 * (columns // 4 - 2)))
        slow = 15 + count * (8 + columns * (5 + rows * 5 // 2))
    cycles: IntArray = np.where(even & near, fast, slow)
    return cycles
