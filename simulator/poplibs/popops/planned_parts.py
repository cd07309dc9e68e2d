"""The parts of a planned operation: of matrices and of offsets, one for each vertex.

Tensors have a first dimension of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph import program
from simulator.graph.graph import Graph
from simulator.graph.intervals import offsets_of
from simulator.graph.mapping import Mapping
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.poplibs.popops.block_fields import cut_blocks
from simulator.poplibs.popops.lookup_vertices import Lookups, cut_rows
from simulator.poplibs.popops.partitioned import Partition
from simulator.poplibs.popops.slice_layout import (
    base_mapping,
    base_partition,
    joined_ranges,
    plan_tile,
    planned_base,
)
from simulator.poplibs.popops.slice_plan import SlicePlan


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
        """Give the tile of each part."""
        group = self.matrix // self.base.steps[0]
        return plan_tile(plan, group, self.lookup, self.sliced, self.unsliced)

    def bounds(self, name: str) -> tuple[IntArray, IntArray]:
        """Give the first and the end of the `lookup`, `sliced` or `unsliced` of each part."""
        partition, axis = {
            "lookup": (self.slices, 1),
            "sliced": (self.base, 1),
            "unsliced": (self.base, 2),
        }[name]
        bounds, number = partition.bounds(axis), getattr(self, name)
        return bounds[number], bounds[number + 1]


def parts_of(plan: SlicePlan, base: tuple[int, ...], offsets: int) -> Parts:
    """List the parts of matrices [matrix][row][column] and of offsets [matrix][offset]."""
    whole = base_partition(base, plan)
    slices = Partition(
        (base[0], offsets, 1, base[2]),
        (plan.groupSplit, plan.lookupSplit, 1, plan.unslicedDimSplit),
    )
    counts = (base[0], slices.parts[1], whole.parts[1], whole.parts[2])
    matrix, lookup, sliced, unsliced = np.indices(counts, dtype=np.int64).reshape(4, -1)
    return Parts(whole, slices, matrix, lookup, sliced, unsliced)


def in_plan(graph: Graph, t: Tensor, prog: program.Sequence, plan: SlicePlan, name: str) -> Tensor:
    """Give matrices as they are when they lie as planned, else a copy that does."""
    partition = base_partition(t.shape, plan)
    low, high, tile = base_mapping(graph.target, t.dtype, partition, plan)
    order = np.argsort(low)
    wanted = Mapping(low[order], high[order], tile[order], np.zeros_like(tile))
    begins, lengths = partition.places()
    source, first, end, tiles = wanted.pieces(begins, begins + lengths)
    shift = (offsets_of(lengths)[:-1] - begins)[source]
    planned = joined_ranges(first + shift, end + shift, tiles)
    found = joined_ranges(*graph.tile_ranges(t))
    if all(np.array_equal(one, other) for one, other in zip(planned, found, strict=True)):
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
    rows, columns = parts.base.shape[1:]
    count = parts.slices.shape[1]
    (begin, end), (row, row_end) = parts.bounds("lookup"), parts.bounds("sliced")
    column, column_end = parts.bounds("unsliced")
    width, ones = column_end - column, np.ones_like(begin)
    own = parts.matrix * count
    part = parts.matrix * split + (parts.sliced if split > 1 else 0)
    copies = base.dim(1) if base.rank() == 4 else 1
    matrix = parts.matrix * copies + (parts.lookup if copies > 1 else 0)
    return Lookups(
        tile=parts.tile(plan),
        offsets=cut_blocks(offsets.flatten(), own + begin, own + end, ones),
        base=cut_rows(
            base.flatten(), (matrix * rows + row) * columns + column, row_end - row, columns, width
        ),
        sub=cut_rows(
            slices.flatten(), (part * count + begin) * columns + column, end - begin, columns, width
        ),
        length=width,
        first=row,
    )
