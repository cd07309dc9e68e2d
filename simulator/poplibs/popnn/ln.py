"""Layer norm (popnn::ln): group norm with all channels in one group."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs.popnn import norm_layers as layers


@library_call("POPNN")
def layerNormStatistics(
    graph: Graph,
    acts: Tensor,
    eps: float,
    prog: Sequence,
    unbiasedVarEstimate: bool,
    stableAlgo: bool = False,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return mean and inverse standard deviation of each sample."""
    groups = 1
    return layers.statistics(
        graph,
        acts,
        eps,
        prog,
        groups,
        unbiasedVarEstimate,
        stableAlgo,
        partialsType,
        debugContext,
        options,
    )


layerNormWhiten = layers.public(layers.whiten, "layerNormWhiten")
layerNormalise = layers.public(layers.normalise, "layerNormalise")
layerNormParamGradients = layers.parameter_gradients("layerNormParamGradients", layers.whiten)
layerNormGradients = layers.input_gradients("layerNormGradients", layers.whiten, layers.gradients)
layerNormParamUpdate = layers.public(layers.update, "layerNormParamUpdate")
