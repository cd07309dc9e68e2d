"""Transposed convolutions: what a convolution's backward pass computes of its output's gradient."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.backward import of_bias
from simulator.popart.operators.call import Call, broadcast
from simulator.poplibs import poplin, popops


def params_of(call: Call) -> poplin.ConvParams:
    """Return the convolution whose input a ConvTranspose computes, and whose output it reads."""
    data, weights, groups = call.info(0), call.info(1), int(call.attribute("group", 1))
    kernel, dims = weights.dims[2:], call.outputs[0].dims
    ones = [1] * len(kernel)
    stride, dilation = (call.attribute(name) or ones for name in ("strides", "dilations"))
    rows = zip(data.dims[2:], stride, dilation, kernel, dims[2:], strict=True)
    cut = [(n - 1) * step + apart * (k - 1) + 1 - out for n, step, apart, k, out in rows]
    lower = _cut_before(call, cut)
    upper = [both - first for both, first in zip(cut, lower, strict=True)]
    around = poplin.InputTransform(
        truncationUpper=tuple(max(-width, 0) for width in upper),
        paddingLower=tuple(lower),
        paddingUpper=tuple(max(width, 0) for width in upper),
    )
    return poplin.ConvParams(
        data.device,
        data.dims[0],
        dims[2:],
        kernel,
        dims[1] // groups,
        data.dims[1] // groups,
        groups,
        inputTransform=around,
        kernelTransform=poplin.InputTransform(dilation=tuple(dilation)),
        outputTransform=poplin.OutputTransform(stride=tuple(stride)),
    )


def _cut_before(call: Call, cut: Sequence[int]) -> list[int]:
    """Return how much is cut off before the first element; `cut` is how much in all."""
    kind = call.attribute("auto_pad", "NOTSET")
    if call.attribute("output_shape") is None and kind in ("NOTSET", "VALID"):
        pads = None if kind == "VALID" else call.attribute("pads")
        return list(pads or [0] * len(cut))[: len(cut)]
    amounts = [max(width, 0) for width in cut]
    return [n // 2 if kind == "SAME_UPPER" else n - n // 2 for n in amounts]


def convolution(call: Call) -> Tensor:
    """Convolve the other way, and add the bias of each output channel."""
    params = params_of(call)
    out = poplin.convolution(
        call.graph, call[0], call[1].reshape(params.weights_shape()),
        poplin.getGradientParams(params), True, call.prog, call.name, call.options,
    )  # fmt: skip
    if call.has(2):
        bias = call[2].reshape((1, out.shape[1], *[1] * (out.rank() - 2)))
        wide = broadcast(bias, out.shape)
        popops.addInPlace(call.graph, out, wide, call.prog, f"{call.name}/Bias")
    return out


def weights(call: Call) -> Tensor:
    """Add weights that lie as the convolution reads them."""
    weights = poplin.createWeights(call.graph, params_of(call), call.name, call.options)
    return weights.reshape(call.info(1).dims)


def of_convolution(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Convolve the gradient with the weights, and the gradient with the input."""
    params, name = params_of(call), call.name
    gradients: list[Tensor | None] = [None] * len(call.inputs)
    if call.needed[0]:
        kernel = call[1].reshape(params.weights_shape())
        gradients[0] = poplin.convolution(
            call.graph, grads[0], kernel, params, False, call.prog, f"{name}/Bwd", call.options
        )
    if call.needed[1]:
        deltas = poplin.calculateWeightDeltas(
            call.graph, call[0], grads[0], params, call.prog, f"{name}/Wu", call.options
        )
        gradients[1] = deltas.reshape(call[1].shape)
    if call.has(2):
        gradients[2] = of_bias(call, grads[0])
    return gradients
