"""Whether a tensor holds what is no number (popops/NaN.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.indexing import not_numbers as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import BOOL, FLOAT, HALF, IntArray
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.elementwise.fill import zero
from simulator.poplibs.popops.reduction.reduce import Operation, reduce
from simulator.poplibs.popops.regions import (
    Regions,
    debug_name,
    in_memory_order,
    regions_of,
    split_among_workers,
)


@library_call("POPOPS")
def hasNaN(graph: Graph, src: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return whether an element of a tensor of float or half is NaN: one bool.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popops.hasNaN(trial.graph, trial.tensor([1.0, float("inf")]), trial.prog))
    False
    """
    return _has(graph, src, prog, debug_name(debugContext, "hasNaN"), infinities=False)


@library_call("POPOPS")
def hasNaNOrInf(graph: Graph, src: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Return whether an element of a tensor of float or half is NaN or infinite: one bool.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popops.hasNaNOrInf(trial.graph, trial.tensor([1.0, float("inf")]), trial.prog))
    True
    """
    return _has(graph, src, prog, debug_name(debugContext, "hasNaNOrInf"), infinities=True)


def _has(graph: Graph, src: Tensor, prog: Sequence, name: str, *, infinities: bool) -> Tensor:
    if src.dtype not in (FLOAT, HALF) or not src.numElements():
        raise poplibs_error(f"{name}: {src!r}; elements of float or half are needed")
    with graph.debug_scope(name, "popops"):
        flat = in_memory_order({"in": ("input", src)}, "in")["in"][1]
        regions = regions_of(graph, flat)
        _, which, counts = np.unique(regions.tile, return_inverse=True, return_counts=True)
        single = counts[which] == 1
        compute_set = graph.addComputeSet(f"{name}/hasNaNOrInf-eval")
        parts = [
            _add(graph, compute_set, flat, regions.where(mask), name, several, infinities)
            for several, mask in ((False, single), (True, ~single))
            if mask.any()
        ]
        if single.any():
            zero(graph, parts[0], prog, f"{name}/hasNaNOrInf-clear")
        prog.add(Execute(compute_set))
        most = reduce(graph, concat(parts), FLOAT, [0], Operation.MAX, prog, name)
        return cast(graph, most, BOOL, prog, name)


def _add(
    graph: Graph,
    compute_set: ComputeSet,
    flat: Tensor,
    regions: Regions,
    name: str,
    several: bool,
    infinities: bool,
) -> Tensor:
    """Add a supervisor for each region, or workers that share the regions of a tile."""
    dtype, low, high, tiles = flat.dtype, regions.low, regions.high, regions.tile
    if several:
        pieces, ranges = split_among_workers(graph.target, regions, dtype)
        low, high, tiles = pieces.low, pieces.high, pieces.tile[offsets_of(ranges)[:-1]]
        read = cut_ranges("in", "input", flat, low, high, ranges, as_rows=True)
        cycles = vertices.several_regions(high - low, ranges, dtype, infinities=infinities)
    else:
        read = cut_field("in", "input", flat, low, high)
        cycles = vertices.one_region(high - low, dtype, graph.target, infinities=infinities)
    codelet = vertices.not_number_codelet(dtype, several=several, infinities=infinities)
    return _grouped(graph, compute_set, codelet, tiles, read, cycles, name)


def _grouped(
    graph: Graph,
    compute_set: ComputeSet,
    codelet: Codelet,
    tiles: IntArray,
    read: Field,
    cycles: IntArray,
    name: str,
) -> Tensor:
    """Add vertices that write a float each, on their tile."""
    places = np.arange(len(tiles))
    out = graph.addVariable(FLOAT, [len(tiles)], f"{name}/tileHasNaNOrInf")
    graph.map_ranges(out, places, places + 1, tiles)
    supervisor = codelet.supervisor
    label, way = ("outSetIfFound", "inout") if supervisor else ("out", "output")
    written = cut_field(label, way, out, places, places + 1)  # type: ignore[arg-type]
    fields = {"in": read, label: written}
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, {}, cycles))
    return out
