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


def group_of_tiles(target: Target) -> IntArray:
    """Return the group of each tile."""
    return _groups(target.num_ipus, target.tiles_per_ipu)


@lru_cache(8)
def _groups(ipus: int, tiles: int) -> IntArray:
    borders = _borders(ipus, tiles)
    groups: IntArray = np.repeat(np.arange(len(borders) - 1, dtype=np.int64), np.diff(borders))
    groups.flags.writeable = False
    return groups


def flows(target: Target, source: IntArray, destination: IntArray, size: IntArray) -> IntArray:
    """Return the bytes that go from group to group, of fragments from tile to tile."""
    group, count = group_of_tiles(target), len(group_borders(target)) - 1
    pairs = np.bincount(
        group[source] * count + group[destination], weights=size, minlength=count * count
    )
    return pairs.reshape(count, count).astype(np.int64)
