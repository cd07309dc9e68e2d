"""The vertex that counts. Source: PopLibs lib/popops/codelets/Iota.cpp."""

from __future__ import annotations

from functools import cache

from simulator.graph.intervals import spread
from simulator.graph.types import Array, Type
from simulator.graph.vertex import Codelet, Operands


@cache
def iota_codelet(dtype: Type) -> Codelet:
    """Return popops::Iota; region r of `out` counts from `offsets[r]`, `lengths[r]` numbers."""

    def compute(operands: Operands) -> dict[str, Array]:
        parameters = operands.group.parameters
        numbers = spread(parameters["offsets"], parameters["lengths"])
        return {"out": numbers.astype(dtype.numpy)}

    return Codelet(f"popops::Iota<{dtype}>", compute, state_bytes=24, code_bytes=90)
