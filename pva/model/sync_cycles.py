"""How long each tile waits for a sync and in it: from its own clock until the sync lets it go."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.dataset import Dataset

Cycles = npt.NDArray[np.int64]

# Where the cycles by tile of a step are, by its type: the column of its program, and the array.
CYCLES_BY_TILE = {
    "OnTileExecute": ("compute_set", "compute_set_cycles_by_tile"),
    "DoExchange": ("exchange", "exchange_cycles"),
    "GlobalExchange": ("exchange", "external_exchange_cycles"),
    "StreamCopy": ("exchange", "host_exchange_cycles"),
}
SYNCS = [schema.STEP_TYPES.index(name) for name in ("Sync", "SyncAns", "Sans")]
NEEDED = ("steps_by_ipu", "target", "programs")


def sync_cycles(data: Dataset, step: int) -> Cycles | None:
    """Give the cycles of each tile in a step that is a sync; None where clocks are not told."""
    if not all(data.has(name) for name in NEEDED):
        return None
    after, before = _after(data, step), _before(data, step)
    return None if after is None or before is None else np.maximum(after - before, 0)


def _before(data: Dataset, step: int) -> Cycles | None:
    """Give the clock of each tile: that of the sync or run before, and what it did since."""
    runs = data.column("steps", "run")
    syncs = data.kept("steps that are syncs", _syncs)
    place, run = int(np.searchsorted(syncs, step)) - 1, int(runs[step])
    if place >= 0 and int(runs[syncs[place]]) == run:
        first = int(syncs[place]) + 1
        clock = _after(data, first - 1)
    elif 0 <= run < data.length("runs"):  # a run begins on all tiles at once
        first, begin = (int(data.column("runs", n)[run]) for n in ("first_step", "cycles_from"))
        clock = np.full(data.of_replica("num_tiles"), begin) if begin >= 0 else None
    else:
        first, clock = 0, data.row("tile_clock", 0) if data.has("tile_clock") else None
    return None if clock is None else clock + _spent(data, slice(first, step))


def _syncs(data: Dataset) -> npt.NDArray[Any]:
    return np.flatnonzero(np.isin(data.column("steps", "type"), SYNCS))


def _spent(data: Dataset, steps: slice) -> Cycles:
    """Add up by tile what steps took that are no syncs."""
    found = np.zeros(data.of_replica("num_tiles"), dtype=np.int64)
    types = data.texts("steps", "type")[steps]
    programs = data.column("steps", "program")[steps]
    for tag in set(types) & CYCLES_BY_TILE.keys():
        column, array = CYCLES_BY_TILE[tag]
        rows = data.column("programs", column)[programs[(types == tag) & (programs >= 0)]]
        if data.has(array):
            found += data.array(array)[rows[rows >= 0]].sum(axis=0)
    return found


def _after(data: Dataset, step: int) -> Cycles | None:
    """Give the clock of each tile behind a sync, which lets a tile go later the farther it is."""
    rows = data.rows_where("steps_by_ipu", "step", step)
    ipus = data.column("steps_by_ipu", "ipu")[rows]
    ends = data.column("steps_by_ipu", "to_max")[rows]
    release = data.kept("releases of syncs", _releases)
    if len(release) == 0 or ipus.tolist() != list(range(len(release))):
        return None
    clocks: Cycles = (ends[:, None] + release).reshape(-1)
    return clocks


def _releases(data: Dataset) -> Cycles:
    """Give how many cycles before the last tile of its IPU each is let go, [IPU][tile]."""
    ipus, tiles = data.of_replica("num_ipus"), data.of_replica("num_tiles")
    delay = np.full(tiles // max(ipus, 1), max(int(data.value("target", "min_sync_delay")), 0))
    if data.has("relative_sync_delay"):
        delay = delay + data.array("relative_sync_delay")
    release = delay // 2
    return np.tile(release - release.max(initial=0), (ipus, 1))
