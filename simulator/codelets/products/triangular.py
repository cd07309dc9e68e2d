"""Vertices of triangular matrices: a Cholesky factor, an inverse, the solution of a system.

Values: PopLibs lib/poplin/codelets/Cholesky.cpp and TriangularSolve.cpp. Cycles:
lib/poplin/poplinCycleEstimators.cpp, in whole numbers as there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.codelets.vertex_type import POPLIN_CYCLES, VertexTypes, supervisor, worker
from simulator.graph.machine.target import Target
from simulator.graph.types import HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

SIMD = 4  # rows of a system that a vertex of all workers solves at once


def cholesky_cycles(n: IntArray, dtype: Type) -> IntArray:
    """n^3 + 102 n^2 + 101 n + 102, a worker; of halves n^3 / 2 + 795 n^2 / 4 + 191 n / 2 + 426."""
    if dtype == HALF:
        return n**3 // 2 + 795 * n**2 // 4 + 191 * n // 2 + 426
    return n**3 + 102 * n**2 + 101 * n + 102


def inverse_cycles(n: IntArray, dtype: Type) -> IntArray:
    """6 n^3 + 51 n^2 + 213 n + 12, of the tile; of halves 7 n^3 + 123 n^2 + 269 n - 24."""
    if dtype == HALF:
        return 7 * n**3 + 123 * n**2 + 269 * n - 24
    return 6 * n**3 + 51 * n**2 + 213 * n + 12


def solve_cycles(n: IntArray, dtype: Type, lower: bool) -> IntArray:
    """3 n^2 / 2 + 180 n - 126 of a lower triangle of floats, a worker; upper 27 n^2 / 4 + ..."""
    if dtype == HALF:
        if lower:
            return 3 * n**2 // 4 + 318 * n - 150
        return 135 * n**2 // 16 + 1089 * n // 4 + 12
    return 3 * n**2 // 2 + 180 * n - 126 if lower else 27 * n**2 // 4 + 327 * n // 2 + 54


def solve_by_all_cycles(n: IntArray, dtype: Type, lower: bool, target: Target) -> IntArray:
    """21 + 9 and W \\* (74 + 11 a row of a worker) for each 4 rows, of the tile; lower floats."""
    half = dtype == HALF
    outside, iteration = (21, 9) if lower else (42, 6)
    row, call = (17 if half else 11, 112 if half else 74) if lower else (
        17 if half else 10, 145 if half else 99)  # fmt: skip
    calls = n // SIMD
    rows = (n - SIMD) / (target.workers * (2 if half else 1)) / 2
    workers = ((row * rows + call) * calls * target.workers).astype(np.int64)
    return workers + iteration * calls + outside


def cholesky_codelet(dtype: Type) -> Codelet:
    """Return the vertex that puts the lower Cholesky factor of `in` into its lower triangle."""

    def compute(operands: Operands) -> dict[str, Array]:
        return {"in": _by_size(operands, "in", _factor)}

    return TYPES.codelet(f"poplin::Cholesky<{dtype},true>", compute, _third)


def inverse_codelet(dtype: Type) -> Codelet:
    """Return the vertex with columns of the inverse of the lower triangle of `in`, as rows.

    Parameters by vertex: `dim` n, and `colBegin`, the first of its columns.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        values, counts = operands.arrays["in"], operands.counts
        ends, starts = np.cumsum(counts["out"]), np.cumsum(counts["in"]) - counts["in"]
        out = np.empty(int(counts["out"].sum()), dtype.numpy)
        parameters = operands.group.parameters
        shapes = np.stack([parameters["dim"], parameters["colBegin"], counts["out"]], 1)
        for size, column, count in np.unique(shapes, axis=0).tolist():
            members = (shapes == (size, column, count)).all(axis=1)
            matrices = _matrices(values, starts[members], size)
            inverse = _substitute(matrices, np.eye(size, dtype=dtype.numpy), lower=True)
            rows = inverse.swapaxes(1, 2)[:, column : column + count // size]
            places = (ends[members] - count)[:, None] + np.arange(count)
            out[places] = rows.reshape(len(places), count)
        return {"out": out}

    return TYPES.codelet(f"poplin::TriangularInverseWithTranspose<{dtype}>", compute, _third)


def solve_codelet(dtype: Type, lower: bool, *, by_all: bool) -> Codelet:
    """Return the vertex that solves a x = b, where `a` has ones on its diagonal."""

    def compute(operands: Operands) -> dict[str, Array]:
        counts, matrices, right = operands.counts["x"], operands.arrays["a"], operands.arrays["b"]
        starts, first = np.cumsum(counts**2) - counts**2, np.cumsum(counts) - counts
        out = np.empty(int(counts.sum()), dtype.numpy)
        for size in np.unique(counts).tolist():
            members = counts == size
            places = first[members][:, None] + np.arange(size)
            systems = _matrices(matrices, starts[members], size).copy()
            systems[:, np.arange(size), np.arange(size)] = 1
            out[places] = _substitute(systems, right[places][..., None], lower=lower)[..., 0]
        return {"x": out}

    name = "TriangularSolveMultiWorker" if by_all else "TriangularSolve"
    side = str(lower).lower()
    return TYPES.codelet(f"poplin::{name}<{dtype},{side}>", compute, _square, apart="outputs")


def _by_size(operands: Operands, field: str, change: Callable[[Array], Array]) -> Array:
    """Return the square matrices of a field changed, those of one size together."""
    values, counts = operands.arrays[field].copy(), operands.counts[field]
    starts = np.cumsum(counts) - counts
    for count in np.unique(counts).tolist():
        places = starts[counts == count][:, None] + np.arange(count)
        size = int(np.sqrt(count))
        values[places] = change(values[places].reshape(-1, size, size)).reshape(places.shape)
    return values


def _matrices(values: Array, starts: IntArray, size: int) -> Array:
    """Return the matrices [vertices, size, size] that begin at these places."""
    matrices: Array = values[starts[:, None] + np.arange(size * size)]
    return matrices.reshape(-1, size, size)


def _factor(matrices: Array) -> Array:
    """Return matrices with the lower Cholesky factor in the lower triangle."""
    out = matrices.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        for column in range(out.shape[1]):
            before = out[:, column:, :column]
            out[:, column:, column] -= np.einsum("vij,vj->vi", before, before[:, 0])
            out[:, column, column] = np.sqrt(out[:, column, column])
            out[:, column + 1 :, column] /= out[:, column, column, None]
    return out


def _substitute(matrices: Array, right: Array, *, lower: bool) -> Array:
    """Solve triangular systems [vertices, n, n] for right sides [..., n, k], row by row."""
    size = matrices.shape[1]
    out = np.zeros((len(matrices), size, right.shape[-1]), matrices.dtype)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for row in range(size) if lower else range(size - 1, -1, -1):
            solved = slice(0, row) if lower else slice(row + 1, size)
            product = np.einsum("vj,vjk->vk", matrices[:, row, solved], out[:, solved])
            out[:, row] = (right[..., row, :] - product) / matrices[:, row, row, None]
    return out


def _third(group: VertexGroup) -> IntArray:
    """Count a multiplication and an addition for each step of three loops over a triangle."""
    size = np.sqrt(group.fields["in"].counts()).astype(np.int64)
    return (size + 1) * size * (size - 1) // 3


def _square(group: VertexGroup) -> IntArray:
    size = group.fields["x"].counts()
    return size * (size - 1) // 2 + size


TYPES = VertexTypes(
    (
        worker("poplin::Cholesky<type,lower>", "in", cholesky_cycles, POPLIN_CYCLES, (12, 300)),
        supervisor(
            "poplin::TriangularInverseWithTranspose<type>",
            "in out",
            inverse_cycles,
            POPLIN_CYCLES,
            (24, 260),
        ),
        worker(
            "poplin::TriangularSolve<type,lower>", "a b x", solve_cycles, POPLIN_CYCLES, (20, 200)
        ),
        supervisor(
            "poplin::TriangularSolveMultiWorker<type,lower>",
            "a b x",
            solve_by_all_cycles,
            POPLIN_CYCLES,
            (28, 400),
        ),
    )
)
