"""Vertices of QR factors by Householder reflections: a column, its reflection, its application.

The columns of A and Q lie as rows. A step has one column; what is above its diagonal element, as
many elements as `padding` says, counts as zero. Values: PopLibs lib/poplin/codelets/
QRFactorization.cpp. Cycles: lib/poplin/poplinCycleEstimators.cpp, which takes 16 as the padding.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.vertex_type import POPLIN_CYCLES, VertexTypes, supervisor
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Operands, VertexGroup

WORKERS, PADDING = 6, 16  # of the formulas; the padding is their mean
DIVISION, ROOT = 1, 1  # operations, as PopLibs counts them


def _skipped(elements: IntArray, offset: IntArray) -> IntArray:
    skipped: IntArray = np.clip(PADDING - offset, 0, elements)
    return skipped


def _of_a_worker(elements: IntArray, offset: IntArray) -> tuple[IntArray, IntArray]:
    """Return how many elements a worker skips as padding, and how many it computes."""
    skipped = _skipped(elements, offset)
    return ceil_div(skipped, WORKERS), ceil_div(elements - skipped, WORKERS)


def copy_cycles(rows: IntArray) -> IntArray:
    """6 * (32 + 7 a row of a worker), of the tile."""
    return WORKERS * (16 + 7 * ceil_div(rows, WORKERS) + 16)


def square_cycles(elements: IntArray, offset: IntArray) -> IntArray:
    """6 * (41 + 5 an element of a worker, 2 where it is padding), of the tile."""
    skipped, computed = _of_a_worker(elements, offset)
    return WORKERS * (34 + 2 * skipped + 6 + 5 * computed + 1)


def reflect_cycles(elements: IntArray, offset: IntArray) -> IntArray:
    """6 * (47 + 5 an element of a worker, 4 where it is padding), of the tile."""
    skipped, computed = _of_a_worker(elements, offset)
    return WORKERS * (37 + 4 * skipped + 9 + 5 * computed + 1)


def update_cycles(rows: IntArray, elements: IntArray) -> IntArray:
    """80 + 6 * (76 + 7 an element of a worker) for each 6 rows, of the tile."""
    computed = ceil_div(np.maximum(elements - PADDING, 0), WORKERS)
    products = (41 + 3 * computed + 3) + (29 + 4 * computed + 3)
    return 72 + WORKERS * products * ceil_div(rows, WORKERS) + 8


def _places(counts: IntArray, offset: IntArray) -> IntArray:
    """Return the place in the column of each element of the vertices' parts."""
    first = np.repeat(offsets_of(counts)[:-1] - offset, counts)
    places: IntArray = np.arange(int(counts.sum())) - first
    return places


def _copy(operands: Operands) -> dict[str, Array]:
    counts, matrix = operands.counts["copiedRow"], operands.arrays["A"]
    padding = np.repeat(operands.arrays["padding"], counts).astype(np.int64)
    column = matrix.reshape(len(padding), -1)[np.arange(len(padding)), padding]
    places = _places(counts, operands.group.parameters["offset"])
    diagonal = np.zeros_like(column)
    on_diagonal = np.flatnonzero(places == padding)
    first = np.repeat(offsets_of(counts)[:-1], counts)[on_diagonal]
    diagonal[first] = column[on_diagonal]
    return {"copiedRow": column, "diagonalValueVector": diagonal}


def _square(operands: Operands) -> dict[str, Array]:
    values, counts = operands.arrays["rowToProcess"], operands.counts["rowToProcess"]
    padding = np.repeat(operands.arrays["padding"], counts)
    places = _places(counts, operands.group.parameters["offset"])
    return {"rowToProcess": np.where(places < padding, np.float32(0), values * values)}


def _reflect(operands: Operands) -> dict[str, Array]:
    values, counts = operands.arrays["v"], operands.counts["v"]
    padding, square, diagonal = (
        np.repeat(operands.arrays[name], counts)
        for name in ("padding", "dotProduct", "diagonalValue")
    )
    places = _places(counts, operands.group.parameters["offset"])
    with np.errstate(invalid="ignore", divide="ignore"):
        norm, size = np.sqrt(square), np.abs(diagonal)
        first = diagonal / size * norm + diagonal
        length = -np.sqrt(2 * square + 2 * norm * size)
        out = np.where(places == padding, first, values) / length
    return {"v": np.where(places < padding, np.float32(0), out)}


def _update(operands: Operands) -> dict[str, Array]:
    counts, size = operands.counts["AQRows"], int(operands.counts["v"][0])
    rows = operands.arrays["AQRows"].reshape(-1, size)
    vector = np.repeat(operands.arrays["v"].reshape(-1, size), counts // size, axis=0)
    products = np.einsum("rl,rl->r", rows, vector)
    return {"AQRows": (rows - 2 * products[:, None] * vector).ravel()}


def _squares(group: VertexGroup) -> IntArray:
    elements = group.fields["rowToProcess"].counts()
    return elements - _skipped(elements, group.parameters["offset"])


def _quotients(group: VertexGroup) -> IntArray:
    elements = group.fields["v"].counts()
    skipped = _skipped(elements, group.parameters["offset"])
    return (elements - skipped) * DIVISION + 3 * ROOT


def _products(group: VertexGroup) -> IntArray:
    computed = np.maximum(group.fields["v"].counts() - PADDING, 0)
    return computed * 2 * (DIVISION + 1)


_NAMES = (
    ("RowCopy", "offset copiedRow diagonalValueVector A padding", copy_cycles, (36, 200)),
    ("PartialSquareElements", "rowToProcess offset padding", square_cycles, (20, 160)),
    ("Householder", "v dotProduct offset padding diagonalValue", reflect_cycles, (28, 260)),
    ("Update", "v AQRows padding", update_cycles, (24, 500)),
)
TYPES = VertexTypes(
    tuple(
        supervisor(f"poplin::experimental::{name}", fields, cycles, POPLIN_CYCLES, sizes)
        for name, fields, cycles, sizes in _NAMES
    )
)
COPY = TYPES.codelet("poplin::experimental::RowCopy", _copy, lambda g: 0 * g.tile)
SQUARE = TYPES.codelet("poplin::experimental::PartialSquareElements", _square, _squares)
REFLECT = TYPES.codelet("poplin::experimental::Householder", _reflect, _quotients)
UPDATE = TYPES.codelet("poplin::experimental::Update", _update, _products)
