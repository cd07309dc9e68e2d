"""Views of a graph: the tiles that a virtual graph sees, the copies that a replicated graph makes.

A view shares everything with its graph; what is added through it lands on its own tiles, once for
every replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.graph.errors import PoplarError, TileMappingError
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray


@dataclass(frozen=True, slots=True)
class replication_factor:  # noqa: N801 - Poplar's name
    """How many replicas `Graph(target, replication_factor(n))` has.

    >>> replication_factor(2).value
    2
    """

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The tiles of a view: tile t of replica r is tile `tiles[r, t]` of the whole graph."""

    tiles: IntArray

    @classmethod
    def whole(cls, tiles: int) -> Window:
        """See every tile, once."""
        return cls(np.arange(tiles, dtype=np.int64)[None, :])

    @property
    def replicas(self) -> int:
        """Count the copies of what is added through the view."""
        return int(self.tiles.shape[0])

    def inside(self, tiles: IntArray) -> IntArray:
        """Return the view's number of tiles of the whole graph: of replica 0, -1 for the others."""
        first = self.tiles[0]
        numbers = np.full(int(max(first.max(), tiles.max(initial=0))) + 1, -1, dtype=np.int64)
        numbers[first] = np.arange(len(first))
        result: IntArray = numbers[tiles]
        return result


def checked_factor(target: Target, replication: replication_factor | int) -> int:
    """Return the number of replicas of a graph for a target; raises PoplarError."""
    factor = replication.value if isinstance(replication, replication_factor) else replication
    if not isinstance(factor, int | np.integer) or factor < 1 or target.num_ipus % factor:
        raise PoplarError(
            f"Graph: {factor!r} replicas of {target.num_ipus} IPUs; each needs as many IPUs"
        )
    return int(factor)


def virtual_tiles(target: Target, selection: Sequence[int] | int, upper: int | None) -> IntArray:
    """Return the tiles that a form of `createVirtualGraph` selects; raises TileMappingError.

    One number: so many tiles of each IPU. Two numbers: the tiles [lower, upper) of the graph.
    A list: these tiles of each IPU.
    """
    subject, per_ipu = "createVirtualGraph", target.tiles_per_ipu
    if upper is not None:
        lower = selection if isinstance(selection, int | np.integer) else -1
        if not 0 <= lower < upper <= target.num_tiles:
            raise TileMappingError(
                f"{subject}: tiles [{selection}, {upper}); the graph has tiles 0 to "
                f"{target.num_tiles - 1}"
            )
        return np.arange(lower, upper, dtype=np.int64)
    if isinstance(selection, int | np.integer):
        if not 0 < selection <= per_ipu:
            raise TileMappingError(
                f"{subject}: {selection} tiles of each IPU; an IPU has {per_ipu}"
            )
        selection = range(selection)
    one_ipu = as_int64(list(selection))
    wrong = one_ipu[(one_ipu < 0) | (one_ipu >= per_ipu)]
    if len(wrong) or len(np.unique(one_ipu)) < len(one_ipu) or not len(one_ipu):
        bad_tiles = f"tile {wrong[0]}" if len(wrong) else f"the tiles {one_ipu.tolist()}"
        raise TileMappingError(
            f"{subject}: {bad_tiles} of each IPU; different tiles of 0 to {per_ipu - 1} are needed"
        )
    starts = np.arange(target.num_ipus, dtype=np.int64) * per_ipu
    return (starts[:, None] + one_ipu).reshape(-1)


def virtual_target(target: Target, tiles: IntArray) -> Target:
    """Make the target that a view with these tiles of a target has: as many on each IPU."""
    ipus, counts = np.unique(tiles // target.tiles_per_ipu, return_counts=True)
    if (counts != counts[0]).any():
        raise TileMappingError(
            f"createVirtualGraph: {counts.tolist()} tiles of IPUs {ipus.tolist()}; "
            "as many of each are needed"
        )
    number = int(counts[0])
    delays = target.relative_sync_delay[tiles[:number] % target.tiles_per_ipu]
    return replace(target, num_ipus=len(ipus), tiles_per_ipu=number, relative_sync_delay=delays)


def replicated_window(target: Target, window: Window, replicas: int) -> Window:
    """Split the IPUs of a view into replicas of as many; raises PoplarError."""
    if window.replicas > 1:
        raise PoplarError("createReplicatedGraph: this graph is a replica already")
    if replicas < 1 or target.num_ipus % replicas:
        raise PoplarError(
            f"createReplicatedGraph: {replicas} replicas of {target.num_ipus} IPUs; "
            "each replica needs as many IPUs"
        )
    return Window(window.tiles.reshape(replicas, -1))
