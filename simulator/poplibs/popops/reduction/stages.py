"""The stages of a reduction: on the tiles of the data, on tiles in between, where the output is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from simulator.codelets.products.reduction import REDUCTIONS
from simulator.graph.geometry.intervals import present
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Execute, Sequence, WriteUndef
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.reduction.plan import (
    grain_of,
    needs_stage_between,
    parts_of_rows,
    tiles_between,
)
from simulator.poplibs.popops.reduction.regions import (
    Memory,
    Partials,
    Regions,
    Slots,
    arrange_slots,
    cut_rows,
    find_blocks,
    find_slots,
    in_memory,
    join_slots,
    share_regions,
    split_runs,
    tile_by_position,
    widen,
)
from simulator.poplibs.popops.reduction.vertices import Output, Stage, add_reduce_vertices


@dataclass(slots=True)
class Stages:
    """Compute sets in their order; the stages of several reductions share them.

    `in_two` are results that two compute sets write, each a part.
    """

    graph: Graph
    compute_sets: list[ComputeSet] = field(default_factory=list)
    in_two: list[Tensor] = field(default_factory=list)

    def at(self, number: int, name: str) -> ComputeSet:
        """Return the compute set of a stage; the first reduction that gets so far names it."""
        if number == len(self.compute_sets):
            self.compute_sets.append(self.graph.addComputeSet(name))
        return self.compute_sets[number]

    def add_to(self, prog: Sequence) -> None:
        """Execute all stages; what two of them write has no value before (Reduction.cpp)."""
        for result in self.in_two:
            prog.add(WriteUndef(result))
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


def make_result(graph: Graph, out: Tensor, update: bool, scale: Tensor | None) -> Result:
    """Look at where the output of a reduction lies."""
    flat = out.flatten()
    tile = tile_by_position(graph, flat)
    memory, number = in_memory(graph, flat)
    return Result(Output(flat, update, scale), tile, memory.place[number])


def add_reduction(progress: Progress, partials: Partials, result: Result, name: str) -> None:
    """Add all stages that reduce values into a result."""
    target = progress.stages.graph.target
    if _are_at_home(partials, result.tile):
        _add_stage(
            progress, partials, partials.tile, f"{name}/ReduceOnTile/InToOutputNoExchange", result
        )
        return
    columns = len(result.tile)
    if len(present(partials.tile * columns + partials.column)) < len(partials.column):
        stage = f"{name}/ReduceOnTile/InToIntermediateNoExchange"
        partials = _add_stage(progress, partials, partials.tile, stage, None)
    partials = partials.single()
    number = 0
    while needs_stage_between(target, partials, columns):
        between = tiles_between(target, partials, columns, progress.operation)
        stage = f"{name}/ReduceStage{number}/IntermediateToIntermediate"
        partials = _add_stage(progress, partials, between, stage, None)
        number += 1
    stage = f"{name}/ReduceFinalStage/IntermediateToOutput"
    _add_stage(progress, partials, result.tile[partials.column], stage, result)


def _are_at_home(partials: Partials, home: IntArray) -> bool:
    """Return whether all values lie on the tile that is the `home` of their column."""
    homes = home.reshape(-1, partials.size)
    is_one = (homes == homes[:, :1]).all(axis=1)
    block = partials.column // partials.size
    return bool((is_one[block] & (partials.tile == homes[block, 0])).all())


def _add_stage(
    progress: Progress,
    partials: Partials,
    tile: IntArray,
    name: str,
    result: Result | None,
    outputs_held: Partials | None = None,
    workers: int = 0,
) -> Partials:
    """Add a stage that reduces each value on `tile`, into the result or new partial results.

    Another compute set puts together what an output has in several runs of memory, each reduced by
    itself, and the parts into which rows are cut where workers would be idle. These go, the parts
    of a region by one vertex, to where regions that are not cut are `outputs_held`; what runs were
    reduced to, by as many vertices as reduced the runs, which are then its `workers` (PopLibs
    lib/popops/reduction/ReductionConnection.cpp, connectTwoStageReductions,
    connectSmallInnerFactorReductions).
    """
    graph, operation = progress.stages.graph, progress.operation
    work, runs = _work_of(graph, partials, tile, result)
    regions, slots = work.regions, work.slots
    if outputs_held is None:
        grain = grain_of(partials.values.dtype, operation)
        regions = share_regions(regions, graph.target.workers, grain)
    out_type = result.output.values.dtype if result else progress.partials_type
    shape = regions.outs, regions.rows, regions.tile
    parts = parts_of_rows(*shape, graph.target.workers, out_type, operation)
    cut = (parts > 1) | runs
    compute_set = progress.stages.at(progress.stage, name)

    def add(output: Output, regions: Regions) -> None:
        most = workers or graph.target.workers
        stage = Stage(graph, compute_set, operation, work.memory, output, work.on_tile, most)
        add_reduce_vertices(stage, regions)

    if not runs:
        output = _output_of(progress, slots, name, result, outputs_held)
        outputs_held = Partials(output.values, slots.column, slots.tile)
        if not cut.all():
            add(output, regions.where(~cut))
    progress.stage += 1
    progress.operation = REDUCTIONS[operation].then or operation
    if cut.any():
        first_vertices = int(np.bincount(regions.tile).max()) if runs else 0
        regions, source = cut_rows(regions.where(cut), parts[cut])
        column, on = slots.column[source], slots.tile[source]
        pieces = Partials(_new_partials(graph, progress.partials_type, on, name), column, on)
        add(Output(pieces.values), regions)
        stage_name = f"{name}/SecondStage"
        second = _add_stage(progress, pieces, on, stage_name, result, outputs_held, first_vertices)
        outputs_held = outputs_held or second
    assert outputs_held is not None
    return outputs_held


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What a stage reduces: its memory, its outputs, the regions of them, and if all is at hand."""

    memory: Memory
    slots: Slots
    regions: Regions
    on_tile: bool


