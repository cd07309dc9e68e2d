"""Group norm (popnn::gn): activations are normalised by groups of channels of each sample.

Statistics are [sample * groups], a sample's groups together; gamma and beta are one a channel.
"""

from __future__ import annotations

from simulator.poplibs.popnn import norm_layers as layers

groupNormStatistics = layers.public(layers.statistics, "groupNormStatistics")
groupNormWhiten = layers.public(layers.whiten, "groupNormWhiten")
groupNormalise = layers.public(layers.normalise, "groupNormalise")
groupNormParamGradients = layers.parameter_gradients("groupNormParamGradients", layers.whiten)
groupNormGradients = layers.input_gradients("groupNormGradients", layers.whiten, layers.gradients)
groupNormParamUpdate = layers.public(layers.update, "groupNormParamUpdate")
