"""Vertices that look for what is no number. Source: PopLibs lib/popops/popopsCycleEstimators.cpp.

In PopLibs a supervisor of one region sets a float of its tile that was zero before, and workers of
several regions write one each.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

SUPERVISOR, WORKER = 24, 17  # cycles of a call, and of each worker around its loop


def _loop(n: IntArray, dtype: Type, infinities: bool) -> IntArray:
    """Count the cycles of a worker's loop over n elements."""
    if dtype == HALF and infinities:
        tail = sum(2 * (n & part != 0) for part in (4, 2, 1))
        cycles = 12 + np.where(n > 0, 2 * (n // 8) + tail, 0)
    else:
        start, step = (10, 2 + infinities) if dtype == FLOAT else (12, 3)
        tail = 2 * (n & 2 != 0) + (n & 1 != 0)
        cycles = start + np.where(n > 0, step * (n // 4) + tail, 0)
    counted: IntArray = cycles
    return counted


def _check(dtype: Type, infinities: bool) -> int:
    """Count the cycles of the test after the loop."""
    return int(infinities) + (7 if dtype == FLOAT else 11)


def one_region(n: IntArray, dtype: Type, target: Target, *, infinities: bool) -> IntArray:
    """24 + W * (17 + a loop of 10 + 2 for 4 floats, 12 + 3 for 4 halves, + 7 or 11); 2398-2451.

    Of the tile; the loop takes 1 more for 4 floats, or 2 for 8 halves, where infinities count, and
    the test 1 more. A worker has the most 8-byte words, and all that is left over.
    """
    grain = 8 // dtype.size
    words, extras = n // grain, n % grain
    share = ceil_div(words, target.workers) * grain + extras
    worker_cycles = WORKER + _loop(share, dtype, infinities) + _check(dtype, infinities)
    return SUPERVISOR + target.workers * worker_cycles


def several_regions(n: IntArray, ranges: IntArray, dtype: Type, *, infinities: bool) -> IntArray:
    """9 + the loops of all regions + 7 or 11, a worker; 2463-2488. Loops as of one region."""
    return 9 + sum_by_vertex(_loop(n, dtype, infinities), ranges) + _check(dtype, infinities)


TYPES = VertexTypes(
    (
        supervisor(
            "popops::HasNaNOrInf1D<type,infinities>",
            "in outSetIfFound",
            one_region,
            POPOPS_CYCLES,
            (16, 150),
        ),
        worker(
            "popops::HasNaNOrInf2D<type,infinities>",
            "in out",
            several_regions,
            POPOPS_CYCLES,
            (12, 150),
        ),
    )
)


@cache
def not_number_codelet(dtype: Type, *, several: bool, infinities: bool) -> Codelet:
    """Return the vertex that writes 1 where an element is NaN, or infinite, else 0."""
    out = "out" if several else "outSetIfFound"

    def compute(operands: Operands) -> dict[str, Array]:
        values, counts = operands.arrays["in"], operands.counts["in"]
        with np.errstate(invalid="ignore"):
            odd = ~np.isfinite(values) if infinities else np.isnan(values)
        sums = np.concatenate([[0], np.cumsum(odd)])[offsets_of(counts)]
        return {out: (np.diff(sums) > 0).astype(np.float32)}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["in"].counts()

    name = f"popops::HasNaNOrInf{'2D' if several else '1D'}<{dtype},{str(infinities).lower()}>"
    return TYPES.codelet(name, compute, operations)
