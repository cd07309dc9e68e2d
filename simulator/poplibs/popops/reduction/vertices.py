"""The vertices of one stage of a reduction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import sum_by_vertex
from simulator.codelets.products.reduction import (
    CONTINUOUS,
    GENERAL,
    GENERAL_START,
    ONE_INPUT_TO_ONE_OUTPUT,
    STRIDED,
    Steps,
    continuous_reduce,
    general_reduce_cycles,
    reduce_codelet,
    scalar_reduce_cycles,
    strided_reduce_cycles,
)
from simulator.graph.geometry.intervals import cut, offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Direction, Field, VertexGroup, cut_field, cut_ranges
from simulator.poplibs.popops.reduction.regions import Memory, Regions
from simulator.poplibs.popops.regions import share_among_workers


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Where the outputs of a stage go, slot by slot, and what is done to each at the end."""

    values: Tensor
    update: bool = False
    scale: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A stage of a reduction: what is reduced, and whether all of it is on the tile already.

    The regions of a tile are shared by so many `workers` at most.
    """

    graph: Graph
    compute_set: ComputeSet
    operation: str
    memory: Memory
    output: Output
    on_tile: bool
    workers: int


def add_reduce_vertices(stage: Stage, regions: Regions) -> None:
    """Add the vertices: one region each of regular ones, or the several regions of a worker.

    A worker's outputs that have as many values each, one output behind the other, are a continuous
    reduction. Two regular regions of a worker are two vertices, as their state is no larger than
    that of a general one (PopLibs lib/popops/reduction/ReductionConnection.cpp, findVertexPlan).
    """
    tiles, counts = share_among_workers(regions.tile, stage.workers)
    first = offsets_of(counts)[:-1]
    stride = _stride(stage, regions)
    pairs = (counts == 2) & (np.minimum.reduceat(stride, first) >= 0)
    pairs &= ~_are_continuous(stage, regions, stride, first)
    if pairs.any():
        tiles, counts = (
            np.repeat(tiles, 1 + pairs),
            np.repeat(np.where(pairs, 1, counts), 1 + pairs),
        )
        first = offsets_of(counts)[:-1]
    regular = (counts == 1) & (stride[first] >= 0)
    outs, rows = regions.outs[first], regions.rows[first]
    one = regular & (outs == 1) & ((stride[first] == 1) | (rows == 1))
    _add_regular(stage, regions.where(first[one]), ONE_INPUT_TO_ONE_OUTPUT, stride[first[one]])
    strided = first[regular & ~one]
    _add_regular(stage, regions.where(strided), STRIDED, stride[strided])
    continuous = (counts > 1) & _are_continuous(stage, regions, stride, first)
    row = np.flatnonzero(continuous)
    vertex_regions = regions.where(spread(first[row], counts[row]))
    _add_continuous(stage, vertex_regions, tiles[row], counts[row])
    general = np.flatnonzero(~regular & ~continuous)
    vertex_regions = regions.where(spread(first[general], counts[general]))
    _add_general(stage, vertex_regions, tiles[general], counts[general])


def _stride(stage: Stage, regions: Regions) -> IntArray:
    """Return the step from row to row of each region, in its field; -1 where there is no such step.

    What an exchange brings is put row behind row. What lies on the tile is used where it lies, from
    the first row to the end of the last, when no gap of memory is between.
    """
    if not stage.on_tile:
        return regions.outs
    starts, rows = regions.starts, regions.rows
    step = np.zeros(len(regions.first), dtype=np.int64)
    step[:-1] = np.diff(regions.first)
    end_of_region = starts + rows - 1
    has_step = rows > 1
    stride = np.where(has_step, step[starts], regions.outs)
    step[end_of_region] = stride
    even = np.logical_and.reduceat(step == np.repeat(stride, rows), starts)
    low, high = regions.first[starts], regions.first[end_of_region] + regions.outs - 1
    place = stage.memory.place
    even &= place[high] - place[low] == high - low
    return np.where(even, stride, -1)


def _are_continuous(stage: Stage, regions: Regions, stride: IntArray, first: IntArray) -> Array:
    """Return of each vertex whether its regions are outputs with their values in one row of memory.

    `first` is the first region of each vertex.
    """
    place = stage.memory.place
    begin = regions.first[regions.starts]
    last = regions.first[regions.starts + regions.rows - 1]
    alike = (regions.outs == 1) & ((stride == 1) | (regions.rows == 1))
    follows = (begin[1:] == last[:-1] + 1) & (place[begin[1:]] == place[last[:-1]] + 1)
    follows &= (np.diff(regions.rows) == 0) & (np.diff(regions.slot) == 1)
    alike[1:] &= follows | np.isin(np.arange(1, len(alike)), first)
    are_rows: Array = np.logical_and.reduceat(alike, first)
    return are_rows


def _add_regular(stage: Stage, regions: Regions, special: int, stride: IntArray) -> None:
    """Add a vertex for each region, whose values stand in its field at even steps."""
    if not len(regions.tile):
        return
    values, dtype = stage.memory.values, stage.memory.values.dtype
    outs, rows = regions.outs, regions.rows
    if stage.on_tile:
        low = regions.first[regions.starts]
        high = regions.first[regions.starts + rows - 1] + outs
        partials = cut_field("partials", "input", values, low, high)
    else:
        width = np.repeat(outs, rows)
        partials = cut_ranges(
            "partials", "input", values, regions.first, regions.first + width, rows
        )
    if special == ONE_INPUT_TO_ONE_OUTPUT:
        cycles = scalar_reduce_cycles(
            rows, dtype, stage.output.values.dtype, operation=stage.operation
        )
    else:
        cycles = strided_reduce_cycles(
            outs,
            rows,
            dtype,
            stage.output.values.dtype,
            operation=stage.operation,
            update=stage.output.update,
        )
    out = _out_field(stage, regions, np.ones_like(outs), as_rows=False)
    steps = Steps(np.zeros_like(outs), outs, rows, stride)
    _add_group(stage, special, regions.tile, [partials, out], steps, np.ones_like(outs), cycles)


def _add_continuous(stage: Stage, regions: Regions, tiles: IntArray, counts: IntArray) -> None:
    """Add vertices that reduce one row of memory, the values of one output behind the other's."""
    if not len(tiles):
        return
    head = offsets_of(counts)[:-1]
    rows = regions.rows[head]
    low, slot = regions.first[regions.starts][head], regions.slot[head]
    values, output = stage.memory.values, stage.output
    way: Direction = "inout" if output.update else "output"
    fields = [
        cut_field("partials", "input", values, low, low + counts * rows),
        cut_field("out", way, output.values, slot, slot + counts),
    ]
    ones = np.ones_like(regions.rows)
    number = spread(np.zeros_like(counts), counts)
    steps = Steps(number * regions.rows, ones, regions.rows, ones)
    cycles = continuous_reduce(counts, rows, values.dtype, output.update)
    _add_group(stage, CONTINUOUS, tiles, fields, steps, counts, cycles)


