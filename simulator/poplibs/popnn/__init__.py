"""Neural networks (popnn)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets
from simulator.poplibs.popnn import pooling
from simulator.poplibs.popnn.activations import (
    NonLinearityType,
    getNonLinearityScaling,
    nonLinearity,
    nonLinearityInPlace,
    nonLinearityInputGradient,
)
from simulator.poplibs.popnn.classes import (
    argMax,
    argMin,
    calcAccuracy,
    maxAndArgMax,
    minAndArgMin,
)
from simulator.poplibs.popnn.losses import (
    CROSS_ENTROPY_LOSS,
    MASKED_LABEL_CODE,
    SUM_SQUARED_LOSS,
    LossType,
    calcLoss,
)
from simulator.poplibs.popnn.nonlinearity_functions import (
    gelu,
    geluInPlace,
    hardSigmoid,
    hardSigmoidInPlace,
    relu,
    reluInPlace,
    scaledSoftmaxStable,
    scaledSoftmaxStableInPlace,
    sigmoid,
    sigmoidInPlace,
    softmax,
    softmaxInPlace,
    softmaxStable,
    softmaxStableInPlace,
    swish,
    swishInPlace,
    tanh,
    tanhInPlace,
)

__all__ = [
    "CROSS_ENTROPY_LOSS",
    "MASKED_LABEL_CODE",
    "SUM_SQUARED_LOSS",
    "LossType",
    "NonLinearityType",
    "addCodelets",
    "argMax",
    "argMin",
    "calcAccuracy",
    "calcLoss",
    "gelu",
    "geluInPlace",
    "getNonLinearityScaling",
    "hardSigmoid",
    "hardSigmoidInPlace",
    "maxAndArgMax",
    "minAndArgMin",
    "nonLinearity",
    "nonLinearityInPlace",
    "nonLinearityInputGradient",
    "pooling",
    "relu",
    "reluInPlace",
    "scaledSoftmaxStable",
    "scaledSoftmaxStableInPlace",
    "sigmoid",
    "sigmoidInPlace",
    "softmax",
    "softmaxInPlace",
    "softmaxStable",
    "softmaxStableInPlace",
    "swish",
    "swishInPlace",
    "tanh",
    "tanhInPlace",
]
