"""Counting numbers (popops/Encoding.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.indexing.iota import iota_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT, checked_values
from simulator.graph.vertices.vertex import VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name, regions_of, split_among_workers


@library_call("POPOPS")
def iota(
    graph: Graph, t: Tensor, startInteger: int, prog: Sequence, debugContext: str = ""
) -> None:
    """Write the numbers from `startInteger` on to a tensor of one dimension, of ints.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([0, 0, 0])
    >>> popops.iota(trial.graph, a, 5, trial.prog)
    >>> trial.values(a)
    [5, 6, 7]
    """
    name = debug_name(debugContext, "iota")
    if t.rank() != 1 or t.dtype not in (INT, UNSIGNED_INT):
        raise poplibs_error(f"{name}: {t!r}; one dimension of int or unsigned int is needed")
    last = startInteger + max(t.numElements() - 1, 0)
    checked_values(np.array([startInteger, last]), t.dtype, name, poplibs_error)
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        regions, counts = split_among_workers(graph.target, regions_of(graph, t), t.dtype)
        lengths = regions.high - regions.low
        graph.add_vertices(
            VertexGroup(
                compute_set=compute_set.id,
                codelet=iota_codelet(t.dtype),
                tile=regions.tile[offsets_of(counts)[:-1]],
                fields={
                    "out": cut_ranges(
                        "out", "output", t, regions.low, regions.high, counts, as_rows=True
                    )
                },
                parameters={"offsets": startInteger + regions.low, "lengths": lengths},
                cycles=indexing_cycles.iota(lengths, counts, t.dtype, graph.target),
            )
        )
        prog.add(Execute(compute_set))
