"""Vertices of LU factors without pivoting: a block that is factorised, and what follows from it.

PopLibs has no formula of theirs. Ours, ESTIMATE, from its assembly and C++ codelets: an element of
a block that is updated takes 10 cycles and one for two products, a product elsewhere 6, a quotient
12; the workers of a tile share the rows (or columns) of a vertex.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import VertexTypes, supervisor
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.machine.target import Target
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Codelet, Operands

ESTIMATE = "our estimate, from PopLibs lib/poplin/codelets/LuFactorization.cpp"
CALL, ELEMENT, PRODUCT, QUOTIENT = 30, 10, 6, 12


def core(depth: IntArray, target: Target) -> IntArray:
    """W * (30 + 2 n^3 + 6 n^2), of the tile: one worker has it all."""
    return target.workers * (CALL + 2 * depth**3 + QUOTIENT // 2 * depth**2)


def row(depth: IntArray, count: IntArray, target: Target) -> IntArray:
    """W * (30 + 3 n (n - 1) a column of a worker), of the tile."""
    products = depth * (depth - 1) // 2 * PRODUCT
    return target.workers * (CALL + ceil_div(count, target.workers) * products)


def column(depth: IntArray, count: IntArray, target: Target) -> IntArray:
    """W * (30 + 3 n (n - 1) + 12 n a row of a worker), of the tile."""
    products = depth * (depth - 1) // 2 * PRODUCT + QUOTIENT * depth
    return target.workers * (CALL + ceil_div(count, target.workers) * products)


def block(depth: IntArray, rows: IntArray, columns: IntArray, target: Target) -> IntArray:
    """W * (30 + 10 and half a cycle a product for each element of a worker's rows), of the tile."""
    element = ELEMENT + ceil_div(depth, 2)
    return target.workers * (CALL + ceil_div(rows, target.workers) * columns * element)


TYPES = VertexTypes(
    tuple(
        supervisor(
            f"poplin::experimental::LUD{name}Vertex", fields, cost, ESTIMATE, (32, 300), exact=False
        )
        for name, fields, cost in (
            ("Core", "sliceLU", core),
            ("Row", "sliceLU sliceLUCore", row),
            ("Col", "sliceLU sliceLUCore", column),
            ("Block", "sliceLU sliceLURow sliceLUCol", block),
        )
    )
)
Update = Callable[..., Array]


def factorised(matrices: Array) -> Array:
    """Return matrices [.., n, n] with U in the upper triangle and L, without its ones, below."""
    lu = matrices.copy()
    for k in range(lu.shape[-1]):
        lu[:, k + 1 :, k] /= lu[:, k, k, None]
        lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, None, k, k + 1 :]
    return lu


def row_factor(right: Array, lu: Array) -> Array:
    """Return X of L X = B."""
    x = right.copy()
    for k in range(lu.shape[-1]):
        x[:, k + 1 :] -= lu[:, k + 1 :, k, None] * x[:, k, None]
    return x


def column_factor(left: Array, lu: Array) -> Array:
    """Return X of X U = B."""
    x = left.copy()
    for k in range(lu.shape[-1]):
        x[:, :, k] /= lu[:, None, k, k]
        x[:, :, k + 1 :] -= x[:, :, k, None] * lu[:, None, k, k + 1 :]
    return x


def updated(block: Array, above: Array, beside: Array) -> Array:
    """Return a block less the product of its columns of L and its rows of U."""
    left: Array = block - beside @ above
    return left


@cache
def codelet(name: str, update: Update, *others: tuple[str, str, str]) -> Codelet:
    """Return a vertex type: `sliceLU` [rows][columns] becomes what `update` makes of it.

    `others` are fields besides it, each with the names of the parameters that are its sizes.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        parameters, arrays = operands.group.parameters, operands.arrays
        fields = [("sliceLU", "rows", "columns"), *others]
        sizes = np.stack([parameters[key] for key in ("rows", "columns", "depth")], 1)
        out = arrays["sliceLU"].copy()
        for shape in np.unique(sizes, axis=0):
            members = np.flatnonzero((sizes == shape).all(axis=1))
            of = dict(zip(("rows", "columns", "depth"), shape.tolist(), strict=True))
            taken, places = [], None
            for field, high, wide in fields:
                begin = offsets_of(operands.counts[field])[:-1][members]
                where = begin[:, None] + np.arange(of[high] * of[wide])
                places = where if places is None else places
                taken.append(arrays[field][where].reshape(-1, of[high], of[wide]))
            out[places] = update(*taken).reshape(len(members), -1)
        return {"sliceLU": out}

    return TYPES.codelet(f"poplin::experimental::{name}", compute)


CORE = codelet("LUDCoreVertex", factorised)
ROW = codelet("LUDRowVertex", row_factor, ("sliceLUCore", "depth", "depth"))
COLUMN = codelet("LUDColVertex", column_factor, ("sliceLUCore", "depth", "depth"))
BLOCK = codelet(
    "LUDBlockVertex",
    updated,
    ("sliceLURow", "depth", "columns"),
    ("sliceLUCol", "rows", "depth"),
)
