"""Operators on fields of channels: convolution, pooling, response normalisation."""

from __future__ import annotations

from functools import reduce

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, IntArray, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.operators.images.windows import (
    Windows,
    in_images,
    padded_field,
    positions,
    spread_windows,
    windows_of,
)
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn import pooling
from simulator.poplibs.popnn.pooling import PoolingType, PoolParams
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3


# Convolution
def conv_params(call: Call) -> poplin.ConvParams:
    """Return the parameters of a Conv node."""
    data, weights, groups = call.info(0), call.info(1), int(call.attribute("group", 1))
    kernel = weights.dims[2:]
    windows = windows_of(call, kernel, call.outputs[0].dims[2:])
    around = poplin.InputTransform(
        truncationUpper=tuple(max(-width, 0) for width in windows.beyond),
        paddingLower=windows.lower,
        paddingUpper=tuple(max(width, 0) for width in windows.beyond),
    )
    return poplin.ConvParams(
        data.device,
        data.dims[0],
        data.dims[2:],
        kernel,
        data.dims[1] // groups,
        weights.dims[0] // groups,
        groups,
        inputTransform=around,
        kernelTransform=poplin.InputTransform(dilation=windows.dilation),
        outputTransform=poplin.OutputTransform(stride=windows.stride),
    )


def convolution(call: Call) -> Tensor:
    """Convolve, and add the bias of each output channel."""
    params = conv_params(call)
    weights = call[1].reshape(params.weights_shape())
    out = poplin.convolution(
        call.graph, call[0], weights, params, False, call.prog, call.name, call.options
    )
    if call.has(2):
        shape = (1, out.shape[1], *[1] * (out.rank() - 2))
        bias = broadcast(call[2].reshape(shape), out.shape)
        popops.addInPlace(call.graph, out, bias, call.prog, f"{call.name}/Bias")
    return out


def conv_input(call: Call) -> Tensor:
    """Add an input that lies as the convolution reads it."""
    return poplin.createInput(call.graph, conv_params(call), call.name, call.options)


def conv_weights(call: Call) -> Tensor:
    """Add weights that lie as the convolution reads them."""
    weights = poplin.createWeights(call.graph, conv_params(call), call.name, call.options)
    return weights.reshape(call.info(1).dims)


def flipped_weights(call: Call) -> Tensor:
    """View weights with their channels exchanged and their kernel turned round (ai.graphcore)."""
    weights, groups = call[0], int(call.attribute("group", 1))
    out, inner = weights.shape[0] // groups, weights.shape[1]
    apart = weights.reshape((groups, out, inner, *weights.shape[2:])).dimShufflePartial([1], [2])
    for axis in range(3, apart.rank()):
        apart = apart.reverse(axis)
    return apart.reshape((groups * inner, out, *weights.shape[2:]))


# Pooling
def pool_windows(call: Call) -> Windows:
    """Return the windows of a pooling."""
    return windows_of(call, tuple(call.attribute("kernel_shape")), call.outputs[0].dims[2:])


def pool_params(
    kind: PoolingType, tensor: Tensor, windows: Windows, lower: list[int], upper: list[int]
) -> PoolParams:
    """Return the parameters of a pooling without dilation."""
    samples, channels, *field = tensor.shape
    return PoolParams(
        kind,
        tuple(field),
        windows.kernel,
        windows.stride,
        lower,
        upper,
        channels,
        samples,
        tensor.dtype,
    )


def max_pool(call: Call) -> Tensor | list[Tensor]:
    """Return the maximum of each window, and where it stands if asked."""
    windows = pool_windows(call)
    needs_cast = call[0].dtype not in (FLOAT, HALF)
    data = call.cast(call[0], HALF) if needs_cast else call[0]
    placed = windows.dilated or call.options.get("maxPoolGradient") == "First"
    if call.wants(1) or (placed and call.training):
        return _max_with_places(call, data, windows)
    if windows.dilated:
        out = reduced_windows(call, data, windows, Operation.MAX, -np.inf)
    else:
        params = pool_params(PoolingType.MAX, data, windows, list(windows.lower), windows.beyond)
        out = pooling.pool(call.graph, params, data, call.prog, call.name)
    return call.cast(out, call[0].dtype)


def reduced_windows(
    call: Call, data: Tensor, windows: Windows, operation: Operation, fill: float
) -> Tensor:
    """Reduce what each window reads, laid out beside each other."""
    seen = spread_windows(call, data, windows, fill)
    return reduced(call, seen, [seen.rank() - 1], operation)


