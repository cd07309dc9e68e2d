"""How long each tile waits for a sync and in it: from its own clock until the sync lets it go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset
from pva.data.tile_sets import sets_of_steps, tiles_of_sets

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
    """Return the cycles of each tile in a step that is a sync; None where clocks are not told.

    Tiles that it does not join have none.
    """
    if not all(data.has(name) for name in NEEDED):
        return None
    sets, of_step = (data.kept(f.__name__, f) for f in (tiles_of_sets, sets_of_steps))
    cycles = np.zeros(data.of_replica("num_tiles"), dtype=np.int64)
    for some in np.unique(sets.T, axis=0):  # tiles of the same sets have the same syncs
        mine = (some == sets.T).all(axis=1)
        if not some[of_step[step]]:
            continue
        after, before = _after(data, step), _before(data, step, some[of_step])
        if after is None or before is None:
            return None
        cycles[mine] = np.maximum(after - before, 0)[mine]
    return cycles


def _before(data: Dataset, step: int, joined: npt.NDArray[np.bool_]) -> Cycles | None:
    """Return the clock of each tile: that of the sync or run before, and what it did since.

    `joined` tells which steps are for the tiles in question.
    """
    runs = data.column("steps", "run")
    syncs = data.kept("steps that are syncs", _syncs)
    syncs = syncs[joined[syncs]]
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


def _syncs(data: Dataset) -> npt.NDArray[np.intp]:
    return np.flatnonzero(np.isin(data.column("steps", "type"), SYNCS))


def _spent(data: Dataset, steps: slice) -> Cycles:
    """Add up by tile what steps took that are no syncs."""
    cycles = np.zeros(data.of_replica("num_tiles"), dtype=np.int64)
    types = data.texts("steps", "type")[steps]
    programs = data.column("steps", "program")[steps]
    for tag in set(types) & CYCLES_BY_TILE.keys():
        column, array = CYCLES_BY_TILE[tag]
        rows = data.column("programs", column)[programs[(types == tag) & (programs >= 0)]]
        if data.has(array):
            cycles += data.array(array)[rows[rows >= 0]].sum(axis=0)
    return cycles


def _after(data: Dataset, step: int) -> Cycles | None:
    """Return the clock of each tile behind a sync, which lets a tile go later the farther it is.

    Of tiles that it does not join it tells nothing.
    """
    rows = data.rows_where("steps_by_ipu", "step", step)
    ipus = data.column("steps_by_ipu", "ipu")[rows]
    ends = data.column("steps_by_ipu", "to_max")[rows]
    release = data.kept("releases of syncs", _releases)
    if len(release) == 0 or ipus.tolist() != list(range(len(release))):
        return None
    sets, of_step = (data.kept(f.__name__, f) for f in (tiles_of_sets, sets_of_steps))
    joined = sets[of_step[step]].reshape(release.shape)
    last = np.where(joined, release, 0).max(axis=1, keepdims=True)
    clocks: Cycles = (ends[:, None] + release - last).reshape(-1)
    return clocks


def _releases(data: Dataset) -> Cycles:
    """Return how long each tile takes to be let go, [IPU][tile]."""
    ipus, tiles = data.of_replica("num_ipus"), data.of_replica("num_tiles")
    delay = np.full(tiles // max(ipus, 1), max(int(data.value("target", "min_sync_delay")), 0))
    if data.has("relative_sync_delay"):
        delay = delay + data.array("relative_sync_delay")
    return np.tile(delay // 2, (ipus, 1))
