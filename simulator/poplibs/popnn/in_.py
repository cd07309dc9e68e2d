"""Instance norm (popnn::in, a keyword of Python): group norm with each channel a group."""

from __future__ import annotations

from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs.popnn import norm_layers as layers


def _channels(acts: Tensor) -> int:
    return acts.dim(1) if acts.rank() > 1 else 1


instanceNormStatistics = layers.statistics_of("instanceNormStatistics", _channels)
instanceNormWhiten = layers.public(layers.whiten, "instanceNormWhiten")
instanceNormalise = layers.public(layers.normalise, "instanceNormalise")
instanceNormParamGradients = layers.parameter_gradients("instanceNormParamGradients", layers.whiten)
instanceNormGradients = layers.input_gradients(
    "instanceNormGradients", layers.whiten, layers.gradients
)
instanceNormParamUpdate = layers.public(layers.update, "instanceNormParamUpdate")
