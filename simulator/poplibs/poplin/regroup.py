"""Bring the channels of an operand together in memory, by transposing small blocks on all tiles."""

from __future__ import annotations

from math import gcd

import numpy as np

from simulator.codelets.convolution import transpose_codelet
from simulator.codelets.costs import even_bounds
from simulator.codelets.transpose_cycles import transpose_any
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.vertex import VertexGroup, cut_field, cut_ranges
from simulator.poplibs.poplin.operands import grouped, ungrouped

MOST_ROWS = 16  # of a block; more do not make a transpose cheaper


def regrouped(
    graph: Graph,
    tensor: Tensor,
    lying: tuple[int, int],
    wanted: tuple[int, int],
    prog: Sequence,
    name: str,
) -> Tensor:
    """Give a copy of a tensor in which groups of a dimension lie together.

    `lying` are the dimension and the size of the groups that lie together now, `wanted` those that
    shall; the work is shared evenly among all tiles.
    """
    (old, run), (new, want) = lying, wanted
    rows = gcd(run, tensor.shape[old]) if run > 1 else 1
    rows = gcd(rows, MOST_ROWS)
    columns = _columns(tensor.shape[new], want)
    # Blocks [columns of the new group][rows of the old one], as they lie: old innermost.
    split = grouped(grouped(tensor, old, rows), new, columns)
    # [...blocks...][rows][columns] holds rows of `old` beside columns of `new`.
    count = tensor.numElements() // (rows * columns)
    outer = split.shape[:-2]
    source = split.dimRoll(split.rank() - 2, split.rank() - 1)  # [...][columns][rows]
    copy = graph.addVariable(tensor.dtype, (count, rows, columns), f"{name}/regrouped")
    tiles = min(graph.target.num_tiles, count)
    bounds = even_bounds(count, tiles)
    numbers = np.arange(tiles, dtype=np.int64)
    size = rows * columns
    graph.map_ranges(copy, bounds[:-1] * size, bounds[1:] * size, numbers)
    compute_set = graph.addComputeSet(f"{name}/Regroup")
    blocks = np.diff(bounds)
    low, high = bounds[:-1] * size, bounds[1:] * size
    each = np.full(tiles, 1, dtype=np.int64)
    graph.add_vertices(
        VertexGroup(
            compute_set.id,
            transpose_codelet(tensor.dtype, columns, rows),
            numbers,
            {
                "in": cut_ranges("in", "input", source, low, high, each),
                "out": cut_field("out", "output", copy, low, high),
            },
            {"blocks": blocks},
            transpose_any(blocks, columns, rows, tensor.dtype, graph.target),
        )
    )
    prog.add(Execute(compute_set))
    return ungrouped(ungrouped(copy.reshape((*outer, rows, columns)), new), old)


def _columns(size: int, wanted: int) -> int:
    """Give how many of a dimension are brought together: whole groups, else more or fewer."""
    if size % wanted == 0:
        return wanted
    divisors = [number for number in range(1, 4 * wanted + 1) if size % number == 0]
    return max(divisors, key=lambda number: (number % 4 == 0, number))
