"""Stream copies that follow one another become one transaction with the host.

They share its syncs, and the phases in which the device waits for the host. Source: programming
guide, 2.6.1: the compiler merges stream transfers up to the limit of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.compiler.executable import Exchange
from simulator.compiler.lowering.state import Building, Part
from simulator.compiler.lowering.tile_sets import IO
from simulator.graph.types import IntArray

BEGIN = ("External", "StreamCopyBegin", "StreamCopy")
END = ("StreamCopyEnd", "Internal")


@dataclass(frozen=True, slots=True, eq=False)
class Transaction:
    """What copies move, the bytes of each tile, and the variables that they read and write.

    `arrives` tells of their directions whether data come to the device. The last `rest` parts of
    the last leaf put into place there what has come.
    """

    tile_set: str
    arrives: frozenset[bool]
    moved: IntArray
    reads: frozenset[int]
    writes: frozenset[int]
    rest: int

    def with_next(self, other: Transaction) -> Transaction:
        """Return both in one."""
        return Transaction(
            self.tile_set,
            self.arrives | other.arrives,
            self.moved + other.moved,
            self.reads | other.reads,
            self.writes | other.writes,
            other.rest,
        )


def transaction_of(building: Building, parts: Sequence[Part]) -> Transaction | None:
    """Return what a leaf has of a transaction; None for what is no stream copy."""
    if _kinds(parts[:3]) != BEGIN:
        return None
    copies = [part.program for part in parts if part.program.type == "StreamCopy"]
    tile_sets = {program.tile_set for program in copies}
    if len(tile_sets) > 1:
        return None
    end = next(n for n in range(len(parts), 1, -1) if _kinds(parts[n - 2 : n]) == END)
    costs = [building.host_exchanges[program.exchange] for program in copies]
    return Transaction(
        tile_sets.pop(),
        frozenset(bool(cost.received.any()) for cost in costs),
        np.sum([cost.sent + cost.received for cost in costs], axis=0),
        frozenset(number for part in parts for number in part.reads.tolist()),
        frozenset(number for part in parts for number in part.writes.tolist()),
        len(parts) - end,
    )


def _kinds(parts: Sequence[Part]) -> tuple[str, ...]:
    """Name parts by their type, syncs by their kind."""
    programs = (part.program for part in parts)
    return tuple(p.sync_type if p.type == "Sync" else p.type for p in programs)


def can_join(building: Building, first: Transaction, second: Transaction) -> bool:
    """Return whether two that follow one another are one: same tiles, other data, in the limit.

    What comes may be the host's answer to what went before, so that only I/O tiles, which work
    ahead, move both in one.
    """
    target = building.graph.target
    bytes_by_ipu = (first.moved + second.moved).reshape(-1, target.tiles_per_ipu).sum(axis=1)
    return (
        first.tile_set == second.tile_set
        and (first.arrives == second.arrives or first.tile_set == IO)
        and not first.writes & (second.reads | second.writes)
        and not first.reads & second.writes
        and int(bytes_by_ipu.max()) <= target.stream_copy_limit
    )


def share_transactions(
    parts: Sequence[Part], exchanges: Sequence[Exchange]
) -> tuple[list[Part], list[Exchange]]:
    """Let all tiles of a transaction take part in each of its copies; give the exchanges then.

    That none of its tiles waits in a sync meanwhile was read in the published sums of the
    matrix-vector tutorial.
    """
    copies = [row for row, part in enumerate(parts) if part.program.type == "StreamCopy"]
    heads = np.flatnonzero(np.diff(copies, prepend=-2) != 1).tolist()
    shared, result = list(parts), list[Exchange]()
    places: dict[tuple[int, bytes], int] = {}  # of an exchange, by its tiles
    for low, high in zip(heads, [*heads[1:], len(copies)], strict=True):
        numbers = [parts[row].program.exchange for row in copies[low:high]]
        active = np.any([exchanges[number].cycles > 0 for number in numbers], axis=0)
        for row, number in zip(copies[low:high], numbers, strict=True):
            place = places.setdefault((number, active.tobytes()), len(result))
            if place == len(result):
                cycles = exchanges[number].cycles
                alike = np.where(active, cycles.max(), 0) if high - low > 1 else cycles
                result.append(replace(exchanges[number], cycles=alike))
            program = replace(parts[row].program, exchange=place)
            shared[row] = replace(parts[row], program=program)
    return shared, result
