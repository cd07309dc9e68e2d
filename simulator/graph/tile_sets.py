"""The tiles that only move data: they exchange with the host while the others compute.

Nothing declares them. They are the tiles of a virtual graph that is part of each IPU, on which no
vertex is, and which copies with the host or a remote buffer reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.program import Copy, Program, children_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BoolArray, IntArray


def io_tiles(graph: Graph, programs: Sequence[Program]) -> BoolArray:
    """Return by tile which ones only exchange; none when no others are left on an IPU."""
    target = graph.target
    count, tiles_per_ipu = target.num_tiles, target.tiles_per_ipu
    result = np.zeros(count, dtype=np.bool_)
    parts = {
        tuple(tiles.reshape(-1).tolist())
        for tiles in graph.virtual_tiles
        if _is_part(tiles, tiles_per_ipu)
    }
    if not parts:
        return result
    computing, streaming = np.zeros_like(result), np.zeros_like(result)
    for group in graph.vertex_groups():
        computing[group.tile] = True
    mapping = graph.mapping_table()
    for tensor in _moved(programs):
        begins, lengths = tensor.begins * tensor.dtype.size, tensor.lengths * tensor.dtype.size
        streaming[mapping.pieces(begins, begins + lengths)[3]] = True
    for part in parts:
        tiles = np.array(part, dtype=np.int64)
        if streaming[tiles].any() and not computing[tiles].any():
            result[tiles] = True
    by_ipu = result.reshape(-1, tiles_per_ipu)
    alike = (by_ipu == by_ipu[0]).all() and not by_ipu[0].all()
    return result if alike else np.zeros_like(result)


def _is_part(tiles: IntArray, tiles_per_ipu: int) -> bool:
    """Return whether a view has some tiles of an IPU and not others."""
    _, counts = np.unique(tiles // tiles_per_ipu, return_counts=True)
    return bool((counts < tiles_per_ipu).any())


def _moved(programs: Sequence[Program]) -> Iterator[Tensor]:
    """Go through the tensors of all copies with the host or a remote buffer, each copy once."""
    seen: set[int] = set()
    waiting = list(programs)
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting += children_of(node)
        ends = (node.src, node.dst) if isinstance(node, Copy) else ()
        if any(isinstance(end, Stream | RemoteBuffer) for end in ends):
            yield from (end for end in ends if isinstance(end, Tensor))
