"""The options of a module on the device."""

from simulator.poptorch.options.options import Options
from simulator.poptorch.options.parts import TensorLocationSettings

__all__ = ["Options", "TensorLocationSettings"]
