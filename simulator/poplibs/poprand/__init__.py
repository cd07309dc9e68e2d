"""Random numbers (poprand)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets
from simulator.poplibs.poprand.distributions import (
    bernoulli,
    logUniform,
    normal,
    truncatedNormal,
    uniform,
)
from simulator.poplibs.poprand.dropout import dropout, shapedDropout
from simulator.poplibs.poprand.seeds import getHwSeeds, setHwSeeds, setSeed

__all__ = [
    "addCodelets",
    "bernoulli",
    "dropout",
    "getHwSeeds",
    "logUniform",
    "normal",
    "setHwSeeds",
    "setSeed",
    "shapedDropout",
    "truncatedNormal",
    "uniform",
]
