"""The stages of a reduction: on the tiles of the data, on tiles in between, where the output is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from simulator.codelets.reduction import REDUCTIONS
from simulator.graph.errors import TileMappingError
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.intervals import present
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.reduce_plan import (
    grain_of,
    needs_stage_between,
    parts_of_rows,
    tiles_between,
)
from simulator.poplibs.popops.reduce_regions import (
    Partials,
    arrange_slots,
    cut_rows,
    find_blocks,
    find_slots,
    in_memory,
    join_slots,
    share_regions,
    split_runs,
    widen,
)
from simulator.poplibs.popops.reduce_vertices import Output, Stage, add_reduce_vertices


@dataclass(slots=True)
class Stages:
    """Compute sets in their order; the stages of several reductions share them."""

    graph: Graph
    compute_sets: list[ComputeSet] = field(default_factory=list)

    def at(self, number: int, name: str) -> ComputeSet:
        """Return the compute set of a stage; the first reduction that gets so far names it."""
        if number == len(self.compute_sets):
            self.compute_sets.append(self.graph.addComputeSet(name))
        return self.compute_sets[number]

    def add_to(self, prog: Sequence) -> None:
        """Execute all stages."""
        for compute_set in self.compute_sets:
            prog.add(Execute(compute_set))


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The output of a reduction: a flat tensor, its tiles, and its order in their memory."""

    output: Output
    tile: IntArray
    place: IntArray


@dataclass(slots=True)
class Progress:
    """How far a reduction has come: its next stage and what that does to values of which type."""

    stages: Stages
    operation: str
    partials_type: Type
    stage: int = 0


def tile_by_position(graph: Graph, tensor: Tensor) -> IntArray:
    """Return the tile of each element of a flattened tensor; every element must be mapped."""
    low, high, tiles = graph.tile_ranges(tensor)
    if int((high - low).sum()) != tensor.numElements():
        raise TileMappingError(f"variable {tensor.describe()!r}: is not wholly mapped to tiles")
    return np.repeat(tiles, high - low)


def make_result(graph: Graph, out: Tensor, update: bool, scale: Tensor | None) -> Result:
    """Look at where the output of a reduction lies."""
    flat = out.flatten()
    tile = tile_by_position(graph, flat)
    memory, number = in_memory(graph, flat)
    return Result(Output(flat, update, scale), tile, memory.place[number])


def add_reduction(progress: Progress, partials: Partials, result: Result, name: str) -> None:
    """Add all stages that reduce values into a result."""
    target = progress.stages.graph.target
    if (partials.tile == result.tile[partials.column]).all():
        _add_stage(
            progress, partials, partials.tile, f"{name}/ReduceOnTile/InToOutputNoExchange", result
        )
        return
    columns = len(result.tile)
    if len(present(partials.tile * columns + partials.column)) < len(partials.column):
        stage = f"{name}/ReduceOnTile/InToIntermediateNoExchange"
        partials = _add_stage(progress, partials, partials.tile, stage, None)
    number = 0
    while needs_stage_between(target, partials, columns):
        between = tiles_between(target, partials, columns, progress.operation)
        stage = f"{name}/ReduceStage{number}/IntermediateToIntermediate"
        partials = _add_stage(progress, partials, between, stage, None)
        number += 1
    stage = f"{name}/ReduceFinalStage/IntermediateToOutput"
    _add_stage(progress, partials, result.tile[partials.column], stage, result)


def _add_stage(
    progress: Progress, partials: Partials, tile: IntArray, name: str, result: Result | None
) -> Partials:
    """Add a stage that reduces each value on `tile`, into the result or new partial results.

    Another compute set puts together what an output has in several runs of memory, each reduced by
    itself, and the parts into which rows are cut where workers would be idle.
    """
    graph = progress.stages.graph
    dtype, workers = partials.values.dtype, graph.target.workers
    memory, number = in_memory(graph, partials.values)
    place = result.place if result else None
    on_tile, runs = bool((partials.tile == tile).all()), None
    if on_tile:
        size, blocks, number = find_blocks(partials, number, memory.place, place)
        slots, values = find_slots(blocks, number, blocks.tile, place)
        runs = split_runs(slots, values, memory.place) if size == 1 else None
        if runs:
            slots, values = runs
            place = None
        slots, regions = widen(slots, join_slots(slots, values, memory.place, place, size), size)
    else:
        slots, values = find_slots(partials, number, tile, place)
        memory, regions = arrange_slots(slots, values, memory, place)
    regions = share_regions(regions, workers, grain_of(dtype, progress.operation))
    out_type = result.output.values.dtype if result else progress.partials_type
    shape = regions.outs, regions.rows, regions.tile
    parts = parts_of_rows(*shape, workers, out_type, progress.operation)
    in_parts = bool((parts > 1).any())
    if in_parts:
        regions, source = cut_rows(regions, parts)
        slots = replace(slots, column=slots.column[source], tile=slots.tile[source])
    whole = not in_parts and not runs
    if result and whole:
        elements = result.output.values.elements()[slots.column]
        output = replace(result.output, values=result.output.values.view(elements))
    else:
        output = Output(_new_partials(graph, progress.partials_type, slots.tile, name))
    compute_set = progress.stages.at(progress.stage, name)
    stage = Stage(graph, compute_set, progress.operation, memory, output, on_tile)
    add_reduce_vertices(stage, regions)
    progress.stage += 1
    progress.operation = REDUCTIONS[progress.operation].then or progress.operation
    after = Partials(output.values, slots.column, slots.tile)
    if not whole:
        return _add_stage(progress, after, after.tile, f"{name}/SecondStage", result)
    return after


def _new_partials(graph: Graph, dtype: Type, tiles: IntArray, name: str) -> Tensor:
    """Add a variable for partial results, which come by tile."""
    partials = graph.addVariable(dtype, (len(tiles),), f"{name}/partials")
    first = np.flatnonzero(np.append(True, tiles[1:] != tiles[:-1]))
    graph.map_ranges(partials, first, np.append(first[1:], len(tiles)), tiles[first])
    return partials
