"""GridSample: elements of images at coordinates that are computed, by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import FLOAT, INT, UNSIGNED_INT, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.reductions import reduced
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2

CUBIC = -0.75  # the coefficient of the cubic convolution (ONNX, GridSample)
MODES = {"bilinear": "linear", "bicubic": "cubic"}  # as versions before 20 call them


class Tap(NamedTuple):
    """One of the elements along an axis that a sample is made of: its place and its weight."""

    place: Tensor
    weight: Tensor


def sampled(call: Call) -> Tensor:
    """Give for each point of the grid the interpolation of the elements around it."""
    batch, channels, *field = call.info().dims
    *points, rank = call.info(1).dims[1:]
    count = element_count(tuple(points))
    grid = call.cast(call[1], FLOAT).reshape((batch * count, rank))
    taps = [_taps(call, grid[:, rank - 1 - axis], size) for axis, size in enumerate(field)]
    places, weights = _corners(call, taps, field, batch, count)
    rows = call[0].reshape((batch, channels, element_count(tuple(field)))).dimShuffle([0, 2, 1])
    taken = popops.multiSlice(
        call.graph,
        rows.reshape((batch * element_count(tuple(field)), channels)),
        places.flatten().expand([1]), [0], [1], call.prog, debugContext=call.name,
    )  # fmt: skip
    parts = call.cast(taken, FLOAT).reshape((*places.shape, channels))
    weighed = call.map(_1 * _2, parts, broadcast(weights.expand([2]), parts.shape))
    made = reduced(call, weighed, [0], Operation.ADD)
    out = made.reshape((batch, count, channels)).dimShuffle([0, 2, 1])
    return call.cast(out.reshape(call.outputs[0].dims), call[0].dtype)


def _taps(call: Call, given: Tensor, size: int) -> list[Tap]:
    """Give what samples at coordinates from -1 to 1 read along an axis."""
    aligned = bool(call.attribute("align_corners", 0))
    mode = str(call.attribute("mode", "linear"))
    mode, padding = MODES.get(mode, mode), str(call.attribute("padding_mode", "zeros"))
    scaled = (_1 + 1) * ((size - 1) / 2) if aligned else ((_1 + 1) * float(size) - 1) * 0.5
    if mode != "cubic":
        scaled = _inside(scaled, padding, size, aligned=aligned)
    at = call.map(scaled, given)
    if mode == "nearest":
        return [_tap(call, call.map(expr.NearbyInt(_1), at), None, padding, size, aligned)]
    first = call.map(expr.Floor(_1), at)
    rest = call.map(_1 - _2, at, first)
    weights = _cubic() if mode == "cubic" else [1 - _1, _1]
    begin = -1 if mode == "cubic" else 0
    return [
        _tap(call, call.map(_1 + float(begin + number), first), call.map(weight, rest),
             padding, size, aligned)
        for number, weight in enumerate(weights)
    ]  # fmt: skip


def _inside(at: Expr, padding: str, size: int, *, aligned: bool) -> Expr:
    """Move coordinates beyond the axis to its border, or reflect them there."""
    if padding == "border":
        return expr.Max(expr.Min(at, float(size - 1)), 0.0)
    if padding != "reflection":
        return at
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if high == low:
        return at * 0.0
    span = high - low
    period = at - low - expr.Floor((at - low) * (0.5 / span)) * (2 * span)
    return expr.Abs(period - span) * -1.0 + (span + low)


def _cubic() -> list[Expr]:
    """Give the weights of the four elements around a coordinate, by its distance to the second."""
    a = CUBIC

    def near(x: Expr) -> Expr:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Expr) -> Expr:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(_1 + 1), near(_1), near(1 - _1), far(2 - _1)]


def _tap(
    call: Call, place: Tensor, weight: Tensor | None, padding: str, size: int, aligned: bool
) -> Tap:
    """Give an element's place within the axis; one that is not there has no weight."""
    if weight is None:
        weight = call.map(_1 * 0.0 + 1.0, place)
    if padding == "zeros":
        there = expr.And(_1 >= 0.0, _1 <= float(size - 1))
        weight = call.map(expr.Select(_2, _2 * 0.0, there), place, weight)
    moved = _inside(_1, padding, size, aligned=aligned)
    kept = expr.Max(expr.Min(moved, float(size - 1)), 0.0)
    return Tap(call.cast(call.map(kept, place), INT), weight)


def _corners(
    call: Call, taps: Sequence[Sequence[Tap]], field: Sequence[int], batch: int, count: int
) -> tuple[Tensor, Tensor]:
    """Give place and weight of all elements that a sample is made of [elements, samples]."""
    base = np.repeat(np.arange(batch) * element_count(tuple(field)), count).astype(np.int32)
    first = call.constant(base, INT, "images")
    places, weights = [], []
    for corner in product(*taps):
        place, weight = first, corner[0].weight
        for axis, tap in enumerate(corner):
            stride = element_count(tuple(field[axis + 1 :]))
            place = call.map(_1 + _2 * stride, place, tap.place)
            weight = call.map(_1 * _2, weight, tap.weight) if axis else weight
        places.append(call.cast(place, UNSIGNED_INT).expand([0]))
        weights.append(weight.expand([0]))
    return concat(places, 0), concat(weights, 0)
