"""Reductions over dimensions: on the tile where the data is, then across tiles."""

from __future__ import annotations

from collections.abc import Sequence as Many
from enum import Enum

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.reduction import (
    reduce_codelet,
    scalar_reduce_cycles,
    strided_reduce_cycles,
)
from simulator.graph.errors import PoplarError, TileMappingError
from simulator.graph.graph import Graph
from simulator.graph.intervals import offsets_of, spread
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name, share_among_workers
from simulator.poplibs.poputil import mapTensorLinearly


class Operation(Enum):
    """What a reduction does."""

    ADD = "ADD"
    MUL = "MUL"
    MAX = "MAX"
    MIN = "MIN"


@library_call("POPOPS")
def reduce(
    graph: Graph,
    tensor: Tensor,
    dims: Many[int],
    operation: Operation,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Reduce dimensions of a tensor; the result is spread linearly over the tiles."""
    shape = tuple(size for axis, size in enumerate(tensor.shape) if axis not in set(dims))
    out = graph.addVariable(tensor.dtype, shape, debug_name(debugContext, "Reduce/out"))
    mapTensorLinearly(graph, out)
    reduceWithOutput(graph, tensor, out, dims, operation, prog, debugContext)
    return out


@library_call("POPOPS")
def reduceWithOutput(
    graph: Graph,
    tensor: Tensor,
    out: Tensor,
    dims: Many[int],
    operation: Operation,
    prog: Sequence,
    debugContext: str = "",
) -> None:
    """Reduce dimensions of a tensor into `out`, which is mapped already."""
    name = debug_name(debugContext, "Reduce")
    columns = _columns(tensor, dims, name)
    if columns.dim(0) != out.numElements() or out.dtype != tensor.dtype:
        raise PoplarError(f"{name}: {tensor!r} over {list(dims)} does not fit {out!r}")
    kind = Operation(operation).value
    with graph.debug_scope(name, "popops"):
        flat = columns.flatten()
        column = np.repeat(np.arange(columns.dim(0), dtype=np.int64), columns.dim(1))
        tiles = _tile_by_position(graph, flat)
        key = tiles * columns.dim(0) + column
        order = np.argsort(key, kind="stable")
        _, first, sizes = np.unique(key[order], return_index=True, return_counts=True)
        partial_tile, partial_column = tiles[order][first], column[order][first]
        if int(sizes.max()) > 1:
            stage = f"{name}/ReduceOnTile/InToIntermediateNoExchange"
            partials = graph.addVariable(tensor.dtype, (len(first),), f"{stage}/partials")
            positions = np.arange(len(first), dtype=np.int64)
            graph.map_ranges(partials, positions, positions + 1, partial_tile)
            inputs = flat.view(flat.elements()[order])
            _add_stage(graph, prog, stage, kind, inputs, sizes, partials, partial_tile)
            flat, column = partials, partial_column
        _final_stage(graph, prog, name, kind, flat, column, out)


def _columns(tensor: Tensor, dims: Many[int], name: str) -> Tensor:
    """View a tensor as [kept elements][reduced elements]."""
    reduced = sorted(set(dims))
    if not reduced or reduced[0] < 0 or reduced[-1] >= tensor.rank():
        raise PoplarError(f"{name}: dimensions {list(dims)} of {tensor!r}")
    if 0 in tensor.shape:
        raise PoplarError(f"{name}: {tensor!r} has no elements to reduce")
    kept = [axis for axis in range(tensor.rank()) if axis not in reduced]
    rows = int(np.prod([tensor.shape[axis] for axis in kept], dtype=np.int64))
    return tensor.dimShuffle([*kept, *reduced]).reshape((rows, tensor.numElements() // rows))


def _tile_by_position(graph: Graph, tensor: Tensor) -> IntArray:
    low, high, tiles = graph.tile_ranges(tensor)
    if int((high - low).sum()) != tensor.numElements():
        raise TileMappingError(f"variable {tensor.describe()!r}: is not wholly mapped to tiles")
    return np.repeat(tiles, high - low)


def _final_stage(
    graph: Graph,
    prog: Sequence,
    name: str,
    kind: str,
    values: Tensor,
    column: IntArray,
    out: Tensor,
) -> None:
    """Reduce the values of each column on the tile of its output."""
    stage = f"{name}/ReduceFinalStage/IntermediateToOutput"
    flat = out.flatten()
    tiles = _tile_by_position(graph, flat)
    outputs = np.argsort(tiles, kind="stable")
    rank = np.empty(len(outputs), dtype=np.int64)
    rank[outputs] = np.arange(len(outputs))
    order = np.argsort(rank[column], kind="stable")
    sizes = np.bincount(rank[column], minlength=len(outputs))
    inputs = values.view(values.elements()[order])
    target = flat.view(flat.elements()[outputs])
    _add_stage(graph, prog, stage, kind, inputs, sizes, target, tiles[outputs])


def _add_stage(
    graph: Graph,
    prog: Sequence,
    name: str,
    kind: str,
    inputs: Tensor,
    sizes: IntArray,
    out: Tensor,
    tiles: IntArray,
) -> None:
    """Add a compute set that reduces the next `sizes[i]` inputs into output i, on `tiles[i]`.

    Outputs come sorted by tile, and are shared among its workers.
    """
    compute_set = graph.addComputeSet(name)
    vertex_tiles, outs = share_among_workers(tiles, graph.target.workers)
    ins = sum_by_vertex(sizes, outs)
    out_bounds, in_bounds = offsets_of(outs), offsets_of(ins)
    scalar = outs == 1
    cycles = np.where(
        scalar,
        scalar_reduce_cycles(ins, inputs.dtype),
        strided_reduce_cycles(outs, ceil_div(ins, outs), inputs.dtype),
    )
    for specialisation, mask in ((2, scalar), (3, ~scalar)):
        chosen: Array = np.flatnonzero(mask)
        partials = sizes[spread(out_bounds[chosen], outs[chosen])]
        fields = {
            "in": cut_field("in", "input", inputs, in_bounds[chosen], in_bounds[chosen + 1]),
            "out": cut_field("out", "output", out, out_bounds[chosen], out_bounds[chosen + 1]),
        }
        codelet = reduce_codelet(kind, inputs.dtype, specialisation)
        graph.add_vertices(
            VertexGroup(
                compute_set=compute_set.id,
                codelet=codelet,
                tile=vertex_tiles[chosen],
                fields=fields,
                parameters={"partials": partials},
                cycles=cycles[chosen],
            )
        )
    prog.add(Execute(compute_set))
