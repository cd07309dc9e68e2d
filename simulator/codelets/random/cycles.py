"""Cycles of vertices that draw random numbers, of the whole tile.

Source: PopLibs lib/poprand/poprandCycleEstimators.cpp 10-149. W are the workers, n the numbers
that a vertex draws. Uniform and Bernoulli take 32 (half: 16) numbers a step there, which looks like
bits taken for elements; it is kept as it is.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, INT, IntArray, Type


def uniform(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """4 + 4(n + 31)/32 + 22W (+ 4 if n % 32), float; half 16 a step, 24W, + 12; int: 6 a pair.

    Of integers 4 + 22W + 6 for two numbers (+ 2 for an odd one), whatever their range.
    """
    if dtype == INT:
        return 4 + 22 * target.workers + 6 * (n // 2) + 2 * (n % 2)
    width = target.getDataPathWidth() // (2 if dtype == FLOAT else 4)
    worker, tail_cycles = (22, 4) if dtype == FLOAT else (24, 12)
    cycles: IntArray = (
        4 + 4 * (n + width - 1) // width + worker * target.workers + tail_cycles * (n % width != 0)
    )
    return cycles


def normal(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """4 + 4(n + v - 1)/v + 22W (+ 3 if a vector is not whole), float; half 24W, + 12."""
    width = target.getVectorWidth(dtype)
    worker, tail_cycles = (22, 3) if dtype == FLOAT else (24, 12)
    cycles: IntArray = (
        4 + 4 * (n + width - 1) // width + worker * target.workers + tail_cycles * (n % width != 0)
    )
    return cycles


def truncated_normal(n: IntArray, iterations: int, dtype: Type, target: Target) -> IntArray:
    """4 + 26W + (11 it + 5)(n + v - 1)/v (+ 13 it + 2 if a vector is not whole), float."""
    width = target.getVectorWidth(dtype)
    if dtype == FLOAT:
        worker, step, tail_cycles = 26, 11 * iterations + 5, 13 * iterations + 2
    else:
        worker, step, tail_cycles = 28, 12 * iterations + 5, 12 * iterations + 10
    loops = step * (n + width - 1) // width
    cycles: IntArray = 4 + worker * target.workers + loops + tail_cycles * (n % width != 0)
    return cycles


def bernoulli(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """4 + n/32 rounded up + 23W (+ 1 if n % 32), float and int; half 16 a step, 21W, + 9."""
    width = target.getDataPathWidth() // (4 if dtype == HALF else 2)
    worker, tail_cycles = (21, 9) if dtype == HALF else (23, 1)
    cycles: IntArray = (
        4 + ceil_div(n, width) + worker * target.workers + tail_cycles * (n % width != 0)
    )
    return cycles


def dropout(n: IntArray, dtype: Type, target: Target) -> IntArray:
    """6 + 24W + 2(n + v - 1)/v (+ 1, half 9, if a vector is not whole)."""
    width = target.getVectorWidth(dtype)
    tail_cycles = 1 if dtype == FLOAT else 9
    cycles: IntArray = (
        6 + 24 * target.workers + 2 * (n + width - 1) // width + tail_cycles * (n % width != 0)
    )
    return cycles


def set_seed(vertices: IntArray, target: Target) -> IntArray:
    """14 + 27W for each of an array of vertices: what a worker does has grown since 2019."""
    return np.full_like(vertices, 14 + 27 * target.workers)


def set_seed_2019(vertices: IntArray, target: Target) -> IntArray:
    """14 + 22W for each of an array of vertices: the form of April 2019, of the guide's sample."""
    return np.full_like(vertices, 14 + 22 * target.workers)


def hardware_seeds(vertices: IntArray, target: Target) -> IntArray:
    """14 + 27W for each of an array of vertices, as `set_seed`: four registers a worker."""
    return set_seed(vertices, target)
