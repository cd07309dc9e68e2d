"""One element of each row of a matrix (popops/SelectScalarFromRows.hpp, UpdateScalarInRows.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.indexing import rows as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import as_int64, offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT, BoolArray, IntArray
from simulator.graph.vertices.vertex import Direction, Field, VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.reduction.reduce import Operation, reduce
from simulator.poplibs.popops.regions import (
    Regions,
    debug_name,
    regions_of,
    split_among_workers,
)


@library_call("POPOPS")
def selectScalarFromRows(
    graph: Graph, params: Tensor, indices: Tensor, prog: Sequence, debugContext: str = ""
) -> Tensor:
    """Return params[row][indices[row]] of each row of a matrix of float or half.

    An index beyond the row gives NaN, that of a masked label (MASKED_LABEL_CODE) zero.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> places = trial.tensor([1, 0], poplar.UNSIGNED_INT)
    >>> trial.values(popops.selectScalarFromRows(trial.graph, x, places, trial.prog))
    [2.0, 3.0]
    """
    name = debug_name(debugContext, "SelectScalarFromRows")
    _check(name, params, indices)
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        rows, width = params.shape
        workers = _Workers(graph, compute_set, params, indices)
        parts, places = workers.selected(name)
        prog.add(Execute(compute_set))
        # What the vertices have taken of a row is summed, at most as many as a row has parts.
        order = np.argsort(places, kind="stable")
        counts = np.bincount(places, minlength=rows)
        most = int(counts.max())
        if most == 1:
            return parts.view(parts.elements()[order]) if rows > 1 else parts
        zero = graph.addConstant(params.dtype, [1], 0, f"{name}/none")
        graph.setTileMapping(zero, 0)
        table = np.full((rows, most), zero.elements()[0])
        nth = spread(np.zeros_like(counts), counts)
        table[places[order], nth] = parts.elements()[order]
        columns = parts.view(table.reshape(-1)).reshape([rows, most])
        return reduce(graph, columns, params.dtype, [1], Operation.ADD, prog, name)


@library_call("POPOPS")
def updateScalarInRows(
    graph: Graph, params: Tensor, indices: Tensor, program: Sequence, debugContext: str = ""
) -> None:
    """Subtract 1 from params[row][indices[row]] of each row of a matrix of float or half.

    An index beyond the row makes NaN of the row, that of a masked label changes nothing.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> places = trial.tensor([1, 0], poplar.UNSIGNED_INT)
    >>> popops.updateScalarInRows(trial.graph, x, places, trial.prog)
    >>> trial.values(x)
    [[1.0, 1.0], [2.0, 4.0]]
    """
    name = debug_name(debugContext, "UpdateScalarInRows")
    _check(name, params, indices)
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        _Workers(graph, compute_set, params, indices).decrement()
        program.add(Execute(compute_set))


def _check(name: str, params: Tensor, indices: Tensor) -> None:
    if params.rank() != 2 or params.dtype not in (FLOAT, HALF) or not params.numElements():
        raise poplibs_error(f"{name}: {params!r}; a matrix of float or half is needed")
    if indices.shape != (params.dim(0),) or indices.dtype != UNSIGNED_INT:
        needed = f"{UNSIGNED_INT}[{params.dim(0)}]"
        raise poplibs_error(f"{name}: indices {indices!r}; {needed} is needed")


class _Workers:
    """The workers of a matrix: on tiles with one region one each, else several that share them."""

    def __init__(
        self, graph: Graph, compute_set: ComputeSet, params: Tensor, indices: Tensor
    ) -> None:
        self.graph, self.compute_set = graph, compute_set
        self.params, self.indices = params.flatten(), indices
        self.width = params.dim(1)
        regions = regions_of(graph, self.params)
        _, which, counts = np.unique(regions.tile, return_inverse=True, return_counts=True)
        single: BoolArray = counts[which] == 1
        ones = as_int64(np.ones(int(single.sum())))
        self.groups = [(False, regions.where(single), ones)]
        if not single.all():
            pieces = split_among_workers(graph.target, regions.where(~single), params.dtype)
            self.groups.append((True, *pieces))
        self.groups = [group for group in self.groups if len(group[2])]

    def _rows(self, regions: Regions) -> tuple[IntArray, IntArray]:
        """Return the first row of each region and how many it has a part of."""
        first = regions.low // self.width
        return first, (regions.high - 1) // self.width - first + 1

    def _add(self, several: bool, regions: Regions, ranges: IntArray, output: Field | None) -> None:
        graph, dtype = self.graph, self.params.dtype
        first, rows = self._rows(regions)
        way: Direction = "inout" if output is None else "input"
        ends = (regions.low, regions.high, ranges)
        row_ends = (first, first + rows, ranges)
        fields = {
            "params": cut_ranges("params", way, self.params, *ends, as_rows=several),
            "indices": cut_ranges("indices", "input", self.indices, *row_ends, as_rows=several),
        }
        if output is None:
            codelet = vertices.decrement_codelet(dtype, self.width, several=several)
        else:
            fields["output"] = output
            codelet = vertices.select_codelet(dtype, self.width, several=several)
        parameters = {
            "first": regions.low - first * self.width,
            "rows": rows,
            "lengths": regions.high - regions.low,
        }
        cycles = (
            vertices.several_intervals(rows, ranges, dtype)
            if several
            else vertices.one_interval(rows, dtype)
        )
        tiles = regions.tile[offsets_of(ranges)[:-1]]
        graph.add_vertices(
            VertexGroup(self.compute_set.id, codelet, tiles, fields, parameters, cycles)
        )

    def decrement(self) -> None:
        """Add the workers that subtract 1."""
        for several, regions, ranges in self.groups:
            self._add(several, regions, ranges, None)

    def selected(self, name: str) -> tuple[Tensor, IntArray]:
        """Add the workers that take elements; return these, and of which row each is."""
        counts = [self._rows(regions)[1] for _, regions, _ in self.groups]
        total = sum(int(rows.sum()) for rows in counts)
        out = self.graph.addVariable(self.params.dtype, [total], f"{name}/selected")
        places, begin = [], 0
        for (several, regions, ranges), rows in zip(self.groups, counts, strict=True):
            ends = begin + offsets_of(rows)
            self.graph.map_ranges(out, ends[:-1], ends[1:], regions.tile)
            field = cut_ranges(
                "output", "output", out, ends[:-1], ends[1:], ranges, as_rows=several
            )
            self._add(several, regions, ranges, field)
            places.append(spread(self._rows(regions)[0], rows))
            begin = int(ends[-1])
        return out, np.concatenate(places)
