"""Gradients of layers, by the libraries' own backward operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import element_count
from simulator.popart.operators import collectives
from simulator.popart.operators.backward import Gradient, of_bias, summed_to, total
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.pointwise_gradients import POINTWISE, Grads
from simulator.popart.operators.elements.reductions import classes_of, reduced
from simulator.popart.operators.images import fields, grids, grids_gradient, resize, transposed
from simulator.popart.operators.images.placed_gradients import (
    of_dilated_average,
    of_gathered_elements,
    of_placed_maximum,
    of_scatter,
    of_top_k,
)
from simulator.popart.operators.images.windows import padded_field
from simulator.popart.operators.indexing import indexed_gradients, scatter_reduce
from simulator.popart.operators.layers import ctc, losses, norms
from simulator.popart.operators.recurrence import gru_gradient, simple_recurrent_gradient
from simulator.popart.operators.recurrence.recurrent_gradient import of_lstm
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Node
from simulator.poplibs import poplin, popnn
from simulator.poplibs.popnn import NonLinearityType, pooling
from simulator.poplibs.popnn.pooling import PoolingType
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3

Tensors = Sequence[Tensor]


def of_convolution(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Convolve the gradient with the weights, and the input with the gradient."""
    params = fields.conv_params(call)
    gradients: Grads = [None] * len(call.inputs)
    if call.needed[0]:
        weights = call[1].reshape(params.weights_shape())
        gradients[0] = poplin.convolution(
            call.graph, grads[0], weights, poplin.getGradientParams(params), True, call.prog,
            f"{call.name}/Bwd", call.options,
        )  # fmt: skip
    if call.needed[1]:
        deltas = poplin.calculateWeightDeltas(
            call.graph, grads[0], call[0], params, call.prog, f"{call.name}/Wu", call.options
        )
        gradients[1] = deltas.reshape(call[1].shape)
    if call.has(2):
        gradients[2] = of_bias(call, grads[0])
    return gradients


