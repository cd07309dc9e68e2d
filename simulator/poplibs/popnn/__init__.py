"""Neural networks (popnn)."""

from __future__ import annotations

from simulator.poplibs.popnn.activations import (
    NonLinearityType,
    nonLinearity,
    nonLinearityInPlace,
    nonLinearityInputGradient,
)
from simulator.poplibs.popnn.losses import LossType, calcLoss

__all__ = [
    "LossType",
    "NonLinearityType",
    "calcLoss",
    "nonLinearity",
    "nonLinearityInPlace",
    "nonLinearityInputGradient",
]
