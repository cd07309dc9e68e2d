"""Mapping what many tiles read: each element goes to a tile that uses it, evenly among these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, TypeAlias, overload

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of, present, spread
from simulator.graph.geometry.strides import stepped
from simulator.graph.graph import Graph
from simulator.graph.tensors.regions import parts_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type, element_count
from simulator.logging import library_call
from simulator.poplibs.poputil.structure import in_rows


class HowMapped(Enum):
    """How elements of several tiles are mapped where sets of tiles meet.

    OptimizeHaloRegions: what both of two neighbouring sets use, and none else, goes with the one
    before it. ConstrainMappingToUsedTiles: neighbouring sets that have a tile in common are one,
    and grains are not shared. NONE (C++'s None): each set by itself.
    """

    OptimizeHaloRegions = 0
    ConstrainMappingToUsedTiles = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Uses:
    """Pairs: which tile uses which element (of `elements`) of a tensor."""

    element: IntArray
    tile: IntArray
    elements: int


def spread_by_use(
    uses: Uses,
    grain: int,
    least: int,
    start: int = 0,
    mapping_method: HowMapped = HowMapped.NONE,
) -> IntArray:
    """Return a tile for each element: those that the same tiles use are shared out among these.

    Whole grains go together and to all tiles that use any of their elements. A tile of a set gets
    at least so many elements, so that the set's last tiles may get none; `start` is where in a set
    it begins. What no tile uses goes where the element before it goes, or else the next one.
    """
    share = 1
    if mapping_method is HowMapped.ConstrainMappingToUsedTiles:
        grain, share = 1, grain
    count = ceil_div(uses.elements, grain)
    stride = int(uses.tile.max(initial=0)) + 1
    keys = present(uses.element // grain * stride + uses.tile)
    pairs = np.column_stack([keys // stride, keys % stride])
    used, sets = _sets(pairs)
    tiles, bounds = _tiles_of_sets(pairs, used, sets)
    if mapping_method is HowMapped.OptimizeHaloRegions:
        sets = _without_halos(used, sets, tiles, bounds)
    elif share > 1 or mapping_method is HowMapped.ConstrainMappingToUsedTiles:
        sets, tiles, bounds = _joined(sets, tiles, bounds)
    size = np.bincount(sets, minlength=len(bounds) - 1)
    rank = np.empty(len(sets), dtype=np.int64)  # of a grain among those of its set
    rank[np.argsort(sets, kind="stable")] = spread(np.zeros_like(size), size)
    most = np.maximum(size // max(ceil_div(least, grain), 1), 1)
    parts = np.minimum(np.diff(bounds), most)
    grains_per_part = np.maximum(ceil_div(ceil_div(size, parts), share) * share, 1)
    parts = ceil_div(size, grains_per_part)
    shares = ceil_div(size, share)[sets]
    number = (rank // share * parts[sets] // shares + start) % np.diff(bounds)[sets]
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


def _without_halos(used: IntArray, sets: IntArray, tiles: IntArray, bounds: IntArray) -> IntArray:
    """Put grains of a halo into the set before them: it and the set behind them use them."""
    heads = np.flatnonzero(np.diff(sets, prepend=-1) != 0)
    run = sets[heads]
    if len(run) < 3:
        return sets
    triples, which = np.unique(
        np.column_stack([run[:-2], run[1:-1], run[2:]]), axis=0, return_inverse=True
    )
    groups = {n: {*tiles[bounds[n] : bounds[n + 1]].tolist()} for n in np.unique(run).tolist()}
    halo = np.array(
        [
            len(groups[a]) + len(groups[c]) == len(groups[b]) and groups[a] | groups[c] == groups[b]
            for a, b, c in triples.tolist()
        ]
    )
    run = run.copy()
    inside = np.flatnonzero(halo[which.reshape(-1)]) + 1
    run[inside] = sets[heads][inside - 1]
    return np.repeat(run, np.diff(np.append(heads, len(sets))))


def _joined(
    sets: IntArray, tiles: IntArray, bounds: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Join the sets of neighbouring grains as long as the next has a tile of those before it."""
    heads = np.flatnonzero(np.diff(sets, prepend=-1) != 0)
    groups: list[set[int]] = []
    number = []
    for one in sets[heads].tolist():  # each run depends on what was joined before
        group = {*tiles[bounds[one] : bounds[one + 1]].tolist()}
        if groups and groups[-1] & group:
            groups[-1] |= group
        else:
            groups.append(group)
        number.append(len(groups) - 1)
    distinct = {tuple(sorted(group)): None for group in groups}
    place = {group: n for n, group in enumerate(distinct)}
    of_run = np.array([place[tuple(sorted(groups[n]))] for n in number], dtype=np.int64)
    joined_tiles = np.array([tile for group in distinct for tile in group], dtype=np.int64)
    lengths = np.array([len(group) for group in distinct], dtype=np.int64)
    return (
        np.repeat(of_run, np.diff(np.append(heads, len(sets)))),
        joined_tiles,
        offsets_of(lengths),
    )


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

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [3, 2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> biases = poputil.createBroadcastOperand(graph, x, poplar.FLOAT, 1)
    >>> graph.getTileMapping(biases)
    [[], [(0, 2)], [], []]
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
    inner = max(element_count(tensor.shape[dim + 1 :]), 1)
    rows = in_rows(tensor, [dim])
    if rows is not None:
        tensor, dim, inner = rows, rows.rank() - 1, 1
    low, high, tile = graph.tile_ranges(tensor)
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


Ranges: TypeAlias = tuple[Array, Array, Array]  # first and last element, and the tile


@dataclass(slots=True)
class TensorUseTracker:
    """Collects which tiles use what, and maps variables by it.

    Tiles are counted from `startTile` on, up or down, when variables are mapped.
    """

    MappingMethod: ClassVar[Any] = HowMapped

    numTiles: int
    startTile: int = 0
    ascendingMappingOrder: bool = True
    _uses: dict[int, list[Ranges]] = field(default_factory=dict)

    @overload
    def add(self, graph: Graph, tile: int, t: Tensor, /) -> None: ...
    @overload
    def add(self, other: TensorUseTracker, /) -> None: ...
    def add(self, *arguments: Any) -> None:
        """Record that a tile uses a tensor, but its constants, or all that another tracker has."""
        if len(arguments) == 1:
            (other,) = arguments
            if other.numTiles != self.numTiles:
                raise poplibs_error(
                    f"TensorUseTracker.add: a tracker of {other.numTiles} tiles to one of "
                    f"{self.numTiles}"
                )
            for number, ranges in other._uses.items():
                self._uses.setdefault(number, []).extend(ranges)
            return
        graph, tile, t = arguments
        if not isinstance(tile, int | np.integer) or not 0 <= tile < self.numTiles:
            raise poplibs_error(f"TensorUseTracker.add: tile {tile!r} of {self.numTiles}")
        parts = parts_of(t)
        last = parts.first + parts.high - parts.low
        for number in present(parts.variable).tolist():
            if not graph.variables[number].constant:
                rows = parts.variable == number
                ranges = (parts.first[rows], last[rows], np.full(int(rows.sum()), int(tile)))
                self._uses.setdefault(number, []).append(ranges)

    def empty(self) -> bool:
        """Return whether nothing has been added."""
        return not self._uses

    def resolve(
        self,
        graph: Graph,
        grainSize: int,
        minElementsPerTile: int,
        extendPartialUsage: bool = False,
        mappingMethod: HowMapped = HowMapped.NONE,
    ) -> None:
        """Leave one tile to each element that is used: elements of several are shared out.

        With `extendPartialUsage` the other elements of a variable go where their neighbours go.
        """
        if grainSize < 1:
            raise poplibs_error(f"mapTensorsByUse: grains of {grainSize}; at least 1 is needed")
        for number, ranges in self._uses.items():
            first, last, tile = (np.concatenate(column) for column in zip(*ranges, strict=True))
            element = spread(first, last - first)
            elements = graph.variables[number].elements
            uses = Uses(element, np.repeat(tile, last - first), elements)
            tiles = spread_by_use(uses, grainSize, minElementsPerTile, mapping_method=mappingMethod)
            places = np.arange(elements, dtype=np.int64)
            if not extendPartialUsage:
                places = np.unique(element)
            tiles = tiles[places]
            change = (np.diff(places, prepend=-2) != 1) | (np.diff(tiles, prepend=-1) != 0)
            heads = np.flatnonzero(change)
            ends = places[np.append(heads[1:], len(places)) - 1] + 1
            self._uses[number] = [(places[heads], ends, tiles[heads])]

    def mapTensorsByUse(
        self,
        graph: Graph,
        grainSize: int,
        minElementsPerTile: int,
        extendPartialUsage: bool = False,
        mappingMethod: HowMapped = HowMapped.NONE,
    ) -> None:
        """Map the elements that are used; with `extendPartialUsage` all of their variables'.

        Elements that several tiles use are shared out among these.
        """
        self.resolve(graph, grainSize, minElementsPerTile, extendPartialUsage, mappingMethod)
        tiles = graph.target.num_tiles
        for number, ((first, last, tile),) in self._uses.items():
            variable = graph.variables[number]
            flat = Tensor(
                graph,
                variable.dtype,
                (variable.elements,),
                stepped(variable.offset // variable.dtype.size, [(variable.elements, 1)]),
            )
            up = self.ascendingMappingOrder
            placed = tile + self.startTile if up else -self.startTile - tile
            graph.map_ranges(flat, first, last, placed % tiles)
