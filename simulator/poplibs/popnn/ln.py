"""Layer norm (popnn::ln): group norm with all channels in one group."""

from __future__ import annotations

from simulator.poplibs.popnn import norm_layers as layers

layerNormStatistics = layers.statistics_of("layerNormStatistics", lambda acts: 1)
layerNormWhiten = layers.public(layers.whiten, "layerNormWhiten")
layerNormalise = layers.public(layers.normalise, "layerNormalise")
layerNormParamGradients = layers.parameter_gradients("layerNormParamGradients", layers.whiten)
layerNormGradients = layers.input_gradients("layerNormGradients", layers.whiten, layers.gradients)
layerNormParamUpdate = layers.public(layers.update, "layerNormParamUpdate")
