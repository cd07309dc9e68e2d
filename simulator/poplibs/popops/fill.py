"""Filling tensors with a value."""

from __future__ import annotations

import numpy as np

from simulator.codelets import elementwise_cycles
from simulator.codelets.fill import fill_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.intervals import offsets_of, spread
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray, checked_values
from simulator.graph.vertex import VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.regions import (
    Regions,
    debug_name,
    in_memory_order,
    regions_of,
    split_among_workers,
)

COPIED_BYTES = 4  # so small a tensor gets its value by a copy; PopLibs lib/popops/Fill.cpp


@library_call("POPOPS")
def fill(graph: Graph, t: Tensor, prog: Sequence, fillValue: float, debugContext: str = "") -> None:
    """Set every element of a tensor to a value, which its type must be able to hold."""
    _fill(graph, t, prog, fillValue, debug_name(debugContext, "Fill"))


@library_call("POPOPS")
def zero(graph: Graph, t: Tensor, prog: Sequence, debugContext: str = "") -> None:
    """Set every element of a tensor to zero."""
    _fill(graph, t, prog, 0, debug_name(debugContext, "Zero"))


def _fill(graph: Graph, t: Tensor, prog: Sequence, value: float, name: str) -> None:
    held = checked_values(value, t.dtype, name, poplibs_error)
    if held.ndim:
        raise poplibs_error(f"{name}: value has shape {list(held.shape)}; one number is needed")
    with graph.debug_scope(name, "popops"):
        if t.numElements() * t.dtype.size <= COPIED_BYTES:
            constant = graph.addConstant(t.dtype, t.shape, held, "fillValue")
            graph.setTileMapping(constant, 0)
            prog.add(Copy(constant, t))
            return
        compute_set = graph.addComputeSet(name)
        _add_vertices(graph, compute_set, t, held)
        prog.add(Execute(compute_set))


def _add_vertices(graph: Graph, compute_set: ComputeSet, t: Tensor, value: Array) -> None:
    """Add workers: those that have one region, and those that have several."""
    flat = in_memory_order({"out": ("output", t)}, "out")["out"][1]
    regions, ranges = split_among_workers(graph.target, regions_of(graph, flat), t.dtype)
    for several in (False, True):
        chosen = (ranges > 1) == several
        part, counts = _of_vertices(regions, ranges, chosen)
        lengths = part.high - part.low
        cost = elementwise_cycles.fill_1d(lengths, t.dtype, graph.target)
        out = cut_field("out", "output", flat, part.low, part.high)
        if several:
            cost = elementwise_cycles.fill_2d(lengths, counts, t.dtype, graph.target)
            out = cut_ranges("out", "output", flat, part.low, part.high, counts, as_rows=True)
        graph.add_vertices(
            VertexGroup(
                compute_set=compute_set.id,
                codelet=fill_codelet(t.dtype, several=several),
                tile=part.tile[offsets_of(counts)[:-1]],
                fields={"out": out},
                parameters={"in": np.full(len(counts), value)},
                cycles=cost,
            )
        )


def _of_vertices(regions: Regions, ranges: IntArray, chosen: Array) -> tuple[Regions, IntArray]:
    """Take the regions of some of the vertices, and how many each of those has."""
    places = spread(offsets_of(ranges)[:-1][chosen], ranges[chosen])
    part = Regions(regions.low[places], regions.high[places], regions.tile[places])
    return part, ranges[chosen]
