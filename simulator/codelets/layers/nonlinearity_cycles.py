"""Cycles of non-linearities.

Sources: PopLibs lib/popnn/popnnCycleEstimators.cpp and lib/popnn/PerformanceEstimation.hpp. The
base of 20 cycles a worker is that of 2019, which gives the user guide's sample.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, IntArray, Type

# Of one step, on floats and on halves. ESTIMATE, as no public source has them: GELU_ERF, as the
# error function in popops; SWISH, a sigmoid and a product.
OP_CYCLES = {
    "SIGMOID": (5, 2),
    "TANH": (5, 1),
    "RELU": (1, 1),
    "GELU": (10, 5),
    "GELU_ERF": (44, 19),
    "SWISH": (6, 3),
}
# Of one vector. ESTIMATE: the last three, after the operations that they take.
GRADIENT_CYCLES = {
    "SIGMOID": (3, 3),
    "TANH": (3, 3),
    "RELU": (3, 3),
    "GELU": (22, 12),
    "GELU_ERF": (56, 28),
    "SWISH": (15, 9),
}
NONLINEARITY_2D, GRADIENT_2D = 14, 17


def _op(table: dict[str, tuple[int, int]], kind: str, dtype: Type) -> int:
    if kind not in table:
        raise PoplarError(f"nonlinearity {kind}: known are {', '.join(table)}")
    return table[kind][dtype != FLOAT]


def _vectors(n: IntArray, dtype: Type, target: Target) -> tuple[IntArray, IntArray]:
    """Return the whole vectors of n elements, and the elements that are left over."""
    width = target.getVectorWidth(dtype)
    return n // width, n % width


def _rest(remainder: IntArray, dtype: Type, pair: int, single: int) -> IntArray:
    """Add up what is charged for a left-over pair of halves and for a left-over element."""
    if dtype == FLOAT:
        return np.where(remainder > 0, single, 0)
    return np.where(remainder & 2, pair, 0) + np.where(remainder & 1, single, 0)


def _forward(vectors: IntArray, op: int) -> IntArray:
    """Cost of a worker's loop; two steps a vector, the last one's result after it."""
    cycles: IntArray = np.where(vectors > 0, 3 + 2 * op + (vectors - 1) * 2 * op, 0)
    return cycles


def _backward(vectors: IntArray, op: int) -> IntArray:
    cycles: IntArray = np.where(vectors > 0, 5 + op * (vectors - 1), 0)
    return cycles


def nonlinearity_1d(n: IntArray, kind: str, dtype: Type, target: Target) -> IntArray:
    """9 + W * (23 + [3 + 2 op + 2 op a further vector] + [odd: 2 + op]), of the tile; half: + 1.

    Left-over halves: a pair 2 + op, a single one 3 + op.
    """
    op, half = _op(OP_CYCLES, kind, dtype), dtype != FLOAT
    vectors, remainder = _vectors(n, dtype, target)
    loop = _forward(ceil_div(vectors, target.workers), op)
    return 9 + target.workers * (23 + half + loop + _rest(remainder, dtype, 2 + op, 2 + half + op))


def nonlinearity_region(n: IntArray, kind: str, dtype: Type, target: Target) -> IntArray:
    """11 [half: 15] + the loop and what is left over, as in the 1D form: a region of a worker."""
    op, half = _op(OP_CYCLES, kind, dtype), dtype != FLOAT
    vectors, remainder = _vectors(n, dtype, target)
    return 11 + 4 * half + _forward(vectors, op) + _rest(remainder, dtype, 2 + op, 2 + half + op)


def nonlinearity_2d(
    lengths: IntArray, ranges: IntArray, kind: str, dtype: Type, target: Target
) -> IntArray:
    """14 + for each region 11 [half: 15] + the loop and what is left over, a worker."""
    regions = nonlinearity_region(lengths, kind, dtype, target)
    return NONLINEARITY_2D + sum_by_vertex(regions, ranges)


def gradient_1d(n: IntArray, kind: str, dtype: Type, target: Target) -> IntArray:
    """9 + W * (29 + [5 + op a further vector] + [odd: 1 + op]), of the tile; half: + 2.

    Left-over halves: a pair 2 + op, a single one 4 + op.
    """
    op, half = _op(GRADIENT_CYCLES, kind, dtype), dtype != FLOAT
    vectors, remainder = _vectors(n, dtype, target)
    loop = _backward(ceil_div(vectors, target.workers), op)
    tail_cycles = _rest(remainder, dtype, 2 + op, 1 + 3 * half + op)
    return 9 + target.workers * (29 + 2 * half + loop + tail_cycles)


def gradient_region(n: IntArray, kind: str, dtype: Type, target: Target) -> IntArray:
    """12 [half: 14] + the loop and what is left over, as in the 1D form: a region of a worker."""
    op, half = _op(GRADIENT_CYCLES, kind, dtype), dtype != FLOAT
    vectors, remainder = _vectors(n, dtype, target)
    tail_cycles = _rest(remainder, dtype, 2 + op, 1 + 3 * half + op)
    return 12 + 2 * half + _backward(vectors, op) + tail_cycles


def gradient_2d(
    lengths: IntArray, ranges: IntArray, kind: str, dtype: Type, target: Target
) -> IntArray:
    """17 + for each region 12 [half: 14] + the loop and what is left over, a worker."""
    return GRADIENT_2D + sum_by_vertex(gradient_region(lengths, kind, dtype, target), ranges)
