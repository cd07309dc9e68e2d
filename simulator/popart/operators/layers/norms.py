"""Normalisation by batch, instance and group; dropout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.representation.ir import GRAPHCORE, TORCH_ATTRIBUTE
from simulator.poplibs import poplin, popnn, popops, poprand
from simulator.poplibs.popops.expr import _1, _2, _3

ATTRIBUTE_SINCE = 14  # the version of BatchNormalization that has `training_mode`


def batch_norm(call: Call) -> Tensor | list[Tensor]:
    """Normalise by the statistics given, or in training by those of the batch."""
    if in_training(call):
        return _batch_norm_training(call)
    data, epsilon = channels_of(call, call[0]), call.attribute("epsilon", 1e-5)
    scale, bias, mean, variance = (call[place].flatten() for place in range(1, 5))
    deviation = popops.varianceToInvStdDev(
        call.graph, variance, call.constant(epsilon, variance.dtype, "epsilon"), call.prog,
        call.name,
    )  # fmt: skip
    # Statistics may be floats where activations and scale are halves.
    scale, bias, mean = (call.cast(tensor, deviation.dtype) for tensor in (scale, bias, mean))
    call.saved = (mean, deviation, scale)
    factor = call.map(_1 * _2, scale, deviation)
    addend = call.map(_1 - _2 * _3, bias, mean, factor)
    factor, addend = (call.cast(tensor, data.dtype) for tensor in (factor, addend))
    out = popnn.bn.batchNormalise(call.graph, data, factor, addend, call.prog, call.name)
    statistics = [call[place] for place in (3, 4, 3, 4) if call.wants(1)]  # statistics, as they are
    return [out.reshape(call[0].shape), *statistics]


def in_training(call: Call) -> bool:
    """Return whether the statistics of the batch are used: in training, or if an attribute says so.

    Newer versions have the attribute; older ones are in training where they give statistics; what
    is trained uses them in any version, but for PyTorch's norms, whose module is in training or
    not.
    """
    trained = call.training and not call.attribute(TORCH_ATTRIBUTE, 0)
    gives_statistics = call.node.version < ATTRIBUTE_SINCE and call.wants(1)
    return trained or gives_statistics or bool(call.attribute("training_mode", 0))


def channels_of(call: Call, data: Tensor) -> Tensor:
    """View activations with their channels second; without `spatial` each element is one."""
    if call.attribute("spatial", 1):
        return data
    return data.reshape((data.shape[0], element_count(data.shape[1:])))


def _batch_norm_training(call: Call) -> list[Tensor]:
    """Normalise by the batch's statistics; give running ones beside the result."""
    data, epsilon = channels_of(call, call[0]), call.attribute("epsilon", 1e-5)
    scale, bias, old_mean, old_variance = (call[place].flatten() for place in range(1, 5))
    mean, deviation = popnn.bn.batchNormStatistics(
        call.graph, data, epsilon, call.prog, False, True, debugContext=call.name
    )
    out, whitened = popnn.bn.batchNormalise(
        call.graph, data, scale, bias, mean, deviation, call.prog, call.name
    )
    call.saved = (whitened, deviation)
    out = out.reshape(call[0].shape)
    variance = popops.invStdDevToVariance(
        call.graph, deviation, call.constant(epsilon, deviation.dtype, "epsilon"), call.prog,
        call.name,
    )  # fmt: skip
    # PyTorch's running variance is that without bias, and so is that of ai.graphcore.
    if call.attribute(TORCH_ATTRIBUTE, 0) or call.node.domain == GRAPHCORE:
        count = data.numElements() // data.shape[1]
        variance = call.map(_1 * (count / max(count - 1, 1)), variance)
    momentum = call.attribute("momentum", 0.9)
    running = _1 * momentum + _2 * (1 - momentum)
    updates = [
        call.map(running, old_mean, call.cast(mean, old_mean.dtype)),
        call.map(running, old_variance, call.cast(variance, old_variance.dtype)),
    ]
    if call.training and not call.again:
        for new, old in zip(updates, (old_mean, old_variance), strict=True):
            call.prog.add(Copy(new, old, name=f"{call.name}/Running"))
    shape, saved = call.info(1).dims, [mean, variance] if call.wants(3) else []
    of_batch = [
        call.cast(tensor, old.dtype)
        for tensor, old in zip(saved, (old_mean, old_variance), strict=False)
    ]
    return [out, *(tensor.reshape(shape) for tensor in (*updates, *of_batch))]


