"""Vertices that fill memory with a value. Source: PopLibs lib/popops/PerformanceEstimation.cpp."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.codelets.elementwise import cycles as elementwise_cycles
from simulator.codelets.vertex_type import POPOPS_ESTIMATES, VertexTypes, worker
from simulator.graph.types import Array, Type
from simulator.graph.vertices.vertex import Codelet, Operands

TYPES = VertexTypes(
    (
        worker("popops::Fill<type>", "out", elementwise_cycles.fill_1d, POPOPS_ESTIMATES, (12, 80)),
        worker(
            "popops::Fill2d<type>", "out", elementwise_cycles.fill_2d, POPOPS_ESTIMATES, (16, 80)
        ),
    )
)


@cache
def fill_codelet(dtype: Type, *, several: bool) -> Codelet:
    """Return the worker that fills one region, or several; field out and the value `in`."""

    def compute(operands: Operands) -> dict[str, Array]:
        return {"out": np.repeat(operands.group.parameters["in"], operands.counts["out"])}

    suffix = "2d" if several else ""
    return TYPES.codelet(f"popops::Fill{suffix}<{dtype}>", compute)
