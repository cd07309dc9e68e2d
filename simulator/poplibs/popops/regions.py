"""Vertices for element-wise work: where the output lies decides which tile does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div, sum_by_vertex
from simulator.codelets.elementwise.vertices import ElementwiseVertices
from simulator.graph.errors import PoplarError, TileMappingError, poplibs_error
from simulator.graph.geometry import strides
from simulator.graph.geometry.intervals import ascending, gathered, offsets_of, present, spread
from simulator.graph.geometry.patterns import Pattern, Shifted, placed, recent
from simulator.graph.geometry.strides import Strides
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.machine.target import Target
from simulator.graph.tensors.element_view import Intervals
from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import Array, BoolArray, IntArray, Type
from simulator.graph.vertices.vertex import Direction, Field, VertexGroup, cut_field, cut_ranges

Operand = tuple[Direction, Tensor]


@dataclass(frozen=True, slots=True)
class Regions:
    """Positions [low, high) of a flattened tensor that lie together on a tile, by tile."""

    low: IntArray
    high: IntArray
    tile: IntArray

    def where(self, mask: BoolArray) -> Regions:
        """Return some of the regions."""
        return Regions(self.low[mask], self.high[mask], self.tile[mask])


def debug_name(context: str, name: str) -> str:
    """Join a debug context and a name; poplibs_error for what is no text, as options are not."""
    if context and not isinstance(context, str):
        raise poplibs_error(f"{name}: its debug context is {context!r}; a text is needed")
    return f"{context}/{name}" if context else name


def result_like(
    graph: Graph, operands: list[Tensor], shape: tuple[int, ...], dtype: Type, name: str
) -> Tensor:
    """Add a variable for a result, laid out like the first operand that has every element once."""
    fitting = (tensor for tensor in operands if tensor.shape == shape)
    pattern = next((tensor for tensor in fitting if not tensor.containsAliases()), None)
    if pattern is not None:
        return graph.clone(pattern, name, dtype)
    result = graph.addVariable(dtype, shape, name)
    graph.copy_mapping(broadcast_to(operands[0], shape), result)
    return result


def in_memory_order(operands: dict[str, Operand], leading: str) -> dict[str, Operand]:
    """Reorder the elements of all operands alike, so that the leading one goes up in memory.

    Operands of another size, such as one number for all, stay as they are.
    """
    flat = {name: (way, tensor.flatten()) for name, (way, tensor) in operands.items()}
    tensor = flat[leading][1]
    if tensor.isContiguous():
        return flat
    total = tensor.numElements()
    in_loops = {
        name: strides.along(t.places, tensor.places)
        for name, (_, t) in flat.items()
        if t.numElements() == total
    }
    in_loops |= {
        name: strides.stepped(t.places.first, [(total, 1)])
        for name, (_, t) in flat.items()
        if isinstance(t.places, Shifted) and _lies_like(t.places, tensor)
    }

    def reordered(name: str, t: Tensor) -> Tensor:
        if name not in in_loops:
            return t
        places = in_loops[name]
        return t.at((total,), _along(t, tensor) if places is None else places)

    return {name: (way, reordered(name, t)) for name, (way, t) in flat.items()}


def _along(tensor: Tensor, leading: Tensor) -> Intervals | Shifted:
    """Return a tensor's places in the order in which the leading one goes up in memory.

    Vectors of as many elements come one after the other to data that lie alike.
    """
    places, first = tensor.places, 0

    def pattern() -> Pattern:
        begins, lengths = gathered(*tensor.intervals(), leading.upward())
        return Pattern(begins - first, lengths)

    if isinstance(places, Strides) and isinstance(leading.places, Shifted):
        first, way = places
        return placed(first, recent(("along", leading.places.pattern, way), pattern))
    return placed(0, pattern())


def _lies_like(places: Shifted, tensor: Tensor) -> bool:
    """Return whether places without gaps have their elements in the order of a tensor."""
    pattern = tensor.places.pattern if isinstance(tensor.places, Shifted) else None
    return places.pattern is pattern and places.pattern.dense


def regions_of(graph: Graph, tensor: Tensor) -> Regions:
    """List a flattened tensor's regions by tile; every element must be mapped."""
    low, high, tile = graph.tile_ranges(tensor)
    if int((high - low).sum()) != tensor.numElements():
        raise TileMappingError(f"variable {tensor.describe()!r}: is not wholly mapped to tiles")
    order = ascending(tile)
    return Regions(low[order], high[order], tile[order])


def add_elementwise(
    graph: Graph,
    compute_set: ComputeSet,
    vertices: ElementwiseVertices,
    operands: dict[str, Operand],
    parameters: dict[str, float] | None = None,
) -> None:
    """Add vertices that compute `out`: one a tile, or several workers where it has many regions.

    Operands have as many elements as `out`, or one, which then every vertex reads.
    """
    total = operands["out"][1].numElements()
    sizes = {tensor.numElements() for _, tensor in operands.values()}
    if not sizes <= {1, total}:
        raise PoplarError(f"{compute_set.name}: operands of {sorted(sizes)} elements")
    ordered = in_memory_order(operands, "out")
    regions = regions_of(graph, ordered["out"][1])
    add_to_regions(graph, compute_set, vertices, ordered, regions, parameters)


