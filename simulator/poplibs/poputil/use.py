"""Mapping what many tiles read: each element goes to a tile that uses it, evenly among these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of, present, spread
from simulator.graph.geometry.strides import stepped
from simulator.graph.graph import Graph
from simulator.graph.regions import parts_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type, element_count
from simulator.logging import library_call


@dataclass(frozen=True, slots=True)
class Uses:
    """Pairs: which tile uses which element (of `elements`) of a tensor."""

    element: IntArray
    tile: IntArray
    elements: int


def spread_by_use(uses: Uses, grain: int, least: int, start: int = 0) -> IntArray:
    """Return a tile for each element: those that the same tiles use are shared out among these.

    Whole grains go together and to all tiles that use any of their elements. A tile of a set gets
    at least so many elements, so that the set's last tiles may get none; `start` is where in a set
    it begins. What no tile uses goes where the element before it goes, or else the next one.
    """
    count = ceil_div(uses.elements, grain)
    stride = int(uses.tile.max(initial=0)) + 1
    keys = present(uses.element // grain * stride + uses.tile)
    pairs = np.column_stack([keys // stride, keys % stride])
    used, sets = _sets(pairs)
    tiles, bounds = _tiles_of_sets(pairs, used, sets)
    size = np.bincount(sets)
    rank = np.empty(len(sets), dtype=np.int64)  # of a grain among those of its set
    rank[np.argsort(sets, kind="stable")] = spread(np.zeros_like(size), size)
    most = np.maximum(size // max(ceil_div(least, grain), 1), 1)
    parts = np.minimum(np.diff(bounds), most)
    grains_per_part = ceil_div(size, parts)
    parts = ceil_div(size, grains_per_part)
    number = (rank * parts[sets] // size[sets] + start) % np.diff(bounds)[sets]
    tile_of_grain = tiles[bounds[:-1][sets] + number]
    place = np.maximum(np.searchsorted(used, np.arange(count), side="right") - 1, 0)
    return np.repeat(tile_of_grain[place], grain)[: uses.elements]


def _sets(pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Return the grains that are used, and for each the number of the set of tiles that use it."""
    counts = np.bincount(pairs[:, 0])
    used = np.flatnonzero(counts)
    counts = counts[used]
    first = offsets_of(counts)
    sets = np.zeros(len(used), dtype=np.int64)
    count = 0
    for size in np.unique(counts).tolist():  # sets of as many tiles are the rows of a table
        grains = np.flatnonzero(counts == size)
        table = pairs[first[grains][:, None] + np.arange(size), 1]
        # As a row of bytes each is compared at once.
        rows = table.view(np.dtype((np.void, table.itemsize * size))).reshape(-1)
        distinct, number = np.unique(rows, return_inverse=True)
        sets[grains] = count + number.reshape(-1)
        count += len(distinct)
    return used, sets


def _tiles_of_sets(pairs: IntArray, used: IntArray, sets: IntArray) -> tuple[IntArray, IntArray]:
    """List the tiles of each set, and where each set's begin."""
    counts = np.bincount(pairs[:, 0])[used]
    one = np.unique(sets, return_index=True)[1]  # a grain of each set
    tiles = pairs[spread(offsets_of(counts)[:-1][one], counts[one]), 1]
    return tiles, offsets_of(counts[one])


@library_call("POPUTIL")
def createBroadcastOperand(
    graph: Graph,
    fullTensor: Tensor,
    type: Type,
    dim: int,
    ditherMapping: bool = False,
    debugContext: str = "",
) -> Tensor:
    """Add a variable of one dimension, near the elements of a tensor that it is broadcast to.

    It has the size of dimension `dim` of the tensor; elements that the same tiles use are shared
    out among these, from another of them on when `ditherMapping` is true.
    """
    name = debugContext or "createBroadcastOperand"
    if not isinstance(dim, int | np.integer) or not 0 <= dim < fullTensor.rank():
        raise poplibs_error(f"{name}: dimension {dim!r} of {fullTensor!r}")
    size = fullTensor.dim(int(dim))
    out = graph.addVariable(type, [size], name)
    _map_by_use(graph, out, _uses(graph, fullTensor, int(dim)), ditherMapping)
    return out


