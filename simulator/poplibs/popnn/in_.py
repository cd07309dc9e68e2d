"""Instance norm (popnn::in, a keyword of Python): group norm with each channel a group."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs.popnn import norm_layers as layers


@library_call("POPNN")
def instanceNormStatistics(
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
    """Return mean and inverse standard deviation of each channel of each sample."""
    groups = acts.dim(1) if acts.rank() > 1 else 1
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


instanceNormWhiten = layers.public(layers.whiten, "instanceNormWhiten")
instanceNormalise = layers.public(layers.normalise, "instanceNormalise")
instanceNormParamGradients = layers.parameter_gradients("instanceNormParamGradients", layers.whiten)
instanceNormGradients = layers.input_gradients(
    "instanceNormGradients", layers.whiten, layers.gradients
)
instanceNormParamUpdate = layers.public(layers.update, "instanceNormParamUpdate")
