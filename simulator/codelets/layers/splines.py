"""Vertices of B-splines: their coefficients at coordinates, and features weighted by them.

Source of the cycles: PopLibs lib/popops/popopsCycleEstimators.cpp, which calls them very rough.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, worker
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import FLOAT, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands


def spline_basis(outputs: IntArray, dtype: Type) -> IntArray:
    """60 a coefficient of float, 30 of half, a worker."""
    return outputs * (60 if dtype == FLOAT else 30)


def spline_weighting(outputs: IntArray, channels: int, splines: int, dtype: Type) -> IntArray:
    """30 a channel and spline of an output of float, 15 of half, a worker."""
    return outputs * channels * splines * (30 if dtype == FLOAT else 15)


TYPES = VertexTypes(
    (
        worker(
            "popops::SplineBasis<type,degree>",
            "pseudo kernelSize isOpenSpline basis weightIndex",
            spline_basis,
            POPOPS_CYCLES,
            (48, 400),
            exact=False,
        ),
        worker(
            "popops::SplineWeighting<type>",
            "input weight basis weightIndex output",
            spline_weighting,
            POPOPS_CYCLES,
            (48, 200),
            exact=False,
        ),
    )
)


def coefficients(v: Array, which: IntArray, degree: int) -> Array:
    """Return the uniform B-spline coefficient number `which` at fractions v in [0, 1)."""
    one = v.dtype.type(1)
    if degree == 1:
        pieces = [one - v, v]
    elif degree == 2:
        half = v.dtype.type(0.5)
        pieces = [half * (one - v) ** 2, half + v - v * v, half * v * v]
    else:
        cubes = [(one - v) ** 3, 3 * v**3 - 6 * v**2 + 4, -3 * v**3 + 3 * v**2 + 3 * v + 1, v**3]
        pieces = [cube / v.dtype.type(6) for cube in cubes]
    chosen: Array = np.choose(which, pieces)
    return chosen


def _rows(operands: Operands, field: str, out: str, width: int) -> tuple[IntArray, IntArray]:
    """Return for each element of the output its column of `width`, and its row of `field`.

    The first row of a vertex's field is that of its first output.
    """
    counts, first = operands.counts[out], operands.group.parameters["first"]
    place = spread(first, counts)
    dims = operands.group.parameters["columns"]
    heads = offsets_of(operands.counts[field] // dims)[:-1]
    row = place // width - np.repeat(first // width, counts) + np.repeat(heads, counts)
    return place % width, row


@cache
def spline_basis_codelet(dtype: Type, degree: int, dims: int) -> Codelet:
    """Return the worker of coefficients and indices of weights, of coordinates of `dims`."""
    splines = (degree + 1) ** dims

    def compute(operands: Operands) -> dict[str, Array]:
        arrays = operands.arrays
        kernel = arrays["kernelSize"][:dims].astype(np.int64)
        is_open = arrays["isOpenSpline"][:dims].astype(np.int64)
        number, row = _rows(operands, "pseudo", "basis", splines)
        pseudo = arrays["pseudo"].reshape(-1, dims)[row]
        basis = np.ones(len(row), dtype.numpy)
        index, stride = np.zeros(len(row), np.int64), 1
        for dim in range(dims):
            which = number % (degree + 1)
            number = number // (degree + 1)
            v = pseudo[:, dim] * dtype.numpy.type(kernel[dim] - degree * is_open[dim])
            index += (np.floor(v).astype(np.int64) + which) % kernel[dim] * stride
            stride *= int(kernel[dim])
            basis *= coefficients(v - np.floor(v), which, degree)
        return {"basis": basis, "weightIndex": index.astype(np.int32)}

    return TYPES.codelet(f"popops::SplineBasis<{dtype},{degree}>", compute)


@cache
def spline_weighting_codelet(dtype: Type, channels: int, outputs: int, splines: int) -> Codelet:
    """Return the worker of sums over splines and channels of coefficient, weight and feature."""

    def compute(operands: Operands) -> dict[str, Array]:
        arrays = operands.arrays
        column, row = _rows(operands, "input", "output", outputs)
        size = int(operands.counts["weight"][0])
        weight = arrays["weight"][:size].reshape(-1, channels, outputs)
        features = arrays["input"].reshape(-1, channels)[row]
        basis = arrays["basis"].reshape(-1, splines)[row]
        which = arrays["weightIndex"].reshape(-1, splines)[row]
        total = np.zeros(len(row), dtype.numpy)
        for spline in range(splines):  # one after another, as the sums are rounded
            terms = weight[which[:, spline], :, column] * features
            total += (terms * basis[:, spline, None]).sum(axis=1, dtype=dtype.numpy)
        return {"output": total}

    return TYPES.codelet(f"popops::SplineWeighting<{dtype}>", compute)