def joint_broadcast_operand(
    graph: Graph, parts: Sequence[Tensor], type: Type, dim: int, name: str
) -> Tensor:
    """Do what `createBroadcastOperand` does, dithered, of tensors laid end to end along `dim`."""
    sizes = [part.dim(dim) for part in parts]
    out = graph.addVariable(type, [sum(sizes)], name)
    uses = [_uses(graph, part, dim) for part in parts]
    begins = offsets_of(np.array(sizes, dtype=np.int64))[:-1]
    element = np.concatenate([u.element + b for u, b in zip(uses, begins.tolist(), strict=True)])
    tile = np.concatenate([part.tile for part in uses])
    _map_by_use(graph, out, Uses(element, tile, sum(sizes)), dither=True)
    return out


def _uses(graph: Graph, tensor: Tensor, dim: int) -> Uses:
    """Return which tiles hold an element of which index of a dimension, each pair once."""
    size, stride = max(tensor.dim(dim), 1), graph.target.num_tiles
    low, high, tile = graph.tile_ranges(tensor)
    inner = max(element_count(tensor.shape[dim + 1 :]), 1)
    first, last = low // inner, (high - 1) // inner  # rows of one index each
    counts = np.minimum(last - first + 1, size)
    # Most pieces are of the same indexes and tile as another one.
    most = int(counts.max(initial=0)) + 1
    pieces = present((first % size * stride + tile) * most + counts)
    counts, pairs = pieces % most, pieces // most
    if most > 2:
        index, tile = spread(pairs // stride, counts) % size, np.repeat(pairs % stride, counts)
        pairs = present(index * stride + tile)
    return Uses(pairs // stride, pairs % stride, tensor.dim(dim))


def _map_by_use(graph: Graph, out: Tensor, uses: Uses, dither: bool) -> None:
    """Map each element of a variable near its uses; from another of them on with `dither`."""
    if not len(uses.element):
        return
    least = max(graph.target.getVectorWidth(out.dtype), 1)
    start = len(graph.variables) if dither else 0
    places = np.arange(uses.elements, dtype=np.int64)
    graph.map_ranges(out, places, places + 1, spread_by_use(uses, 1, least, start))


@dataclass(slots=True)
class TensorUseTracker:
    """Collects which tiles use what, and maps variables by it."""

    numTiles: int
    _uses: list[tuple[Tensor, int]] = field(default_factory=list)

    def add(self, graph: Graph, tile: int, t: Tensor) -> None:
        """Record that a tile uses a tensor; its constants do not count."""
        if not isinstance(tile, int | np.integer) or not 0 <= tile < self.numTiles:
            raise poplibs_error(f"TensorUseTracker.add: tile {tile!r} of {self.numTiles}")
        self._uses.append((t, int(tile)))

    def empty(self) -> bool:
        """Return whether nothing has been added."""
        return not self._uses

    def mapTensorsByUse(
        self,
        graph: Graph,
        grainSize: int,
        minElementsPerTile: int,
        extendPartialUsage: bool = False,
    ) -> None:
        """Map the elements that are used; with `extendPartialUsage` all of their variables'.

        Elements that several tiles use are shared out among these.
        """
        if grainSize < 1:
            raise poplibs_error(f"mapTensorsByUse: grains of {grainSize}; at least 1 is needed")
        for number, (first, last, tile) in self._by_variable(graph).items():
            variable = graph.variables[number]
            element = spread(first, last - first)
            uses = Uses(element, np.repeat(tile, last - first), variable.elements)
            tiles = spread_by_use(uses, grainSize, minElementsPerTile)
            places = np.arange(uses.elements, dtype=np.int64)
            if not extendPartialUsage:
                places = np.unique(element)
            flat = Tensor(
                graph,
                variable.dtype,
                (variable.elements,),
                stepped(variable.offset // variable.dtype.size, [(variable.elements, 1)]),
            )
            graph.map_ranges(flat, places, places + 1, tiles[places])

    def _by_variable(self, graph: Graph) -> dict[int, tuple[Array, Array, Array]]:
        """Return the parts [first, last) of each variable that tiles use."""
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for tensor, tile in self._uses:
            parts = parts_of(tensor)
            last = (parts.first + parts.high - parts.low).tolist()
            numbers = zip(parts.variable.tolist(), parts.first.tolist(), last, strict=True)
            for number, first, end in numbers:
                if not graph.variables[number].constant:
                    rows.setdefault(number, []).append((first, end, tile))
        ranges = {}
        for number, pieces in rows.items():
            first, last, tile_of = np.array(pieces, dtype=np.int64).T
            ranges[number] = (first, last, tile_of)
        return ranges
