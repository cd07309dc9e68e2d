"""On which tile each part of a pooling is done: where most of its input lies already.

PopLibs lib/popnn/PoolVertices.cpp, its option poolUseIntrospectiveMapping: the parts choose one
after the other, each the free tile that holds most of what it reads; of equals the one that holds
least in all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph.geometry.intervals import crossings
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.poplibs.popnn.pools.parts import Ranges


@dataclass(frozen=True, slots=True, eq=False)
class Wishes:
    """Which tiles hold how much of what a part reads: the best first, part by part."""

    part: IntArray
    tile: IntArray

    def open(self, waiting: IntArray, free: IntArray) -> Wishes:
        """Keep what the waiting parts may still have."""
        is_open = (self.part >= waiting[0]) & free[self.tile].astype(bool)
        return Wishes(self.part[is_open], self.tile[is_open])


def nearest_tiles(graph: Graph, tensor: Tensor, reads: Ranges) -> IntArray:
    """Return a tile of its own to each part, which reads ranges of a flattened tensor.

    There must be as many tiles as parts.
    """
    parts = len(reads.counts)
    part_of = np.repeat(np.arange(parts, dtype=np.int64), reads.counts)
    low, high, tile = graph.tile_ranges(tensor)
    tiles = graph.target.num_tiles
    bytes_by_tile = np.bincount(tile, weights=high - low, minlength=tiles)
    order = np.argsort(bytes_by_tile, kind="stable")
    range_of, piece = crossings(reads.low, reads.high, low, high)
    shared = np.minimum(reads.high[range_of], high[piece])
    shared -= np.maximum(reads.low[range_of], low[piece])
    pairs, which = np.unique(part_of[range_of] * tiles + tile[piece], return_inverse=True)
    overlap = np.bincount(which, weights=shared, minlength=len(pairs))
    rank = np.argsort(order)
    best = np.lexsort((rank[pairs % tiles], -overlap, pairs // tiles))
    wishes = Wishes(pairs[best] // tiles, pairs[best] % tiles)
    return in_turn(wishes, parts, order)


def in_turn(wishes: Wishes, parts: int, order: IntArray) -> IntArray:
    """Let the parts choose in turn: in each round all those whose choices do not meet."""
    free = np.ones(len(order), dtype=np.int64)
    tiles_chosen = np.zeros(parts, dtype=np.int64)
    served = 0
    while served < parts:
        waiting = np.arange(served, parts, dtype=np.int64)
        wishes = wishes.open(waiting, free)
        choice = _round(wishes, waiting, order[free[order] > 0])
        tiles_chosen[served : served + len(choice)] = choice
        free[choice] = 0
        served += len(choice)
    return tiles_chosen


def _round(wishes: Wishes, waiting: IntArray, free: IntArray) -> IntArray:
    """Return the choices of the first waiting parts, up to one that has to choose again."""
    part, first = np.unique(wishes.part, return_index=True)
    if not len(part):
        return free[: len(waiting)]
    choice = np.full(len(waiting), -1, dtype=np.int64)
    choice[part - waiting[0]] = wishes.tile[first]
    head = int(np.argmin(choice >= 0)) if (choice < 0).any() else len(choice)
    if head == 0:  # reads nothing that a free tile holds: takes the first free one
        return free[:1]
    _, firsts = np.unique(choice[:head], return_index=True)
    again = np.ones(head, dtype=bool)
    again[firsts] = False
    return choice[: int(again.argmax())] if again.any() else choice[:head]
