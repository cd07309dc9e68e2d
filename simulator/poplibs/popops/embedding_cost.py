"""What planned slices and updates cost a tile, for many ways to split them at once.

As PopLibs estimates it in lib/popops/DynamicSlice.cpp (constructModel): offsets are spread evenly
over the rows, or are all the same. Cycles are of the busiest tile, bytes those of temporary data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets import elementwise_cycles, indexing_cycles
from simulator.codelets.costs import ceil_div
from simulator.codelets.slicing import UpdateKind
from simulator.graph.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.reduce_plan import tile_cycles

OFFSET_BYTES = 4


@dataclass(frozen=True, slots=True)
class Problem:
    """An embedding: `matrices` of `rows` and `columns`, and how many `offsets` look them up.

    `grain` columns stay together, `even_base` prefers matrices that lie evenly on the tiles.
    """

    target: Target
    dtype: Type
    partials: Type
    matrices: int
    rows: int
    columns: int
    offsets: int
    grain: int
    update: UpdateKind
    one_point: bool
    even_base: bool


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Ways to split a problem; each array has one number for each of them."""

    lookup: IntArray
    sliced: IntArray
    unsliced: IntArray
    group: IntArray

    def where(self, chosen: IntArray) -> Splits:
        """Return some of the ways."""
        return Splits(*(getattr(self, name)[chosen] for name in Splits.__dataclass_fields__))

    @property
    def tiles(self) -> IntArray:
        """Count the tiles that each way uses."""
        return self.lookup * self.sliced * self.unsliced * self.group


class Estimate:
    """The shares of a tile for each way to split a problem, and what they cost."""

    def __init__(self, problem: Problem, splits: Splits) -> None:
        self.problem, self.splits = problem, splits
        self.rows = ceil_div(problem.rows, splits.sliced)
        grains = ceil_div(ceil_div(problem.columns, problem.grain), splits.unsliced)
        self.columns = grains * problem.grain
        self.offsets = ceil_div(problem.offsets, splits.lookup)
        self.matrices = ceil_div(problem.matrices, splits.group)
        # Where the rows are split, each tile takes part of the offsets to choose among their finds.
        self.chosen = ceil_div(self.offsets, splits.sliced)
        self.rows_split = splits.sliced > 1
        self.offsets_split = splits.lookup > 1
        self.base = self.rows * self.columns
        self.stored = ceil_div(self.rows * grains, splits.lookup) * problem.grain
        whole = problem.matrices * problem.rows * ceil_div(problem.columns, problem.grain)
        even = ceil_div(whole, problem.target.num_tiles) * problem.grain
        uneven = np.maximum(self.base * self.matrices - even, 0) * problem.dtype.size
        self.uneven_bytes = uneven if problem.even_base else np.zeros_like(uneven)

    def _exchange(self, size: IntArray) -> IntArray:
        """Return the cycles in which a tile receives so many bytes."""
        return ceil_div(size, self.problem.target.exchange_bytes_per_cycle)

    def _hits(self, offsets: IntArray, rows: IntArray) -> IntArray:
        """Return how many of some offsets are among some of the rows."""
        if self.problem.one_point:
            return offsets
        return ceil_div(offsets * rows, self.problem.rows)

    def slice(self) -> tuple[IntArray, IntArray]:
        """Return cycles and bytes of a slice."""
        dtype, target = self.problem.dtype, self.problem.target
        moved = self.base * self.matrices * dtype.size * self.offsets_split
        base_bytes = np.maximum(moved, self.uneven_bytes)
        share = ceil_div(self.offsets, target.workers)
        hits = self._hits(share, self.rows)
        first = indexing_cycles.multi_slice(hits, share - hits, self.columns, dtype, target)
        found = self.offsets * self.columns * self.matrices * dtype.size * self.rows_split
        arriving = self.splits.sliced * self.chosen * self.columns * self.matrices * dtype.size
        arriving = arriving * self.rows_split
        last = ceil_div(self.chosen, target.workers)
        second = indexing_cycles.multi_slice(last, 0 * last, self.columns, dtype, target)
        cycles = (
            self._exchange(base_bytes)
            + first * self.matrices
            + self._exchange(arriving)
            + second * self.matrices * self.rows_split
        )
        offset_bytes = OFFSET_BYTES * self.matrices
        at_first = base_bytes + found + self.offsets * offset_bytes
        return cycles, np.maximum(at_first, found + arriving + self.chosen * offset_bytes)

    def update(self) -> tuple[IntArray, IntArray]:
        """Return cycles and bytes of an update."""
        problem, partials = self.problem, self.problem.partials
        casts = partials != problem.dtype
        arriving = self.offsets * self.columns * partials.size * self.rows_split
        cast_bytes = casts * self.chosen * self.columns * partials.size
        partial_bytes = self.base * partials.size * self.offsets_split
        cycles = 2 * self._exchange(self.uneven_bytes)
        cycles = cycles + self._exchange(self.matrices * arriving)
        cycles = cycles + self._update_cycles() * self.matrices + self._stage_cycles()
        at_work = np.where(self.rows_split, 0, cast_bytes) + arriving + partial_bytes
        most = np.maximum(cast_bytes + arriving, at_work + self.offsets * OFFSET_BYTES)
        most = np.maximum(most, 2 * partial_bytes)
        return cycles, self.uneven_bytes + self.matrices * most

    def _update_cycles(self) -> IntArray:
        """Return the cycles of the vertices that update: each worker has a share of the rows."""
        target, partials = self.problem.target, self.problem.partials
        hits = self._hits(self.offsets, ceil_div(self.rows, target.workers))
        misses = self.offsets - hits
        if self.problem.update == "":
            return indexing_cycles.multi_update(hits, misses, self.columns, partials, target)
        scaled = self.problem.update == "ADD"
        return indexing_cycles.multi_update_add(
            hits, misses, self.columns, partials, target, scaled
        )

    def _stage_cycles(self) -> IntArray:
        """Return the cycles of what parts of the offsets, and wider partials, need besides."""
        problem, target = self.problem, self.problem.target
        partials, stored = problem.partials, self.stored * self.matrices
        if problem.update == "":
            return np.zeros_like(stored)
        zeros = target.workers * elementwise_cycles.fill_1d(
            ceil_div(self.base * self.matrices, target.workers), partials, target
        )
        reduced = tile_cycles(target, partials, stored, self.splits.lookup)
        final = ceil_div(stored, target.getVectorWidth(partials))
        if problem.update == "ADD" and partials.numpy.kind == "f":
            final = elementwise_cycles.scaled_add_1d(stored, partials, target)
        cycles = self.offsets_split * (zeros + reduced + final)
        if partials != problem.dtype:
            slices = self.matrices * self.chosen * self.columns
            for count, back in ((slices, False), (stored, False), (stored, True)):
                types = (partials, problem.dtype) if back else (problem.dtype, partials)
                cycles = cycles + elementwise_cycles.cast_1d(count, *types, target)
        return cycles
