"""Vertices that count how many elements lie between limits.

Values: PopLibs lib/popops/codelets/elemwiseMiscCodelets.cpp. Cycles:
lib/popops/HistogramPerformanceEstimation.cpp and popopsCycleEstimators.cpp, without the cycles of
unpacking pointers.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.machine.target import Target
from simulator.graph.types import HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

ESTIMATES = "PopLibs lib/popops/HistogramPerformanceEstimation.cpp"


def _elements(n: IntArray, vectors: IntArray, dtype: Type, odd: int, absolute: bool) -> IntArray:
    """Count the cycles of a loop over elements: whole vectors, then what is left of one."""
    cycles = (3 + absolute) * vectors + (odd + absolute) * (n & 1)
    return cycles + (3 + absolute) * (n >> 1 & 1) if dtype == HALF else cycles


def by_limit(n: IntArray, count: int, dtype: Type, target: Target, *, absolute: bool) -> IntArray:
    """W * (30 + 2 L + (17 + 3 a vector) * ceil(L / W)) for L limits, of the tile; 4 if absolute."""
    half = dtype == HALF
    vectors = n // target.getVectorWidth(dtype)
    loop = (17 if half else 11) + _elements(n, vectors, dtype, 3 if half else 2, absolute)
    return (30 + 2 * (count - 1) + loop * ceil_div(count - 1, target.workers)) * target.workers


def by_data(n: IntArray, count: int, dtype: Type, target: Target, *, absolute: bool) -> IntArray:
    """W * (38 + (19 + 3 a vector of a worker) * L) for L limits of halves, of the tile."""
    half = dtype == HALF
    vectors = ceil_div(n // target.getVectorWidth(dtype), target.workers)
    loop = (19 if half else 17) + _elements(n, vectors, dtype, 3, absolute)
    return ((38 if half else 37) + loop * (count - 1)) * target.workers


def of_regions(
    n: IntArray, ranges: IntArray, count: int, dtype: Type, target: Target, *, absolute: bool
) -> IntArray:
    """22 + 2 L + (22 + 3 a vector of each region) * L + 3 a region, a worker, of halves."""
    half = dtype == HALF
    vectors = n // target.getVectorWidth(dtype)
    data = sum_by_vertex(_elements(n, vectors, dtype, 3 if half else 2, absolute), ranges)
    loop = (22 if half else 15) + data
    return (22 if half else 20) + (loop + 2) * (count - 1) + 3 * ranges


@cache
def histogram_codelet(kind: str, dtype: Type, *, absolute: bool) -> Codelet:
    """Return the vertex that counts the elements of `data` by `limits` into `histogram`.

    `kind` is `1D,true` (by limits), `1D,false` (by data, with a part for each worker behind the
    counts) or `2D`.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        group, counts = operands.group, operands.counts
        data, limits = operands.arrays["data"], operands.arrays["limits"]
        vertices, bins = len(group), int(counts["limits"][0]) + 1
        values = np.abs(data) if absolute else data
        # Limits are the same for all vertices.
        bin_of = np.searchsorted(np.sort(limits[: bins - 1]), values, side="right")
        of_vertex = np.repeat(np.arange(vertices), counts["data"])
        sums = np.bincount(of_vertex * bins + bin_of, minlength=vertices * bins)
        out = np.zeros(int(counts["histogram"].sum()), np.float32)
        starts = offsets_of(counts["histogram"])[:-1]
        out[starts[:, None] + np.arange(bins)] = sums.reshape(vertices, bins)
        return {"histogram": out}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["data"].counts() * (1 + absolute)

    suffix, _, way = kind.partition(",")
    parameters = ",".join(filter(None, (str(dtype), str(absolute).lower(), way)))
    return TYPES.codelet(f"popops::Histogram{suffix}<{parameters}>", compute, operations)


TYPES = VertexTypes(
    (
        supervisor(
            "popops::Histogram1D<type,absolute,byLimits>",
            "data limits histogram",
            by_limit,
            ESTIMATES,
            (16, 260),
        ),
        worker(
            "popops::Histogram2D<type,absolute>",
            "data limits histogram",
            of_regions,
            POPOPS_CYCLES,
            (16, 300),
        ),
    )
)
