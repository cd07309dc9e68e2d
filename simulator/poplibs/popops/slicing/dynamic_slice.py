"""Slices at offsets that the device reads at run time (popops/DynamicSlice.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.indexing.slicing import dynamic_slice_codelet
from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import Interval, offsets_of
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.option_table import checked
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Direction, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import Regions, debug_name, regions_of, split_among_workers
from simulator.poplibs.popops.slicing.planned.block_fields import column_blocks, cut_blocks
from simulator.poplibs.popops.slicing.planned.slice_plan import (
    GATHER_OPTIONS,
    Options,
    check_offsets,
    check_slices,
    slice_order,
)


@library_call("POPOPS")
def dynamicSlice(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    options: Options = None,
) -> Tensor:
    """Return the slice that begins at `offset` and has `sizes` elements of the dimensions `dims`.

    Other dimensions are taken whole. Past the end of a dimension comes its begin again.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, offset = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([1], poplar.UNSIGNED_INT)
    >>> trial.values(popops.dynamicSlice(trial.graph, x, offset, [0], [1], trial.prog))
    [[3.0, 4.0]]
    """
    name = debug_name(debugContext, "dynamicSlice")
    checked(GATHER_OPTIONS, options or {}, name)
    check_slices(name, t.shape, dims, sizes)
    check_offsets(name, offset, (len(dims),))
    if 0 in sizes:
        return _first_part(t, dims, sizes)
    result = t
    with graph.debug_scope(name, "popops"):
        for place in slice_order(t.shape, dims, sizes):
            step = debug_name(debugContext, f"dynamicSlice_d{dims[place]}")
            result = _sliced(graph, result, offset[place], dims[place], sizes[place], prog, step)
    return result


@library_call("POPOPS")
def createDynamicSliceOutput(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    debugContext: str = "",
    options: Options = None,
) -> Tensor:
    """Add a variable for `dynamicSliceWithOutput`, where `dynamicSlice` would put the slice.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, offset = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([1], poplar.UNSIGNED_INT)
    >>> popops.createDynamicSliceOutput(trial.graph, x, offset, [0], [1]).shape
    (1, 2)
    """
    name = debug_name(debugContext, "createDynamicSliceOutput")
    checked(GATHER_OPTIONS, options or {}, name)
    check_slices(name, t.shape, dims, sizes)
    check_offsets(name, offset, (len(dims),))
    return graph.clone(_first_part(t, dims, sizes), name)


@library_call("POPOPS")
def dynamicSliceWithOutput(
    graph: Graph,
    output: Tensor,
    t: Tensor,
    offset: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None:
    """Write a slice, as `dynamicSlice` gives it, to a tensor of its shape.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, offset = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([1], poplar.UNSIGNED_INT)
    >>> out = popops.createDynamicSliceOutput(trial.graph, x, offset, [0], [1])
    >>> popops.dynamicSliceWithOutput(trial.graph, out, x, offset, [0], [1], trial.prog)
    >>> trial.values(out)
    [[3.0, 4.0]]
    """
    name = debug_name(debugContext, "dynamicSlice")
    checked(GATHER_OPTIONS, options or {}, name)
    check_slices(name, t.shape, dims, sizes)
    check_offsets(name, offset, (len(dims),))
    _check_slice(name, output, t, dims, sizes)
    if 0 in sizes:
        return
    with graph.debug_scope(name, "popops"):
        if not dims:
            prog.add(program.Copy(t, output, name=name))
            return
        *first, last = slice_order(t.shape, dims, sizes)
        result = t
        for place in first:
            step = debug_name(debugContext, f"dynamicSlice_d{dims[place]}")
            result = _sliced(graph, result, offset[place], dims[place], sizes[place], prog, step)
        step = debug_name(debugContext, f"dynamicSlice_d{dims[last]}/slice")
        _add_step(graph, result, output, offset[last], dims[last], prog, step, update=False)


@library_call("POPOPS")
def dynamicUpdate(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offset: Tensor,
    dims: Sequence[int],
    sizes: Sequence[int],
    prog: program.Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None:
    """Write `s` into `t` at `offset` in the dimensions `dims`.

    Past the end of a dimension comes its begin again.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, offset = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([1], poplar.UNSIGNED_INT)
    >>> row = trial.tensor([[8.0, 9.0]])
    >>> popops.dynamicUpdate(trial.graph, x, row, offset, [0], [1], trial.prog)
    >>> trial.values(x)
    [[1.0, 2.0], [8.0, 9.0]]
    """
    name = debug_name(debugContext, "dynamicUpdate")
    checked(GATHER_OPTIONS, options or {}, name)
    check_slices(name, t.shape, dims, sizes)
    check_offsets(name, offset, (len(dims),))
    _check_slice(name, s, t, dims, sizes)
    if 0 in sizes:
        return
    with graph.debug_scope(name, "popops"):
        if not dims:
            prog.add(program.Copy(s, t, name=name))
            return
        # Slices of all but the last dimension are taken, updated, and put back one by one.
        order = slice_order(t.shape, dims, sizes)
        parts = [t]
        for place in order[:-1]:
            step = debug_name(debugContext, f"dynamicUpdateS_d{dims[place]}")
            size = sizes[place]
            parts.append(_sliced(graph, parts[-1], offset[place], dims[place], size, prog, step))
        new = s
        for place, full_part in zip(reversed(order), reversed(parts), strict=True):
            step = debug_name(debugContext, f"dynamicUpdateU_d{dims[place]}/update")
            _add_step(graph, full_part, new, offset[place], dims[place], prog, step, update=True)
            new = full_part


@library_call("POPOPS")
def getSliceMapping(
    graph: Graph, t: Tensor, dims: Sequence[int], sizes: Sequence[int]
) -> list[list[Interval]]:
    """List, for each tile, the parts [begin, end) that it would have of a slice of a tensor.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> popops.getSliceMapping(trial.graph, x, [0], [1])
    [[(0, 2)], [], [], []]
    """
    check_slices("getSliceMapping", t.shape, dims, sizes)
    return graph.getTileMapping(_first_part(t, dims, sizes))


def _first_part(t: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return the first elements of some dimensions."""
    for dim, size in zip(dims, sizes, strict=True):
        t = t.slice(0, size, dim)
    return t


