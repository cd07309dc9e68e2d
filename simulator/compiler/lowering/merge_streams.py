"""Stream copies that follow one another become one transaction with the host.

They share its syncs, and the phases in which the device waits for the host. Source: programming
guide, 2.6.1: the compiler merges stream transfers up to the limit of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.compiler.lowering.state import NONE, Building, Part
from simulator.graph.types import IntArray

BEGIN = ("External", "StreamCopyBegin", "StreamCopy")
END = ("StreamCopyEnd", "Internal")


def can_join(building: Building, before: Sequence[Part], parts: Sequence[Part]) -> bool:
    """Return whether copies join those that end `before`: of the same tiles, other data, in limits.

    They do so without the last two parts before, and without their own first two.
    """
    if _kinds(before[-2:]) != END or _kinds(parts[:3]) != BEGIN:
        return False
    group = _copies(before[:-2])
    additions = [part for part in parts if part.program.type == "StreamCopy"]
    if len({part.program.tile_set for part in (*group, *additions)}) > 1 or not group:
        return False
    read, written = (_variables(group, name) for name in ("reads", "writes"))
    fresh, changed = (_variables(additions, name) for name in ("reads", "writes"))
    apart = not (
        np.isin(fresh, written).any() or np.isin(changed, np.concatenate([read, written])).any()
    )
    return (
        apart and _bytes(building, [*group, *additions]) <= building.graph.target.stream_copy_limit
    )


def _kinds(parts: Sequence[Part]) -> tuple[str, ...]:
    """Name parts by their type, syncs by their kind."""
    programs = [part.program for part in parts]
    return tuple(p.sync_type if p.type == "Sync" else p.type for p in programs)


def _copies(parts: Sequence[Part]) -> list[Part]:
    """Take the stream copies at the end of parts."""
    kinds = _kinds(parts)
    last = next((n for n, kind in enumerate(reversed(kinds)) if kind != "StreamCopy"), len(kinds))
    return list(parts[len(parts) - last :])


def _variables(parts: Sequence[Part], name: str) -> IntArray:
    return np.concatenate([NONE, *(getattr(part, name) for part in parts)])


def _bytes(building: Building, parts: Sequence[Part]) -> int:
    """Count what copies move on the IPU that moves most."""
    costs = [building.host_exchanges[part.program.exchange] for part in parts]
    moved = np.sum([cost.sent + cost.received for cost in costs], axis=0)
    by_ipu = moved.reshape(-1, building.graph.target.tiles_per_ipu).sum(axis=1)
    return int(by_ipu.max())
