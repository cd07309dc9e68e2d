"""The clock model: each tile has its own clock, phases add to it, syncs bring tiles together.

An internal sync joins the tiles of each IPU by itself, an external one those of all IPUs. Sources:
the user guide's sample of printed steps (chapter "Profiling"), which this model replays to the
cycle. Exchange and the compute that follows it are not separated by a sync.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.progress import each
from pva.schema import CLOCK_INTERVAL

Cycles = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """The sync delay of every tile, split into the way to the sync controller and the way back.

    An external sync costs `between_ipus` cycles more than an internal one.
    """

    request: Cycles
    release: Cycles
    ipus: int = 1
    between_ipus: int = 0

    @classmethod
    def of(cls, round_trip: npt.ArrayLike, ipus: int = 1, between_ipus: int = 0) -> Delays:
        """Split round trips (cycles by tile, IPU after IPU); an odd cycle goes to the request."""
        cycles = np.asarray(round_trip, dtype=np.int64)
        return cls((cycles + 1) // 2, cycles // 2, ipus, between_ipus)


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What one step costs: `cycles` on each of `tiles` (ascending); a sync has no tiles of its own.

    `ipus` are those with an active tile, `starts` the place of their first tile in `tiles`.
    `external` tells of a sync that it joins all IPUs, `some` that it joins `tiles` alone, which are
    as many of each IPU.
    """

    is_sync: bool
    tiles: Cycles
    cycles: Cycles
    ipus: Cycles
    starts: Cycles
    external: bool = False
    some: bool = False

    @classmethod
    def of(cls, cycles_by_tile: npt.ArrayLike, tiles_per_ipu: int) -> Phase:
        """Make the phase of a step from its cycles by tile; tiles of 0 cycles take no part."""
        row = np.asarray(cycles_by_tile, dtype=np.int64)
        tiles = np.flatnonzero(row)
        ipus, starts = _ipus_of(tiles, tiles_per_ipu)
        return cls(False, tiles, row[tiles], ipus, starts)

    @classmethod
    def sync(cls, tiles: int, tiles_per_ipu: int, *, external: bool = False) -> Phase:
        """Make the phase of a sync: of the tiles of each IPU, or of all of them."""
        starts = np.arange(0, tiles, tiles_per_ipu, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)
        return cls(True, nothing, nothing, starts // tiles_per_ipu, starts, external)

    @classmethod
    def sync_of(cls, tiles: Cycles, tiles_per_ipu: int, *, external: bool = False) -> Phase:
        """Make the phase of a sync of some tiles: of those of each IPU, or of all of them."""
        ipus, starts = _ipus_of(tiles, tiles_per_ipu)
        return cls(True, tiles, np.zeros_like(tiles), ipus, starts, external, some=True)


def _ipus_of(tiles: Cycles, tiles_per_ipu: int) -> tuple[Cycles, Cycles]:
    """Return the IPUs of ascending tiles, and the place of the first tile of each."""
    count = int(tiles[-1]) // tiles_per_ipu + 1 if len(tiles) else 0
    edges = np.searchsorted(tiles, np.arange(count + 1) * tiles_per_ipu)
    ipus = np.flatnonzero(np.diff(edges))
    return ipus, edges[ipus]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What a row of steps did to the clocks.

    cycles_from, cycles_to    latest clock of any tile before and after each step
    sync_cycles               tile cycles spent in syncs, by step (0 for other steps)
    ipu_step, ipu             a row for each step and IPU that takes part: the step, the IPU
    from_min ... to_max       begin and end on that IPU's active tiles
    all_to_min, all_to_max    clocks of all tiles of that IPU after the step
    longest, spent            cycles of its longest running tile, and of all of its tiles
    snapshots                 clock of each tile before every 1,024th step
    end                       clock of each tile after the last step
    """

    cycles_from: Cycles
    cycles_to: Cycles
    sync_cycles: Cycles
    ipu_step: Cycles
    ipu: Cycles
    from_min: Cycles
    from_max: Cycles
    to_min: Cycles
    to_max: Cycles
    all_to_min: Cycles
    all_to_max: Cycles
    longest: Cycles
    spent: Cycles
    snapshots: Cycles
    end: Cycles


def sync(free: Cycles, delays: Delays, *, external: bool = False) -> Cycles:
    """Return the clocks after a sync: all requests arrive, then each tile has its release."""
    arrived = (free + delays.request).reshape(delays.ipus, -1).max(axis=1, keepdims=True)
    if external:
        arrived = np.full_like(arrived, arrived.max() + delays.between_ipus)
    after: Cycles = (arrived + delays.release.reshape(delays.ipus, -1)).reshape(-1)
    return after


def _synced(clock: Cycles, phase: Phase, delays: Delays) -> tuple[Cycles, Cycles, Cycles]:
    """Return the clocks after a sync, and those of the tiles that it joins before and after it."""
    if not phase.some:
        after = sync(clock, delays, external=phase.external)
        return after, clock, after
    tiles, begin = phase.tiles, clock[phase.tiles]
    mine = replace(delays, request=delays.request[tiles], release=delays.release[tiles])
    end = sync(begin, mine, external=phase.external)
    after = clock.copy()
    after[tiles] = end
    return after, begin, end


def watch(
    free: Cycles,
    phases: Sequence[Phase],
    order: Sequence[int],
    delays: Delays,
    watched: Container[int] = (),
) -> tuple[Cycles, list[Cycles], list[Cycles]]:
    """Return the clocks after the phases `order` (indexes into `phases`), and record no steps.

    Of each phase that is `watched`, no sync, the clocks of its tiles before and after it are in the
    two lists, in the order of execution.
    """
    free = free.copy()
    before: list[Cycles] = []
    after: list[Cycles] = []
    for index in each(order, "timing steps"):
        phase = phases[index]
        if phase.is_sync:
            free, _, _ = _synced(free, phase, delays)
            continue
        begin = free[phase.tiles]
        free[phase.tiles] = end = begin + phase.cycles
        if index in watched:
            before.append(begin)
            after.append(end)
    return free, before, after


def replay(
    free: Cycles,
    phases: Sequence[Phase],
    order: Sequence[int],
    delays: Delays,
    first_step: int = 0,
) -> Replay:
    """Run the clocks through the phases `order` and record every step.

    `first_step` is the number of the first one in the whole recording: it places the snapshots.
    """
    steps = len(order)
    clock = free.copy()
    frontier = np.zeros(steps + 1, dtype=np.int64)
    frontier[0] = clock.max()
    waited = np.zeros(steps, dtype=np.int64)
    bounds: list[tuple[Cycles, ...]] = []
    snapshots: list[Cycles] = []
    for step, index in enumerate(each(order, "timing steps")):
        if (first_step + step) % CLOCK_INTERVAL == 0:
            snapshots.append(clock.copy())
        phase = phases[index]
        if phase.is_sync:
            clock, begin, end = _synced(clock, phase, delays)
            waited[step] = end.sum() - begin.sum()
        else:
            begin = clock[phase.tiles]
            end = begin + phase.cycles
            clock[phase.tiles] = end
        after = clock.reshape(delays.ipus, -1)[phase.ipus]
        bounds.append((*_bounds(begin, end, phase.starts), after.min(axis=1), after.max(axis=1)))
        latest = bounds[-1][3]
        frontier[step + 1] = max(frontier[step], latest.max()) if len(latest) else frontier[step]
    return Replay(
        cycles_from=frontier[:-1],
        cycles_to=frontier[1:],
        sync_cycles=waited,
        **_by_ipu(phases, order, bounds),
        snapshots=_stack(snapshots, len(clock)),
        end=clock,
    )


def _bounds(begin: Cycles, end: Cycles, starts: Cycles) -> tuple[Cycles, ...]:
    """Return by IPU that takes part: earliest and latest begin and end, longest and all cycles."""
    if len(starts) == 0:
        return (starts,) * 6
    duration = end - begin
    return (
        np.minimum.reduceat(begin, starts),
        np.maximum.reduceat(begin, starts),
        np.minimum.reduceat(end, starts),
        np.maximum.reduceat(end, starts),
        np.maximum.reduceat(duration, starts),
        np.add.reduceat(duration, starts),
    )


def _by_ipu(
    phases: Sequence[Phase], order: Sequence[int], bounds: list[tuple[Cycles, ...]]
) -> dict[str, Any]:
    counts = np.array([len(phases[index].ipus) for index in order], dtype=np.int64)
    names = (
        "from_min", "from_max", "to_min", "to_max", "longest", "spent", "all_to_min", "all_to_max"
    )  # fmt: skip
    columns = [_join([bound[part] for bound in bounds]) for part in range(len(names))]
    return {
        "ipu_step": np.repeat(np.arange(len(order), dtype=np.int64), counts),
        "ipu": _join([phases[index].ipus for index in order]),
        **dict(zip(names, columns, strict=True)),
    }


def _join(parts: list[Cycles]) -> Cycles:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _stack(rows: list[Cycles], tiles: int) -> Cycles:
    return np.stack(rows) if rows else np.zeros((0, tiles), dtype=np.int64)
