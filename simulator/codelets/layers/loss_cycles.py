"""Cycles of losses and of a classifier's end.

Sources: PopLibs lib/popnn/popnnCycleEstimators.cpp and lib/popnn/PerformanceEstimation.hpp.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type

CLASSES_A_WORKER = 32  # PopLibs lib/popnn/Loss.cpp of 2019
GATHER_CALL, GATHER_WORKER = 9, 30


def _transform(n: IntArray, dtype: Type, start: int, element: int, odd: int) -> IntArray:
    if dtype == FLOAT:
        return start + element * n
    return start + 3 + element * (n // 2) + np.where(n % 2 == 1, odd, 0)


def sum_squared(n: IntArray, dtype: Type = FLOAT) -> IntArray:
    """19 + 4n, a worker; half: 22 + 4 a pair + [odd: 6]."""
    return _transform(n, dtype, 19, 4, 6)


def cross_entropy(n: IntArray, dtype: Type = FLOAT) -> IntArray:
    """20 + 9n, a worker; half: 23 + 9 a pair + [odd: 11]."""
    return _transform(n, dtype, 20, 9, 11)


def class_gather(n: IntArray, dtype: Type = FLOAT) -> IntArray:
    """9 + 30 + 3(min(32, n) - 1), as of 2019: each worker goes through 32 of n classes.

    Of integers 9 + 6 * (22 + 217 for each 32), compiled code.
    """
    if dtype in (FLOAT, HALF):
        return GATHER_CALL + GATHER_WORKER + 3 * (np.minimum(n, CLASSES_A_WORKER) - 1)
    return GATHER_CALL + 6 * (22 + ceil_div(n, CLASSES_A_WORKER) * (6 * CLASSES_A_WORKER + 25))


def class_gather_supervisor(n: IntArray, share: IntArray, target: Target) -> IntArray:
    """9 + W * (30 + 3(min(share, n) - 1)): workers take `share` classes each."""
    return GATHER_CALL + target.workers * (GATHER_WORKER + 3 * (np.minimum(share, n) - 1))


def class_sparse(n: IntArray, dtype: Type = FLOAT) -> IntArray:
    """27 + 3(n - 1): a worker goes through n partial results; of integers 23 + 6n."""
    return 27 + 3 * (n - 1) if dtype == FLOAT else 23 + 6 * n


def accuracy(batch: IntArray) -> IntArray:
    """14 + 4 a sample, a worker."""
    return 14 + 4 * batch
