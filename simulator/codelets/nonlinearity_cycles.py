"""Cycles of non-linearities, losses and the classifier's end.

Sources: PopLibs lib/popnn/popnnCycleEstimators.cpp and lib/popnn/PerformanceEstimation.hpp. The
base of 20 cycles a worker is that of 2019, which gives the user guide's sample.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.graph.errors import PoplarError
from simulator.graph.target import Target
from simulator.graph.types import IntArray

OP_CYCLES = {"SIGMOID": 5, "TANH": 5, "RELU": 1}  # of one pair of floats
NONLINEARITY_2D = 5
GATHER_CALL, GATHER_WORKER = 9, 30


def _op(kind: str) -> int:
    if kind not in OP_CYCLES:
        raise PoplarError(f"nonlinearity {kind}: known are {', '.join(OP_CYCLES)}")
    return OP_CYCLES[kind]


def _forward(n: IntArray, workers: int, op: int) -> IntArray:
    """Cost of the busiest worker without its start: two elements a step, the odd one after."""
    steps = ceil_div(n // 2, workers)
    body = np.where(steps > 0, 3 + 2 * op + (steps - 1) * 2 * op, 0)
    cycles: IntArray = body + 3 + np.where(n % 2 == 1, 2 + op, 0)
    return cycles


def _backward(n: IntArray, workers: int) -> IntArray:
    steps = ceil_div(n // 2, workers)
    body = np.where(steps > 0, 5 + 3 * (steps - 1), 0)
    cycles: IntArray = body + 4 + np.where(n % 2 == 1, 4, 0)
    return cycles


def nonlinearity_1d(n: IntArray, kind: str, target: Target) -> IntArray:
    """9 + W * (20 + [3 + 2 op + 2 op a further pair] + 3 + [odd: 2 + op]), of the tile."""
    workers = target.workers
    return 9 + workers * (20 + _forward(n, workers, _op(kind)))


def nonlinearity_region(n: IntArray, kind: str) -> IntArray:
    """8 + what one worker needs for all n elements: our estimate of a region of a 2D vertex."""
    return 8 + _forward(n, 1, _op(kind))


def nonlinearity_2d(lengths: IntArray, ranges: IntArray, kind: str) -> IntArray:
    """5 + 8 and the loop of each region, a worker: our estimate after the 1D form."""
    return NONLINEARITY_2D + sum_by_vertex(nonlinearity_region(lengths, kind), ranges)


def gradient_1d(n: IntArray, target: Target) -> IntArray:
    """9 + W * (25 + [5 + 3 a further pair] + 4 + [odd: 4]), of the tile."""
    workers = target.workers
    return 9 + workers * (25 + _backward(n, workers))


def gradient_region(n: IntArray) -> IntArray:
    """8 + what one worker needs for all n elements: our estimate of a region of a 2D vertex."""
    return 8 + _backward(n, 1)


def gradient_2d(lengths: IntArray, ranges: IntArray) -> IntArray:
    """5 + 8 and the loop of each region, a worker: our estimate after the 1D form."""
    return NONLINEARITY_2D + sum_by_vertex(gradient_region(lengths), ranges)


def sum_squared(n: IntArray) -> IntArray:
    """19 + 4n, a worker."""
    return 19 + 4 * n


def cross_entropy(n: IntArray) -> IntArray:
    """20 + 9n, a worker."""
    return 20 + 9 * n


def class_gather(n: IntArray) -> IntArray:
    """9 + 30 + 3(n - 1): one worker goes through all n classes; lines 463-500."""
    return GATHER_CALL + GATHER_WORKER + 3 * (n - 1)


def class_gather_supervisor(n: IntArray, share: IntArray, target: Target) -> IntArray:
    """9 + W * (30 + 3(min(share, n) - 1)): workers take `share` classes each; lines 463-500."""
    return GATHER_CALL + target.workers * (GATHER_WORKER + 3 * (np.minimum(share, n) - 1))


def accuracy(batch: IntArray) -> IntArray:
    """14 + 4 a sample, a worker; lines 679-700."""
    return 14 + 4 * batch
