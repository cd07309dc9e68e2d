"""The vertex by which single workers transpose; its cycles are in `transpose_cycles`."""

from __future__ import annotations

from simulator.codelets.products import transpose_cycles
from simulator.codelets.products.convolution import transpose_codelet
from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.types import Type
from simulator.graph.vertices.vertex import Codelet

TYPES = VertexTypes(
    (
        worker(
            "popops::Transpose2D<type>",
            "in out",
            transpose_cycles.transpose_2d,
            "PopLibs lib/poplin/poplinCycleEstimators.cpp of 2019",
            (16, 150),
        ),
    )
)


def transpose_worker_codelet(dtype: Type, rows: int, columns: int) -> Codelet:
    """Return the worker that transposes matrices of its field `in`, each an edge of its own."""
    template = transpose_codelet(dtype, rows, columns)
    return TYPES.codelet(f"popops::Transpose2D<{dtype}>", template.compute)
