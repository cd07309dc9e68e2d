"""Slices and updates by many offsets without a plan: on the tiles where the first row lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph import program
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs.popops.loop import countedLoop
from simulator.poplibs.popops.regions import regions_of
from simulator.poplibs.popops.slicing.dynamic_slice import (
    dynamicSlice,
    dynamicUpdate,
    in_column_order,
    rows_of,
)
from simulator.poplibs.popops.slicing.planned.block_fields import column_blocks, cut_blocks
from simulator.poplibs.popops.slicing.planned.lookup_vertices import Kind, Lookups, add_lookups
from simulator.poplibs.popops.slicing.planned.slice_plan import proportion
from simulator.poplibs.popops.slicing.sliceable import add_sliceable, unplanned_slices

# PopLibs lib/popops/DynamicSlice.cpp: so few slices are taken one by one, so many by one vertex.
FEW, MANY = 3, 7
Given = Mapping[str, OptionValue]


def multi_slice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    options: Given,
    name: str,
) -> Tensor:
    """Return the slices of a tensor at each row of `offsets`."""
    count = offsets.dim(0)
    if count == 1:
        first = t
        for dim, size in zip(dims, sizes, strict=True):
            first = first.slice(0, size, dim)
        result = graph.clone(first, f"{name}/slice").expand([0])
    else:
        result = unplanned_slices(graph, t.dtype, t.shape, dims, sizes, count, name)
    if not result.numElements():
        return result
    if count <= FEW:
        for number in range(count):
            one = dynamicSlice(graph, t, offsets[number], dims, sizes, prog, f"{name}/{number}")
            prog.add(program.Copy(one, result[number], name=name))
    elif count >= MANY and _of_rows(t, dims, sizes):
        rows = offsets.flatten()
        add_rows(graph, "SLICE", t, result, rows, dims[0], None, prog, options, name)
    else:

        def body(number: Tensor) -> program.Sequence:
            steps = program.Sequence(name=name)
            at = dynamicSlice(graph, offsets, number, [0], [1], steps, f"{name}/sliceIndex")
            one = dynamicSlice(graph, t, at.squeeze([0]), dims, sizes, steps, f"{name}/slice")
            slot = f"{name}/update"
            dynamicUpdate(graph, result, one.expand([0]), number, [0], [1], steps, slot)
            return steps

        prog.add(countedLoop(graph, count, body, f"{name}/loop"))
    return result


def multi_update(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    options: Given,
    name: str,
) -> None:
    """Replace the slices of a tensor at each row of `offsets`."""
    count = offsets.dim(0)
    if not s.numElements():
        return
    if count <= FEW:
        for number in range(count):
            label = f"{name}/{number}"
            dynamicUpdate(graph, t, s[number], offsets[number], dims, sizes, prog, label)
    elif count >= MANY and _of_rows(t, dims, sizes):
        add_rows(graph, "", t, s, offsets.flatten(), dims[0], None, prog, options, name)
    else:

        def body(number: Tensor) -> program.Sequence:
            steps = program.Sequence(name=name)
            at = dynamicSlice(graph, offsets, number, [0], [1], steps, f"{name}/sliceIndex")
            one = dynamicSlice(graph, s, number, [0], [1], steps, f"{name}/slice").squeeze([0])
            dynamicUpdate(graph, t, one, at.squeeze([0]), dims, sizes, steps, f"{name}/update")
            return steps

        prog.add(countedLoop(graph, count, body, f"{name}/loop"))


def _of_rows(t: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether slices are single rows, or columns, of a matrix."""
    return t.rank() == 2 and list(sizes) == [1]


def add_rows(
    graph: Graph,
    kind: Kind,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dim: int,
    scale: Tensor | None,
    prog: program.Sequence,
    options: Given,
    name: str,
) -> None:
    """Slice or update rows of a matrix: each tile works on the columns that it has of row 0."""
    if not s.numElements():
        return
    base = rows_of(t, dim)
    full_base = _spread_out(graph, base, prog, proportion(options, name), name)
    used, sub = in_column_order(full_base, s.reshape([s.dim(0), base.dim(1)]))
    regions = regions_of(graph, used[0])
    first = np.flatnonzero(np.diff(regions.tile, prepend=-1))
    counts = np.diff(np.append(first, len(regions.tile)))
    lengths = np.add.reduceat(regions.high - regions.low, first)
    everything = cut_blocks(offsets, as_int64(0), as_int64(offsets.numElements()), as_int64(1))
    lookups = Lookups(
        tile=regions.tile[first],
        offsets=everything.chosen(np.zeros_like(first)),
        base=column_blocks(used, regions.low, regions.high, counts),
        sub=column_blocks(sub, regions.low, regions.high, counts),
        length=lengths,
        first=np.zeros_like(first),
    )
    compute_set = graph.addComputeSet(name)
    add_lookups(graph, compute_set, kind, lookups, scale)
    prog.add(program.Execute(compute_set))
    if full_base is not base and kind != "SLICE":
        prog.add(program.Copy(full_base, base, name=name))


def _spread_out(
    graph: Graph, base: Tensor, prog: program.Sequence, part_of_tile: float, name: str
) -> Tensor:
    """Return a matrix as it is, or a copy that is spread evenly where the tiles could not hold it.

    As in PopLibs, rows are taken to lie all alike when the last one lies like the first.
    """
    target, (rows, columns) = graph.target, base.shape
    regions = regions_of(graph, base[0])
    most = int(np.bincount(regions.tile, weights=regions.high - regions.low).max())
    room = part_of_tile * target.getBytesPerTile()
    if most <= ceil_div(columns, target.num_tiles) or most * rows * base.dtype.size <= room:
        return base
    first, last = (graph.tile_ranges(base[row]) for row in (0, rows - 1))
    if all(np.array_equal(one, last_part) for one, last_part in zip(first, last, strict=True)):
        return base
    copy = add_sliceable(graph, base.dtype, base.shape, [0], f"{name}/baseRearranged")
    prog.add(program.Copy(base, copy, name=name))
    return copy
