"""Neural networks (popnn)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets
from simulator.poplibs.popnn.activations import (
    NonLinearityType,
    nonLinearity,
    nonLinearityInPlace,
    nonLinearityInputGradient,
)
from simulator.poplibs.popnn.losses import (
    CROSS_ENTROPY_LOSS,
    SUM_SQUARED_LOSS,
    LossType,
    argMax,
    argMin,
    calcAccuracy,
    calcLoss,
)

__all__ = [
    "CROSS_ENTROPY_LOSS",
    "SUM_SQUARED_LOSS",
    "LossType",
    "NonLinearityType",
    "addCodelets",
    "argMax",
    "argMin",
    "calcAccuracy",
    "calcLoss",
    "nonLinearity",
    "nonLinearityInPlace",
    "nonLinearityInputGradient",
]
