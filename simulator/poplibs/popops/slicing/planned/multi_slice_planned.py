"""Slices at many offsets with a plan: parts of matrices and offsets on each tile.

As in PopLibs lib/popops/DynamicSlice.cpp (multiSlicePlanned). Tensors have a first dimension of
matrices.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph import program
from simulator.graph.geometry.intervals import spread
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, IntArray, Type
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.elementwise.map import map as map_expression
from simulator.poplibs.popops.iota import iota
from simulator.poplibs.popops.slicing.planned.block_fields import cut_blocks
from simulator.poplibs.popops.slicing.planned.lookup_vertices import Lookups, add_lookups, cut_rows
from simulator.poplibs.popops.slicing.planned.partitioned import Partition
from simulator.poplibs.popops.slicing.planned.planned_parts import (
    Parts,
    in_plan,
    lookups_of,
    parts_of,
)
from simulator.poplibs.popops.slicing.planned.slice_layout import (
    add_parts,
    plan_tile,
    planned_slices,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import SlicePlan


def multi_slice(
    graph: Graph, t: Tensor, offsets: Tensor, prog: program.Sequence, plan: SlicePlan, name: str
) -> Tensor:
    """Return slices [matrix][offset][1][column] of matrices; `offsets` are [matrix][offset][1]."""
    count, (matrices, rows, columns) = offsets.dim(1), t.shape
    result = planned_slices(graph, t.dtype, (matrices, count, 1, columns), plan, f"{name}/slices")
    if not result.numElements() or not rows:
        return result
    base = in_plan(graph, t, prog, plan, name)
    parts = parts_of(plan, (matrices, rows, columns), count)
    split = parts.base.parts[1]
    first = result.reshape([matrices, 1, count, columns])
    if split > 1:
        first = _first_slices(graph, t.dtype, parts, plan, f"{name}/stage0Output")
    compute_set = graph.addComputeSet(f"{name}/stage0")
    add_lookups(graph, compute_set, "SLICE", lookups_of(parts, plan, base, offsets, first, split))
    prog.add(program.Execute(compute_set))
    if split > 1:
        _choose(graph, parts, plan, first, offsets, result, prog, name)
    return result


def _first_slices(graph: Graph, dtype: Type, parts: Parts, plan: SlicePlan, name: str) -> Tensor:
    """Add a variable [matrix][part of the rows][offset][column] for what each part finds."""
    matrices, count, _, columns = parts.slices.shape
    split = parts.base.parts[1]
    partition = Partition(
        (matrices, split, count, columns),
        (plan.groupSplit, split, plan.lookupSplit, plan.unslicedDimSplit),
    )
    roles = ("group", "sliced", "lookup", "unsliced")
    return add_parts(graph, dtype, partition, plan, roles, name)[0]


def _choose(
    graph: Graph,
    parts: Parts,
    plan: SlicePlan,
    part_slices: Tensor,
    offsets: Tensor,
    result: Tensor,
    prog: program.Sequence,
    name: str,
) -> None:
    """Choose for each offset what the part of its row has found: a slice of the slices.

    The tiles of the parts share the offsets once more: `place` is an offset's number in its share,
    which has `size` offsets.
    """
    matrices, count, _, columns = parts.slices.shape
    step = parts.slices.steps[1]
    share = ceil_div(step, plan.slicedDimSplit)
    number = np.arange(count, dtype=np.int64)
    place = number % step % share
    begin = number[place == 0]
    size = np.diff(np.append(begin, count))
    row = _offsets_of_parts(graph, parts, offsets, (place, size), prog, name)
    split, unsliced = parts.base.parts[1], parts.base.parts[2]
    matrix, group, part = np.indices((matrices, len(begin), unsliced), dtype=np.int64).reshape(
        3, -1
    )
    start, rows = begin[group], size[group]
    bounds = parts.base.bounds(2)
    width = np.diff(bounds)[part]
    # Each share takes its offsets' slices out of every part of the rows, one part after another.
    counts = split * rows
    within = spread(np.zeros_like(counts), counts)
    one = np.repeat(rows, counts)
    of_part = np.repeat(matrix * split, counts) + within // one
    low = (of_part * count + np.repeat(start, counts) + within % one) * columns
    low = low + np.repeat(bounds[part], counts)
    offset_begin = matrix * count + start
    lookups = Lookups(
        tile=plan_tile(
            plan, matrix // parts.base.steps[0], start // step, start % step // share, part
        ),
        offsets=cut_blocks(
            row.flatten(), offset_begin, offset_begin + rows, np.ones_like(offset_begin)
        ),
        base=cut_blocks(part_slices.flatten(), low, low + np.repeat(width, counts), counts),
        sub=cut_rows(result.flatten(), offset_begin * columns + bounds[part], rows, columns, width),
        length=width,
        first=np.zeros_like(offset_begin),
    )
    compute_set = graph.addComputeSet(f"{name}/Stage1")
    add_lookups(graph, compute_set, "SLICE", lookups)
    prog.add(program.Execute(compute_set))


def _offsets_of_parts(
    graph: Graph,
    parts: Parts,
    offsets: Tensor,
    shares: tuple[IntArray, IntArray],
    prog: program.Sequence,
    name: str,
) -> Tensor:
    """Return where, in what all parts have found for its share, the slice of each offset stands."""
    place, size = shares
    matrices, count = offsets.shape[:2]
    counted = graph.clone(offsets[0][: int(place.max()) + 1].flatten(), f"{name}/innerIdx")
    iota(graph, counted, 0, prog, f"{name}/innerIdx")
    sizes, which = np.unique(size, return_inverse=True)
    constant = graph.addConstant(UNSIGNED_INT, [len(sizes)], sizes, f"{name}/innerElems")
    graph.setTileMapping(constant, 0)
    shape = (matrices, count)
    inner = counted.view(np.broadcast_to(counted.elements()[place], shape))
    elements = np.repeat(constant.elements()[which], size)
    total = constant.view(np.broadcast_to(elements, shape))
    rows = expr.ConstUnsignedInt(parts.base.steps[1])
    adjusted = expr._2 + (expr._1 / rows) * expr._3
    tensors = [offsets.reshape(list(shape)), inner, total]
    return map_expression(graph, adjusted, tensors, prog, f"{name}/adjustedIndicesStage1")
