"""Inputs and weights of convolutions: how they lie in memory, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from simulator.codelets.products.block_layout import Layout
from simulator.graph.geometry.intervals import ascending, common_length, offsets_of, present
from simulator.graph.geometry.strides import Strides
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Field, cut_ranges
from simulator.poplibs.poplin.planning.boxes import Rows, joined, rows_of_boxes

LINES_LOOKED_AT = 4  # of a dimension, to see how many of its elements lie together


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor whose dimensions stand as they lie in memory; `run` channels lie together."""

    memory: Tensor
    sizes: tuple[int, ...]
    layout: Layout
    run: int

    def in_groups(self, channel: int, group: int) -> bool:
        """Return whether groups of so many channels lie together, or all where they are fewer."""
        if self.layout.grouped >= 0:
            return (self.layout.grouped, self.layout.group) == (channel, group)
        return self.layout.order[-1] == channel and self.sizes[channel] <= group

    def rows(self, box: tuple[IntArray, IntArray]) -> Rows:
        """Return the rows of boxes, which take whole groups."""
        low, high = box
        order, layout = list(self.layout.order), self.layout
        divisor = np.array([layout.group if axis == layout.grouped else 1 for axis in order])
        lows, highs = low[:, order] // divisor, -(-high[:, order] // divisor)
        if layout.grouped >= 0:
            lows = np.column_stack([lows, np.zeros(len(low), dtype=np.int64)])
            highs = np.column_stack([highs, np.full(len(low), layout.group)])
        return rows_of_boxes(layout.sizes(self.sizes), lows, highs)


def operand_of(tensor: Tensor, channel: int, grains: tuple[int, ...]) -> Operand:
    """Return how a tensor lies in memory, whose parts take `grains` of each dimension at a time."""
    runs = [run_of(tensor, axis) for axis in range(tensor.rank())]
    innermost = channel if runs[channel] > 1 else int(np.argmax(runs))
    size, run = tensor.shape[innermost], runs[innermost]
    outer_axes = [axis for axis in range(tensor.rank()) if axis != innermost]
    together = min(run, size)
    if together == size:
        layout = Layout((*outer_axes, innermost))
        return Operand(tensor.dimShuffle(layout.order), tensor.shape, layout, runs[channel])
    group = gcd(together, grains[innermost])
    if group == 1:
        layout = Layout(tuple(range(tensor.rank())))
        return Operand(tensor, tensor.shape, layout, runs[channel])
    return Operand(
        _groups_first(tensor, innermost, group),
        tensor.shape,
        Layout(tuple(dict.fromkeys((0, innermost, *range(tensor.rank())))), innermost, group),
        runs[channel],
    )


def _groups_first(tensor: Tensor, axis: int, group: int) -> Tensor:
    """View a tensor by groups of a dimension, so that all of a group in a part is one block.

    PopLibs lists such blocks as the edges of a vertex: what was laid out for it is read in place.
    """
    return grouped(tensor, axis, group).dimRoll(axis, 1) if axis else grouped(tensor, axis, group)


def grouped(tensor: Tensor, axis: int, group: int) -> Tensor:
    """View a tensor with a dimension cut into groups, the elements of which come innermost."""
    size = tensor.shape[axis]
    split = tensor.reshape((*tensor.shape[:axis], size // group, group, *tensor.shape[axis + 1 :]))
    return split.dimRoll(axis + 1, split.rank() - 1)


def ungrouped(tensor: Tensor, axis: int) -> Tensor:
    """Undo `grouped`."""
    back = tensor.dimRoll(tensor.rank() - 1, axis + 1)
    size = back.shape[axis] * back.shape[axis + 1]
    return back.reshape((*back.shape[:axis], size, *back.shape[axis + 2 :]))


def run_of(tensor: Tensor, axis: int) -> int:
    """Return how many neighbours in a dimension lie together in memory, after some of its lines."""
    size = tensor.shape[axis]
    outer = int(np.prod(tensor.shape[:axis], dtype=np.int64))
    inner = int(np.prod(tensor.shape[axis + 1 :], dtype=np.int64))
    lines = np.unique(np.linspace(0, outer * inner - 1, LINES_LOOKED_AT, dtype=np.int64))
    first = lines // inner * size * inner + lines % inner
    places = first[:, None] + np.arange(size)[None, :] * inner
    elements = elements_at(tensor, places.reshape(-1)).reshape(places.shape)
    breaks = np.flatnonzero((np.diff(elements, axis=1) != 1).any(axis=0)) + 1
    return int(np.gcd.reduce(np.append(breaks, size)))


def elements_at(tensor: Tensor, positions: IntArray) -> IntArray:
    """Return the arena's elements at positions of a flattened tensor."""
    if isinstance(tensor.places, Strides):
        return tensor.places.at(positions)
    begins, lengths = tensor.intervals()
    if length := common_length(lengths):
        same: IntArray = begins[positions // length] + positions % length
        return same
    offsets = offsets_of(lengths)
    interval = np.searchsorted(offsets, positions, side="right") - 1
    result: IntArray = begins[interval] + positions - offsets[interval]
    return result


def field_of_boxes(
    name: str, source: Operand, box: tuple[IntArray, IntArray], edges: IntArray | None = None
) -> Field:
    """Return vertex v the elements of box v, in memory's order; `edges` cuts them into edges."""
    rows = joined(source.rows(box))
    item = cut_ranges(name, "input", source.memory, rows.begin, rows.end, rows.counts)
    if edges is None:
        return item
    sizes = np.prod(box[1] - box[0], axis=1)
    return with_edges(item, sizes, edges)


def with_edges(item: Field, sizes: IntArray, edges: IntArray, *, apart: bool = False) -> Field:
    """Count edges of a field, among which the elements of each vertex are shared evenly."""
    field: Field = replace(item, edges=np.minimum(edges, np.maximum(sizes, 1)), apart=apart)
    return field


def map_to_readers(
    graph: Graph, target: Operand, box: tuple[IntArray, IntArray], tiles: IntArray
) -> None:
    """Share each box among the tiles that read it: `tiles` is [box][reader]."""
    rows = target.rows(box)
    row_start = offsets_of(rows.end - rows.begin)
    box_start = row_start[offsets_of(rows.counts)]
    readers = tiles.shape[1]
    grain = target.layout.group
    elements = np.diff(box_start)
    share = np.arange(readers)[None, :] * (elements // grain)[:, None] // readers * grain
    bounds = (box_start[:-1, None] + share).reshape(-1)
    start = present(np.concatenate([bounds, row_start[:-1][rows.end > rows.begin]]))
    start = start[start < row_start[-1]]
    row = np.searchsorted(row_start, start, side="right") - 1
    low = rows.begin[row] + start - row_start[row]
    high = low + np.diff(np.append(start, row_start[-1]))
    reader = np.searchsorted(bounds, start, side="right") - 1
    graph.map_ranges(target.memory, low, high, tiles.reshape(-1)[reader])


def blocks_in_order(rows: Rows, places: IntArray) -> tuple[IntArray, IntArray]:
    """Return the intervals of a tensor, in its order, whose boxes lie at `places` in turn.

    `rows` are the rows of all boxes, which together are the whole tensor, `places` where each box
    begins in the arena.
    """
    length = rows.end - rows.begin
    inside = offsets_of(length)
    before = inside[:-1] - np.repeat(inside[offsets_of(rows.counts)[:-1]], rows.counts)
    begins = np.repeat(places, rows.counts) + before
    order = ascending(rows.begin)
    return begins[order], length[order]
