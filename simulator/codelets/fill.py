"""Vertices that fill memory with a value. Source: PopLibs lib/popops/PerformanceEstimation.cpp."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.graph.types import Array, Type
from simulator.graph.vertex import Codelet, Operands


@cache
def fill_codelet(dtype: Type, *, several: bool) -> Codelet:
    """Return the worker that fills one region, or several; field out and the value `in`."""

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": np.repeat(operands.group.parameters["in"], operands.counts["out"])}

    suffix = "2d" if several else ""
    return Codelet(f"popops::Fill{suffix}<{dtype}>", compute, False, 12 + 4 * several, 80)
