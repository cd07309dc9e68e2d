"""What documents of other writers leave out and the rest of them determines, found when asked for.

The chapter "Profiling" has no runs, tells of syncs their kind alone, nothing by IPU and no clocks
of tiles; `simulation` may be left out, being redundant. Documents of our own are never added to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from pva import schema
from pva.dataset import DTYPES, Dataset
from pva.formats.replay import (
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
from pva.formats.values import Values
from pva.sources import Spend

Columns = dict[str, Values]
Derived = tuple[tuple[str, ...], Callable[[Dataset], Columns]]
ACTIVITIES = {
    "OnTileExecute": "compute", "DoExchange": "do_exchange", "GlobalExchange": "global_exchange",
    "StreamCopy": "stream_copy", "CopySharedStructure": "copy_shared_structure", "Sync": "sync",
}  # fmt: skip
CLOCK = "tile_clock"
ACTIVE = "compute_set_active_cycles_by_tile"


def completed(told: Dataset) -> Dataset:
    """Add what can be derived to what documents of other writers tell."""
    figures = Dataset(_Completed(told, FIGURES), told.name)
    if not figures.has("programs") and figures.has("steps") and is_mere_trace(figures):
        return Dataset(_Completed(figures, {}, frozenset({"steps"})), told.name)
    can_be_replayed = all(figures.has(name) for name in NEEDS) and is_replayable(figures)
    return Dataset(_Completed(figures, STEPS), told.name) if can_be_replayed else figures


class _Completed:
    """The source of a dataset in which what is missing is worked out when it is asked for."""

    def __init__(
        self, told: Dataset, derived: Mapping[str, Derived], hidden: frozenset[str] = frozenset()
    ) -> None:
        self.room = told.room
        self._told = told
        self._hidden = hidden
        self._make = {
            name: make
            for name, (needs, make) in derived.items()
            if all(told.has(need) for need in needs)
        }
        if "runs" in self._make and (told.column("steps", "run") >= 0).any():
            del self._make["runs"]  # there are several, and nothing is known of them
        self._clocked = "steps_by_ipu" in self._make and not told.has(CLOCK)

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
            found = self._told.kept(("derived", table), make)
            rows = len(next(iter(found.values())))
            return found.get(column, np.full(rows, schema.MISSING[kind], DTYPES[kind]))
        told = self._told.column(table, column)
        unknown = np.isnan(told) if kind == "float" else told == schema.MISSING[kind]
        if not unknown.any():
            return told
        found = self._told.kept(("derived", table), make)
        return np.where(unknown, found[column], told) if column in found else told


def _one(**values: float) -> Columns:
    return {name: np.array([value]) for name, value in values.items()}


def _target(data: Dataset) -> Columns:
    told = {name: int(data.value("target", name)) for name in (
        "num_ipus", "tiles_per_ipu", "num_tiles", "bytes_per_tile", "bytes_per_ipu")}  # fmt: skip
    ipus, per_ipu, tiles, on_tile, on_ipu = told.values()
    if min(ipus, per_ipu) > 0:
        tiles = ipus * per_ipu
    elif min(ipus, tiles) > 0:
        per_ipu = tiles // ipus
    elif min(per_ipu, tiles) > 0:
        ipus = tiles // per_ipu
    on_tile = on_ipu // per_ipu if on_tile < 0 < min(on_ipu, per_ipu) else on_tile
    known = min(on_tile, per_ipu, tiles) > 0
    return _one(
        num_ipus=ipus, tiles_per_ipu=per_ipu, num_tiles=tiles, bytes_per_tile=on_tile,
        bytes_per_ipu=on_tile * per_ipu if known else -1,
        total_memory=on_tile * tiles if known else -1, num_replicas=1,
    )  # fmt: skip


def _graph(data: Dataset) -> Columns:
    vertices = data.column("compute_set_vertices", "count").sum()
    return _one(num_compute_sets=data.length("compute_sets"), num_vertices=int(vertices),
                num_edges=-1, num_vars=-1)  # fmt: skip


def _memory_by_tile(data: Dataset) -> Columns:
    regions = [data.column("memory_by_tile", schema.snake(region)) for region in schema.REGIONS]
    known = np.all([region >= 0 for region in regions], axis=0)
    return {"total": np.where(known, np.sum(regions, axis=0), -1)}


def _liveness(data: Dataset) -> Columns:
    return _one(max_bytes=int(data.column("liveness_steps", "bytes").max(initial=-1)))


def _replayed(data: Dataset) -> Replay:
    return data.kept("replay", replay)


def _told_cycles(data: Dataset) -> int:
    return int(data.value("execution", "cycles")) if data.has("execution") else -1


def _cycles(data: Dataset) -> int:
    told = _told_cycles(data)
    return told if told >= 0 else int(_replayed(data).end.max(initial=0))


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
    types, done = step_types(data), _replayed(data)
    spent = done.figure("spent").sum(axis=1)
    found = {name: int(spent[types == tag].sum()) for tag, name in ACTIVITIES.items()}
    found["active_compute"] = _active_compute(data, done.compute_sets)
    told = {name: int(data.value("tile_cycles", name)) for name in ACTIVITIES.values()
            if data.has("tile_cycles")}  # fmt: skip
    busy = sum(
        told[name] if told.get(name, -1) >= 0 else found[name] for name in ACTIVITIES.values()
    )
    idle = _cycles(data) * data.of_replica("num_tiles") - busy
    return _one(**found, idle_at_end=max(idle, -1))


def _active_compute(data: Dataset, compute_sets: Values) -> int:
    if not data.has(ACTIVE):
        return -1
    by_set = data.array(ACTIVE).sum(axis=1)
    return int(by_set[compute_sets[(compute_sets >= 0) & (compute_sets < len(by_set))]].sum())


def _steps(data: Dataset) -> Columns:
    types, done = step_types(data), _replayed(data)
    cycles, spent, active = (done.figure(name) for name in ("cycles", "spent", "active"))
    longest, spent, active = cycles.max(axis=1), spent.sum(axis=1), active.sum(axis=1)
    tiles = data.of_replica("num_tiles")
    begin, end = _times(data, done)
    return {
        "type": np.array([CODES.get(name, 0) for name in types]),
        "sync_type": sync_codes(data),
        "run": np.zeros(len(types), dtype=np.int64),
        "cycles": longest, "cycles_from": begin, "cycles_to": end,
        "cycles_overlapped": longest - (end - begin), "active_tiles": active,
        "tile_balance": _share(spent, longest * tiles),
        "active_tile_balance": _share(spent, longest * active),
        "thread_balance": _thread_balance(data, done), **_moved(data, types),
    }  # fmt: skip


def _times(data: Dataset, done: Replay) -> tuple[Values, Values]:
    """Return begin and end of steps: what the steps around them tell comes first."""
    begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
    before, behind = np.append(-1, end[:-1]), np.append(begin[1:], -1)
    times = np.stack((np.where(before >= 0, before, done.begin),
                      np.where(behind >= 0, behind, done.end)), axis=1)  # fmt: skip
    times = np.maximum.accumulate(times.reshape(-1)).reshape(-1, 2)
    return times[:, 0], times[:, 1]


def _share(part: Values, whole: Values) -> Values:
    nothing = np.full(len(part), np.nan)
    found: Values = np.divide(part, whole, out=nothing, where=whole > 0)
    return found


def _thread_balance(data: Dataset, done: Replay) -> Values:
    names = (ACTIVE, "compute_set_cycles_by_tile")
    found = np.full(len(done.begin), np.nan)
    arrays = [data.array(name).sum(axis=1) for name in names if data.has(name)]
    if len(arrays) == 2 and len(arrays[0]) == len(arrays[1]):
        shares = _share(*arrays)
        here = (done.compute_sets >= 0) & (done.compute_sets < len(shares))
        found[here] = shares[done.compute_sets[here]]
    return found


def _moved(data: Dataset, types: Values) -> Columns:
    """Return half of what all tiles sent and received, and how evenly."""
    total, balance = np.full(len(types), -1), np.full(len(types), np.nan)
    exchange = operands(data, "exchange")
    for tag, name in MOVED.items():
        arrays = [f"{name}_bytes_sent", f"{name}_bytes_received"]
        here = np.flatnonzero((types == tag) & (exchange >= 0))
        if all(data.has(array) for array in arrays):
            by_tile = data.array(arrays[0]) + data.array(arrays[1])
            here = here[exchange[here] < len(by_tile)]
            row = exchange[here]
            total[here] = by_tile.sum(axis=1)[row] // 2
            balance[here] = _share(by_tile.mean(axis=1), by_tile.max(axis=1, initial=0))[row]
    return {"total_data": total, "data_balance": balance}


def _steps_by_ipu(data: Dataset) -> Columns:
    """Return a row for each step and IPU with an active tile."""
    done, ipus = _replayed(data), data.of_replica("num_ipus")
    step, ipu = np.nonzero(done.figure("active"))
    found = {name: done.figure(name)[step, ipu] for name in EXTENTS}
    spent, active = found.pop("spent"), found.pop("active")
    tiles = data.of_replica("num_tiles") // max(ipus, 1)
    return {
        "step": step, "ipu": ipu, **found,
        "tile_balance": _share(spent, found["cycles"] * tiles),
        "active_tile_balance": _share(spent, found["cycles"] * active),
        "bytes_in": _by_ipu(data, "bytes_received", ipus)[step, ipu],
        "bytes_out": _by_ipu(data, "bytes_sent", ipus)[step, ipu],
    }  # fmt: skip


def _by_ipu(data: Dataset, what: str, ipus: int) -> Values:
    """Return what the tiles of each IPU received or sent, [step][IPU]."""
    types = step_types(data)
    exchange = operands(data, "exchange")
    found = np.zeros((len(types), ipus), dtype=np.int64)
    for tag, name in MOVED.items():
        if data.has(f"{name}_{what}"):
            table = data.array(f"{name}_{what}")
            here = np.flatnonzero((types == tag) & (exchange >= 0) & (exchange < len(table)))
            if len(here):
                found[here] = table.reshape(len(table), ipus, -1).sum(axis=2)[exchange[here]]
    return found


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
