"""Tiles that are set aside for exchange with the host (gcl).

Names and arguments are those of GCL's `TileAllocation.hpp`.
"""

from __future__ import annotations

from operator import index

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph

PAIR = 2  # tiles that share an exchange bus
# The least that each exchange context of an IPU needs; ours, as GCL's is not public.
PAIRS_A_BLOCK = 1


def getMinIoTiles(graph: Graph) -> int:
    """Return the fewest tiles of an IPU that reach each of its exchange blocks: a pair in each.

    >>> from simulator import gcl, poplar
    >>> device = poplar.IPUModel(numIPUs=1).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> gcl.getMinIoTiles(graph)  # 23 blocks of 64 tiles
    46
    """
    target = graph.getTarget()
    block = target.tiles_per_exchange_context * target.contexts_per_exchange_block
    return min(PAIRS_A_BLOCK * PAIR * -(-target.tiles_per_ipu // block), target.tiles_per_ipu)


def perIPUTiles(
    graph: Graph, offset: int, count: int, sorted: bool = True, tilePairs: bool = True
) -> list[int]:
    """Return tiles of each IPU for `createVirtualGraph`, spread over its exchange contexts.

    Of all tiles in that order, `count` from `offset` on: different offsets give different tiles.
    Raises poplibs_error for more than there are, or parts of pairs.

    >>> from simulator import gcl, poplar
    >>> device = poplar.IPUModel(numIPUs=1).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> gcl.perIPUTiles(graph, 0, 4)  # pairs, of contexts of 32 tiles
    [0, 1, 32, 33]
    """
    target, function = graph.getTarget(), "perIPUTiles"
    offset, count = index(offset), index(count)
    most = target.tiles_per_ipu
    if offset < 0 or count < 1 or offset + count > most:
        raise poplibs_error(f"{function}: {count} tiles from {offset} on; an IPU has {most}")
    grain = PAIR if tilePairs else 1
    if offset % grain or count % grain:
        raise poplibs_error(
            f"{function}: {count} tiles from {offset} on; tiles come in pairs, so that even "
            "numbers are needed"
        )
    tiles = np.arange(most)
    context, place = np.divmod(tiles, target.tiles_per_exchange_context)
    order = np.lexsort((tiles, context, place // grain))
    selection = order[offset : offset + count]
    return (np.sort(selection) if sorted else selection).tolist()  # type: ignore[no-any-return]