def _max_with_places(call: Call, data: Tensor, windows: Windows) -> Tensor | list[Tensor]:
    """Return maxima, and the place of the first in the flat tensor."""
    seen = spread_windows(call, data, windows, -np.inf)
    last = seen.rank() - 1
    largest = reduced(call, seen, [last], Operation.MAX)
    places = positions(call, windows)
    places_found = None
    if call.training or not call.attribute("storage_order", 0):
        places_found = _first(call, seen, largest, places)
    call.saved = (places_found,) if call.training else ()
    out = call.cast(largest, call[0].dtype)
    if not call.wants(1):
        return out
    if call.attribute("storage_order", 0):
        field = data.shape[2:]
        numbers = np.arange(element_count(field)).reshape(field[::-1]).T.reshape(-1)
        places_found = _first(call, seen, largest, np.where(places < 0, -1, numbers[places]))
    assert places_found is not None
    return [out, call.cast(places_found, call.outputs[1].device)]


def _first(call: Call, seen: Tensor, largest: Tensor, places: IntArray) -> Tensor:
    """Return the first place of each window's maximum; `places` are those of the field."""
    last, beyond = seen.rank() - 1, call[0].numElements()
    flat = in_images(call, places, beyond)
    candidates = call.constant(flat.astype(np.int32), INT, "places")
    first = call.map(
        expr.Select(_2, expr.Const(beyond, INT), expr.Equal(_1, _3)),
        seen,
        candidates,
        broadcast(largest.expand([last]), seen.shape),
    )
    return reduced(call, first, [last], Operation.MIN)


def average_pool(call: Call) -> Tensor:
    """Return the mean of each window: of the field alone, or with the padding asked for."""
    windows, data = pool_windows(call), call[0]
    with_padding = bool(call.attribute("count_include_pad", 0))
    if windows.dilated:
        return _mean_of_spread(call, data, windows, with_padding)
    lower, upper = list(windows.lower), windows.beyond
    if with_padding and any((*lower, *windows.upper)):
        data = padded_field(call, data, lower, windows.upper)
        lower, upper = [0] * len(lower), list(windows.extra)
    params = pool_params(PoolingType.AVG, data, windows, lower, upper)
    return pooling.pool(call.graph, params, data, call.prog, call.name)


def _mean_of_spread(call: Call, data: Tensor, windows: Windows, with_padding: bool) -> Tensor:
    total = reduced_windows(call, data, windows, Operation.ADD, 0)
    counts = counted(call, windows, with_padding)
    shares = call.constant((1 / counts).astype(data.dtype.numpy), data.dtype, "shares")
    return call.map(_1 * _2, total, broadcast(shares, total.shape))


def counted(call: Call, windows: Windows, with_padding: bool) -> IntArray:
    """Count what each window takes the mean of."""
    if not with_padding:
        return np.asarray((positions(call, windows) >= 0).sum(axis=-1))
    field = call.info().dims[2:]
    counts = np.ones(windows.outputs, dtype=np.int64)
    for axis, size in enumerate(field):
        end = size + windows.lower[axis] + windows.upper[axis]
        shape = [1] * len(field)
        shape[axis] = windows.outputs[axis]
        counts = counts * (windows.taps(axis) < end).sum(axis=1).reshape(shape)
    return counts


# Response normalisation
def local_response(call: Call) -> Tensor:
    """Divide by powers of the sum of squares of the channels around.

    x (bias + alpha / size * sum)^-beta, over floor((size-1)/2) channels before and
    ceil((size-1)/2) behind.
    """
    data, size = call[0], int(call.attribute("size"))
    alpha, beta = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75)
    before = (size - 1) // 2
    squares = call.map(expr.Square(_1), data)
    around = call.padded(squares, before, size - 1 - before, 1)
    parts = [around.slice(first, first + data.shape[1], 1) for first in range(size)]
    squares_around: list[Expr] = [expr.PlaceHolder(place + 2) for place in range(size)]
    total = reduce(lambda a, b: a + b, squares_around)
    base = total * (alpha / size) + call.attribute("bias", 1.0)
    # The data come first: an expression is computed where its first operand lies.
    return call.map(_1 * expr.Pow(base, expr.Const(-beta)), data, *parts)


def lp_pool(call: Call) -> Tensor:
    """Return the p-norm of each window."""
    power, windows = int(call.attribute("p", 2)), pool_windows(call)
    spread = spread_windows(call, call[0], windows, 0.0)
    raised = call.map(expr.Abs(_1) if power == 1 else expr.Pow(expr.Abs(_1), power), spread)
    total = reduced(call, raised, [raised.rank() - 1], Operation.ADD)
    rooted = total if power == 1 else call.map(expr.Pow(_1, 1 / power), total)
    return rooted.reshape(call.outputs[0].dims)
