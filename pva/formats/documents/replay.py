"""The clocks of the tiles, replayed from the steps of documents that do not tell what IPUs did.

Each tile has its own clock. A step adds what its compute set or exchange costs on the tile; a sync
brings tiles together: each sends its request half of its sync delay ahead, the last one to arrive
counts, and the release takes the other half; a sync of all IPUs takes the way between them besides.
Where a document tells when the step behind a sync began, the sync ends at that time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.data.tile_sets import sets_of_steps, tiles_of_sets

# What a step of a type costs by tile: the column of its program, and arrays, the best first.
COSTS = {
    "OnTileExecute": (
        "compute_set",
        ("measured_compute_set_cycles_by_tile", "compute_set_cycles_by_tile"),
    ),
    "DoExchange": ("exchange", ("exchange_cycles",)),
    "GlobalExchange": (
        "exchange",
        ("measured_external_exchange_cycles", "external_exchange_cycles"),
    ),
    "StreamCopy": ("exchange", ("measured_host_exchange_cycles", "host_exchange_cycles")),
}
SINGLE = "measured_compute_set_cycles"  # one figure for all tiles
MOVED = {
    "DoExchange": "exchange",
    "GlobalExchange": "external_exchange",
    "StreamCopy": "host_exchange",
}
LIMIT = 1 << 30  # of steps times tiles, a step weighing as much as so many tiles by itself
TILES_A_STEP = 2000
UNTOLD, INTERNAL = (schema.SYNC_TYPES.index(kind) for kind in ("None", "Internal"))
SYNCS = ("Sync", "SyncAns", "Sans")
CODES = {tag: code for code, tag in enumerate(schema.STEP_TYPES)}
EXTENTS = (
    "from_min", "from_max", "to_min", "to_max", "cycles", "spent", "active",
    "all_to_min", "all_to_max",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """What the steps did.

    begin, end   latest clock of any tile before and after each step
    by_ipu       [figure of EXTENTS][step][IPU]; times are of active tiles, 0 without one, or of all
    snapshots    [1,024 steps][tile] clock before the step
    compute_sets [step] its compute set, -1 for none
    """

    begin: Values
    end: Values
    by_ipu: Values
    snapshots: Values
    compute_sets: Values

    def figure(self, name: str) -> Values:
        """Return a figure of EXTENTS, [step][IPU]."""
        return self.by_ipu[EXTENTS.index(name)]  # type: ignore[no-any-return]


def is_replayable(data: Dataset) -> bool:
    """Return whether the machine and the cost of steps are known, and a replay takes seconds."""
    ipus, tiles = data.of_replica("num_ipus"), data.of_replica("num_tiles")
    arrays = [name for _, names in COSTS.values() for name in (*names, SINGLE) if data.has(name)]
    has_costs = (
        min(ipus, tiles) > 0 and tiles % ipus == 0 and any(len(data.rows(a, 0, 1)) for a in arrays)
    )
    return has_costs and data.length("steps") * (TILES_A_STEP + tiles) <= LIMIT


def is_mere_trace(data: Dataset) -> bool:
    """Return whether nothing is known of steps but their programs."""
    types, cycles = data.column("steps", "type"), data.column("steps", "cycles")
    return not types.any() and not (cycles >= 0).any()


def step_types(data: Dataset) -> Values:
    """Return the types of steps, as texts; those of a mere trace are the types of its programs."""
    if not is_mere_trace(data):
        return data.texts("steps", "type")
    types = np.append(data.texts("programs", "type"), "")  # the last for program -1
    return types[data.column("steps", "program")]


def operands(data: Dataset, column: str) -> Values:
    """Return for each step what a column of `programs` has of its program; -1 for none."""
    values: Values = np.append(data.column("programs", column), -1)[data.column("steps", "program")]
    return values


def sync_codes(data: Dataset) -> Values:
    """Return the kinds of the syncs of steps, as codes; of the program where a step has none."""
    recorded = data.column("steps", "sync_type")
    return np.where(recorded == UNTOLD, operands(data, "sync_type").clip(UNTOLD), recorded)


def _costs(data: Dataset, types: Values) -> tuple[list[Values], Values]:
    """Return rows of cycles by tile, each once, and for each step its row; row 0 costs nothing."""
    tiles = data.of_replica("num_tiles")
    tables = [np.zeros((1, tiles), dtype=np.int64)]
    place = np.zeros(len(types), dtype=np.int64)
    for tag, (column, names) in COSTS.items():
        table = _table(data, tag, names, tiles)
        typed = np.flatnonzero(types == tag)
        rows = operands(data, column)[typed]
        if table is not None:
            valid = (rows >= 0) & (rows < len(table))
            place[typed[valid]] = sum(map(len, tables)) + rows[valid]
            tables.append(table)
    return [row for table in tables for row in table], place


def _table(data: Dataset, tag: str, names: tuple[str, ...], tiles: int) -> Values | None:
    name = next((name for name in names if data.has(name)), None)
    if tag == "OnTileExecute" and data.has(SINGLE) and not data.has(names[0]):
        return np.repeat(data.array(SINGLE)[:, None], tiles, axis=1)
    return None if name is None else data.array(name)


def replay(data: Dataset) -> Replay:
    """Run the clocks through the steps of a dataset; it needs `steps`, `target` and `programs`."""
    ipus, tiles = data.of_replica("num_ipus"), data.of_replica("num_tiles")
    types = step_types(data)
    rows, place = _costs(data, types)
    is_sync = np.isin(types, SYNCS)
    external = sync_codes(data) != INTERNAL
    after_sync = _known_after(data.column("steps", "cycles_from"), is_sync)
    delay = np.full(tiles, max(int(data.value("target", "min_sync_delay")), 0))
    if data.has("relative_sync_delay"):
        delay += np.tile(data.array("relative_sync_delay"), ipus)
    between = max(int(data.value("target", "global_sync_cycles")), 0)
    request, release = (delay + 1) // 2, delay // 2
    sets, of_step = tiles_of_sets(data), sets_of_steps(data)
    clock = np.zeros(tiles, dtype=np.int64)
    frontier = np.zeros(len(place) + 1, dtype=np.int64)
    by_ipu = np.zeros((len(EXTENTS), len(place), ipus), dtype=np.int64)
    snapshots = []
    # A step begins where the one before it ended, so that they are taken in turn.
    for step in range(len(place)):
        if step % schema.CLOCK_INTERVAL == 0:
            snapshots.append(clock)
        if is_sync[step]:
            joined = sets[of_step[step]]
            requests = np.where(joined, clock + request, 0)
            arrived = requests.reshape(ipus, -1).max(axis=1, keepdims=True)
            if external[step]:
                arrived = np.full_like(arrived, arrived.max() + between)
            after = (arrived + release.reshape(ipus, -1)).reshape(-1)
            if joined.all():
                after += max(int(after_sync[step]) - int(after.max()), 0)
            after = np.where(joined, after, clock)
        else:
            after = clock + rows[place[step]]
        _extents(by_ipu[:, step], clock.reshape(ipus, -1), after.reshape(ipus, -1))
        clock = after
        frontier[step + 1] = clock.max()
    stack = np.stack(snapshots) if snapshots else np.zeros((0, tiles), dtype=np.int64)
    compute_sets = np.where(types == "OnTileExecute", operands(data, "compute_set"), -1)
    return Replay(frontier[:-1], frontier[1:], by_ipu, stack, compute_sets)


def _known_after(begin: Values, is_sync: Values) -> Values:
    """Return for each sync when the step behind it began; -1 where that is not known."""
    behind = np.append(begin[1:], -1)
    return np.where(is_sync & ~np.append(is_sync[1:], True), behind, -1)


def _extents(extents: Values, before: Values, after: Values) -> None:
    """Fill in [figure][IPU] of one step, from clocks [IPU][tile]."""
    cycles = after - before
    active = cycles > 0
    late = np.iinfo(np.int64).max
    for row, clock in ((0, before), (2, after)):
        extents[row] = np.where(active, clock, late).min(axis=1)
        extents[row + 1] = np.where(active, clock, -1).max(axis=1)
    extents[:4, ~active.any(axis=1)] = 0
    extents[4], extents[5], extents[6] = cycles.max(axis=1), cycles.sum(axis=1), active.sum(axis=1)
    extents[7], extents[8] = after.min(axis=1), after.max(axis=1)
