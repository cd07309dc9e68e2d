"""What the element-wise operators compute where no function of NumPy's is the whole answer.

Floating point is C's of the same width; a half is computed as a float and rounded once. Integers
wrap around. What C leaves open is NumPy's here: an integer divided by zero gives 0, as does its
remainder; a shift by the width of the type or more leaves no bit of the number (copies of the sign
where that is extended).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import pi, sqrt

import numpy as np

from simulator.graph.types import Array

ERF_IS_ONE = 6.0  # from here on erf is 1 even in double precision
ERF_TERMS = 130  # of its series: the terms left out at 6 are below 1e-17 of the sum

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def as_float(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute halves as floats and round what comes out."""

    def computed(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if dtype != np.float16:
            return function(*operands)
        return function(*(x.astype(np.float32) for x in operands)).astype(dtype)

    return computed


def _bits(x: Array) -> Array:
    """See integers as the unsigned ones of their bits."""
    return x.view(_UNSIGNED[x.dtype.itemsize])


def square(x: Array) -> Array:
    return x * x


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    # 1 / (1 + exp(-x)) without its overflow; of numbers far below zero no digit is lost.
    small = np.exp(-np.abs(x))
    values: Array = np.where(x < 0, small, x.dtype.type(1)) / (1 + small)
    return values


def tanh(x: Array) -> Array:
    """Return tangents rounded once: NumPy's of floats are 1 bit off where they are nearly 1.

    The slope 1 - y * y of those is wrong by parts in a thousand then.
    """
    values: Array = np.tanh(x, dtype=np.float64).astype(x.dtype)
    return values


def inverse_root(x: Array) -> Array:
    values: Array = np.reciprocal(np.sqrt(x))
    return values


def root(x: Array) -> Array:
    """Return square roots; those of integers are rounded down."""
    wide = x.astype(np.float64) if x.dtype.kind == "i" else x
    roots: Array = np.sqrt(wide).astype(x.dtype)
    return roots


def round_away(x: Array) -> Array:
    """Round to the nearest whole number, halves away from zero, as C's round does."""
    truncated = np.trunc(x)
    away = truncated + np.copysign(x.dtype.type(1), x)
    rounded: Array = np.where(np.abs(x - truncated) >= 0.5, away, truncated)
    return rounded


def sign(x: Array) -> Array:
    """Return -1, 0 or 1; 0 for what is no number."""
    signs: Array = (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)
    return signs


def erf(x: Array) -> Array:
    """Return the error function, by a series of positive terms in double precision.

    erf x = 2 / sqrt(pi) exp(-x^2) sum of x (2 x^2)^n / (1 3 5 .. (2n+1)); Abramowitz and Stegun,
    7.1.6.
    """
    wide = np.clip(x.astype(np.float64), -ERF_IS_ONE, ERF_IS_ONE)
    doubled = 2 * wide * wide
    ones = np.ones_like(wide)
    total = reduce(lambda sum_, n: 1 + sum_ * doubled / (2 * n + 1), range(ERF_TERMS, 0, -1), ones)
    values: Array = (2 / sqrt(pi) * np.exp(-wide * wide) * wide * total).astype(x.dtype)
    return values


def gelu(x: Array) -> Array:
    """Return x/2 (1 + erf(x / sqrt 2))."""
    wide = x.astype(np.float64)
    values: Array = (wide / 2 * (1 + erf(wide / sqrt(2)))).astype(x.dtype)
    return values


def leading_zeros(x: Array) -> Array:
    """Count the zeros before the first one in 32 bits."""
    length = np.frexp(_bits(x).astype(np.float64))[1]  # exact: 32 bits fit into a double
    return (32 - length).astype(x.dtype)


def ones_in(x: Array) -> Array:
    """Count the bits that are set."""
    return np.bitwise_count(_bits(x)).astype(x.dtype)


def divide(a: Array, b: Array) -> Array:
    """Divide; integers towards zero."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    values: Array = (a - np.fmod(a, b)) // b
    return values


def xnor(a: Array, b: Array) -> Array:
    return ~(a ^ b)


def shift_right(a: Array, b: Array) -> Array:
    """Shift right and fill with zeros, whatever the sign."""
    values: Array = (_bits(a) >> _bits(b)).view(a.dtype)
    return values


def variance_to_inverse_deviation(variance: Array, epsilon: Array) -> Array:
    return inverse_root(variance + epsilon)


def inverse_deviation_to_variance(deviation: Array, epsilon: Array) -> Array:
    values: Array = np.reciprocal(deviation * deviation) - epsilon
    return values


def select(a: Array, b: Array, predicate: Array) -> Array:
    return np.where(predicate, a, b)


def clamp(a: Array, lower: Array, upper: Array) -> Array:
    return np.minimum(np.maximum(a, lower), upper)