def norm_parameter(place: int) -> Callable[[Call], Tensor | None]:
    """Make the function that adds a parameter of each channel, beside the activations."""

    def create(call: Call) -> Tensor | None:
        if not call.attribute("spatial", 1) or call.inputs[0] is None:
            return None
        dtype, scale = call.info(place).device, call.inputs[1]
        if scale is not None:  # where the activations lie has been found for it
            return call.graph.clone(scale, call.name, dtype)
        return poplin.createNormGamma(call.graph, call[0], dtype, call.name)

    return create


def instance_norm(call: Call) -> Tensor:
    """Normalise each channel of each sample."""
    data, epsilon = call[0], call.attribute("epsilon", 1e-5)
    mean, deviation = popnn.in_.instanceNormStatistics(
        call.graph, data, epsilon, call.prog, False, True, debugContext=call.name
    )
    out, whitened = popnn.in_.instanceNormalise(
        call.graph, data, call[1], call[2], mean, deviation, call.prog, call.name
    )
    call.saved = (whitened, deviation)
    return out


def group_norm(call: Call) -> list[Tensor]:
    """Normalise groups of channels of each sample; give mean and deviation, too.

    The first version of ai.onnx has a scale and a bias for each group, others for each channel.
    """
    data, groups = call[0], int(call.attribute("num_groups"))
    mean, deviation = popnn.gn.groupNormStatistics(
        call.graph, data, call.attribute("epsilon", 1e-5), call.prog, groups, False, True,
        debugContext=call.name,
    )  # fmt: skip
    scale, bias = (_by_channel(call[place], data.shape[1]) for place in (1, 2))
    out, whitened = popnn.gn.groupNormalise(
        call.graph, data, scale, bias, mean, deviation, call.prog, call.name
    )
    call.saved = (whitened, deviation)
    return [out, mean, deviation]


def layer_norm(call: Call) -> list[Tensor]:
    """Normalise each row, which goes from an axis to the last; give mean and deviation, too."""
    data, shape = rows_of(call, call[0]), row_shape(call)
    mean, deviation = popnn.ln.layerNormStatistics(
        call.graph, data, call.attribute("epsilon", 1e-5), call.prog, False, True,
        debugContext=call.name,
    )  # fmt: skip
    bias = call[2] if call.has(2) else call.constant(0.0, data.dtype, "bias")
    scale, bias = (broadcast(tensor, shape).flatten() for tensor in (call[1], bias))
    out, whitened = popnn.ln.layerNormalise(
        call.graph, data, scale, bias, mean, deviation, call.prog, call.name
    )
    call.saved = (whitened, deviation, scale)
    outputs = [out.reshape(call[0].shape)]
    for place, tensor in ((1, mean), (2, deviation)):
        if call.wants(place):
            info = call.outputs[place]
            outputs.append(call.cast(tensor, info.device).reshape(info.dims))
    return outputs


def row_shape(call: Call) -> tuple[int, ...]:
    """Return the sizes of what a LayerNormalization takes the statistics of."""
    return call.info().dims[call.axis(-1) :]


def rows_of(call: Call, tensor: Tensor) -> Tensor:
    """View a tensor of the input's shape as [rows, elements of each]."""
    row = element_count(row_shape(call))
    return tensor.reshape((tensor.numElements() // max(row, 1), row))


def _by_channel(parameter: Tensor, channels: int) -> Tensor:
    return parameter.upsample(channels // parameter.numElements(), 0)


def dropout(call: Call) -> list[Tensor]:
    """Return the input; when trained, with a share of its elements set to zero."""
    ratio, data = dropped_share(call), call[0]
    full_mask = np.ones(data.shape, dtype=np.bool_)
    if not ratio:
        outputs = [data]
        if call.wants(1):
            outputs.append(call.constant(full_mask, call.outputs[1].device, "mask"))
        return outputs
    mask = poprand.bernoulli(call.graph, None, 0, data, data.dtype, 1 - ratio, call.prog, call.name)
    call.saved = (mask, 1 / (1 - ratio))
    out = call.map(_1 * _2 * (1 / (1 - ratio)), data, mask)
    mask_type = call.outputs[1].device if call.wants(1) else BOOL
    return [out, call.cast(mask, mask_type)] if call.wants(1) else [out]


def dropped_share(call: Call) -> float:
    """Return the share of elements that a Dropout sets to zero, 0 unless it is trained."""
    training_mode, ratio = call.value(2), call.value(1)
    trained = call.training if training_mode is None else bool(training_mode.reshape(-1)[0])
    if not trained:
        return 0.0
    if call.node.version < 12:
        return float(call.attribute("ratio", 0.5))
    return 0.5 if ratio is None else float(ratio.reshape(-1)[0])