def _add_general(stage: Stage, regions: Regions, tiles: IntArray, counts: IntArray) -> None:
    """Add vertices of several regions; values that lie apart on the tile are edges of their own."""
    if not len(tiles):
        return
    width = np.repeat(regions.outs, regions.rows)
    heads = _row_heads(stage, regions, width)
    edges = sum_by_vertex(heads.astype(np.int64), regions.rows)
    low, high = regions.first, regions.first + width
    rows_of_edge = np.diff(np.append(np.flatnonzero(heads), len(heads)))
    partials = _list_field(
        stage.memory.values, low, high, rows_of_edge, sum_by_vertex(edges, counts)
    )
    size = regions.outs * regions.rows
    begins = offsets_of(size)[:-1]
    first = begins - np.repeat(begins[offsets_of(counts)[:-1]], counts)
    steps = Steps(first, regions.outs, regions.rows, regions.outs)
    region_cycles = general_reduce_cycles(
        regions.outs,
        edges,
        regions.rows,
        stage.memory.values.dtype,
        stage.output.update,
        operation=stage.operation,
        out_type=stage.output.values.dtype,
    )
    cycles = GENERAL_START + sum_by_vertex(region_cycles, counts)
    out = _out_field(stage, regions, counts, as_rows=True)
    _add_group(stage, GENERAL, tiles, [partials, out], steps, counts, cycles)


def _row_heads(stage: Stage, regions: Regions, width: IntArray) -> Array:
    """Return which rows begin an edge: those that do not follow the row before them in memory."""
    heads = np.zeros(len(width), dtype=bool)
    if stage.on_tile:
        place = stage.memory.place
        behind = place[regions.first[:-1] + width[:-1] - 1] + 1
        heads[1:] = place[regions.first[1:]] != behind
    heads[regions.starts] = True
    return heads


def _list_field(
    values: Tensor, low: IntArray, high: IntArray, ranges: IntArray, edges: IntArray
) -> Field:
    """Connect vertex v to the next `edges[v]` edges, each of the next `ranges[edge]` ranges."""
    begins, lengths, pieces = cut(values.begins, values.lengths, low, high)
    bounds = offsets_of(ranges)
    starts = pieces[bounds[offsets_of(edges)]]
    rows = np.diff(offsets_of(high - low)[bounds])
    columns = (begins, lengths, starts, edges)
    return Field(values.graph, "partials", values.dtype, "input", *columns, rows=rows)


def _out_field(stage: Stage, regions: Regions, counts: IntArray, *, as_rows: bool) -> Field:
    way: Direction = "inout" if stage.output.update else "output"
    low, high = regions.slot, regions.slot + regions.outs
    return cut_ranges("out", way, stage.output.values, low, high, counts, as_rows=as_rows)


def _add_group(
    stage: Stage,
    special: int,
    tiles: IntArray,
    fields: list[Field],
    steps: Steps,
    counts: IntArray,
    cycles: IntArray,
) -> None:
    output = stage.output
    if output.scale is not None:
        none = np.zeros_like(tiles)
        fields = [*fields, cut_field("scale", "input", output.scale.flatten(), none, none + 1)]
    codelet = reduce_codelet(
        stage.operation,
        stage.memory.values.dtype,
        special,
        output.values.dtype,
        update=output.update,
        scaled=output.scale is not None,
    )
    stage.graph.add_vertices(
        VertexGroup(
            compute_set=stage.compute_set.id,
            codelet=codelet,
            tile=tiles,
            fields={field.name: field for field in fields},
            parameters={**steps._asdict(), "regions": counts},
            cycles=cycles,
        )
    )
