"""How a tensor lies: which neighbours lie together in memory, what lies on one tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import cut, spread
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type, checked_shape
from simulator.logging import library_call

GroupingInfo: TypeAlias = tuple[int, int]
"""A dimension, and how many of its neighbours lie together."""


# Rows
def in_rows(tensor: Tensor, dimensions: Sequence[int]) -> Tensor | None:
    """Return a tensor with these dimensions last, so that it falls into fewer intervals.

    Returns None where the first two of their elements do not lie together in memory.
    """
    wide = [axis for axis in dimensions if tensor.shape[axis] > 1]
    if not wide or not tensor.numElements():
        return None
    low = np.array([0, prod(tensor.shape[wide[-1] + 1 :])])
    first, second = cut(*tensor.intervals(), low, low + 1)[0]
    if second != first + 1:
        return None
    others = [axis for axis in range(tensor.rank()) if axis not in dimensions]
    return tensor.dimShuffle([*others, *dimensions])


# Groups
@library_call("POPUTIL")
def detectInnermostGrouping(graph: Graph, t: Tensor) -> int:
    """Return into what groups the last dimension falls, each together in memory and on one tile.

    A group is of neighbours in the dimension; 0 where there are none.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [2, 4], "x")
    >>> graph.setTileMapping(x[:, :2], 0)
    >>> graph.setTileMapping(x[:, 2:], 1)
    >>> poputil.detectInnermostGrouping(graph, x)
    2
    """
    if t.rank() == 0:
        raise poplibs_error(f"detectInnermostGrouping: {t!r}; at least one dimension is needed")
    group = _group_of(*_places(graph, t))
    return group if group > 1 else 0


@library_call("POPUTIL")
def detectDimGroupings(graph: Graph, t: Tensor) -> list[GroupingInfo]:
    """List the dimensions whose neighbours lie together and in what groups, the innermost first.

    What lies together next is groups of the first, and so on; a dimension may come again.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [2, 4], "x")
    >>> graph.setTileMapping(x, 0)
    >>> poputil.detectDimGroupings(graph, x)
    [(1, 4), (0, 2)]
    """
    if t.rank() == 0:
        raise poplibs_error(f"detectDimGroupings: {t!r}; at least one dimension is needed")
    elements, tiles = _places(graph, t)
    groupings: list[GroupingInfo] = []
    step = 1
    while True:
        groups = [
            _group_of(np.moveaxis(elements, axis, -1), np.moveaxis(tiles, axis, -1), step)
            for axis in range(t.rank())
        ]
        best = int(np.argmax(groups))
        if groups[best] < 2:
            return groupings
        groupings.append((best, groups[best]))
        firsts = [slice(None)] * t.rank()
        firsts[best] = slice(None, None, groups[best])
        elements, tiles = elements[tuple(firsts)], tiles[tuple(firsts)]
        step *= groups[best]


def _places(graph: Graph, tensor: Tensor) -> tuple[IntArray, IntArray]:
    """Return the arena's element and the tile (-1 for none) of each element."""
    low, high, tile = graph.tile_ranges(tensor)
    tiles = np.repeat(tile, high - low)
    if len(tiles) < tensor.numElements():  # some are on no tile
        mapped, tiles = tiles, np.full(tensor.numElements(), -1, dtype=np.int64)
        tiles[spread(low, high - low)] = mapped
    return tensor.elements(), tiles.reshape(tensor.shape)


def _group_of(elements: IntArray, tiles: IntArray, step: int = 1) -> int:
    """Return the size of the groups of the last axis whose elements follow by `step`."""
    if not elements.size:
        return 0
    line = (0,) * (elements.ndim - 1)
    if elements.ndim > 1 and _group_of(elements[line], tiles[line], step) == 1:
        return 1  # other lines may have more breaks, not fewer
    together = (np.diff(elements) == step) & (np.diff(tiles) == 0)
    breaks = np.flatnonzero(~together.all(axis=tuple(range(together.ndim - 1)))) + 1
    return int(np.gcd.reduce(np.append(breaks, elements.shape[-1])))


# Tiles
@library_call("POPUTIL")
def dimIsSplitOverTiles(graph: Graph, t: Tensor, dimension: int) -> bool:
    """Return whether elements that differ in this dimension alone lie on several tiles.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [2, 4], "x")
    >>> graph.setTileMapping(x[0], 0)
    >>> graph.setTileMapping(x[1], 1)
    >>> [poputil.dimIsSplitOverTiles(graph, x, dimension) for dimension in (0, 1)]
    [True, False]
    """
    return _is_split(graph, t, dimension, 1)


@library_call("POPUTIL")
def dimIsSplitOverIPUs(graph: Graph, t: Tensor, dimension: int) -> bool:
    """Return whether elements that differ in this dimension alone lie on several IPUs.

    >>> from simulator import poplar, poputil
    >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> poputil.dimIsSplitOverIPUs(graph, x, 0)
    False
    """
    return _is_split(graph, t, dimension, graph.target.tiles_per_ipu)


