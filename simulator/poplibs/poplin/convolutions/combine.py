"""Add up the parts of sums, and give the result its type."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.reduction import reduce_add, reduce_add_codelet
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import VertexGroup, cut_field, cut_ranges
from simulator.poplibs.poplin.convolutions.multiply import Partials
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.reduce_stages import depths
from simulator.poplibs.popops.elementwise.cast import cast


def combine(graph: Graph, plan: Plan, partials: Partials, prog: Sequence, name: str) -> Tensor:
    """Return [g][co][n][*field] of the problem's output type."""
    out_type = plan.problem.out_type
    if plan.sums == 1:
        summed = partials.tensor
        if out_type != plan.method.partials:
            summed = cast(graph, summed, out_type, prog, name)
        return partials.result(summed, partials.places)
    return _reduced(graph, plan, partials, prog, name)


def _reduced(graph: Graph, plan: Plan, partials: Partials, prog: Sequence, name: str) -> Tensor:
    """Add up stage by stage; the tiles of what is added share the outputs."""
    sums, tensor = plan.sums, partials.tensor
    sizes = partials.sizes[::sums]
    places = partials.places.reshape(-1, sums)
    stages = depths(sums)
    for number, parts_after in enumerate(stages):
        last = parts_after == 1
        out_type = plan.problem.out_type if last else tensor.dtype
        out = graph.addVariable(
            out_type,
            (int(sizes.sum()) * parts_after,),
            f"{name}/Reduce{'' if last else number}/out",
        )
        stage = f"{name}/Reduce" + ("" if len(stages) == 1 else f"/Stage{number}")
        compute_set = graph.addComputeSet(stage)
        begins = offsets_of(np.repeat(sizes, parts_after))[:-1].reshape(-1, parts_after)
        grain = grain_of(plan, graph.target.getVectorWidth(out_type))
        shares = shares_of(plan, sizes, places.shape[1], parts_after, grain)
        graph.map_ranges(out, *_out_ranges(shares, begins), shares.tile)
        for rows in np.unique(shares.rows).tolist():
            cell_shares = Shares(*(column[shares.rows == rows] for column in shares))
            _add_vertices(graph, compute_set, tensor, out, (places, begins), cell_shares, int(rows))
        prog.add(Execute(compute_set))
        tensor, places = out, begins
    return partials.result(tensor, places[:, 0])


class Shares(NamedTuple):
    """What each tile adds: outputs [first, end) of a cell, of `rows` parts from part `begin` on."""

    cell: IntArray
    part: IntArray
    begin: IntArray
    rows: IntArray
    tile: IntArray
    first: IntArray
    end: IntArray


def grain_of(plan: Plan, width: int) -> int:
    """Return the outputs that stay together: a group, in whole vectors of the result.

    As in PopLibs (lib/poplin/ConvReduce.cpp).
    """
    return ceil_div(max(plan.method.out_group, width), width) * width


def shares_of(plan: Plan, sizes: IntArray, parts: int, merged_parts: int, grain: int) -> Shares:
    """Share the outputs of each cell among the tiles of the parts that become one, in grains.

    No more tiles are used than the largest share makes necessary, as in PopLibs
    (lib/poputil/Util.cpp, splitRegions).
    """
    sums = plan.sums
    bounds = np.arange(merged_parts + 1, dtype=np.int64) * parts // merged_parts
    tiles = np.arange(merged_parts + 1, dtype=np.int64) * sums // merged_parts
    steps = np.repeat(ceil_div(sizes, grain), merged_parts)
    grains_per_tile = ceil_div(steps, np.tile(np.diff(tiles), len(sizes)))
    used = ceil_div(steps, grains_per_tile)
    group = np.repeat(np.arange(len(sizes) * merged_parts), used)
    cell, part = group // merged_parts, group % merged_parts
    place = spread(np.zeros_like(used), used)
    first = np.minimum(steps[group] * place // used[group] * grain, sizes[cell])
    end = np.minimum(steps[group] * (place + 1) // used[group] * grain, sizes[cell])
    tile = plan.tiles[cell * sums + tiles[part] + place]
    shares = Shares(cell, part, bounds[part], np.diff(bounds)[part], tile, first, end)
    order = np.argsort(end - first, kind="stable")  # those of one size together
    return Shares(*(column[order] for column in shares))


def _out_ranges(shares: Shares, begins: IntArray) -> tuple[IntArray, IntArray]:
    begin = begins[shares.cell, shares.part]
    return begin + shares.first, begin + shares.end


def _add_vertices(
    graph: Graph,
    compute_set: ComputeSet,
    tensor: Tensor,
    out: Tensor,
    places: tuple[IntArray, IntArray],
    shares: Shares,
    rows: int,
) -> None:
    """Add the vertices that add so many rows each."""
    numbers = shares.begin[:, None] + np.arange(rows, dtype=np.int64)
    blocks = places[0][shares.cell[:, None], numbers]
    low = (blocks + shares.first[:, None]).reshape(-1)
    high = (blocks + shares.end[:, None]).reshape(-1)
    ranges = np.full(len(shares.cell), rows, dtype=np.int64)
    outs = shares.end - shares.first
    cycles = reduce_add(outs, np.array(rows), tensor.dtype, graph.target, out.dtype)
    fields = {
        "partials": cut_ranges("partials", "input", tensor, low, high, ranges, as_rows=True),
        "out": cut_field("out", "output", out, *_out_ranges(shares, places[1])),
    }
    codelet = reduce_add_codelet(tensor.dtype, out.dtype)
    graph.add_vertices(
        VertexGroup(compute_set.id, codelet, shares.tile, fields, {"splits": ranges}, cycles)
    )
