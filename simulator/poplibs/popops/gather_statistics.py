"""How the elements of a tensor are spread over ranges of values (popops/GatherStatistics.hpp)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simulator.codelets.indexing import histogram as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked, defaults
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, IntArray
from simulator.graph.vertices.vertex import ComputeSet, Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.reduction.reduce import Operation, reduce
from simulator.poplibs.popops.regions import (
    Regions,
    debug_name,
    in_memory_order,
    regions_of,
    split_among_workers,
)

OPTIONS = {
    "useFloatArithmetic": Option(False, "counts are added up, and given, as floats"),
    "useFloatArithmeticWithUnsignedIntOutput": Option(False, "counts are added up as floats"),
}
_EXACT = 1 << 24  # elements up to which a float counts exactly


@library_call("POPOPS")
def histogram(
    graph: Graph,
    input: Tensor,
    levels: Tensor,
    absoluteOfInput: bool,
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> Tensor:
    """Count the elements between levels: [levels + 1] numbers, below the first to above the last.

    An element that is equal to a level counts above it; with `absoluteOfInput` its size counts.

    >>> from simulator import poplar, popops, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> data, levels = (graph.addVariable(poplar.HALF, [n], "t") for n in (100, 3))
    >>> for tensor in (data, levels):
    ...     poputil.mapTensorLinearly(graph, tensor)
    >>> popops.histogram(graph, data, levels, True, poplar.program.Sequence())
    Tensor(histogram/Cast/out: unsigned int[4])
    """
    name = debug_name(debugContext, "histogram")
    _check(name, input, levels)
    values = defaults(OPTIONS, checked(OPTIONS, options or {}, name))
    as_float, inside = (bool(values[option]) for option in OPTIONS)
    if as_float and inside:
        raise poplibs_error(f"{name}: {' and '.join(OPTIONS)} are both on; one is needed")
    with graph.debug_scope(name, "popops"):
        counts = _counted(graph, input, levels, absoluteOfInput, prog, name)
        if input.numElements() > _EXACT and not as_float and not inside:
            counts = cast(graph, counts, INT, prog, name)
        total = reduce(graph, counts, counts.dtype, [0], Operation.ADD, prog, name)
        return total if as_float else cast(graph, total, UNSIGNED_INT, prog, name)


def _check(name: str, data: Tensor, levels: Tensor) -> None:
    if data.dtype not in (FLOAT, HALF) or not data.numElements():
        raise poplibs_error(f"{name}: {data!r}; elements of float or half are needed")
    if levels.dtype != data.dtype or levels.rank() != 1 or not levels.numElements():
        raise poplibs_error(f"{name}: levels {levels!r}; a list of {data.dtype} is needed")


def _counted(
    graph: Graph, data: Tensor, levels: Tensor, absolute: bool, prog: Sequence, name: str
) -> Tensor:
    """Return the counts of each vertex: one on tiles with one region, else a few workers."""
    compute_set = graph.addComputeSet(f"{name}/Histogram")
    flat = in_memory_order({"data": ("input", data)}, "data")["data"][1]
    regions = regions_of(graph, flat)
    _, which, counts = np.unique(regions.tile, return_inverse=True, return_counts=True)
    single = counts[which] == 1
    adder = _Adder(graph, compute_set, flat, levels, absolute, name)
    parts = [adder.add_single(regions.where(single)), adder.add_several(regions.where(~single))]
    prog.add(Execute(compute_set, name))
    return concat([part for part in parts if part is not None], 0)


class _Adder:
    """What all vertices of a histogram share."""

    def __init__(
        self, graph: Graph, compute_set: ComputeSet, data: Tensor, levels: Tensor, absolute: bool,
        name: str,
    ) -> None:  # fmt: skip
        self.graph, self.compute_set, self.data, self.levels = graph, compute_set, data, levels
        self.absolute, self.name = absolute, name
        self.bins = levels.numElements() + 1

    def add_single(self, regions: Regions) -> Tensor | None:
        """Add supervisors of one region each, whose workers share the limits or the elements."""
        if not len(regions.tile):
            return None
        graph, size = self.graph, regions.high - regions.low
        options = (self.bins, self.data.dtype, graph.target)
        by_limit = vertices.by_limit(size, *options, absolute=self.absolute)
        by_data = vertices.by_data(size, *options, absolute=self.absolute)
        counts = []
        for kind, cycles, mask, rows in (
            ("1D,true", by_limit, by_data >= by_limit, 1),
            ("1D,false", by_data, by_data < by_limit, graph.target.workers),
        ):
            if mask.any():
                part = regions.where(mask)
                field = cut_field("data", "input", self.data, part.low, part.high)
                counts.append(self._add(kind, part.tile, field, cycles[mask], rows))
        return concat(counts, 0)

    def add_several(self, regions: Regions) -> Tensor | None:
        """Add workers that share the regions of a tile."""
        if not len(regions.tile):
            return None
        target, dtype = self.graph.target, self.data.dtype
        pieces, ranges = split_among_workers(target, regions, dtype)
        low, high = pieces.low, pieces.high
        field = cut_ranges("data", "input", self.data, low, high, ranges, as_rows=True)
        cycles = vertices.of_regions(
            high - low, ranges, self.bins, dtype, target, absolute=self.absolute
        )
        return self._add("2D", pieces.tile[offsets_of(ranges)[:-1]], field, cycles)

    def _add(
        self, kind: str, tiles: IntArray, data: Field, cycles: IntArray, rows: int = 1
    ) -> Tensor:
        """Add vertices with counts of their own; by data these have a row for each worker."""
        count, size = len(tiles), rows * self.bins
        out = self.graph.addVariable(FLOAT, [count, rows, self.bins], f"{self.name}/counts")
        begin = np.arange(count) * size
        self.graph.map_ranges(out, begin, begin + size, tiles)
        zero = np.zeros(count, np.int64)
        fields = {
            "data": data,
            "limits": cut_field("limits", "input", self.levels, zero, zero + self.bins - 1),
            "histogram": cut_field("histogram", "output", out.flatten(), begin, begin + size),
        }
        codelet = vertices.histogram_codelet(kind, self.data.dtype, absolute=self.absolute)
        self.graph.add_vertices(
            VertexGroup(self.compute_set.id, codelet, tiles, fields, {}, cycles)
        )
        return out.slice(0, 1, 1).reshape([count, self.bins])
