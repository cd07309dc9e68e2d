"""The inverse of a standard deviation, from a mean and a mean of squares."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.elementwise.vertices import ElementwiseVertices
from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Operands, VertexGroup

START, REGION = 6, 4
VECTOR, VECTOR_CYCLES = 2, 3 + 2  # floats, whatever the types: a root a float, and three


def deviation_region(n: IntArray) -> IntArray:
    """Return the cycles of each region of n elements."""
    return REGION + VECTOR_CYCLES * ceil_div(n, VECTOR)


def inverse_deviation(n: IntArray, ranges: IntArray) -> IntArray:
    """6 + 4 and 5 for 2 elements of each region, a worker."""
    return START + sum_by_vertex(deviation_region(n), ranges)


@cache
def inverse_deviation_vertices(
    mean: Type, power: Type, out: Type, centred: bool
) -> ElementwiseVertices:
    """Return the vertices of out = 1 / sqrt(variance * scaleVar + eps).

    The variance is `power`, less the square of `mean` unless the values were `centred` before.
    Parameters `eps` and `scaleVar` a vertex.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        counts, parameters = operands.counts["out"], operands.group.parameters
        variance = operands.arrays["power"].astype(np.float32)
        if not centred:
            variance = variance - np.square(operands.arrays["mean"].astype(np.float32))
        scale, eps = (
            np.repeat(parameters[name], counts).astype(np.float32) for name in ("scaleVar", "eps")
        )
        return {"out": (1 / np.sqrt(variance * scale + eps)).astype(out.numpy)}

    def operations(group: VertexGroup) -> IntArray:
        return group.fields["out"].counts() * 4

    name = f"poplin::InverseStdDeviation<{mean},{power},{out},{str(centred).lower()}>"
    codelet = TYPES.codelet(name, compute, operations)
    return ElementwiseVertices(None, codelet, deviation_region, START, deviation_region)


TYPES = VertexTypes(
    (
        worker(
            "poplin::InverseStdDeviation<mean,power,out,centred>",
            "mean power iStdDev",
            inverse_deviation,
            "PopLibs lib/poplin/poplinCycleEstimators.cpp",
            (28, 200),
        ),
    )
)
