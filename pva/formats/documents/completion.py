"""What documents of other writers leave out and the rest of them determines, found when asked for.

The chapter "Profiling" has no runs, tells of syncs their kind alone, nothing by IPU and no clocks
of tiles; `simulation` may be left out, being redundant. Documents of our own are never added to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import DTYPES, Dataset
from pva.data.sources import Spend
from pva.formats.documents.replay import (
    CODES,
    EXTENTS,
    MOVED,
    Replay,
    is_mere_trace,
    is_replayable,
    operands,
    replay,
    step_types,
    sync_codes,
)

Columns = dict[str, Values]
Derived = tuple[tuple[str, ...], Callable[[Dataset], Columns]]
ACTIVITIES = {
    "OnTileExecute": "compute", "DoExchange": "do_exchange", "GlobalExchange": "global_exchange",
    "StreamCopy": "stream_copy", "CopySharedStructure": "copy_shared_structure", "Sync": "sync",
}  # fmt: skip
CLOCK = "tile_clock"
ACTIVE = "compute_set_active_cycles_by_tile"


def completed(dataset: Dataset) -> Dataset:
    """Add what can be derived to what documents of other writers tell."""
    figures = Dataset(_Completed(dataset, FIGURES), dataset.name)
    if not figures.has("programs") and figures.has("steps") and is_mere_trace(figures):
        return Dataset(_Completed(figures, {}, frozenset({"steps"})), dataset.name)
    can_be_replayed = all(figures.has(name) for name in NEEDS) and is_replayable(figures)
    return Dataset(_Completed(figures, STEPS), dataset.name) if can_be_replayed else figures


class _Completed:
    """The source of a dataset in which what is missing is worked out when it is asked for."""

    def __init__(
        self, dataset: Dataset, derived: Mapping[str, Derived], hidden: frozenset[str] = frozenset()
    ) -> None:
        self.room = dataset.room
        self._told = dataset
        self._hidden = hidden
        self._make = {
            name: make
            for name, (needs, make) in derived.items()
            if all(dataset.has(need) for need in needs)
        }
        if "runs" in self._make and (dataset.column("steps", "run") >= 0).any():
            del self._make["runs"]  # there are several, and nothing is known of them
        self._clocked = "steps_by_ipu" in self._make and not dataset.has(CLOCK)

    def tables(self) -> Collection[str]:
        return {*self._told.tables, *self._make} - self._hidden

    def arrays(self) -> Collection[str]:
        return {*self._told.arrays, *([CLOCK] if self._clocked else [])}

    def length(self, table: str) -> int:
        if table not in self._make or self._told.has(table):
            return self._told.length(table)
        return len(next(iter(self._told.kept(("derived", table), self._make[table]).values())))

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        return None

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        if array == CLOCK and self._clocked:
            return _replayed(self._told).snapshots[first:stop]
        return self._told.rows(array, first, stop)

    def column(self, table: str, column: str, spend: Spend) -> Values:
        make = self._make.get(table)
        if make is None:
            return self._told.column(table, column)
        kind = schema.TABLE[table].column(column).kind
        if not self._told.has(table):
            columns = self._told.kept(("derived", table), make)
            rows = len(next(iter(columns.values())))
            return columns.get(column, np.full(rows, schema.MISSING[kind], DTYPES[kind]))
        recorded = self._told.column(table, column)
        unknown = np.isnan(recorded) if kind == "float" else recorded == schema.MISSING[kind]
        if not unknown.any():
            return recorded
        columns = self._told.kept(("derived", table), make)
        return np.where(unknown, columns[column], recorded) if column in columns else recorded


def _one(**values: float) -> Columns:
    return {name: np.array([value]) for name, value in values.items()}


def _target(data: Dataset) -> Columns:
    sizes = {name: int(data.value("target", name)) for name in (
        "num_ipus", "tiles_per_ipu", "num_tiles", "bytes_per_tile", "bytes_per_ipu")}  # fmt: skip
    ipus, per_ipu, tiles, on_tile, on_ipu = sizes.values()
    if min(ipus, per_ipu) > 0:
        tiles = ipus * per_ipu
    elif min(ipus, tiles) > 0:
        per_ipu = tiles // ipus
    elif min(per_ipu, tiles) > 0:
        ipus = tiles // per_ipu
    on_tile = on_ipu // per_ipu if on_tile < 0 < min(on_ipu, per_ipu) else on_tile
    has_sizes = min(on_tile, per_ipu, tiles) > 0
    return _one(
        num_ipus=ipus, tiles_per_ipu=per_ipu, num_tiles=tiles, bytes_per_tile=on_tile,
        bytes_per_ipu=on_tile * per_ipu if has_sizes else -1,
        total_memory=on_tile * tiles if has_sizes else -1, num_replicas=1,
    )  # fmt: skip


def _graph(data: Dataset) -> Columns:
    vertices = data.column("compute_set_vertices", "count").sum()
    return _one(num_compute_sets=data.length("compute_sets"), num_vertices=int(vertices),
                num_edges=-1, num_vars=-1)  # fmt: skip


def _memory_by_tile(data: Dataset) -> Columns:
    regions = [data.column("memory_by_tile", schema.snake(region)) for region in schema.REGIONS]
    recorded = np.all([region >= 0 for region in regions], axis=0)
    return {"total": np.where(recorded, np.sum(regions, axis=0), -1)}


def _liveness(data: Dataset) -> Columns:
    return _one(max_bytes=int(data.column("liveness_steps", "bytes").max(initial=-1)))


def _replayed(data: Dataset) -> Replay:
    return data.kept("replay", replay)


def _told_cycles(data: Dataset) -> int:
    return int(data.value("execution", "cycles")) if data.has("execution") else -1


def _cycles(data: Dataset) -> int:
    cycles = _told_cycles(data)
    return cycles if cycles >= 0 else int(_replayed(data).end.max(initial=0))


def _execution(data: Dataset) -> Columns:
    return _one(cycles=_cycles(data))


def _runs(data: Dataset) -> Columns:
    """Take all steps for one run, as where one run ends and the next begins is not told."""
    return _one(
        program=0, first_step=0, end_step=data.length("steps"), cycles_from=0,
        cycles=_cycles(data), start_microseconds=0.0, end_microseconds=0.0,
    ) | {"name": np.array([""], dtype=object)}  # fmt: skip


def _tile_cycles(data: Dataset) -> Columns:
    """Add up what the tiles did in the steps; what is left of the time they idled."""
    types, replayed = step_types(data), _replayed(data)
    spent = replayed.figure("spent").sum(axis=1)
    replayed_cycles = {name: int(spent[types == tag].sum()) for tag, name in ACTIVITIES.items()}
    replayed_cycles["active_compute"] = _active_compute(data, replayed.compute_sets)
    recorded = {name: int(data.value("tile_cycles", name)) for name in ACTIVITIES.values()
            if data.has("tile_cycles")}  # fmt: skip
    busy = sum(
        recorded[name] if recorded.get(name, -1) >= 0 else replayed_cycles[name]
        for name in ACTIVITIES.values()
    )
    idle = _cycles(data) * data.of_replica("num_tiles") - busy
    return _one(**replayed_cycles, idle_at_end=max(idle, -1))


def _active_compute(data: Dataset, compute_sets: Values) -> int:
    if not data.has(ACTIVE):
        return -1
    by_set = data.array(ACTIVE).sum(axis=1)
    return int(by_set[compute_sets[(compute_sets >= 0) & (compute_sets < len(by_set))]].sum())


def _steps(data: Dataset) -> Columns:
    types, replayed = step_types(data), _replayed(data)
    cycles, spent, active = (replayed.figure(name) for name in ("cycles", "spent", "active"))
    longest, spent, active = cycles.max(axis=1), spent.sum(axis=1), active.sum(axis=1)
    tiles = data.of_replica("num_tiles")
    begin, end = _times(data, replayed)
    untold = (active == 0) & (data.column("steps", "cycles") > 0)  # of which tiles is not known
    return {
        "type": np.array([CODES.get(name, 0) for name in types]),
        "sync_type": sync_codes(data),
        "run": np.zeros(len(types), dtype=np.int64),
        "cycles": longest, "cycles_from": begin, "cycles_to": end,
        "cycles_overlapped": longest - (end - begin),
        "active_tiles": np.where(untold, -1, active),
        "tile_balance": _share(spent, longest * tiles),
        "active_tile_balance": _share(spent, longest * active),
        "thread_balance": _thread_balance(data, replayed), **_moved(data, types),
    }  # fmt: skip


def _times(data: Dataset, replayed: Replay) -> tuple[Values, Values]:
    """Return begin and end of steps: what the steps around them tell comes first."""
    begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
    before, behind = np.append(-1, end[:-1]), np.append(begin[1:], -1)
    times = np.stack((np.where(before >= 0, before, replayed.begin),
                      np.where(behind >= 0, behind, replayed.end)), axis=1)  # fmt: skip
    times = np.maximum.accumulate(times.reshape(-1)).reshape(-1, 2)
    return times[:, 0], times[:, 1]


def _share(part: Values, total: Values) -> Values:
    nothing = np.full(len(part), np.nan)
    share: Values = np.divide(part, total, out=nothing, where=total > 0)
    return share


def _thread_balance(data: Dataset, replayed: Replay) -> Values:
    names = (ACTIVE, "compute_set_cycles_by_tile")
    balance = np.full(len(replayed.begin), np.nan)
    arrays = [data.array(name).sum(axis=1) for name in names if data.has(name)]
    if len(arrays) == 2 and len(arrays[0]) == len(arrays[1]):
        shares = _share(*arrays)
        computing = (replayed.compute_sets >= 0) & (replayed.compute_sets < len(shares))
        balance[computing] = shares[replayed.compute_sets[computing]]
    return balance


def _moved(data: Dataset, types: Values) -> Columns:
    """Return half of what all tiles sent and received, and how evenly."""
    total, balance = np.full(len(types), -1), np.full(len(types), np.nan)
    exchange = operands(data, "exchange")
    for tag, name in MOVED.items():
        arrays = [f"{name}_bytes_sent", f"{name}_bytes_received"]
        exchanging = np.flatnonzero((types == tag) & (exchange >= 0))
        if all(data.has(array) for array in arrays):
            by_tile = data.array(arrays[0]) + data.array(arrays[1])
            exchanging = exchanging[exchange[exchanging] < len(by_tile)]
            row = exchange[exchanging]
            total[exchanging] = by_tile.sum(axis=1)[row] // 2
            balance[exchanging] = _share(by_tile.mean(axis=1), by_tile.max(axis=1, initial=0))[row]
    return {"total_data": total, "data_balance": balance}


def _steps_by_ipu(data: Dataset) -> Columns:
    """Return a row for each step and IPU with an active tile."""
    replayed, ipus = _replayed(data), data.of_replica("num_ipus")
    step, ipu = np.nonzero(replayed.figure("active"))
    figures = {name: replayed.figure(name)[step, ipu] for name in EXTENTS}
    spent, active = figures.pop("spent"), figures.pop("active")
    tiles = data.of_replica("num_tiles") // max(ipus, 1)
    return {
        "step": step, "ipu": ipu, **figures,
        "tile_balance": _share(spent, figures["cycles"] * tiles),
        "active_tile_balance": _share(spent, figures["cycles"] * active),
        "bytes_in": _by_ipu(data, "bytes_received", ipus)[step, ipu],
        "bytes_out": _by_ipu(data, "bytes_sent", ipus)[step, ipu],
    }  # fmt: skip


def _by_ipu(data: Dataset, direction: str, ipus: int) -> Values:
    """Return what the tiles of each IPU received or sent, [step][IPU]."""
    types = step_types(data)
    exchange = operands(data, "exchange")
    by_ipu = np.zeros((len(types), ipus), dtype=np.int64)
    for tag, name in MOVED.items():
        if data.has(f"{name}_{direction}"):
            table = data.array(f"{name}_{direction}")
            exchanging = np.flatnonzero((types == tag) & (exchange >= 0) & (exchange < len(table)))
            if len(exchanging):
                by_ipu[exchanging] = table.reshape(len(table), ipus, -1).sum(axis=2)[
                    exchange[exchanging]
                ]
    return by_ipu


NEEDS = ("steps", "programs", "target")
# Each table that values are derived for, what that takes, and who finds them.
FIGURES: dict[str, Derived] = {
    "target": (("target",), _target),
    "graph": (("compute_sets", "compute_set_vertices"), _graph),
    "memory_by_tile": (("memory_by_tile",), _memory_by_tile),
    "liveness": (("liveness_steps",), _liveness),
}
STEPS: dict[str, Derived] = {
    "execution": (("execution", *NEEDS), _execution),
    "tile_cycles": (NEEDS, _tile_cycles),
    "runs": (NEEDS, _runs),
    "steps": (NEEDS, _steps),
    "steps_by_ipu": (NEEDS, _steps_by_ipu),
}
