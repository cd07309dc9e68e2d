"""Mappings that begin at another tile, and lists of intervals (poputil)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import Interval, offsets_of
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.poputil.tile_mapping import TileParts, calcLinearTileMapping

SEED = 0x9E3779B9
_WORD = (1 << 64) - 1
_MIX, _SHIFT, _ADD = 0xC6A4A7935BD1E995, 47, 0xE6546B64  # of MurmurHash2, as Boost combines hashes


@library_call("POPUTIL")
def chooseMappingOffset(numTiles: int, shape: Sequence[int], seed: int = SEED) -> int:
    """Return a tile that depends on a shape alone, so that mappings of many do not all begin at 0.

    The hash is that of Boost 1.70 for words of 64 bits.

    >>> from simulator import poputil
    >>> 0 <= poputil.chooseMappingOffset(4, [2, 3]) < 4
    True
    """
    if numTiles < 1:
        raise poplibs_error(f"chooseMappingOffset: {numTiles} tiles; at least 1 is needed")
    for size in shape:
        mixed = int(size) * _MIX & _WORD
        mixed = (mixed ^ mixed >> _SHIFT) * _MIX & _WORD
        seed = ((seed ^ mixed) * _MIX + _ADD) & _WORD
    return seed % numTiles


@library_call("POPUTIL")
def calcLinearTileMappingAndNewOffset(
    graph: Graph, t: Tensor, offset: int = 0
) -> tuple[TileParts, int]:
    """Spread a tensor in order from a tile on; return that, and the tile behind the last used.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> poputil.calcLinearTileMappingAndNewOffset(graph, x[:64], 1)
    ([[], [(0, 32)], [(32, 64)], []], 3)
    """
    tiles = graph.target.num_tiles
    if not 0 <= offset < tiles:
        raise poplibs_error(
            f"calcLinearTileMappingAndNewOffset: offset is {offset}; 0 to {tiles - 1} is needed"
        )
    mapping = calcLinearTileMapping(graph, t)
    used = sum(bool(parts) for parts in mapping)
    return mapping[tiles - offset :] + mapping[: tiles - offset], (offset + used) % tiles


@library_call("POPUTIL")
def transformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """Return which tile, counted from `offset` upwards or downwards, a tile is.

    >>> from simulator import poputil
    >>> [poputil.transformTileIndex(tile, 4, 1, True) for tile in range(4)]  # tile 1 is the first
    [3, 0, 1, 2]
    """
    return (numTiles + tile - offset if ascending else 2 * numTiles - offset - tile) % numTiles


@library_call("POPUTIL")
def invTransformTileIndex(tile: int, numTiles: int, offset: int, ascending: bool) -> int:
    """Return the tile that `transformTileIndex` makes this of.

    >>> from simulator import poputil
    >>> [poputil.invTransformTileIndex(tile, 4, 1, True) for tile in range(4)]
    [1, 2, 3, 0]
    """
    return (tile + offset if ascending else 2 * numTiles - offset - tile) % numTiles


@library_call("POPUTIL")
def flattenIntervals(intervals: Sequence[Sequence[tuple[int, int]]]) -> list[Interval]:
    """Lay lists of intervals end to end.

    >>> from simulator import poputil
    >>> poputil.flattenIntervals([[(0, 2)], [(4, 6), (8, 9)]])
    [(0, 2), (4, 6), (8, 9)]
    """
    return [Interval(*pair) for group in intervals for pair in group]


@library_call("POPUTIL")
def calculateUnshufflingIntervals(intervals: Sequence[tuple[int, int]]) -> list[Interval]:
    """Return the intervals that undo a shuffle: of what `concat(t.slices(intervals))` gives.

    >>> from simulator import poputil
    >>> poputil.calculateUnshufflingIntervals([(2, 5), (0, 2)])  # what stands first were 2 to 5
    [(3, 5), (0, 3)]
    """
    begins, ends = np.array([tuple(pair) for pair in intervals], np.int64).reshape(-1, 2).T
    places = offsets_of(ends - begins)
    order = np.argsort(begins, kind="stable")
    pairs = zip(places[:-1][order].tolist(), places[1:][order].tolist(), strict=True)
    return [Interval(*pair) for pair in pairs]


@library_call("POPUTIL")
def cloneToGraph(srcGraph: Graph, dstGraph: Graph, t: Tensor, debugContext: str = "") -> Tensor:
    """Add a variable like a tensor on the tiles of another view that have its tiles' numbers.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> half = graph.createVirtualGraph([2, 3])
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> graph.getTileMapping(poputil.cloneToGraph(graph, half, x))  # tile 1 of the view is 3
    [[], [], [], [(0, 2)]]
    """
    if srcGraph.replication != dstGraph.replication:
        raise poplibs_error(
            f"{debugContext or 'cloneToGraph'}: graphs of {srcGraph.replication} and "
            f"{dstGraph.replication} replicas; as many are needed"
        )
    low, high, tiles = srcGraph.tile_ranges(t)
    if len(tiles) and int(tiles.max()) >= dstGraph.target.num_tiles:
        raise poplibs_error(
            f"{debugContext or 'cloneToGraph'}: {t!r} lies on tile {int(tiles.max())}; the other "
            f"graph has {dstGraph.target.num_tiles}"
        )
    clone = dstGraph.addVariable(t.dtype, t.shape, debugContext or t.describe())
    dstGraph.map_ranges(clone, low, high, tiles)
    return clone


@library_call("POPUTIL")
def cloneAndExpandAliasing(
    graph: Graph, t: Tensor, offset: int = 0, debugContext: str = ""
) -> tuple[Tensor, int]:
    """Clone a tensor; what stands in it again gets places of its own, in order from a tile on.

    Gives the clone and the tile behind the last used.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [256], "x")
    >>> graph.setTileMapping(x, 0)
    >>> twice = poplar.concat([x, x])
    >>> clone, _ = poputil.cloneAndExpandAliasing(graph, twice)
    >>> twice.containsAliases(), clone.containsAliases()
    (True, False)
    """
    if not t.containsAliases():
        return graph.clone(t, debugContext), offset
    elements = t.elements().reshape(-1)
    first = np.zeros(len(elements), dtype=bool)
    first[np.unique(elements, return_index=True)[1]] = True
    out = graph.addVariable(t.dtype, t.shape, debugContext or t.describe())
    flat = out.flatten()
    own = flat.view(flat.elements()[first])
    graph.copy_mapping(t.view(elements[first]), own)
    again = flat.view(flat.elements()[~first])
    mapping, behind = calcLinearTileMappingAndNewOffset(graph, again, offset)
    graph.setTileMapping(again, mapping)
    return out, behind
