"""Operators that order elements, by the nodes of a TopK."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from simulator.popart.importing.composites.body import Body, Unsupported
from simulator.popart.operators.elements.reductions import check_axes

INT32 = onnx.TensorProto.INT32


def _ordered(body: Body, source: str, count: int, *, largest: bool) -> list[str]:
    """Add the extremes of each row, the first of equal ones first, and their places."""
    extremes = body.several("TopK", source, [count], outputs=2, axis=-1, largest=int(largest))
    return [extremes[0], body("Cast", extremes[1], to=INT32)]


def sorted_elements(body: Body) -> None:
    """Sort along an axis; return the elements and where they were (Sort)."""
    dims = body.dims()
    axis = int(body.attribute("axis", -1))
    if not -len(dims) <= axis < len(dims):
        raise Unsupported(f"axis {axis} of {body.info()}")
    order = [n for n in range(len(dims)) if n != axis % len(dims)] + [axis % len(dims)]
    rows = body("Transpose", "x0", perm=order)
    down = bool(body.attribute("descending", 0))
    back = np.argsort(order).tolist()
    parts = _ordered(body, rows, dims[axis], largest=down)
    for out, part in zip(("y", "y1"), parts, strict=True):
        body("Transpose", part, perm=back, out=out)


def median(body: Body) -> None:
    """Return the lower median over axes, and its place among their elements (ReduceMedian).

    PopART (popx/op/reducemedianx.cpp) takes as many of the smallest, too, and keeps the last.
    """
    dims, rank = body.dims(), len(body.dims())
    axes = body.attribute("axes")
    check_axes(axes or (), rank)
    reduced_axes = sorted({axis % rank for axis in (range(rank) if axes is None else axes)})
    if not reduced_axes:
        body("Identity", "x0", out="y")
        body("Identity", np.zeros(dims, np.int32), out="y1")
        return
    kept_axes = [axis for axis in range(rank) if axis not in reduced_axes]
    count = prod(dims[axis] for axis in reduced_axes)
    rows = body("Transpose", "x0", perm=[*kept_axes, *reduced_axes])
    rows = body("Reshape", rows, [prod(dims[axis] for axis in kept_axes), count])
    middle = (count - 1) // 2
    full_shape = [1 if axis in reduced_axes else dims[axis] for axis in range(rank)]
    shape = full_shape if body.attribute("keepdims", 1) else [dims[axis] for axis in kept_axes]
    for out, part in zip(("y", "y1"), _ordered(body, rows, middle + 1, largest=False), strict=True):
        last = body("Slice", part, [middle], [middle + 1], [1])
        body("Reshape", last, np.array(shape, np.int64), out=out)
