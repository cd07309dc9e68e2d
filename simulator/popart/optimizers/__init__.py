"""How gradients change the weights."""

from __future__ import annotations

from simulator.popart.optimizers.adam import Adam, AdamMode
from simulator.popart.optimizers.adaptive import Adaptive, AdaptiveMode
from simulator.popart.optimizers.sgd import SGD, ConstSGD, SGDAccumulatorAndMomentum
from simulator.popart.optimizers.types import DataType, WeightDecayMode
from simulator.popart.optimizers.values import ClipNormSettings, Optimizer, OptimizerValue

__all__ = [
    "SGD",
    "Adam",
    "AdamMode",
    "Adaptive",
    "AdaptiveMode",
    "ClipNormSettings",
    "ConstSGD",
    "DataType",
    "Optimizer",
    "OptimizerValue",
    "SGDAccumulatorAndMomentum",
    "WeightDecayMode",
]
