"""Integer arithmetic that the cycle formulas share; all take whole arrays."""

from __future__ import annotations

from typing import overload

import numpy as np

from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import IntArray

SUPERVISOR_CALL = 11  # popops/PerformanceEstimation.cpp: basic supervisor overhead


@overload
def ceil_div(value: int, divisor: int) -> int: ...
@overload
def ceil_div(value: IntArray, divisor: int | IntArray) -> IntArray: ...
@overload
def ceil_div(value: int, divisor: IntArray) -> IntArray: ...
def ceil_div(value: int | IntArray, divisor: int | IntArray) -> int | IntArray:
    """Divide and round up."""
    return -(-value // divisor)


def sum_by_vertex(values: IntArray, ranges: IntArray) -> IntArray:
    """Add up the values of each vertex, which has the next `ranges[v]` of them."""
    totals = offsets_of(values)
    return np.diff(totals[offsets_of(ranges)])


def even_bounds(total: int, parts: int) -> IntArray:
    """Return the parts + 1 bounds of a division of `total` that is as even as can be."""
    return np.arange(parts + 1, dtype=np.int64) * total // parts


def runs_of_equals(rows: IntArray) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return first, end and value of each run of equal rows."""
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    bounds = [0, *changes.tolist(), len(rows)]
    values = [tuple(row) for row in rows[bounds[:-1]].tolist()]
    return list(zip(bounds[:-1], bounds[1:], values, strict=True))
