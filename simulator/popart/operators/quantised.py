"""Quantised numbers: whole ones that stand for floats by a scale and a zero point."""

from __future__ import annotations

import numpy as np

from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, INT
from simulator.popart.operators.call import Call, broadcast
from simulator.poplibs.popops.expr import Max, Min, NearbyInt, _1, _2, _3


def quantised(call: Call) -> Tensor:
    """Give round(x / scale) + zero point, kept within the limits of the type."""
    wanted = call.outputs[0]
    limits = np.iinfo(wanted.host)
    moved = NearbyInt(_1 / _2) + _3
    kept = Max(Min(moved, float(limits.max)), float(limits.min))
    made = call.map(kept, call.cast(call[0], FLOAT), *_scale_and_zero(call))
    return call.cast(call.cast(made, INT), wanted.device)


def dequantised(call: Call) -> Tensor:
    """Give (x - zero point) scale."""
    wide = call.cast(call.cast(call[0], INT), FLOAT)
    made = call.map((_1 - _3) * _2, wide, *_scale_and_zero(call))
    return call.cast(made, call.outputs[0].device)


def _scale_and_zero(call: Call) -> tuple[Tensor, Tensor]:
    """Give both as floats in the shape of the input: one, one a row of an axis, or one a block."""
    shape = call.info().dims
    zero = call[2] if call.has(2) else call.constant(0, INT, "zero")
    scale, zero = call.cast(call[1], FLOAT), call.cast(call.cast(zero, INT), FLOAT)
    return _wide(call, scale, shape), _wide(call, zero, shape)


def _wide(call: Call, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tensor.numElements() == 1:
        return broadcast(tensor.flatten(), shape) if shape else tensor.reshape([])
    axis, size = call.axis(1), int(call.attribute("block_size", 0))
    if size:
        return tensor.upsample(size, axis).slice(0, shape[axis], axis)
    rows = [count if place == axis else 1 for place, count in enumerate(shape)]
    return broadcast(tensor.reshape(rows), shape)
