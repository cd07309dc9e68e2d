"""Add up the parts of sums, and give the result its type."""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.reduction import reduce_add_codelet, reduce_add_cycles
from simulator.graph.graph import Graph
from simulator.graph.intervals import offsets_of
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.vertex import VertexGroup, cut_field, cut_ranges
from simulator.poplibs.poplin.multiply import Partials
from simulator.poplibs.poplin.plan import Plan
from simulator.poplibs.popops.cast import cast


def combine(graph: Graph, plan: Plan, partials: Partials, prog: Sequence, name: str) -> Tensor:
    """Give [g][co][n][*field] of the problem's output type."""
    out_type = plan.problem.out_type
    if plan.sums == 1:
        whole = partials.tensor
        if out_type != plan.method.partials:
            whole = cast(graph, whole, out_type, prog, name)
        return partials.result(whole, partials.places)
    return _reduced(graph, plan, partials, prog, name)


def _reduced(graph: Graph, plan: Plan, partials: Partials, prog: Sequence, name: str) -> Tensor:
    """Let the tiles of each sum add up a share of its outputs."""
    out_type, sums = plan.problem.out_type, plan.sums
    sizes = partials.sizes[::sums]
    cells = len(sizes)
    grain = 16 // plan.method.partials.size
    steps = ceil_div(sizes, grain)
    number = np.arange(sums + 1, dtype=np.int64)
    bounds = np.minimum(steps[:, None] * number // sums * grain, sizes[:, None])
    cell, share = np.indices((cells, sums)).reshape(2, -1)
    first, end = bounds[cell, share], bounds[cell, share + 1]
    kept = np.flatnonzero(end > first)
    kept = kept[np.argsort((end - first)[kept], kind="stable")]  # those of one size together
    cell, share, first, end = cell[kept], share[kept], first[kept], end[kept]
    places = offsets_of(sizes)
    out = graph.addVariable(out_type, (int(places[-1]),), f"{name}/Reduce/out")
    tiles = cell * sums + share
    graph.map_ranges(out, places[cell] + first, places[cell] + end, tiles)
    blocks = partials.places.reshape(cells, sums)[cell]
    low = (blocks + first[:, None]).reshape(-1)
    high = (blocks + end[:, None]).reshape(-1)
    ranges = np.full(len(kept), sums, dtype=np.int64)
    compute_set = graph.addComputeSet(f"{name}/Reduce")
    source = partials.tensor
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=reduce_add_codelet(plan.method.partials, out_type),
            tile=tiles,
            fields={
                "partials": cut_ranges(
                    "partials", "input", source, low, high, ranges, as_rows=True
                ),
                "out": cut_field("out", "output", out, places[cell] + first, places[cell] + end),
            },
            parameters={"splits": ranges},
            cycles=reduce_add_cycles(graph.target, plan.method.partials)(end - first, sums),
        )
    )
    prog.add(Execute(compute_set))
    return partials.result(out, places[:-1])
