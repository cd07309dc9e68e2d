"""Tensors as plans of slices lay them out: which tile has which rows, columns and offsets.

As in PopLibs lib/popops/DynamicSlice.cpp. Tensors have a first dimension of matrices in a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.slicing.planned.partitioned import Partition, add_partitioned
from simulator.poplibs.popops.slicing.planned.slice_plan import SlicePlan

INDICES_PER_TILE = 32  # PopLibs lib/popops/DynamicSlice.cpp: minIndicesPerTile


def check_planned(
    name: str,
    plan: SlicePlan,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    groups: int,
    target: Target,
) -> None:
    """Raise poplibs_error when a plan is not one of these slices."""
    if plan.isNull:
        raise poplibs_error(f"{name}: no plan; see popops.embedding.plan")
    if list(dims) != [0] or list(sizes) != [1] or len(shape) != 2:
        raise poplibs_error(
            f"{name}: slices {list(sizes)} of dimensions {list(dims)} of {list(shape)}; a plan is "
            "for slices of 1 row, dimension 0, of a matrix"
        )
    if plan.tiles > target.num_tiles:
        raise poplibs_error(
            f"{name}: the plan is for {plan.tiles} tiles; the target has {target.num_tiles}"
        )
    if plan.groupSize != groups:
        raise poplibs_error(f"{name}: {groups} matrices; the plan is for {plan.groupSize}")


def plan_tile(plan: SlicePlan, group: Any, lookup: Any, sliced: Any, unsliced: Any) -> IntArray:
    """Return the tile of each part of a planned operation."""
    part = (group * plan.lookupSplit + lookup) * plan.slicedDimSplit + sliced
    tile: IntArray = part * plan.unslicedDimSplit + unsliced
    return tile


def base_partition(shape: Sequence[int], plan: SlicePlan) -> Partition:
    """Return the parts of a tensor [group][row][column]."""
    return Partition(
        (shape[0], shape[1], shape[2]),
        (plan.groupSplit, plan.slicedDimSplit, plan.unslicedDimSplit),
    )


def base_mapping(
    target: Target, dtype: Type, partition: Partition, plan: SlicePlan
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the parts [low, high) of memory of a planned tensor, and their tiles.

    Where offsets are split, the tiles that share a part of the matrix hold equal shares of it.
    """
    grain = lcm(
        plan.unslicedGrainSize,
        max(target.exchange_bytes_per_cycle * target.getTilesPerSharedExchangeBus(), dtype.size)
        // dtype.size,
    )
    rows, columns = (np.diff(partition.bounds(axis)) for axis in (1, 2))
    size = (rows[:, None] * columns)[None, :, :, None]
    share = ceil_div(ceil_div(size, grain), plan.lookupSplit) * grain
    matrix = np.arange(partition.shape[0], dtype=np.int64)
    group, within = matrix // partition.steps[0], matrix % partition.steps[0]
    start = partition.starts()[group][..., None] + within[:, None, None, None] * size
    lookup = np.arange(plan.lookupSplit, dtype=np.int64)
    low, high = (start + np.minimum(size, part * share) for part in (lookup, lookup + 1))
    sliced = np.arange(len(rows), dtype=np.int64)[:, None, None]
    unsliced = np.arange(len(columns), dtype=np.int64)[:, None]
    tile = plan_tile(plan, group[:, None, None, None], lookup, sliced, unsliced)
    filled = high > low
    return low[filled], high[filled], np.broadcast_to(tile, filled.shape)[filled]


def planned_base(
    graph: Graph, dtype: Type, shape: Sequence[int], plan: SlicePlan, name: str
) -> tuple[Tensor, Tensor]:
    """Add a variable [group][row][column] for a plan; give it, and it in the order of memory."""
    partition = base_partition(shape, plan)
    tensor, memory = add_partitioned(graph, dtype, partition, name or "sliceable")
    graph.map_ranges(memory, *base_mapping(graph.target, dtype, partition, plan))
    return tensor, memory


def add_parts(
    graph: Graph,
    dtype: Type,
    partition: Partition,
    plan: SlicePlan,
    roles: Sequence[str],
    name: str,
) -> tuple[Tensor, Tensor]:
    """Add a variable of which each tile has its part; give it, and it in the order of memory.

    `roles` tell for each dimension which argument of `plan_tile` its parts are.
    """
    tensor, memory = add_partitioned(graph, dtype, partition, name)
    starts = partition.starts().reshape(-1)
    numbers = np.indices(partition.parts, dtype=np.int64).reshape(len(roles), -1)
    tile = plan_tile(plan, **dict(zip(roles, numbers, strict=True)))
    graph.map_ranges(memory, starts, np.append(starts[1:], memory.numElements()), tile)
    return tensor, memory


def planned_slices(
    graph: Graph, dtype: Type, shape: Sequence[int], plan: SlicePlan, name: str
) -> Tensor:
    """Add a variable [group][offset][1][column] where a plan leaves the slices."""
    splits = (plan.groupSplit, plan.lookupSplit, 1, plan.unslicedDimSplit)
    partition = Partition((shape[0], shape[1], shape[2], shape[3]), splits)
    tensor, memory = add_partitioned(graph, dtype, partition, name or "slices")
    number = np.arange(shape[1], dtype=np.int64)
    lookup, within = number // partition.steps[1], number % partition.steps[1]
    sliced = within // max(ceil_div(partition.steps[1], plan.slicedDimSplit), 1)
    matrix = np.arange(shape[0], dtype=np.int64)
    columns = np.diff(partition.bounds(3))
    begin = partition.places()[0].reshape(shape[0], shape[1], len(columns))
    tile = plan_tile(
        plan,
        (matrix // partition.steps[0])[:, None, None],
        lookup[:, None],
        sliced[:, None],
        np.arange(len(columns), dtype=np.int64),
    )
    graph.map_ranges(memory, begin.reshape(-1), (begin + columns).reshape(-1), tile.reshape(-1))
    return tensor


def joined_ranges(
    low: IntArray, high: IntArray, tile: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Join ranges that follow one another on a tile."""
    if not len(low):
        return low, high, tile
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != high[:-1]) | (tile[1:] != tile[:-1])
    heads = np.flatnonzero(first)
    return low[heads], high[np.append(heads[1:], len(low)) - 1], tile[heads]
