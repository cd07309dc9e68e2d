"""Batches of square matrices [..., n, n]: their checks, their triangles, where each mostly lies."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Numbers
from math import prod

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BoolArray, IntArray
from simulator.poplibs.poplin.planning.options import MATMUL

Options = Mapping[str, object] | None


def check_square(shape: Numbers[int], name: str) -> None:
    """Raise poplibs_error for what is no batch of square matrices with elements."""
    if len(shape) < 2 or shape[-1] != shape[-2] or min(shape) < 1:
        raise poplibs_error(f"{name}: A is {list(shape)}; square matrices [..., n, n] are needed")


def as_batch(tensor: Tensor) -> Tensor:
    """View matrices [..., m, n] as [g, m, n]."""
    return tensor.reshape((prod(tensor.shape[:-2]), *tensor.shape[-2:]))


def block_size_of(options: Options, default: int, name: str) -> tuple[int, dict[str, object]]:
    """Return the size of blocks and the options of the products of blocks."""
    table = MATMUL | {"blockSize": Option(default, "rows of a block that one vertex solves")}
    values = checked(table, options or {}, name)
    size = int(values.pop("blockSize", default))
    if size < 1:
        raise poplibs_error(f"{name}: blockSize is {size}; at least 1 is needed")
    return size, dict(values)


def tiles_with_most(graph: Graph, batch: Tensor) -> IntArray:
    """Return the tile with most elements of each matrix of a batch, the first of such tiles."""
    low, high, tile = graph.tile_ranges(batch.flatten())
    size = batch.numElements() // batch.dim(0)
    first, last = low // size, (high - 1) // size
    counts = last - first + 1  # of the matrices that a range has elements of
    piece = np.repeat(np.arange(len(low)), counts)
    matrix = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts) + first[piece]
    ends = np.minimum(high[piece], (matrix + 1) * size)
    elements = ends - np.maximum(low[piece], matrix * size)
    table = np.zeros((batch.dim(0), graph.target.num_tiles), dtype=np.int64)
    np.add.at(table, (matrix, tile[piece]), elements)
    tiles: IntArray = table.argmax(axis=1)
    return tiles


def fill_part(graph: Graph, tensor: Tensor, mask: BoolArray, value: int, prog: Sequence) -> None:
    """Copy a constant on tile 0 to what a mask [n, n] has of all matrices of a batch."""
    places = part_of(tensor, mask)
    if places.numElements():
        constant = graph.addConstant(tensor.dtype, [1], value)
        graph.setTileMapping(constant, 0)
        prog.add(Copy(constant.broadcast(places.numElements(), 0), places))


def part_of(tensor: Tensor, mask: BoolArray) -> Tensor:
    """View what a mask [n, n] has of all matrices of a batch, flat."""
    return tensor.view(tensor.elements().reshape(tensor.shape)[:, mask].reshape(-1))
