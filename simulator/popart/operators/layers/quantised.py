"""Quantised numbers: whole ones that stand for floats by a scale and a zero point."""

from __future__ import annotations

from dataclasses import replace

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, INT
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.elementwise import quarter
from simulator.popart.operators.images import fields
from simulator.popart.operators.layers import products
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs.popops.expr import Max, Min, NearbyInt, _1, _2, _3


def quantised(call: Call) -> Tensor:
    """Return round(x / scale) + zero point, kept within the limits of the type."""
    info = call.outputs[0]
    if info.type == "FLOAT4E2M1":  # its zero point is 0
        real = call.map(_1 / _2, call.cast(call[0], FLOAT), _scale_and_zero(call)[0])
        return quarter(call, real)
    least, most = map(float, info.limits)
    quantise = Max(Min(NearbyInt(_1 / _2) + _3, most), least)
    rounded = call.map(quantise, call.cast(call[0], FLOAT), *_scale_and_zero(call))
    return call.cast(call.cast(rounded, INT), info.device)


def dequantised(call: Call) -> Tensor:
    """Return (x - zero point) scale."""
    wide = _real(call, call[0])
    real = call.map((_1 - _3) * _2, wide, *_scale_and_zero(call))
    return call.cast(real, call.outputs[0].device)


def _scale_and_zero(call: Call) -> tuple[Tensor, Tensor]:
    """Return both as floats in the shape of the input: one, one a row of an axis, one a block."""
    shape = call.info().dims
    zero = call[2] if call.has(2) else call.constant(0, INT, "zero")
    scale, zero = call.cast(call[1], FLOAT), _real(call, zero)
    return _wide(call, scale, shape), _wide(call, zero, shape)


def _real(call: Call, tensor: Tensor) -> Tensor:
    """Return quantised numbers as floats."""
    is_integer = tensor.dtype.numpy.kind in "iu"
    return call.cast(call.cast(tensor, INT) if is_integer else tensor, FLOAT)


def _wide(call: Call, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tensor.numElements() == 1:
        return broadcast(tensor.flatten(), shape) if shape else tensor.reshape([])
    axis, size = call.axis(1), int(call.attribute("block_size", 0))
    if size:
        return tensor.upsample(size, axis).slice(0, shape[axis], axis)
    rows = [count if place == axis else 1 for place, count in enumerate(shape)]
    return broadcast(tensor.reshape(rows), shape)


def whole_product(call: Call) -> Tensor:
    """Multiply matrices of whole numbers less their zero points (MatMulInteger)."""
    operands = [_less_zero(call, place, 2 + place, -2 + place) for place in (0, 1)]
    product = products.mat_mul(_of_floats(call, operands))
    return call.cast(product, INT)


def quantised_product(call: Call) -> Tensor:
    """Multiply matrices of quantised numbers, and quantise the product (QLinearMatMul)."""
    operands = [_less_zero(call, 3 * place, 3 * place + 2, -2 + place) for place in (0, 1)]
    product = products.mat_mul(_of_floats(call, operands))
    shape = product.shape
    scales = [_along(call, call.cast(call[3 * place + 1], FLOAT), shape, -2 + place)
              for place in (0, 1)]  # fmt: skip
    return _requantised(call, product, scales, 6, 7)


def whole_convolution(call: Call) -> Tensor:
    """Convolve whole numbers less their zero points (ConvInteger)."""
    data, weights = _less_zero(call, 0, 2, None), _less_zero(call, 1, 3, 0)
    return call.cast(fields.convolution(_of_floats(call, [data, weights])), INT)


def quantised_convolution(call: Call) -> Tensor:
    """Convolve quantised numbers, and quantise what comes out (QLinearConv)."""
    data, weights = _less_zero(call, 0, 2, None), _less_zero(call, 3, 5, 0)
    operands = [data, weights] + ([call.cast(call[8], FLOAT)] if call.has(8) else [])
    convolved = fields.convolution(_of_floats(call, operands))
    of_data, of_weights = (call.cast(call[place], FLOAT) for place in (1, 4))
    scales = [
        _along(call, of_data, convolved.shape, 1),
        _along(call, of_weights, convolved.shape, 1),
    ]
    return _requantised(call, convolved, scales, 6, 7)


def _less_zero(call: Call, place: int, zero: int, axis: int | None) -> Tensor:
    """Return an operand less its zero point, one or one a row of an axis, as floats."""
    values = call.cast(call.cast(call[place], INT), FLOAT)
    if not call.has(zero):
        return values
    point = call.cast(call.cast(call[zero], INT), FLOAT)
    return call.map(_1 - _2, values, _along(call, point, values.shape, axis))


def _along(call: Call, tensor: Tensor, shape: tuple[int, ...], axis: int | None) -> Tensor:
    """View one number, one for each place of an axis, or one a matrix in a larger shape."""
    if tensor.numElements() == 1 or axis is None:
        return broadcast(tensor.flatten(), shape)
    if tensor.rank() > 1:
        return broadcast(tensor, shape)
    rows = [1] * len(shape)
    rows[axis] = tensor.numElements()
    return broadcast(tensor.reshape(rows), shape)


def _of_floats(call: Call, operands: list[Tensor]) -> Call:
    """Return a call of the same node on floats, without what belongs to quantised numbers."""
    infos = [TensorInfo("FLOAT", list(operand.shape)) for operand in operands]
    outputs = [TensorInfo("FLOAT", list(call.outputs[0].dims))]
    return replace(call, inputs=list(operands), infos=list(infos), outputs=outputs,
                   known=[None] * len(operands))  # fmt: skip


def _requantised(
    call: Call, product: Tensor, scales: list[Tensor], scale: int, zero: int
) -> Tensor:
    """Return round(x times both scales / scale) + zero point, within the limits of the type."""
    info = call.outputs[0]
    least, most = map(float, info.limits)
    out = _along(call, call.cast(call[scale], FLOAT), product.shape, -2)
    point = _along(call, call.cast(call.cast(call[zero], INT), FLOAT), product.shape, -2)
    real = call.map(_1 * _2 * _3, product, *scales)
    quantise = Max(Min(NearbyInt(_1 / _2) + _3, most), least)
    return call.cast(call.cast(call.map(quantise, real, out, point), INT), info.device)