def of_max_pool(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient of a window to its maximum."""
    if call.saved:
        return of_placed_maximum(call, grads)
    windows = fields.pool_windows(call)
    around = (list(windows.lower), windows.beyond)
    params = fields.pool_params(PoolingType.MAX, call[0], windows, *around)
    return [
        pooling.poolInputGradient(
            call.graph, params, call[0], outputs[0], grads[0], False, call.prog, call.name
        )
    ]


def of_average_pool(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Spread the gradient of a window over its elements."""
    windows, shape = fields.pool_windows(call), call[0].shape
    if windows.dilated:
        return of_dilated_average(call, grads)
    lower, upper = list(windows.lower), windows.beyond
    like = call[0]
    if call.attribute("count_include_pad", 0) and any((*lower, *windows.upper)):
        like = padded_field(call, like, lower, windows.upper)
        lower, upper = [0] * len(lower), list(windows.extra)
    params = fields.pool_params(PoolingType.AVG, like, windows, lower, upper)
    grad = pooling.poolInputGradient(call.graph, params, 1, grads[0], call.prog, call.name)
    if like is not call[0]:
        first = [0, 0, *windows.lower]
        grad = grad.slice(first, [a + b for a, b in zip(first, shape, strict=True)])
    return [grad]


def of_local_response(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Compute g base^-beta - 2 alpha beta / size x sum(g y / base), over the mirrored window.

    The base is bias + alpha / size * sum of squares, as in the forward pass.
    """
    data, size = call[0], int(call.attribute("size"))
    alpha, beta = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75)
    before = (size - 1) // 2
    squares = call.map(expr.Square(_1), data)
    base = _window_sum(call, squares, before, size)
    based = _1 * (alpha / size) + call.attribute("bias", 1.0)
    base = call.map(based, base)
    ratio = call.map(_1 * _2 / _3, grads[0], outputs[0], base)
    around = _window_sum(call, ratio, size - 1 - before, size)
    _4 = expr.PlaceHolder(4)
    derivative = _1 * expr.Pow(_2, expr.Const(-beta)) - _3 * _4 * (2 * alpha * beta / size)
    return [call.map(derivative, grads[0], base, data, around)]


def _window_sum(call: Call, tensor: Tensor, before: int, size: int) -> Tensor:
    around = call.padded(tensor, before, size - 1 - before, 1)
    # The tensor itself comes first: a sum is computed where its first operand lies.
    firsts = sorted(range(size), key=lambda first: first != before)
    parts = [around.slice(first, first + tensor.shape[1], 1) for first in firsts]
    placeholders: list[Expr] = [expr.PlaceHolder(place + 1) for place in range(size)]
    return call.map(reduce(lambda a, b: a + b, placeholders), *parts)


# Products
def of_mat_mul(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Multiply the gradient with the other operand's transpose."""
    a, b = call[0], call[1]
    lhs = a.expand([0]) if a.rank() == 1 else a
    right = b.expand([1]) if b.rank() == 1 else b
    rows, inner, columns = lhs.shape[-2], lhs.shape[-1], right.shape[-1]
    outer = outputs[0].shape[: max(lhs.rank(), right.rank()) - 2]
    groups = element_count(outer)
    grad = grads[0].reshape((groups, rows, columns))
    wide = [
        broadcast_to(t, (*outer, *t.shape[-2:])).reshape((groups, *t.shape[-2:]))
        for t in (lhs, right)
    ]
    gradients: Grads = [None, None]
    pairs = ((grad, wide[1].dimShuffle([0, 2, 1])), (wide[0].dimShuffle([0, 2, 1]), grad))
    shapes = ((rows, inner), (inner, columns))
    for place, (first, second) in enumerate(pairs):
        if call.needed[place]:
            product = poplin.matMulGrouped(
                call.graph, first, second, call.prog,
                debugContext=f"{call.name}/{('Bwd', 'Wu')[place]}", options=call.options,
            )  # fmt: skip
            shaped = product.reshape((*outer, *shapes[place]))
            summed = summed_to(call, shaped, (lhs, right)[place].shape)
            gradients[place] = summed.reshape(call[place].shape)
    return gradients


def of_gemm(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradients of alpha A B + beta C."""
    turned = [bool(call.attribute(name, 0)) for name in ("transA", "transB")]
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    a, b = (call[place].transpose() if turned[place] else call[place] for place in (0, 1))
    grad = grads[0] if alpha == 1 else call.map(_1 * alpha, grads[0])
    gradients: Grads = [None] * len(call.inputs)
    for place, (first, second) in enumerate(((grad, b.transpose()), (a.transpose(), grad))):
        if call.needed[place]:
            product = poplin.matMul(
                call.graph, first, second, call.prog,
                debugContext=f"{call.name}/{('Bwd', 'Wu')[place]}", options=call.options,
            )  # fmt: skip
            gradients[place] = product.transpose() if turned[place] else product
    if call.has(2):
        scaled = grads[0] if beta == 1 else call.map(_1 * beta, grads[0])
        gradients[2] = summed_to(call, scaled, call[2].shape)
    return gradients


# Norms
def of_batch_norm(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradients through the statistics of the batch, or by those that are given."""
    if not norms.in_training(call):
        return _of_fixed_norm(call, grads[0])
    whitened, deviation = call.saved
    operands = (call.graph, whitened, norms.channels_of(call, grads[0]))
    parameters = popnn.bn.batchNormParamGradients(
        *operands, call.prog, debugContext=f"{call.name}/Wu"
    )
    data = popnn.bn.batchNormGradients(
        *operands, deviation, call[1].flatten(), call.prog, debugContext=f"{call.name}/Bwd"
    )
    scale, shift = (tensor.reshape(call.info(1).dims) for tensor in parameters)
    return [data.reshape(call.info().dims), scale, shift, None, None]


def _of_fixed_norm(call: Call, grad: Tensor) -> Grads:
    """Return the gradients through statistics that do not depend on the batch."""
    mean, deviation, scale = call.saved
    shown, grads = (norms.channels_of(call, tensor) for tensor in (call[0], grad))
    whitened = poplin.normWhiten(call.graph, shown, mean, deviation, call.prog, f"{call.name}/Wu")
    parameters = popnn.bn.batchNormParamGradients(
        call.graph, whitened, grads, call.prog, debugContext=f"{call.name}/Wu"
    )
    factor = call.cast(call.map(_1 * _2, scale, deviation), grads.dtype)
    nothing = call.map(_1 * 0.0, factor)
    data = popnn.bn.batchNormalise(
        call.graph, grads, factor, nothing, call.prog, f"{call.name}/Bwd"
    )
    parameter_grads = [tensor.reshape(call.info(1).dims) for tensor in parameters]
    return [data.reshape(call.info().dims), *parameter_grads, None, None]


def of_group_norm(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradients through the statistics of each group, or each channel of an instance."""
    whitened, deviation = call.saved
    channels = grads[0].shape[1]
    operands = (call.graph, whitened, grads[0])
    scale, shift = popnn.gn.groupNormParamGradients(
        *operands, call.prog, debugContext=f"{call.name}/Wu"
    )
    gamma = call[1].upsample(channels // call[1].numElements(), 0)
    data = popnn.gn.groupNormGradients(
        *operands, deviation, gamma, call.prog, debugContext=f"{call.name}/Bwd"
    )
    groups = call[1].numElements()
    return [data, *(_by_group(call, tensor, groups) for tensor in (scale, shift))]


def of_layer_norm(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradients through the statistics of each row."""
    whitened, deviation, gamma = call.saved
    operands = (call.graph, whitened, norms.rows_of(call, grads[0]))
    data = popnn.ln.layerNormGradients(
        *operands, deviation, gamma, call.prog, debugContext=f"{call.name}/Bwd"
    )
    parameters = popnn.ln.layerNormParamGradients(
        *operands, call.prog, debugContext=f"{call.name}/Wu"
    )
    row = norms.row_shape(call)
    wide = (tensor.reshape(row) for tensor in parameters)
    gradients: Grads = [data.reshape(call[0].shape)]
    for place, tensor in enumerate(wide, 1):
        gradients.append(
            summed_to(call, tensor, call.info(place).dims) if call.has(place) else None
        )
    return gradients


def _by_group(call: Call, tensor: Tensor, groups: int) -> Tensor:
    if tensor.numElements() == groups:
        return tensor
    return total(call, tensor.reshape((groups, tensor.numElements() // groups)), [1])


def of_dropout(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Drop the same elements of the gradient."""
    no_gradients: Grads = [None] * (len(call.inputs) - 1)
    if not call.saved:
        return [grads[0], *no_gradients]
    mask, scale = call.saved
    return [call.map(_1 * _2 * scale, grads[0], mask), *no_gradients]


# Softmax
def of_softmax(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient of each sample's classes."""
    rows, back = classes_of(call, outputs[0])
    grad, _ = classes_of(call, grads[0])
    kind = NonLinearityType.SOFTMAX
    gradient = popnn.nonLinearityInputGradient(call.graph, kind, rows, grad, call.prog, call.name)
    return [back(gradient)]


def of_log_softmax(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return g - softmax * sum(g) of each sample."""
    rows, back = classes_of(call, outputs[0])
    grad, _ = classes_of(call, grads[0])
    total = reduced(call, grad, [1], Operation.ADD).expand([1])
    return [back(call.map(_3 - expr.Exp(_1) * _2, rows, broadcast(total, rows.shape), grad))]


# What of a node whose operator has a gradient has none.
LACKING: dict[tuple[str, str], Callable[[Node], str]] = {
    (ONNX, "GRU"): gru_gradient.lacks_gradient,
    (ONNX, "GridSample"): grids.lacks_gradient,
    (ONNX, "RNN"): simple_recurrent_gradient.lacks_gradient,
}
GRADIENTS: dict[tuple[str, str], Gradient] = {
    **POINTWISE,
    (ONNX, "AveragePool"): of_average_pool,
    (ONNX, "BatchNormalization"): of_batch_norm,
    (ONNX, "Conv"): of_convolution,
    (ONNX, "ConvTranspose"): transposed.of_convolution,
    (ONNX, "Dropout"): of_dropout,
    (ONNX, "GatherElements"): of_gathered_elements,
    (ONNX, "GatherND"): indexed_gradients.of_gathered_nd,
    (ONNX, "GRU"): gru_gradient.of_gru,
    (ONNX, "Gemm"): of_gemm,
    (ONNX, "GridSample"): grids_gradient.of_grid_sample,
    (ONNX, "GroupNormalization"): of_group_norm,
    (ONNX, "InstanceNormalization"): of_group_norm,
    (ONNX, "LRN"): of_local_response,
    (ONNX, "LayerNormalization"): of_layer_norm,
    (ONNX, "LSTM"): of_lstm,
    (ONNX, "LogSoftmax"): of_log_softmax,
    (ONNX, "MatMul"): of_mat_mul,
    (ONNX, "MaxPool"): of_max_pool,
    (ONNX, "RNN"): simple_recurrent_gradient.of_rnn,
    (ONNX, "Resize"): resize.of_resized,
    (ONNX, "Scatter"): of_scatter,
    (ONNX, "ScatterElements"): of_scatter,
    (ONNX, "ScatterND"): indexed_gradients.of_scattered_nd,
    (ONNX, "Softmax"): of_softmax,
    (ONNX, "TopK"): of_top_k,
    (ONNX, "Upsample"): resize.of_resized,
    (GRAPHCORE, "Ctc"): ctc.of_loss,
    (GRAPHCORE, "BatchNormalization"): of_batch_norm,
    (GRAPHCORE, "GroupNormalization"): of_group_norm,
    (GRAPHCORE, "IdentityLoss"): losses.of_identity,
    (GRAPHCORE, "L1"): losses.of_absolute,
    (GRAPHCORE, "Nll"): losses.of_likelihood,
    (GRAPHCORE, "ReplicatedAllReduce"): collectives.of_all_reduced,
    (GRAPHCORE, "GroupedScatterReduce"): scatter_reduce.of_scattered,
    (GRAPHCORE, "ScatterReduce"): scatter_reduce.of_scattered,
    (GRAPHCORE, "ShapedDropout"): of_dropout,
}
