"""Determinants by elimination."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from simulator.popart.importing.composites.body import Body, Unsupported

MAX_ROWS = 64  # each is some twenty nodes


def determinant(body: Body) -> None:
    """Return the determinant of each matrix (Det), by elimination with the largest pivots.

    A step takes the row out whose first element is the largest, and the first column from the
    rest: the determinant is that element times what is left, with the sign of the row's place.
    """
    dims = body.dims()
    rows, batch = dims[-1], prod(dims[:-2])
    if rows > MAX_ROWS:
        raise Unsupported(f"matrices of {rows} rows; at most {MAX_ROWS} are computed")
    minors = body("Reshape", "x0", np.array([batch, rows, rows], np.int64))
    product = body.constant(np.ones(batch, body.info().host))
    for size in range(rows, 0, -1):
        minors, factor = _eliminated(body, minors, size)
        product = body("Mul", product, factor)
    body("Reshape", product, np.array(dims[:-2], np.int64), out="y")


def _eliminated(body: Body, matrices: str, size: int) -> tuple[str, str]:
    """Return the matrices without a row and a column, and the signed pivots."""
    first = body("Squeeze", body("Slice", matrices, [0], [1], [2]), [2])
    place = body("ArgMax", body("Abs", first), axis=1, keepdims=1)
    pivot = body("GatherElements", first, place, axis=1)
    odd = body("Cast", body("Mod", place, [2]), to=_kind(body))
    sign = body("Sub", body.float(1), body("Mul", odd, body.float(2)))
    factor = body("Squeeze", body("Mul", sign, pivot), [1])
    if size == 1:
        return matrices, factor
    steps = np.arange(size - 1)[None]
    behind = body("GreaterOrEqual", steps, place)
    other_rows = body("Add", steps, body("Cast", behind, to=onnx.TensorProto.INT64))
    pivot_row = _rows(body, matrices, place, size, 1)
    remaining_rows = _rows(body, matrices, other_rows, size, size - 1)
    flat = body("Equal", pivot, body.float(0))
    safe = body("Unsqueeze", body("Where", flat, body.float(1), pivot), [2])
    column, tail = (
        body("Slice", remaining_rows, [0], [1], [2]),
        body("Slice", remaining_rows, [1], [size], [2]),
    )
    row = body("Div", body("Slice", pivot_row, [1], [size], [2]), safe)
    return body("Sub", tail, body("Mul", column, row)), factor


def _rows(body: Body, matrices: str, places: str, size: int, count: int) -> str:
    """Take rows of each matrix."""
    shape = body.constant(np.array([1, count, size], np.int64))
    wide = body("Expand", body("Unsqueeze", places, [2]), shape)
    return body("GatherElements", matrices, wide, axis=1)


def _kind(body: Body) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(body.info().host))
