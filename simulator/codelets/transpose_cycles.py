"""Cycles of transposes.

Sources: PopLibs lib/popsparse/PerformanceEstimation.hpp 877-914 and, for the form of April 2019,
lib/poplin/poplinCycleEstimators.cpp. `count` matrices of `rows` by `columns` elements by vertex.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.target import Target
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


def transpose_2019(count: IntArray, rows: IntArray, columns: IntArray) -> IntArray:
    """25 + M(11 + rows/2 (6 + 3(columns/2 - 1))) of floats, a worker: Transpose2d of 2019.

    Where rows or columns are odd: 13 + M(8 + columns(5 + 2 rows)).
    """
    fast = 25 + count * (11 + rows // 2 * (6 + 3 * (columns // 2 - 1)))
    slow = 13 + count * (8 + columns * (5 + 2 * rows))
    cycles: IntArray = np.where((rows % 2 == 0) & (columns % 2 == 0), fast, slow)
    return cycles
