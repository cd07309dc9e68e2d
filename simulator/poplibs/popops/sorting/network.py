"""A bitonic network over all tiles: which comparisons, on which tiles, and the copies between.

As in PopLibs (lib/popops/BitonicTopK.cpp): the keys are [rows, batch], each step compares rows at
one distance, its comparisons are spread evenly over the tiles, and elements move to the tile that
compares them. Unlike there all comparisons go one way, the better to the front, and the first step
of each merge is mirrored: so rows that fill up a power of two are not needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.sorting import Step, compare_and_swap_codelet
from simulator.codelets.indexing.sorting_cycles import Values, compare_and_swap
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import IntArray, Type
from simulator.graph.vertices.vertex import Field, VertexGroup, cut_field


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a step lie: tile and memory order, those that are compared first.

    Of the elements in `order`, the first `bounds[-1]` are compared: tile t has those from
    `bounds[t]`. The others lie from `idle[t]` on on tile t.
    """

    order: IntArray
    bounds: IntArray
    idle: IntArray


@dataclass(slots=True)
class Network:
    """What a network is built of; `fields` names the tensors that move: keys, values, others."""

    graph: Graph
    prog: Sequence
    name: str
    largest: bool
    values: Values
    made: dict[tuple[Step, str], Tensor] = field(default_factory=dict)


def steps(rows: int, k: int, batch: int, *, in_order: bool) -> Iterator[Step | int]:
    """Return the steps that bring the best k rows to the front; a number is a block's rows to keep.

    Blocks of the power of two from k on are sorted. Then each is merged with the next, of which the
    better half is kept and sorted again, until one is left.
    """
    block = 1 << (k - 1).bit_length()
    for size in range(1, block.bit_length()):
        yield from _merged(1 << (size - 1), rows, batch)
    while rows > block:
        yield Step(block, True, rows, batch)
        yield block
        rows = kept_rows(rows, block)
        if rows > block or in_order or k < block:
            yield from _sorted(block, rows, batch)


def _merged(distance: int, rows: int, batch: int) -> Iterator[Step]:
    yield Step(distance, True, rows, batch)
    yield from _sorted(distance, rows, batch)


def _sorted(block: int, rows: int, batch: int) -> Iterator[Step]:
    """Sort blocks that go down from a middle to both sides, or up to it."""
    while block > 1:
        block //= 2
        if block < rows:
            yield Step(block, False, rows, batch)


def kept_rows(rows: int, block: int) -> int:
    """Count the rows that are left when of each two blocks one is kept."""
    pairs, remainder = divmod(rows, 2 * block)
    return pairs * block + min(remainder, block)


def better_half(tensor: Tensor, rows: int, block: int) -> Tensor:
    """Keep the first of each two blocks of the rows of a flat tensor."""
    paired_rows = rows - rows % (2 * block)
    table = tensor.reshape((rows, -1 if rows == 0 else tensor.numElements() // rows))
    pairs = table.slice(0, paired_rows).reshape(
        (paired_rows // (2 * block), 2 * block, table.dim(1))
    )
    unpaired = table.slice(paired_rows, min(paired_rows + block, rows))
    return concat([pairs.slice(0, block, 1).flatten(), unpaired.flatten()])


def add_steps(
    network: Network, moving: dict[str, Tensor], rows: int, k: int, *, in_order: bool
) -> dict[str, Tensor]:
    """Add a network that brings the best k of the rows of `moving` to the front.

    Takes and gives flat tensors of rows * batch elements, in the order of the rows.
    """
    batch = moving["keys"].numElements() // rows
    for number, step in enumerate(steps(rows, k, batch, in_order=in_order)):
        if isinstance(step, int):
            moving = {key: better_half(tensor, rows, step) for key, tensor in moving.items()}
            rows = kept_rows(rows, step)
        else:
            moving = _add_step(network, moving, step, f"{network.name}/Step{number}")
    return {key: tensor.slice(0, k * batch) for key, tensor in moving.items()}


def _add_step(
    network: Network, moving: dict[str, Tensor], step: Step, name: str
) -> dict[str, Tensor]:
    """Bring the elements to the tiles that compare them, and compare; give them in order."""
    graph, prog = network.graph, network.prog
    layout = layout_of(step, graph.target.num_tiles)
    inverse = np.empty_like(layout.order)
    inverse[layout.order] = np.arange(len(inverse))
    tensors, moved = {}, {}
    for key, source in moving.items():
        if (step, key) not in network.made:
            network.made[step, key] = new_tensor(graph, source.dtype, layout, f"{name}/{key}")
        tensors[key] = network.made[step, key]
        moved[key] = tensors[key].view(tensors[key].elements()[inverse])
        prog.add(Copy(source, moved[key], name=name))
    compute_set = graph.addComputeSet(f"{name}/CompareAndSwap")
    tiles = np.flatnonzero(np.diff(layout.bounds))
    low, high = layout.bounds[tiles], layout.bounds[tiles + 1]
    fields: dict[str, Field] = {
        key: cut_field(key, "inout", tensor, low, high) for key, tensor in tensors.items()
    }
    keys, values = tensors["keys"].dtype, tensors.get("values")
    codelet = compare_and_swap_codelet(
        keys, None if values is None else values.dtype, network.largest, network.values
    )
    comparisons = (high - low) // 2
    share = ceil_div(comparisons, graph.target.workers)
    runs = ceil_div(share, step.distance * step.batch)
    cycles = compare_and_swap(comparisons, runs, network.values, keys, graph.target)
    parameters = step.parameters(len(tiles), low // 2)
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, parameters, cycles))
    prog.add(Execute(compute_set))
    return moved


def layout_of(step: Step, tiles: int) -> Layout:
    """Spread the comparisons of a step over the tiles, and the other elements to fill up."""
    first, second = step.pairs()
    total, count = step.rows * step.batch, len(first)
    per_tile = max(ceil_div(count, tiles), 1)
    tile = np.tile(np.arange(count, dtype=np.int64) // per_tile, 2)
    compared = np.concatenate([first, second])
    active = np.bincount(tile, minlength=tiles)
    idle = np.setdiff1d(np.arange(total, dtype=np.int64), compared, assume_unique=True)
    free = offsets_of(np.maximum(ceil_div(total, tiles) - active, 0))
    return Layout(
        order=np.concatenate([compared[np.lexsort((compared, tile))], idle]),
        bounds=offsets_of(active),
        idle=2 * count + np.minimum(free, len(idle)),
    )


def new_tensor(graph: Graph, dtype: Type, layout: Layout, name: str) -> Tensor:
    """Add a variable for the elements of a layout, in the order of memory, on their tiles."""
    tensor = graph.addVariable(dtype, [len(layout.order)], name)
    tiles = np.arange(len(layout.bounds) - 1, dtype=np.int64)
    graph.map_ranges(
        tensor,
        np.concatenate([layout.bounds[:-1], layout.idle[:-1]]),
        np.concatenate([layout.bounds[1:], layout.idle[1:]]),
        np.tile(tiles, 2),
    )
    return tensor