def _check_slice(
    name: str, s: Tensor, t: Tensor, dims: Sequence[int], sizes: Sequence[int]
) -> None:
    """Raise poplibs_error when a tensor has not the shape and type of a slice of another."""
    one = dict(zip(dims, sizes, strict=True))
    shape = tuple(one.get(axis, size) for axis, size in enumerate(t.shape))
    if s.shape != shape or s.dtype != t.dtype:
        raise poplibs_error(f"{name}: {s!r} is no slice of {t!r}; {t.dtype}{list(shape)} is needed")


def _sliced(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dim: int,
    size: int,
    prog: program.Sequence,
    name: str,
) -> Tensor:
    """Add the slice of one dimension; give it, which lies where the first elements lie."""
    result = graph.clone(t.slice(0, size, dim), f"{name}/sliced_{dim}")
    _add_step(graph, t, result, offset, dim, prog, f"{name}/slice", update=False)
    return result


def _add_step(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offset: Tensor,
    dim: int,
    prog: program.Sequence,
    name: str,
    *,
    update: bool,
) -> None:
    """Add the vertices of a slice or an update of one dimension."""
    base, sub = rows_of(t, dim), rows_of(s, dim)
    compute_set = graph.addComputeSet(name)
    step = _Step(graph, compute_set, *in_column_order(base, sub), offset, update)
    regions = regions_of(graph, step.base[0])
    _, which, counts = np.unique(regions.tile, return_inverse=True, return_counts=True)
    alone = counts[which] == 1
    pieces = column_blocks(step.base, regions.low, regions.high, np.ones_like(regions.low))
    single = alone & (np.diff(pieces.starts) == 1)
    _add_single(step, _select(regions, single))
    _add_several(step, _select(regions, ~single))
    prog.add(program.Execute(compute_set))


