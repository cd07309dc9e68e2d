"""The vertices that draw: one supervisor a tile, with all that the tile has of the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_ranges
from simulator.poplibs.popops.regions import Operand, in_memory_order, regions_of


def add_supervisors(
    graph: Graph,
    prog: Sequence,
    name: str,
    codelet: Codelet,
    operands: dict[str, Operand],
    cycles: Callable[..., IntArray],
    parameters: Mapping[str, float],
) -> None:
    """Add a compute set of them; `cycles` takes the elements of each, their type and the target."""
    compute_set = graph.addComputeSet(name)
    ordered = in_memory_order(operands, "out")
    dtype = ordered["out"][1].dtype
    regions = regions_of(graph, ordered["out"][1])
    tiles, ranges = np.unique(regions.tile, return_counts=True)
    fields = {
        field: cut_ranges(field, way, tensor, regions.low, regions.high, ranges)
        for field, (way, tensor) in ordered.items()
    }
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=codelet,
            tile=tiles,
            fields=fields,
            parameters={key: np.full(len(tiles), value) for key, value in parameters.items()},
            cycles=cycles(fields["out"].counts(), dtype, graph.target),
        )
    )
    prog.add(Execute(compute_set))
