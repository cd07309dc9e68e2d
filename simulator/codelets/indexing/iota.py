"""The vertex that counts. Source: PopLibs lib/popops/codelets/Iota.cpp."""

from __future__ import annotations

from functools import cache

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.vertex_type import POPOPS_CYCLES, VertexTypes, worker
from simulator.graph.geometry.intervals import spread
from simulator.graph.types import Array, Type
from simulator.graph.vertices.vertex import Codelet, Operands

TYPES = VertexTypes(
    (worker("popops::Iota<type>", "out offsets", indexing_cycles.iota, POPOPS_CYCLES, (24, 90)),)
)


@cache
def iota_codelet(dtype: Type) -> Codelet:
    """Return popops::Iota; region r of `out` counts from `offsets[r]`, `lengths[r]` numbers."""

    def compute(operands: Operands) -> dict[str, Array]:
        parameters = operands.group.parameters
        numbers = spread(parameters["offsets"], parameters["lengths"])
        return {"out": numbers.astype(dtype.numpy)}

    return TYPES.codelet(f"popops::Iota<{dtype}>", compute)
