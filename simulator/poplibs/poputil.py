"""Tile mappings and copies of tensors (poputil)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.target import Target
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.logging import library_call

MIN_BYTES_PER_TILE = 128  # PopLibs lib/poputil/TileMapping.cpp

__all__ = ["calcLinearTileMapping", "duplicate", "mapTensorLinearly", "poplibs_error"]


def linear_bounds(
    elements: int, dtype: Type, target: Target, min_elements: int = 0, grain: int = 0
) -> IntArray:
    """Give the bounds of each tile's elements when they are spread in order, from tile 0.

    PopLibs lib/poputil/TileMapping.cpp and Util.cpp: whole grains (one vector), at least 128 bytes
    a tile, as even as can be.
    """
    for number, what in ((min_elements, "minElementsPerTile"), (grain, "grainSize")):
        if not isinstance(number, int | np.integer) or number < 0:
            raise PoplarError(f"mapTensorLinearly: {what} is {number!r}; a number is needed")
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
    """Spread a tensor over the tiles in the order of its elements."""
    bounds = linear_bounds(
        tensor.numElements(), tensor.dtype, graph.target, minElementsPerTile, grainSize
    )
    tiles = np.arange(len(bounds) - 1, dtype=np.int64)
    graph.map_ranges(tensor, bounds[:-1], bounds[1:], tiles)


@library_call("POPUTIL")
def calcLinearTileMapping(
    graph: Graph, tensor: Tensor, minElementsPerTile: int = 0, grainSize: int = 0
) -> list[list[tuple[int, int]]]:
    """List, for each tile, the parts [begin, end) that `mapTensorLinearly` would give it."""
    bounds = linear_bounds(
        tensor.numElements(), tensor.dtype, graph.target, minElementsPerTile, grainSize
    ).tolist()
    used = [[part] for part in zip(bounds[:-1], bounds[1:], strict=True)]
    return used + [[] for _ in range(graph.target.num_tiles - len(used))]


@library_call("POPUTIL")
def duplicate(graph: Graph, tensor: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """Add a variable that lies where a tensor lies, and copy the tensor into it."""
    copy = graph.clone(tensor, name)
    prog.add(Copy(tensor, copy, name=name))
    return copy