def _is_split(graph: Graph, tensor: Tensor, dimension: int, tiles: int) -> bool:
    line = tensor.dimRoll(dimension, tensor.rank() - 1)
    places = _places(graph, line)[1] // tiles
    return bool((np.diff(places) != 0).any())


# Parts
@library_call("POPUTIL")
def createPartitionableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    nPartitions: Sequence[int],
    debugContext: str = "",
) -> Tensor:
    """Add a variable, which is on no tile yet, whose every part lies together in memory.

    A dimension of n elements falls into parts of ceil(n / number), the last of what is left.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = poputil.createPartitionableTensor(graph, poplar.FLOAT, [4, 6], [2, 3])
    >>> x[:2, :2].isContiguous(), x[:2].isContiguous()
    (True, False)
    """
    from simulator.poplibs.popops.slicing.planned.partitioned import Partition, add_partitioned

    name = debugContext or "createPartitionableTensor"
    sizes, parts = checked_shape(shape, name), checked_shape(nPartitions, name)
    if len(sizes) != len(parts) or 0 in parts:
        raise poplibs_error(f"{name}: shape {list(sizes)} in {list(parts)} parts; needs one each")
    if not sizes:
        return graph.addVariable(type, [], name)
    return add_partitioned(graph, type, Partition(sizes, parts), name)[0]


@library_call("POPUTIL")
def iterateTensorPartitions(
    t: Tensor, nPartitions: Sequence[int], f: Callable[[list[int], Tensor], object]
) -> None:
    """Call a function with the indices of each part and the part, the first dimension fastest.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [4, 6], "x")
    >>> poputil.iterateTensorPartitions(x, [2, 1], lambda part, tensor: print(part, tensor.shape))
    [0, 0] (2, 6)
    [1, 0] (2, 6)
    """
    parts = checked_shape(nPartitions, "iterateTensorPartitions")
    if len(parts) != t.rank() or 0 in parts:
        raise poplibs_error(
            f"iterateTensorPartitions: {t!r} in {list(parts)} parts; needs one each"
        )
    steps = [ceil_div(size, count) for size, count in zip(t.shape, parts, strict=True)]
    for number in range(prod(parts)):
        place = [int(index) for index in np.unravel_index(number, parts, order="F")]
        bounds = zip(place, steps, t.shape, strict=True)
        low = [min(index * step, size) for index, step, size in bounds]
        high = [min(a + step, size) for a, step, size in zip(low, steps, t.shape, strict=True)]
        f(place, t.slice(low, high) if parts else t)


@library_call("POPUTIL")
def factorDims(t: Tensor, factors: Sequence[int], startDim: int = 0) -> Tensor:
    """Split dimensions [outer * factor] into their outer parts, all of them first, and factors.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [4, 6], "x")
    >>> poputil.factorDims(x, [2, 3]).shape
    (2, 2, 2, 3)
    """
    end = startDim + len(factors)
    sizes = t.shape[startDim:end]
    if len(sizes) < len(factors) or any(
        factor < 1 or size % factor for size, factor in zip(sizes, factors, strict=True)
    ):
        raise poplibs_error(f"factorDims: {t!r} by {list(factors)} from dimension {startDim}")
    pairs = [
        n for size, factor in zip(sizes, factors, strict=True) for n in (size // factor, factor)
    ]
    split = t.reshapePartial(startDim, end, pairs)
    return split.dimShuffle(_with_middle(split.rank(), startDim, _apart(len(factors))))


@library_call("POPUTIL")
def unfactorDims(t: Tensor, numDims: int, startDim: int = 0) -> Tensor:
    """Undo `factorDims` of so many dimensions.

    >>> from simulator import poplar, poputil
    >>> graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())  # 4 tiles
    >>> x = graph.addVariable(poplar.FLOAT, [4, 6], "x")
    >>> poputil.unfactorDims(poputil.factorDims(x, [2, 3]), 2).shape
    (4, 6)
    """
    if numDims < 0 or startDim < 0 or startDim + 2 * numDims > t.rank():
        raise poplibs_error(f"unfactorDims: {numDims} dimensions of {t!r} from {startDim}")
    back = np.argsort(_apart(numDims)).tolist()
    mixed = t.dimShuffle(_with_middle(t.rank(), startDim, back))
    end = startDim + 2 * numDims
    sizes = np.array(mixed.shape[startDim:end], dtype=np.int64).reshape(numDims, 2)
    return mixed.reshapePartial(startDim, end, sizes.prod(axis=1).tolist())


def _apart(pairs: int) -> list[int]:
    """Return the order that puts the first of each pair of dimensions before all second ones."""
    return [*range(0, 2 * pairs, 2), *range(1, 2 * pairs, 2)]


def _with_middle(rank: int, start: int, order: Sequence[int]) -> list[int]:
    """Return an order of all dimensions that changes those from `start` on alone."""
    middle = [start + place for place in order]
    return [*range(start), *middle, *range(start + len(middle), rank)]
