"""GridSample: elements of images at coordinates that are computed, by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, INT, UNSIGNED_INT, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.representation.ir import Node
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2

CUBIC = -0.75  # the coefficient of the cubic convolution (ONNX, GridSample)
MODES = {"bilinear": "linear", "bicubic": "cubic"}  # as versions before 20 call them


class Tap(NamedTuple):
    """One of the elements along an axis that a sample is made of: its place and its weight.

    `slope` is by how much the weight grows with the coordinate; only in training.
    """

    place: Tensor
    weight: Tensor
    slope: Tensor | None = None


def sampled(call: Call) -> Tensor:
    """Return for each point of the grid the interpolation of the elements around it."""
    batch, channels, *field = call.info().dims
    *points, rank = call.info(1).dims[1:]
    count = element_count(tuple(points))
    grid = call.cast(call[1], FLOAT).reshape((batch * count, rank))
    taps = [_taps(call, grid[:, rank - 1 - axis], size) for axis, size in enumerate(field)]
    places, weights, slopes = _corners(call, taps, field, batch, count)
    call.saved = (places, weights, slopes)
    rows = call[0].reshape((batch, channels, element_count(tuple(field)))).dimShuffle([0, 2, 1])
    corners = popops.multiSlice(
        call.graph,
        rows.reshape((batch * element_count(tuple(field)), channels)),
        places.flatten().expand([1]), [0], [1], call.prog, debugContext=call.name,
    )  # fmt: skip
    parts = call.cast(corners, FLOAT).reshape((*places.shape, channels))
    weighed = call.map(_1 * _2, parts, broadcast(weights.expand([2]), parts.shape))
    summed = reduced(call, weighed, [0], Operation.ADD)
    out = summed.reshape((batch, count, channels)).dimShuffle([0, 2, 1])
    return call.cast(out.reshape(call.outputs[0].dims), call[0].dtype)


def _taps(call: Call, coordinates: Tensor, size: int) -> list[Tap]:
    """Return what samples at coordinates from -1 to 1 read along an axis."""
    aligned = bool(call.attribute("align_corners", 0))
    mode = str(call.attribute("mode", "linear"))
    mode, padding = MODES.get(mode, mode), str(call.attribute("padding_mode", "zeros"))
    scaled = (_1 + 1) * ((size - 1) / 2) if aligned else ((_1 + 1) * float(size) - 1) * 0.5
    if mode != "cubic":
        scaled = _inside(scaled, padding, size, aligned=aligned)
    at = call.map(scaled, coordinates)
    if mode == "nearest":
        one = call.map(_1 * 0.0 + 1.0, at)
        flat = call.map(_1 * 0.0, at) if call.training else None
        nearest = Tap(call.map(expr.NearbyInt(_1), at), one, flat)
        return [_kept(call, nearest, padding, size, aligned=aligned)]
    first = call.map(expr.Floor(_1), at)
    fraction = call.map(_1 - _2, at, first)
    weights = _cubic() if mode == "cubic" else [1 - _1, _1]
    begin = -1 if mode == "cubic" else 0
    slopes: Sequence[Tensor | None] = [None] * len(weights)
    if call.training:
        scale = (size - 1 if aligned else size) / 2
        grown = [call.map(slope_value * scale, fraction) for slope_value in _slopes(mode)]
        if mode != "cubic" and padding == "border":
            within = expr.And(_1 > 0.0, _1 < float(size - 1))
            grown = [
                call.map(expr.Select(_2, _2 * 0.0, within), at, slope_value)
                for slope_value in grown
            ]
        slopes = grown
    return [
        _kept(call, Tap(call.map(_1 + float(begin + number), first), call.map(weight, fraction),
                        slope), padding, size, aligned=aligned)
        for number, (weight, slope) in enumerate(zip(weights, slopes, strict=True))
    ]  # fmt: skip


def lacks_gradient(node: Node) -> str:
    """Return what of a GridSample has no gradient, to a grid that is computed."""
    linear = MODES.get(node.attributes.get("mode", "linear"), "linear") == "linear"
    reflected = node.attributes.get("padding_mode") == "reflection"
    return "padding_mode 'reflection' has none to its grid" if linear and reflected else ""


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
    """Return the weights of the four elements near a coordinate, by its distance to the second."""
    a = CUBIC

    def near(x: Expr) -> Expr:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Expr) -> Expr:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(_1 + 1), near(_1), near(1 - _1), far(2 - _1)]


def _slopes(mode: str) -> list[Expr]:
    """Return by how much each weight grows with the distance of a sample to its first element."""
    if mode != "cubic":
        return [_1 * 0.0 - 1.0, _1 * 0.0 + 1.0]
    a = CUBIC

    def near(x: Expr) -> Expr:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x: Expr) -> Expr:
        return (3 * a * x - 10 * a) * x + 8 * a

    return [far(_1 + 1), near(_1), near(1 - _1) * -1.0, far(2 - _1) * -1.0]


def _kept(call: Call, tap: Tap, padding: str, size: int, *, aligned: bool) -> Tap:
    """Return an element's place within the axis; one that is not there has no weight."""
    place, weight, slope = tap
    if padding == "zeros":
        in_bounds = expr.And(_1 >= 0.0, _1 <= float(size - 1))
        weight = call.map(expr.Select(_2, _2 * 0.0, in_bounds), place, weight)
        if slope is not None:
            slope = call.map(expr.Select(_2, _2 * 0.0, in_bounds), place, slope)
    moved = _inside(_1, padding, size, aligned=aligned)
    clamped = expr.Max(expr.Min(moved, float(size - 1)), 0.0)
    return Tap(call.cast(call.map(clamped, place), INT), weight, slope)


def _corners(
    call: Call, taps: Sequence[Sequence[Tap]], field: Sequence[int], batch: int, count: int
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return place and weight of all elements that a sample is made of [elements, samples].

    In training also, for each axis, by how much the weights grow along it.
    """
    base = np.repeat(np.arange(batch) * element_count(tuple(field)), count).astype(np.int32)
    first = call.constant(base, INT, "images")
    places, weights = [], []
    slopes: list[list[Tensor]] = [[] for _ in field]
    for corner in product(*taps):
        place = first
        for axis, tap in enumerate(corner):
            stride = element_count(tuple(field[axis + 1 :]))
            place = call.map(_1 + _2 * stride, place, tap.place)
        places.append(call.cast(place, UNSIGNED_INT).expand([0]))
        weights.append(_product(call, [tap.weight for tap in corner]))
        for axis, tap in enumerate(corner):
            if tap.slope is not None:
                other_weights = [one.weight for n, one in enumerate(corner) if n != axis]
                slopes[axis].append(_product(call, [tap.slope, *other_weights]))
    grown = [concat(parts, 0) for parts in slopes if parts]
    return concat(places, 0), concat(weights, 0), grown


def _product(call: Call, parts: Sequence[Tensor]) -> Tensor:
    product = parts[0]
    for part in parts[1:]:
        product = call.map(_1 * _2, product, part)
    return product.expand([0])