def add_to_regions(
    graph: Graph,
    compute_set: ComputeSet,
    vertices: ElementwiseVertices,
    ordered: dict[str, Operand],
    regions: Regions,
    parameters: dict[str, float] | None = None,
) -> None:
    """Add the vertices for regions of flat operands, all that their tiles have."""
    if not len(regions.tile):
        return
    _, which, counts = np.unique(regions.tile, return_inverse=True, return_counts=True)
    single = (counts == 1)[which] & (vertices.one is not None)
    _add_single(graph, compute_set, vertices, ordered, regions.where(single), parameters or {})
    multiple = regions.where(~single)
    _add_several(graph, compute_set, vertices, ordered, multiple, parameters or {})


def _filled(parameters: dict[str, float], vertices: int) -> dict[str, Array]:
    return {name: np.full(vertices, value) for name, value in parameters.items()}


def _add_single(
    graph: Graph,
    compute_set: ComputeSet,
    vertices: ElementwiseVertices,
    operands: dict[str, Operand],
    regions: Regions,
    parameters: dict[str, float],
) -> None:
    if vertices.one is None:
        return
    low, high = regions.low, regions.high
    scalars, vectors = _scalars_apart(operands, len(low))
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=vertices.one,
            tile=regions.tile,
            fields=scalars
            | {n: cut_field(n, way, t, low, high) for n, (way, t) in vectors.items()},
            parameters=_filled(parameters, len(low)),
            cycles=vertices.cycles_1d(high - low),
        )
    )


def _add_several(
    graph: Graph,
    compute_set: ComputeSet,
    vertices: ElementwiseVertices,
    operands: dict[str, Operand],
    regions: Regions,
    parameters: dict[str, float],
) -> None:
    pieces, ranges = split_among_workers(graph.target, regions, operands["out"][1].dtype)
    tiles = pieces.tile[offsets_of(ranges)[:-1]]
    low, high = pieces.low, pieces.high
    cost = vertices.base_2d + sum_by_vertex(vertices.region_2d(high - low), ranges)
    scalars, vectors = _scalars_apart(operands, len(tiles))
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=vertices.several,
            tile=tiles,
            fields=scalars
            | {
                n: cut_ranges(n, way, t, low, high, ranges, as_rows=True)
                for n, (way, t) in vectors.items()
            },
            parameters=_filled(parameters, len(tiles)),
            cycles=cost,
        )
    )


def _scalars_apart(
    operands: dict[str, Operand], vertices: int
) -> tuple[dict[str, Field], dict[str, Operand]]:
    """Take out the operands of one element among longer ones, as fields of every vertex."""
    total = operands["out"][1].numElements()
    begin = np.zeros(vertices, dtype=np.int64)
    scalars = {
        name: cut_field(name, way, tensor, begin, begin + 1)
        for name, (way, tensor) in operands.items()
        if tensor.numElements() != total
    }
    return scalars, {name: item for name, item in operands.items() if name not in scalars}


def split_among_workers(
    target: Target,
    regions: Regions,
    dtype: Type,
    least_grains: int = 2,
    grains_of: IntArray | None = None,
) -> tuple[Regions, IntArray]:
    """Cut regions so that the workers of each tile share its elements as evenly as can be.

    Gives the pieces and how many of the next ones each worker has. As mapTensorLinearly does for
    tiles: whole grains of a vector, at least two a worker (PopLibs lib/popops/ElementWise.cpp);
    `grains_of` has other grains, for each region, the same for all of a tile.
    """
    if not len(regions.tile):
        return regions, np.zeros(0, dtype=np.int64)
    usual = max(target.getVectorWidth(dtype), target.getAtomicStoreGranularity() // dtype.size, 1)
    offset = offsets_of(regions.high - regions.low)
    first = np.flatnonzero(np.diff(regions.tile, prepend=-1))
    grain = np.full(len(first), usual) if grains_of is None else grains_of[first]
    base = offset[first]
    elements = np.diff(base, append=offset[-1])
    grains = ceil_div(elements, grain)
    least = np.maximum(
        ceil_div(grains, target.workers), ceil_div(grains, np.maximum(grains // least_grains, 1))
    )
    used = ceil_div(grains, least)
    tile = np.repeat(np.arange(len(first)), used)
    worker = spread(np.zeros(len(used), dtype=np.int64), used)
    begin = base[tile] + worker * grains[tile] // used[tile] * grain[tile]
    start = present(np.concatenate([begin, offset[:-1]]))
    region = np.searchsorted(offset, start, "right") - 1
    low = regions.low[region] + start - offset[region]
    high = low + np.diff(start, append=offset[-1])
    ranges = np.bincount(np.searchsorted(begin, start, "right") - 1, minlength=len(begin))
    return Regions(low, high, regions.tile[region]), ranges


def share_among_workers(tiles: IntArray, workers: int) -> tuple[IntArray, IntArray]:
    """Share items, given by their tile and sorted by it, among the workers of each tile.

    Gives the tile of each worker that has items, and how many of the next items it has.
    """
    distinct, counts = np.unique(tiles, return_counts=True)
    used = np.minimum(counts, workers)
    worker = spread(np.zeros(len(used), dtype=np.int64), used)
    items = np.repeat(counts, used)
    parts = np.repeat(used, used)
    return np.repeat(distinct, used), (worker + 1) * items // parts - worker * items // parts
