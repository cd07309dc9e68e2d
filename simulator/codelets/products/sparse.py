"""Vertices that multiply a part of a sparse matrix, whose non-zeros come in a bucket.

A bucket has the number of its blocks, their rows and their columns within the part (`metaInfo`),
and the values of the blocks (`r`); what lies behind the last block is not read. Cycles: PopLibs
lib/popsparse/PerformanceEstimation.hpp, by which it plans; its vertices have no estimate. As there,
non-zeros count as planned: evenly spread over the rows of a part.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import VertexTypes, supervisor
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

ESTIMATES = "PopLibs lib/popsparse/PerformanceEstimation.hpp"
CHUNK = 1 << 22  # products made at once, so that a large matrix takes little memory of the host
BLOCKS = (1, 4, 8, 16)  # sizes of blocks that PopLibs has vertices for


def _inner(y: IntArray, z: IntArray, dtype: Type) -> IntArray:
    """Count the cycles of a worker for the y non-zeros of a row and z columns."""
    if dtype == FLOAT:
        last = (z % 4 >= 2) * (8 + z // 2 * 2 * y) + (z % 2) * (8 + 2 * y)
        many = (z >= 4) * (12 + z // 4 * 3 * y) + last + np.where(z % 4 > 0, 3, 1)
        cycles: IntArray = np.where(z == 4, 3 * y, np.where(z == 2, 2 * y, many))
        return cycles
    last = (z % 8 >= 4) * (13 + 2 * y) + (z % 4 > 0) * (11 + 2 * y * (z % 4))
    many = (z >= 8) * (16 + z // 8 * 3 * y) + last
    return np.asarray(np.where(z == 8, 3 * y, np.where(z == 4, 2 * y, many)), dtype=np.int64)


def elements(
    rows: IntArray, row_nonzeros: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """123 + W * (30 + (13 + the non-zeros of a row * 3 / 4 a column) * rows a worker); 528-618.

    Of the tile; halves 33 and 12, 3 / 8 a column. For 2, 4 and 8 columns there are shorter loops.
    """
    share, y = ceil_div(rows, target.workers), row_nonzeros
    if dtype == FLOAT:
        start = np.where(columns == 4, 25, np.where(columns == 2, 27, 30))
        row = np.where(columns == 2, 11, 13)
    else:
        start = np.where(columns == 8, 28, np.where(columns == 4, 30, 33))
        row = np.where(columns == 8, 15, np.where(columns == 4, 11, 12))
    cycles: IntArray = 123 + target.workers * (start + (row + _inner(y, columns, dtype)) * share)
    return cycles


def transposed(
    rows: IntArray, row_nonzeros: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """142 + W * (23 + (32 + (2 + 3 / 2 a column) a non-zero of a worker) * rows); 724-794.

    Of the tile: workers share the non-zeros of each row. Halves 26, 30 and 2 + 5 / 4 a column.
    """
    y = ceil_div(row_nonzeros, target.workers)
    if dtype == FLOAT:
        inner = 8 + (columns >= 2) * (2 + columns // 2 * 3) * y + (columns % 2) * 4 * y
        return 142 + target.workers * (23 + (24 + inner) * rows)
    last = (columns % 4 > 0) * (5 + 3 * (columns % 4)) * y
    many = 8 + (columns >= 4) * (2 + columns // 4 * 5) * y + last
    inner = np.where(columns == 8, 10 * y, np.where(columns == 4, 7 * y, many))
    start = np.where((columns == 8) | (columns == 4), 20, 26)
    row = np.where(columns == 8, 18, np.where(columns == 4, 21, 22))
    cycles: IntArray = 142 + target.workers * (start + (row + inner) * rows)
    return cycles


def gradient(
    rows: IntArray, row_nonzeros: IntArray, columns: IntArray, dtype: Type, target: Target
) -> IntArray:
    """101 + W * (34 + (9 + (9 + 1 / 2 a column) a non-zero of a row) * rows a worker); 88-180.

    Of the tile; halves 35, 8 and 11 + 1 / 4 a column. For 2, 4 and 8 columns there are shorter
    loops.
    """
    share, y = ceil_div(rows, target.workers), row_nonzeros
    if dtype == FLOAT:
        block = np.where(columns == 4, 5, np.where(columns == 2, 4, 9 + columns // 2 + columns % 2))
        start = np.where(columns == 4, 30, np.where(columns == 2, 32, 34))
        row = np.where(columns == 2, 7, 9)
    else:
        last = (columns % 4 >= 2) * 3 + (columns % 2) * 4
        block = np.where(columns == 8, 5, np.where(columns == 4, 4, 11 + columns // 4 + last))
        start = np.where(columns == 8, 30, np.where(columns == 4, 32, 35))
        row = np.where(columns == 8, 11, np.where(columns == 4, 10, 8))
    cycles: IntArray = 101 + target.workers * (start + (row + block * y) * share)
    return cycles


def blocks(
    rows: IntArray, nonzeros: IntArray, columns: IntArray, size: int, dtype: Type, target: Target
) -> IntArray:
    """144 + (15 + size^2 / 2) a block + W * (26 + (19 + 4 a column of a worker) a block); 187-322.

    Of the tile, blocks of 4 of floats; 23 and 23 + 8 of 8 x 8, 23 and 24 + 4 of 16 x 16. Halves
    load 4 values a cycle, and take half as long a column of 4 x 4 and 8 x 8. `nonzeros` are blocks.
    """
    real = dtype == FLOAT
    share = ceil_div(columns, target.workers)
    loads = 2 if size == 16 and target.getNumConvUnits(dtype, FLOAT) == 8 else 1
    start, inner, step = {
        4: (26, 14 if real else 19, 4 if real else 2),
        8: (23 if real else 20, 23, 8 if real else 4),
        16: (23, 24, 4),
    }[size]
    loading = nonzeros * (size * size // (2 if real else 4) + 3 + 12 * loads) + 2
    loop = start + nonzeros * loads * (inner + step * share)
    return 40 + 102 + loading + target.workers * loop


def rows_taken(
    indices: IntArray, nonzeros: IntArray, columns: IntArray, target: Target
) -> IntArray:
    """40 + W * (24 + 8 an index + 5 a non-zero, of a worker): our estimate; by columns in order."""
    share = ceil_div(indices, target.workers)
    writes = ceil_div(nonzeros, target.workers)
    return 40 + target.workers * (24 + 8 * share + 5 * writes) + 0 * columns


_OURS = "our estimate, from the C++ codelets of PopLibs; lib/popsparse has none"
TYPES = VertexTypes(
    tuple(
        supervisor(f"popsparse::{name}", fields, cycles, source, sizes, exact=exact)
        for name, fields, cycles, source, sizes, exact in (
            ("SparseDenseMatMulElementWise<type,partials>", "q r s metaInfo", elements,
             ESTIMATES, (28, 320), True),
            ("SparseDenseMatMulElementWiseTranspose<type,partials>", "q r s metaInfo", transposed,
             ESTIMATES, (28, 340), True),
            ("SparseDenseMatMulGradWElementWise<type,partials>", "qGrad rGrad s metaInfo", gradient,
             ESTIMATES, (28, 300), True),
            ("SparseDenseMatMulBlock<type,partials,rows,columns>", "q r s metaInfo", blocks,
             ESTIMATES, (32, 420), True),
            ("SparseDenseMatMulBlockGradA<type,partials,rows,columns>", "q r s metaInfo", blocks,
             f"our estimate, from {ESTIMATES}", (32, 420), False),
            ("SparseDenseMatMulBlockGradW<type,partials,rows,columns>", "qGrad rGrad s metaInfo",
             blocks, f"our estimate, from {ESTIMATES}", (32, 420), False),
            ("SparseDenseMultiSliceElementWise<type>", "offsets baseNZ subT metaInfo", rows_taken,
             _OURS, (32, 240), False),
            ("SparseDenseMultiUpdateAddElementWise<type>", "offsets baseNZ subT scale metaInfo",
             rows_taken, _OURS, (36, 260), False),
            ("SparseDenseMultiSliceBlock<type>", "offsets baseNZ subT metaInfo", rows_taken,
             _OURS, (36, 280), False),
            ("SparseDenseMultiUpdateAddBlock<type>", "offsets baseNZ subT scale metaInfo",
             rows_taken, _OURS, (40, 300), False),
        )
    )
)  # fmt: skip


def bucket(operands: Operands, values: str, block: int) -> tuple[IntArray, ...]:
    """Return vertex, row, column and place in `values` of each block that buckets hold."""
    count = len(operands.group)
    meta = operands.arrays["metaInfo"].astype(np.int64).reshape(count, -1)
    room = (meta.shape[1] - 1) // 2
    vertex, slot = np.nonzero(np.arange(room) < meta[:, :1])
    places = vertex * room + slot
    return vertex, meta[vertex, 1 + slot], meta[vertex, 1 + room + slot], places


def _values(operands: Operands, name: str, block: int) -> Array:
    """Return the values of all slots [vertex and slot, row, column]."""
    values: Array = operands.arrays[name].reshape(-1, block, block).astype(np.float64)
    return values


@cache
def product_codelet(
    dtype: Type, partials: Type, block: int, rows: int, columns: int, *, transpose: bool
) -> Codelet:
    """Return the supervisor of q = R s, or R^T s, for a part R of `rows` by `columns` blocks."""
    kind = {(False, False): "ElementWise", (False, True): "ElementWiseTranspose",
            (True, False): "Block", (True, True): "BlockGradA"}[block > 1, transpose]  # fmt: skip
    out_rows, in_rows = (columns, rows) if transpose else (rows, columns)

    def compute(operands: Operands) -> dict[str, Array]:
        count = len(operands.group)
        vertex, row, column, places = bucket(operands, "r", block)
        nz = _values(operands, "r", block)[places]
        if transpose:
            nz, row, column = nz.swapaxes(1, 2), column, row
        dense = operands.arrays["s"].reshape(count, in_rows, block, -1).astype(np.float64)
        out = np.zeros((count, out_rows, block, dense.shape[3]))
        step = max(CHUNK // max(block * dense.shape[3], 1), 1)
        for begin in range(0, len(places), step):
            part = slice(begin, begin + step)
            products = nz[part] @ dense[vertex[part], column[part]]
            np.add.at(out, (vertex[part], row[part]), products)
        return {"q": out.astype(partials.numpy).reshape(-1)}

    tail = f",{block},{block}" if block > 1 else ""
    return TYPES.codelet(f"popsparse::SparseDenseMatMul{kind}<{dtype},{partials}{tail}>", compute)


@cache
def gradient_codelet(dtype: Type, partials: Type, block: int, rows: int, columns: int) -> Codelet:
    """Return the supervisor of the gradient of the non-zeros: qGrad s^T, where R is not zero."""

    def compute(operands: Operands) -> dict[str, Array]:
        count = len(operands.group)
        vertex, row, column, places = bucket(operands, "rGrad", block)
        up = operands.arrays["qGrad"].reshape(count, rows, block, -1).astype(np.float64)
        dense = operands.arrays["s"].reshape(count, columns, block, -1).astype(np.float64)
        out = np.zeros((int(operands.counts["rGrad"].sum()) // block**2, block, block))
        step = max(CHUNK // max(block * dense.shape[3], 1), 1)
        for begin in range(0, len(places), step):
            part = slice(begin, begin + step)
            right = dense[vertex[part], column[part]].swapaxes(1, 2)
            out[places[part]] = up[vertex[part], row[part]] @ right
        return {"rGrad": out.astype(partials.numpy).reshape(-1)}

    kind, tail = ("Block", f",{block},{block}") if block > 1 else ("", "")
    name = f"SparseDenseMatMul{kind}GradW{'' if block > 1 else 'ElementWise'}"
    return TYPES.codelet(f"popsparse::{name}<{dtype},{partials}{tail}>", compute)


@cache
def slice_codelet(dtype: Type, block: int, columns: int) -> Codelet:
    """Return the supervisor that writes the rows at `offsets` that a part has; others are zero.

    Parameters by vertex: the first row of its part (`first`), and how many it has (`rows`).
    """

    def compute(operands: Operands) -> dict[str, Array]:
        count = len(operands.group)
        vertex, row, column, places = bucket(operands, "baseNZ", block)
        table = _values(operands, "baseNZ", block)[places]
        offsets, hit = _hits(operands)
        # Each offset takes the blocks of its block row: sorted, they stand together.
        keys = vertex * (row.max(initial=0) + 1) + row
        order = np.argsort(keys, kind="stable")
        width = row.max(initial=0) + 1
        wanted = np.where(hit, offsets // block, width)
        wanted_key = np.arange(count)[:, None] * width + np.minimum(wanted, width - 1)
        low, high = (np.searchsorted(keys[order], wanted_key, side) for side in ("left", "right"))
        sizes = np.where(hit & (wanted < width), high - low, 0)
        out = np.zeros((count, offsets.shape[1], columns, block))
        owner, number = (np.repeat(axis.reshape(-1), sizes.reshape(-1))
                         for axis in np.indices(sizes.shape))  # fmt: skip
        within = np.arange(len(owner)) - np.repeat(
            np.cumsum(sizes.reshape(-1)) - sizes.reshape(-1), sizes.reshape(-1)
        )
        entry = order[low[owner, number] + within]
        out[owner, number, column[entry]] = table[entry, offsets[owner, number] % block]
        return {"subT": out.astype(dtype.numpy).reshape(-1)}

    kind = "Block" if block > 1 else "ElementWise"
    return TYPES.codelet(f"popsparse::SparseDenseMultiSlice{kind}<{dtype}>", compute)


def _hits(operands: Operands) -> tuple[IntArray, Array]:
    """Return the offsets of each vertex from its first row, and which it has."""
    count, parameters = len(operands.group), operands.group.parameters
    offsets = operands.arrays["offsets"].astype(np.int64).reshape(count, -1)
    offsets = offsets - parameters["first"][:, None]
    hit = (offsets >= 0) & (offsets < parameters["rows"][:, None])
    return np.where(hit, offsets, 0), hit


@cache
def update_codelet(dtype: Type, block: int, columns: int) -> Codelet:
    """Return the supervisor that adds `scale` times slices to the non-zeros of rows that it has."""

    def compute(operands: Operands) -> dict[str, Array]:
        count = len(operands.group)
        vertex, row, column, places = bucket(operands, "baseNZ", block)
        values = operands.arrays["baseNZ"].reshape(-1, block, block)
        offsets, hit = _hits(operands)
        slices = operands.arrays["subT"].reshape(count, offsets.shape[1], columns, block)
        rows = int(operands.group.parameters["rows"].max())
        sums = np.zeros((count, rows, columns, block))
        owner, number = np.nonzero(hit)
        np.add.at(sums, (owner, offsets[owner, number]), slices[owner, number].astype(np.float64))
        factors = operands.arrays["scale"].astype(np.float64)[vertex]
        within = np.minimum(row[:, None] * block + np.arange(block), rows - 1)
        gained = sums[vertex[:, None], within, column[:, None]] * factors[:, None, None]
        values[places] = (values[places] + gained).astype(dtype.numpy)
        return {"baseNZ": values.reshape(-1)}

    kind = "Block" if block > 1 else "ElementWise"
    return TYPES.codelet(f"popsparse::SparseDenseMultiUpdateAdd{kind}<{dtype}>", compute)
