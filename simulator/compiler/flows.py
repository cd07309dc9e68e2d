"""Who sends how much to whom in an exchange, by groups of neighbouring tiles.

By tile there may be as many pairs as tiles x tiles; groups keep a report small and answer who talks
to whom. Machines of few tiles have groups of one tile, so that nothing is lost.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray

MAX_GROUPS = 32  # of all tiles together; an IPU has at least one


def group_borders(target: Target) -> IntArray:
    """Return the first tile of each group, and behind them the number of tiles."""
    return _borders(target.num_ipus, target.tiles_per_ipu)


@lru_cache(8)
def _borders(ipus: int, tiles: int) -> IntArray:
    groups_per_ipu = min(max(MAX_GROUPS // ipus, 1), tiles)
    begin = np.arange(ipus)[:, None] * tiles + np.arange(groups_per_ipu) * tiles // groups_per_ipu
    borders: IntArray = np.append(begin.ravel(), ipus * tiles).astype(np.int64)
    borders.flags.writeable = False
    return borders


def flows(target: Target, source: IntArray, destination: IntArray, size: IntArray) -> IntArray:
    """Return the bytes that go from group to group, of fragments from tile to tile."""
    borders = group_borders(target)
    count = len(borders) - 1
    group = np.repeat(np.arange(count), np.diff(borders))
    pairs = np.bincount(
        group[source] * count + group[destination], weights=size, minlength=count * count
    )
    return pairs.reshape(count, count).astype(np.int64)