def _work_of(
    graph: Graph, partials: Partials, tile: IntArray, result: Result | None
) -> tuple[_Work, bool]:
    """Return the work of a stage, and whether it only reduces the runs of outputs in memory."""
    memory, number = in_memory(graph, partials.values, partials.size)
    place = result.place if result else None
    if not (partials.tile == tile).all():
        slots, values = find_slots(partials, number, tile, place)
        memory, regions = arrange_slots(slots, values, memory, place)
        return _Work(memory, slots, regions, on_tile=False), False
    blocks, number = find_blocks(partials, number, memory, place)
    slots, values = find_slots(blocks, number, blocks.tile, place)
    runs = split_runs(slots, values, memory.place) if blocks.size == 1 else None
    if runs:
        slots, values = runs
        place = None
    regions = join_slots(slots, values, memory.place, place, blocks.size)
    slots, regions = widen(slots, regions, blocks.size)
    return _Work(memory, slots, regions, on_tile=True), runs is not None


def _output_of(
    progress: Progress,
    slots: Slots,
    name: str,
    result: Result | None,
    outputs_held: Partials | None,
) -> Output:
    """Return where the outputs of a stage go: in the result, where they are held, or anew."""
    if result:
        elements = result.output.values.elements()[slots.column]
        return replace(result.output, values=result.output.values.view(elements))
    if outputs_held:
        columns = int(outputs_held.column.max()) + 1
        key = outputs_held.tile * columns + outputs_held.column
        order = np.argsort(key)
        slots_used = order[np.searchsorted(key[order], slots.tile * columns + slots.column)]
        progress.stages.in_two.append(outputs_held.values)
        return Output(outputs_held.values.view(outputs_held.values.elements()[slots_used]))
    partials = _new_partials(progress.stages.graph, progress.partials_type, slots.tile, name)
    return Output(_by_column(partials, slots))


def _by_column(partials: Tensor, slots: Slots) -> Tensor:
    """View the outputs of tiles, which lie there by column, in the order of their values.

    A vertex whose outputs do not follow one another by column writes them elsewhere, and a copy on
    the tile puts them right (PopLibs lib/popops/reduction/ReductionStages.cpp,
    createInputReductions).
    """
    by_column = np.lexsort((slots.column, slots.tile))
    if (np.diff(by_column) == 1).all():
        return partials
    place = np.empty_like(by_column)
    place[by_column] = np.arange(len(by_column))
    return partials.view(partials.elements()[place])


def _new_partials(graph: Graph, dtype: Type, tiles: IntArray, name: str) -> Tensor:
    """Add a variable for partial results, which come by tile."""
    partials = graph.addVariable(dtype, (len(tiles),), f"{name}/partials")
    first = np.flatnonzero(np.append(True, tiles[1:] != tiles[:-1]))
    graph.map_ranges(partials, first, np.append(first[1:], len(tiles)), tiles[first])
    return partials