def rows_of(t: Tensor, dim: int) -> Tensor:
    """View a tensor as a matrix whose rows are the indexes of a dimension."""
    rows = t.dim(dim)
    front = t if dim == 0 else t.dimRoll(dim)
    return front.reshape([rows, t.numElements() // rows if rows else 0])


def in_column_order(base: Tensor, sub: Tensor) -> tuple[Tensor, Tensor]:
    """Put the columns of two matrices in the order in which the first row of `base` lies."""
    places = base[0].elements()
    if (places[1:] > places[:-1]).all():
        return base, sub
    order = np.argsort(places, kind="stable")
    return base.view(base.elements()[:, order]), sub.view(sub.elements()[:, order])


@dataclass(frozen=True, slots=True)
class _Step:
    """One slice or update: matrices of rows, whose columns lie on the same tiles."""

    graph: Graph
    compute_set: ComputeSet
    base: Tensor
    sub: Tensor
    offset: Tensor
    update: bool

    @property
    def ways(self) -> tuple[Direction, Direction]:
        """Return the directions of the fields baseT and subT."""
        return ("inout", "input") if self.update else ("input", "output")

    def add(
        self,
        vertices: tuple[IntArray, IntArray, IntArray],
        lengths: IntArray,
        cycles: IntArray,
        *,
        several: bool,
    ) -> None:
        """Add vertices; `vertices` are their tile, their number of regions, and first regions."""
        tile, counts, low = vertices
        graph, base, sub = self.graph, self.base, self.sub
        fields = {}
        for name, way, matrix in zip(("baseT", "subT"), self.ways, (base, sub), strict=True):
            rows = matrix.dim(0)
            if several:
                edges = np.repeat(low, rows) + _row_starts(len(low), matrix)
                pieces = cut_blocks(
                    matrix, edges, edges + np.repeat(lengths, rows), np.ones_like(edges)
                )
                fields[name] = pieces.rows_field(name, way, counts * rows)
            else:
                pieces = column_blocks(matrix, low, low + lengths, np.ones_like(low))
                fields[name] = pieces.field(name, way)
        zero = np.zeros_like(tile)
        fields["offset"] = cut_field("offset", "input", self.offset.flatten(), zero, zero + 1)
        graph.add_vertices(
            VertexGroup(
                compute_set=self.compute_set.id,
                codelet=dynamic_slice_codelet(base.dtype, update=self.update, several=several),
                tile=tile,
                fields=fields,
                parameters={
                    "rows": np.full(len(tile), base.dim(0)),
                    "slices": np.full(len(tile), sub.dim(0)),
                    "regions": counts,
                    "length": lengths,
                },
                cycles=cycles,
            )
        )


def _row_starts(regions: int, matrix: Tensor) -> IntArray:
    """Return where each row of a matrix begins, once for every region."""
    rows, columns = matrix.shape
    return np.tile(np.arange(rows, dtype=np.int64) * columns, regions)


def _select(regions: Regions, indexes: IntArray) -> Regions:
    return Regions(regions.low[indexes], regions.high[indexes], regions.tile[indexes])


def _add_single(step: _Step, regions: Regions) -> None:
    """Add the vertices of tiles that hold all rows of one region of columns in one piece."""
    if not len(regions.tile):
        return
    lengths = regions.high - regions.low
    slices = np.full(len(lengths), step.sub.dim(0))
    cycles = indexing_cycles.dynamic_slice_1d(lengths, slices, step.base.dtype, step.graph.target)
    step.add((regions.tile, np.ones_like(lengths), regions.low), lengths, cycles, several=False)


def _add_several(step: _Step, regions: Regions) -> None:
    """Add workers for the others, which share the regions of a tile."""
    if not len(regions.tile):
        return
    target, dtype = step.graph.target, step.base.dtype
    parts, counts = split_among_workers(target, regions, dtype)
    lengths = parts.high - parts.low
    slices = np.full(len(counts), step.sub.dim(0))
    tile = parts.tile[offsets_of(counts)[:-1]]
    cost = indexing_cycles.dynamic_update_2d if step.update else indexing_cycles.dynamic_slice_2d
    cycles = cost(lengths, counts, slices, dtype, target)
    step.add((tile, counts, parts.low), lengths, cycles, several=True)
