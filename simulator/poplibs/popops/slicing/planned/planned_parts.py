"""The parts of a planned operation: of matrices and of offsets, one for each vertex.

Tensors have a first dimension of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph import program
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.geometry.strides import stepped
from simulator.graph.graph import Graph
from simulator.graph.mapping import Mapping
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.poplibs.popops.slicing.planned.block_fields import Pieces, cut_blocks
from simulator.poplibs.popops.slicing.planned.lookup_vertices import Lookups, cut_rows
from simulator.poplibs.popops.slicing.planned.partitioned import Partition
from simulator.poplibs.popops.slicing.planned.slice_layout import (
    base_mapping,
    base_partition,
    joined_ranges,
    plan_tile,
    planned_base,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import SlicePlan


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a planned operation, one a vertex: numbers of matrix, offsets, rows, columns."""

    base: Partition
    slices: Partition
    matrix: IntArray
    lookup: IntArray
    sliced: IntArray
    unsliced: IntArray

    def tile(self, plan: SlicePlan) -> IntArray:
        """Return the tile of each part."""
        group = self.matrix // self.base.steps[0]
        return plan_tile(plan, group, self.lookup, self.sliced, self.unsliced)

    def bounds(self, name: str) -> tuple[IntArray, IntArray]:
        """Return the first and the end of the `lookup`, `sliced` or `unsliced` of each part."""
        partition, axis = {
            "lookup": (self.slices, 1),
            "sliced": (self.base, 1),
            "unsliced": (self.base, 2),
        }[name]
        bounds, number = partition.bounds(axis), getattr(self, name)
        return bounds[number], bounds[number + 1]


def parts_of(plan: SlicePlan, base: tuple[int, ...], offsets: int) -> Parts:
    """List the parts of matrices [matrix][row][column] and of offsets [matrix][offset]."""
    partition = base_partition(base, plan)
    slices = Partition(
        (base[0], offsets, 1, base[2]),
        (plan.groupSplit, plan.lookupSplit, 1, plan.unslicedDimSplit),
    )
    counts = (base[0], slices.parts[1], partition.parts[1], partition.parts[2])
    matrix, lookup, sliced, unsliced = np.indices(counts, dtype=np.int64).reshape(4, -1)
    return Parts(partition, slices, matrix, lookup, sliced, unsliced)


def in_plan(graph: Graph, t: Tensor, prog: program.Sequence, plan: SlicePlan, name: str) -> Tensor:
    """Return matrices as they are when they lie as planned, else a copy that does."""
    partition = base_partition(t.shape, plan)
    low, high, tile = base_mapping(graph.target, t.dtype, partition, plan)
    order = np.argsort(low)
    low, high, tile = low[order], high[order], tile[order]
    first = partition.first_element(t)
    if first is not None:  # as it was made for a plan: compared part by part, not row by row
        size = t.numElements()
        flat = Tensor(t.graph, t.dtype, (size,), stepped(first, [(size, 1)]))
        planned, actual = joined_ranges(low, high, tile), joined_ranges(*graph.tile_ranges(flat))
    else:
        mapping = Mapping(low, high, tile, np.zeros_like(tile))
        begins, lengths = partition.places()
        source, begin, end, tiles = mapping.pieces(begins, begins + lengths)
        shift = (offsets_of(lengths)[:-1] - begins)[source]
        planned = joined_ranges(begin + shift, end + shift, tiles)
        actual = joined_ranges(*graph.tile_ranges(t))
    if all(
        np.array_equal(one, actual_part) for one, actual_part in zip(planned, actual, strict=True)
    ):
        return t
    base, _ = planned_base(graph, t.dtype, t.shape, plan, f"{name}/base")
    prog.add(program.Copy(t, base, name=name))
    return base


def lookups_of(
    parts: Parts, plan: SlicePlan, base: Tensor, offsets: Tensor, slices: Tensor, split: int
) -> Lookups:
    """Join each part to its rows and columns, its offsets, and its slices.

    `slices` are [matrix][part of the rows, if split][offset][column], `base` is
    [matrix][row][column], or has a second dimension of parts of the offsets.
    """
    count, columns = parts.slices.shape[1], parts.slices.shape[3]
    begin, end = parts.bounds("lookup")
    column, column_end = parts.bounds("unsliced")
    width, ones = column_end - column, np.ones_like(begin)
    offset_begin = parts.matrix * count
    part = parts.matrix * split + (parts.sliced if split > 1 else 0)
    return Lookups(
        tile=parts.tile(plan),
        offsets=cut_blocks(offsets.flatten(), offset_begin + begin, offset_begin + end, ones),
        base=_base_blocks(parts, plan, base),
        sub=cut_rows(
            slices.flatten(), (part * count + begin) * columns + column, end - begin, columns, width
        ),
        length=width,
        first=parts.bounds("sliced")[0],
    )


def _base_blocks(parts: Parts, plan: SlicePlan, base: Tensor) -> Pieces:
    """Assign each part its rows and columns of a matrix, or of its copy for the part's offsets."""
    (row, row_end), (column, column_end) = parts.bounds("sliced"), parts.bounds("unsliced")
    height, width = row_end - row, column_end - column
    partition, matrix = parts.base, parts.matrix
    index: tuple[IntArray, ...] = (parts.sliced, parts.unsliced)
    if base.rank() == 4:
        partition, index = copies_of(parts, plan), (parts.lookup, *index)
        matrix = matrix * base.dim(1) + parts.lookup
    first = partition.first_element(base)
    if first is None:
        rows, columns = parts.base.shape[1:]
        start = (matrix * rows + row) * columns + column
        return cut_rows(base.flatten(), start, height, columns, width)
    group, within = np.divmod(parts.matrix, partition.steps[0])
    begins = first + partition.starts()[(group, *index)] + within * height * width
    every = np.arange(len(begins) + 1, dtype=np.int64)
    return Pieces(base.graph, base.dtype, begins, height * width, every)


def copies_of(parts: Parts, plan: SlicePlan) -> Partition:
    """Return the parts of matrices of which there is a copy for each part of the offsets."""
    matrices, rows, columns = parts.base.shape
    copies = parts.slices.parts[1]
    return Partition(
        (matrices, copies, rows, columns),
        (plan.groupSplit, copies, plan.slicedDimSplit, plan.unslicedDimSplit),
    )
