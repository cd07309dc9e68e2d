"""Which tiles take part in a step: those that compute, the I/O tiles, or all.

A sync joins the tiles of the steps that it stands before or behind, so that the I/O tiles exchange
with the host while the others compute, until both meet in an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from simulator.compiler.executable import LoweredProgram
from simulator.compiler.lowering.state import Building, Part
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import VertexGroup

ALL, COMPUTE, IO = "All", "Compute", "IO"


def apart(building: Building, lower: Callable[[], list[Part]], compute_set: int = -1) -> list[Part]:
    """Lower a program with `lower`, and note in what it becomes which tiles take part."""
    if not building.io_tiles.any():
        return lower()
    before = len(building.groups)
    parts = lower()
    groups = building.graph.groups_of(compute_set) if compute_set >= 0 else []
    return _noted(building, parts, [*groups, *building.groups[before:]])


def _noted(building: Building, parts: Sequence[Part], groups: Sequence[VertexGroup]) -> list[Part]:
    """Note the tile set of each part: a sync has that of the work behind it, or else before it."""
    sets = [_tile_set(building, part.program, groups) for part in parts]
    is_sync = [part.program.type == "Sync" for part in parts]
    result = []
    for place, part in enumerate(parts):
        behind = next((n for n in range(place + 1, len(parts)) if is_sync[n]), len(parts))
        near = (*sets[place:behind], *reversed(sets[:place]))
        tile_set = next((candidate for candidate in near if candidate), ALL)
        result.append(replace(part, program=replace(part.program, tile_set=tile_set)))
    return result


def _tile_set(building: Building, program: LoweredProgram, groups: Sequence[VertexGroup]) -> str:
    """Return the set of the tiles on which a program does something; "" for none."""
    tiles = _tiles(building, program, groups)
    if not len(tiles):
        return ""
    on_io = building.io_tiles[tiles]
    if on_io.all():
        return IO
    return ALL if on_io.any() else COMPUTE


def _tiles(building: Building, program: LoweredProgram, groups: Sequence[VertexGroup]) -> IntArray:
    lists = {
        "DoExchange": building.exchanges,
        "GlobalExchange": building.global_exchanges,
        "StreamCopy": building.host_exchanges,
    }
    if program.type in lists:
        return np.flatnonzero(lists[program.type][program.exchange].cycles)
    mine = [g.tile for g in groups if program.compute_set == g.compute_set >= 0]
    return np.concatenate([np.zeros(0, dtype=np.int64), *mine])
