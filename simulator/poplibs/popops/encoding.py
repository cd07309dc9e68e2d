"""One-hot encoding of labels."""

from __future__ import annotations

import numpy as np

from simulator.codelets.classification import one_hot_codelet
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.graph.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name, regions_of


@library_call("POPOPS")
def encodeOneHot(
    graph: Graph, indices: Tensor, encoded: Tensor, prog: Sequence, debugContext: str = ""
) -> None:
    """Give row i of `encoded` a one at class `indices[i]` and zeros elsewhere.

    Indices are [rows] of integers, `encoded` is [rows, classes] and mapped already; an index
    outside the classes leaves its row zero.
    """
    name = debug_name(debugContext, "OneHot")
    if encoded.rank() != 2 or indices.shape != encoded.shape[:1]:
        raise PoplarError(f"{name}: {indices!r} does not label the rows of {encoded!r}")
    if indices.dtype not in (INT, UNSIGNED_INT):
        raise PoplarError(f"{name}: indices of type {indices.dtype}; int or unsigned int is needed")
    classes = max(encoded.dim(1), 1)
    codelet, cycles = one_hot_codelet(indices.dtype, encoded.dtype, classes)
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        regions = regions_of(graph, encoded)
        first_row, end_row = regions.low // classes, (regions.high - 1) // classes + 1
        graph.add_vertices(
            VertexGroup(
                compute_set=compute_set.id,
                codelet=codelet,
                tile=regions.tile,
                fields={
                    "indices": cut_field("indices", "input", indices, first_row, end_row),
                    "out": cut_field("out", "output", encoded, regions.low, regions.high),
                },
                parameters={"first": np.asarray(regions.low)},
                cycles=cycles(end_row - first_row),
            )
        )
        prog.add(Execute(compute_set))
