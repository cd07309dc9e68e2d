"""Which tiles hold which elements of a tensor: spread in order, balanced, or as operands lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.geometry.intervals import ascending, offsets_of, spread
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.mapping import listed_pieces
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, IntArray, Type, checked_shape, element_count
from simulator.logging import library_call

TileParts: TypeAlias = list[list[tuple[int, int]]]
MIN_BYTES_PER_TILE = 128  # PopLibs lib/poputil/TileMapping.cpp


def linear_bounds(
    elements: int, dtype: Type, target: Target, min_elements: int = 0, grain: int = 0
) -> IntArray:
    """Return the bounds of each tile's elements when they are spread in order, from tile 0.

    PopLibs lib/poputil/TileMapping.cpp and Util.cpp: whole grains (one vector), at least 128 bytes
    a tile, as even as can be.
    """
    for number, parameter in ((min_elements, "minElementsPerTile"), (grain, "grainSize")):
        if not isinstance(number, int | np.integer) or number < 0:
            raise PoplarError(f"mapTensorLinearly: {parameter} is {number!r}; a number is needed")
    grain = grain or max(target.getVectorWidth(dtype), 1)
    least = min_elements or ceil_div(MIN_BYTES_PER_TILE, dtype.size)
    grains, min_grains = ceil_div(elements, grain), max(ceil_div(least, grain), 1)
    if grains == 0:
        return np.zeros(1, dtype=np.int64)
    most_tiles = max(1, grains // min_grains)
    per_tile = max(ceil_div(grains, target.num_tiles), ceil_div(grains, most_tiles))
    bounds = even_bounds(grains, ceil_div(grains, per_tile)) * grain
    return np.minimum(bounds, elements)


@library_call("POPUTIL")
def mapTensorLinearly(
    graph: Graph, tensor: Tensor, minElementsPerTile: int = 0, grainSize: int = 0
) -> None:
    """Spread a tensor over the tiles in the order of its elements.

    >>> from simulator import poplar
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> mapTensorLinearly(graph, x)
    >>> graph.getTileMapping(x)
    [[(0, 64)], [(64, 128)], [(128, 192)], [(192, 256)]]
    """
    bounds = linear_bounds(
        tensor.numElements(), tensor.dtype, graph.target, minElementsPerTile, grainSize
    )
    tiles = np.arange(len(bounds) - 1, dtype=np.int64)
    graph.map_ranges(tensor, bounds[:-1], bounds[1:], tiles)


@overload
def mapTensorLinearlyWithOffset(
    graph: Graph, t: Tensor, offset: int, ascending: bool = True
) -> None: ...
@overload
def mapTensorLinearlyWithOffset(
    graph: Graph,
    t: Tensor,
    minElementsPerTile: int,
    grainSize: int,
    offset: int,
    ascending: bool = True,
) -> None: ...
@library_call("POPUTIL")
def mapTensorLinearlyWithOffset(graph: Graph, t: Tensor, *arguments: Any, **named: Any) -> None:
    """Spread a tensor in the order of its elements from a tile on, round the last one.

    The first tile is `offset`, or `offset` from the last one where tiles descend.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> poputil.mapTensorLinearlyWithOffset(graph, x, 1)
    >>> graph.getTileMapping(x)
    [[(192, 256)], [(0, 64)], [(64, 128)], [(128, 192)]]
    """
    long = len(arguments) > 2 or "minElementsPerTile" in named or "grainSize" in named
    names = ["minElementsPerTile", "grainSize"][: 2 * long] + ["offset", "ascending"]
    if len(arguments) > len(names) or {*named} - {*names}:
        raise TypeError(f"mapTensorLinearlyWithOffset takes graph, t, {', '.join(names)}")
    by_name = dict(zip(names, arguments, strict=False)) | named
    offset: Any = by_name.get("offset")
    tiles = graph.target.num_tiles
    if isinstance(offset, bool) or offset not in range(tiles):
        raise PoplarError(
            f"mapTensorLinearlyWithOffset: offset is {offset!r}; a tile from 0 to {tiles - 1} is "
            "needed"
        )
    least, grain = by_name.get("minElementsPerTile", 0), by_name.get("grainSize", 0)
    bounds = linear_bounds(t.numElements(), t.dtype, graph.target, least, grain)
    places = (np.arange(len(bounds) - 1, dtype=np.int64) + int(offset)) % tiles
    up = by_name.get("ascending", True)
    graph.map_ranges(t, bounds[:-1], bounds[1:], places if up else tiles - 1 - places)


@library_call("POPUTIL")
def calcLinearTileMapping(
    graph: Graph | Target,
    tensor: Tensor | Sequence[int],
    minElementsPerTile: int | Type = 0,
    grainSize: int = 0,
    offset: int = 0,
    ascendingOrder: bool = True,
) -> TileParts:
    """List, for each tile, the parts [begin, end) that `mapTensorLinearly` would give it.

    Of a shape, whose elements have no type, the grains are single elements by default; a type may
    stand in the place of the least elements. Tiles are counted from `offset` on, upwards or down.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> poputil.calcLinearTileMapping(graph, x)
    [[(0, 64)], [(64, 128)], [(128, 192)], [(192, 256)]]
    """
    target = graph if isinstance(graph, Target) else graph.target
    if isinstance(tensor, Tensor):
        elements, dtype = tensor.numElements(), tensor.dtype
    else:
        elements, dtype = element_count(checked_shape(tensor, "calcLinearTileMapping")), BOOL
    least = minElementsPerTile
    if isinstance(least, Type):
        dtype, least = least, 0
    elif not isinstance(tensor, Tensor):
        least, grainSize = max(least, 1), max(grainSize, 1)
    bounds = linear_bounds(elements, dtype, target, least, grainSize).tolist()
    used = [[part] for part in zip(bounds[:-1], bounds[1:], strict=True)]
    parts = used + [[] for _ in range(target.num_tiles - len(used))]
    ahead = parts[-offset % target.num_tiles :] + parts[: -offset % target.num_tiles]
    return ahead if ascendingOrder else ahead[::-1]


@overload
def getTileImbalance(
    mapping: TileParts, minElementsPerTile: int = 0, grainSize: int = 1, /
) -> int: ...
@overload
def getTileImbalance(
    graph: Graph, t: Tensor, minElementsPerTile: int = 0, grainSize: int = 1
) -> int: ...
@library_call("POPUTIL")
def getTileImbalance(*arguments: Any, **named: Any) -> int:
    """Count the elements of the fullest tile above an even share, of a tensor or a mapping.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> graph.setTileMapping(x, 0)
    >>> poputil.getTileImbalance(graph, x)  # 256, less a quarter of it
    192
    """
    has_graph = "graph" in named or isinstance(arguments[0], Graph)
    first = ["graph", "t"] if has_graph else ["mapping"]
    names = [*first, "minElementsPerTile", "grainSize"]
    by_name = dict(zip(names, arguments, strict=False)) | named
    if "mapping" in by_name:
        low, high, tiles = listed_pieces(by_name["mapping"])
        counts = np.bincount(tiles, high - low, minlength=len(by_name["mapping"])).astype(np.int64)
    else:
        counts = elements_by_tile(by_name["graph"], by_name["t"])
    return _imbalance(counts, by_name.get("minElementsPerTile", 0), by_name.get("grainSize", 1))


def elements_by_tile(graph: Graph, tensor: Tensor) -> IntArray:
    """Count the elements of a tensor on each tile."""
    low, high, tiles = graph.tile_ranges(tensor)
    return np.bincount(tiles, high - low, minlength=graph.target.num_tiles).astype(np.int64)


def _imbalance(counts: IntArray, least: int, grain: int) -> int:
    if not len(counts):
        return 0
    share = max(ceil_div(int(counts.sum()), len(counts)), least, grain)
    return max(int(counts.max()) - share, 0)


@library_call("POPUTIL")
def rebalanceTensor(
    graph: Graph,
    t: Tensor,
    minElementsPerTile: int | None = None,
    grainSize: int | None = None,
    imbalanceThreshold: int = 128,
) -> None:
    """Move elements from full tiles to others, until all have as many grains.

    By default a grain is one vector. A tensor that is not out of balance by more than the
    threshold, or that does not give every tile the least (by default 128 bytes), stays as it is.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> graph.setTileMapping(x, 0)
    >>> poputil.rebalanceTensor(graph, x)
    >>> poputil.getTileImbalance(graph, x)
    0
    """
    grain = max(graph.target.getVectorWidth(t.dtype), 1) if grainSize is None else grainSize
    least = ceil_div(MIN_BYTES_PER_TILE, t.dtype.size)
    least = least if minElementsPerTile is None else minElementsPerTile
    if grain < 1:
        raise poplibs_error(f"rebalanceTensor: grainSize is {grain}; at least 1 is needed")
    counts = elements_by_tile(graph, t)
    total, tiles = int(counts.sum()), len(counts)
    if _imbalance(counts, 0, 1) <= imbalanceThreshold or total // tiles < max(least, grain):
        return
    shortfall = np.diff(np.minimum(even_bounds(ceil_div(total, grain), tiles) * grain, total))
    low, high, tile = graph.tile_ranges(t)
    order = ascending(tile)
    elements = spread(low[order], (high - low)[order])  # tile by tile
    surplus = np.maximum(counts - shortfall, 0)
    moved = elements[spread(offsets_of(counts)[:-1], surplus)]
    places = np.repeat(np.arange(tiles, dtype=np.int64), np.maximum(shortfall - counts, 0))
    graph.map_ranges(t, moved, moved + 1, places)


@library_call("POPUTIL")
def mapOutputForElementWiseOp(
    graph: Graph,
    inputs: Sequence[Tensor],
    output: Tensor,
    grainSize: int = 1,
    minGrainsPerTile: int = 0,
) -> None:
    """Put an output where the best spread of its operands lies, or spread it in order.

    Operands with constants, with elements twice, whose parts are not of whole grains or too small
    are left out. The best has the least on its fullest tile, then most tiles, then fewest parts.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> graph.setTileMapping(x, 2)
    >>> out = graph.addVariable(poplar.FLOAT, [256], "out")
    >>> poputil.mapOutputForElementWiseOp(graph, [x], out)
    >>> graph.getTileMapping(out)
    [[], [], [(0, 256)], []]
    """
    best = _best_spread(graph, inputs, grainSize, minGrainsPerTile)
    if best is None:
        least = minGrainsPerTile * grainSize
        bounds = linear_bounds(
            output.numElements(), output.dtype, graph.target, max(least, 1), grainSize
        )
        tiles = np.arange(len(bounds) - 1, dtype=np.int64)
        graph.map_ranges(output, bounds[:-1], bounds[1:], tiles)
        return
    if best.numElements() != output.numElements():
        raise poplibs_error(
            f"mapOutputForElementWiseOp: {best!r} and {output!r} differ in their elements"
        )
    graph.copy_mapping(best, output)


def best_spread(graph: Graph, inputs: Sequence[Tensor]) -> Tensor | None:
    """Return the operand that is spread best, if there is one that could be written."""
    return _best_spread(graph, inputs, 1, 0)


def _best_spread(
    graph: Graph, inputs: Sequence[Tensor], grain: int, least_grains: int
) -> Tensor | None:
    ranked = []
    for place, tensor in enumerate(inputs):
        if not tensor.isParallelWriteable():
            continue
        low, high, _ = graph.tile_ranges(tensor)
        counts = elements_by_tile(graph, tensor)
        used = counts[counts > 0]
        if int(np.gcd.reduce(np.append(high - low, grain))) != grain or not len(used):
            continue
        if used.min() // grain >= least_grains:
            ranked.append((int(used.max()), -len(used), len(low), place))
    return inputs[min(ranked)[-1]] if ranked else None
