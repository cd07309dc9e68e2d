"""The vertices of a planned pooling, and the tiles on which they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulator.codelets.layers import pooling as codelets
from simulator.codelets.layers import pooling_cycles as cycles
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup, cut_ranges
from simulator.poplibs.popnn.pools.parts import Boxes, Parts, Ranges, cut_into_parts
from simulator.poplibs.popnn.pools.plan import Partition
from simulator.poplibs.popnn.pools.tiles import nearest_tiles
from simulator.poplibs.popnn.pools.windows import PoolShape
from simulator.poplibs.popnn.pools.work import counted_work, share_rows, work_list
from simulator.poplibs.popnn.pools.work_lists import (
    divisor_field,
    divisor_lists,
    list_fields,
    make_lists,
)


class Kind(NamedTuple):
    """A pooling vertex; `like_in` and `like_out` name its further fields shaped like in and out."""

    codelet: Callable[[Type, list[IntArray]], Codelet]
    like_in: str = ""
    like_out: str = ""


KINDS = {
    "max": Kind(codelets.max_pooling),
    "sum": Kind(codelets.sum_pooling),
    "average": Kind(codelets.sum_pooling),
    "maxGradient": Kind(codelets.max_pooling_gradient, "fwdActsOut", "fwdActsIn"),
    "maxScale": Kind(codelets.max_pooling_scale, "", "fwdActsOut"),
}


@dataclass(frozen=True, slots=True)
class Grouped:
    """The tensors of a pooling, [group][sample][field...][channel]; some are shaped like `out`."""

    source: Tensor
    like_source: Tensor | None = None
    like_out: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Pooling:
    """A planned pooling."""

    graph: Graph
    kind: str
    shape: PoolShape
    partition: Partition
    introspective: bool
    name: str


def add_pooling(pooling: Pooling, tensors: Grouped, prog: Sequence) -> Tensor:
    """Add the vertices, and give their output, which lies where they are."""
    graph, shape, name = pooling.graph, pooling.shape, pooling.name
    dtype, channels = tensors.source.dtype, pooling.partition.group_channels
    parts = cut_into_parts(shape, pooling.partition)
    out_shape = (tensors.source.dim(0), shape.batch, *shape.outputs, channels)
    source_ranges = parts.inputs.ranges(tensors.source.shape)
    tiles = _tiles(pooling, tensors.source.flatten(), source_ranges)
    out = graph.addVariable(dtype, out_shape, f"{name}/out")
    out_ranges = parts.out.ranges(out_shape)
    flat = out.flatten()
    graph.map_ranges(flat, out_ranges.low, out_ranges.high, np.repeat(tiles, out_ranges.counts))

    kind = KINDS[pooling.kind]
    joined = [
        ("in", tensors.source, source_ranges),
        (kind.like_in, tensors.like_source, source_ranges),
        (kind.like_out, tensors.like_out, out_ranges),
    ]
    fields = {"out": cut_ranges("out", "output", flat, *_columns(out_ranges))}
    for field, tensor, ranges in joined:
        if field and tensor is not None:
            fields[field] = cut_ranges(field, "input", tensor.flatten(), *_columns(ranges))
    summed = _add_vertices(pooling, parts, tiles, fields, dtype)
    prog.add(Execute(graph.compute_sets[summed.compute_set]))
    if pooling.kind == "average":
        _scale(pooling, parts, out, summed, prog)
    return out


def _columns(ranges: Ranges) -> tuple[IntArray, IntArray, IntArray]:
    return ranges.low, ranges.high, ranges.counts


def _tiles(pooling: Pooling, source: Tensor, ranges: Ranges) -> IntArray:
    if pooling.introspective:
        return nearest_tiles(pooling.graph, source, ranges)
    count = len(ranges.counts)
    # By group, sample and field, where the parts are listed by sample, group and field.
    partition = pooling.partition
    number = np.arange(count, dtype=np.int64).reshape(partition.groups, partition.batch, -1)
    return number.transpose(1, 0, 2).reshape(-1)


def _add_vertices(
    pooling: Pooling,
    parts: Parts,
    tiles: IntArray,
    fields: dict[str, Field],
    dtype: Type,
) -> VertexGroup:
    """Add a vertex for each part, with its work lists."""
    graph, shape, kind = pooling.graph, pooling.shape, KINDS[pooling.kind]
    sizes, workers = parts.out.sizes, graph.target.workers
    first = parts.first
    rows = share_rows(sizes[first, 1:], workers)
    items = work_list(rows, shape.windows, sizes[first, 1:], parts.out.begin[first, 2:])
    work = counted_work(items, rows, len(first), workers)
    fields |= list_fields(
        graph, make_lists(parts, rows, items, workers), parts.piece, tiles, pooling.name
    )
    channels = pooling.partition.group_channels
    vectors = channels * dtype.size // 8
    columns = [column[parts.piece] for column in work]
    columns.append(cycles.initial_shares(sizes[:, 1:].prod(axis=1), vectors, workers))
    cost = cycles.COSTS[pooling.kind]
    columns += [np.array(vectors), sizes[:, :1]]
    by_worker = cost(*columns, cycles.unpacking_of(graph.target), workers)
    elements = work.elements[parts.piece].sum(axis=1)
    scales = _scales(pooling, parts)
    group = VertexGroup(
        compute_set=graph.addComputeSet(f"{pooling.name}/Pool").id,
        codelet=kind.codelet(dtype, [window.input_of() for window in shape.windows]),
        tile=tiles,
        fields=fields,
        parameters=_geometry(parts, channels)
        | {"operations": elements * sizes[:, 0] * channels, "scale": scales},
        cycles=by_worker.max(axis=1),
    )
    graph.add_vertices(group)
    return group


def _geometry(parts: Parts, channels: int) -> dict[str, Array]:
    """Return where the boxes of each vertex are, for its values."""
    return {
        "outerOut": parts.out.sizes[:, :2],
        "sizeOut": parts.out.sizes[:, 2:],
        "beginOut": parts.out.begin[:, 2:],
        "sizeIn": parts.inputs.sizes[:, 2:],
        "beginIn": parts.inputs.begin[:, 2:],
        "channels": np.full(len(parts.piece), channels),
    }


# Averages
def _used_range(pooling: Pooling, parts: Parts) -> tuple[IntArray, IntArray]:
    """Return the least and most inputs, but none, of the outputs of each part."""
    low, high = np.ones(len(parts.piece), np.int64), np.ones(len(parts.piece), np.int64)
    for dimension, window in enumerate(pooling.shape.windows, 2):
        counts = window.counts()
        bounds = np.stack([parts.out.begin[:, dimension], parts.out.end[:, dimension]], axis=1)
        flat = np.minimum(bounds.reshape(-1), len(counts))
        some = np.append(np.where(counts, counts, window.kernel), window.kernel)
        low = low * np.minimum.reduceat(some, flat)[::2]
        high = high * np.maximum.reduceat(np.append(counts, 0), flat)[::2]
    return low, high


def _scales(pooling: Pooling, parts: Parts) -> Array:
    """Return the factor of each vertex: of an average, where all outputs have as many inputs."""
    if pooling.kind != "average":
        return np.ones(len(parts.piece), dtype=np.float32)
    low, high = _used_range(pooling, parts)
    return np.where(low == high, 1 / np.maximum(high, 1), 1).astype(np.float32)


def _scale(
    pooling: Pooling, parts: Parts, out: Tensor, summed: VertexGroup, prog: Sequence
) -> None:
    """Divide the sums of parts whose outputs have different numbers of inputs."""
    graph, name = pooling.graph, f"{pooling.name}/Scale"
    compute_set = graph.addComputeSet(name)
    prog.add(Execute(compute_set))
    low, high = _used_range(pooling, parts)
    uneven = np.flatnonzero(low != high)
    if not len(uneven):
        return
    used = pooling.shape.used_positions()
    boxes = Boxes(parts.out.begin[uneven], parts.out.end[uneven])
    ranges = boxes.ranges(out.shape)
    tiles = summed.tile[uneven]
    lists = divisor_lists(boxes, used, graph.target.workers)
    parameters = {key: values[uneven] for key, values in summed.parameters.items()}
    parameters["operations"] = boxes.sizes.prod(axis=1) * out.dim(out.rank() - 1)
    fields = {
        "inOut": cut_ranges("inOut", "inout", out.flatten(), *_columns(ranges)),
        "scaleWorklist": divisor_field(graph, lists, tiles, name),
    }
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=codelets.selective_scaling(out.dtype, used),
            tile=tiles,
            fields=fields,
            parameters=parameters,
            cycles=cycles.selective_scaling(np.ones(len(uneven), dtype=np.int64)),
        )
    )
