"""How evenly the work lies on tiles, IPUs and threads, and what waiting for the slowest costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import (
    OPERANDS,
    PHASES,
    SYNC,
    elapsed,
    executions,
    executions_of_rows,
    labels,
    phases,
)
from pva.analysis.columns import analysis
from pva.analysis.selection import chosen, rows_wanted, tile_count
from pva.analysis.table import Columns, joined, largest_first, rows_of
from pva.array_types import Integers, Values
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 260  # of its analyses in the catalogue
_TILE_COLUMNS = {
    "compute": ("OnTileExecute",),
    "exchange": ("DoExchange", "GlobalExchange"),
    "host_exchange": ("StreamCopy",),
}


_EACH_VERTEX = (
    "run the program with the engine options debug.instrumentCompute true and "
    "debug.computeInstrumentationLevel vertex"
)


@analysis(
    "program type name executions cycles:cycles mean_cycles:cycles tile_balance:fraction tiles "
    "active_tiles lost_cycles:cycles"
)
def tile_balance(report: Report) -> Columns:
    """Return which programs lose the most cycles because some tiles have more to do than others.

    `cycles` are those of the slowest tile in one execution, `mean_cycles` those of the mean tile,
    and `tile_balance` their ratio. Of the `tiles`, those of the IPUs that the program runs on,
    `active_tiles` did something at all. `lost_cycles` is what all `executions` would save at most
    if every one of those tiles had the mean. Compute sets and exchanges (those with the host, too)
    of the recorded runs, the largest loss first. Raises NotRecordedError.
    """
    parts = joined(_balance_of(report, tag) for tag in OPERANDS)
    return largest_first(parts, "lost_cycles")


def _balance_of(report: Report, tag: str) -> dict[str, Values]:
    """Measure the executed programs of a type; none when their cycles by tile are not there."""
    data = report.dataset
    counts = executions(report)
    column, name = OPERANDS[tag]
    operand = data.column("programs", column)
    run = (data.texts("programs", "type") == tag) & (counts > 0) & (operand >= 0)
    programs = np.flatnonzero(run)
    cycles = np.zeros((0, tile_count(report)), dtype=np.int64)
    if len(programs):
        array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
        cycles = data.chosen(array, operand[programs])
    tiles = _tiles_run_on(report, cycles)
    longest, mean = cycles.max(axis=1, initial=0), cycles.sum(axis=1) / np.maximum(tiles, 1)
    return {
        "program": programs,
        "type": np.full(len(programs), tag, dtype=object),
        "name": labels(report, programs),
        "executions": counts[programs],
        "cycles": longest,
        "mean_cycles": mean,
        "tile_balance": mean / np.maximum(longest, 1),
        "tiles": tiles,
        "active_tiles": (cycles > 0).sum(axis=1),
        "lost_cycles": np.rint(counts[programs] * (longest - mean)).astype(np.int64),
    }


def _tiles_run_on(report: Report, cycles: Integers) -> Integers:
    """Count the tiles of the IPUs on which each program has cycles."""
    ipus = report.dataset.of_replica("num_ipus")
    per_ipu = cycles.shape[1] // ipus
    busy = (cycles.reshape(len(cycles), ipus, per_ipu) > 0).any(axis=2).sum(axis=1)
    tiles: Integers = np.where(busy > 0, busy * per_ipu, cycles.shape[1])
    return tiles


@analysis(
    "compute_set name executions vertices active_tiles vertices_per_tile "
    "tile_cycles:tile-cycles active_cycles:tile-cycles thread_balance:fraction "
    "idle_cycles:tile-cycles"
)
def thread_balance(report: Report) -> Columns:
    """Return which compute sets leave the most worker threads idle while their tiles compute.

    A tile has six workers that take turns: `tile_cycles` are the cycles of all tiles in one
    execution, `active_cycles` those in which a vertex was run, `thread_balance` their ratio. Fewer
    than six `vertices_per_tile` leave workers idle, unless a vertex takes all six by itself.
    `idle_cycles` is what was idle in all `executions`, the most first. Raises NotRecordedError.
    """
    data = report.dataset
    cycles = data.array("compute_set_cycles_by_tile")
    active = data.row_sums("compute_set_active_cycles_by_tile")
    count = len(cycles)
    data.column("compute_sets", "name")  # without it, those of vertices may be any numbers
    vertices = np.bincount(
        data.column("compute_set_vertices", "compute_set"),
        weights=data.column("compute_set_vertices", "count"),
        minlength=count,
    ).astype(np.int64)
    total = cycles.sum(axis=1)
    runs = executions_of_rows(report, "OnTileExecute", count)
    tiles = (cycles > 0).sum(axis=1)
    columns = {
        "compute_set": np.arange(count),
        "name": data.column("compute_sets", "name"),
        "executions": runs,
        "vertices": vertices,
        "active_tiles": tiles,
        "vertices_per_tile": vertices / np.maximum(tiles, 1),
        "tile_cycles": total,
        "active_cycles": active,
        "thread_balance": active / np.maximum(total, 1),
        "idle_cycles": runs * (total - active),
    }
    return largest_first(rows_of(columns, columns["executions"] > 0), "idle_cycles")


@analysis(
    "compute_set name vertex_type vertices min_cycles:cycles mean_cycles:cycles "
    "max_cycles:cycles balance:fraction"
)
def slowest_vertices(report: Report) -> Columns:
    """List the vertices of compute sets that take longest, by type, as instrumentation measured.

    Of the `vertices` of one type in one compute set that were executed: the least, mean and most
    cycles when last executed, and `balance`, mean / most: a tile waits for the longest of its six
    workers. The most cycles first. Raises NotRecordedError without `debug.instrumentCompute` and
    `debug.computeInstrumentationLevel` vertex.
    """
    data = report.dataset
    if not data.has("measured_vertex_cycles"):
        raise NotRecordedError(data.name, "measured_vertex_cycles not recorded", _EACH_VERTEX)
    names = ("measured_vertex_cycles", "vertex_compute_set", "vertex_vertex_type")
    cycles, rows, types = (data.array(name)[data.array(names[0]) > 0] for name in names)
    order = np.lexsort((types, rows))
    cycles, rows, types = cycles[order], rows[order], types[order]
    starts = np.flatnonzero((np.diff(rows, prepend=-1) != 0) | (np.diff(types, prepend=-1) != 0))
    rows, types, counts = rows[starts], types[starts], np.diff(starts, append=len(cycles))
    longest = np.maximum.reduceat(cycles, starts)
    mean = np.add.reduceat(cycles, starts, dtype=np.int64) / counts
    columns = {
        "compute_set": rows,
        "name": data.column("compute_sets", "name")[rows],
        "vertex_type": data.column("vertex_types", "name")[types],
        "vertices": counts,
        "min_cycles": np.minimum.reduceat(cycles, starts),
        "mean_cycles": mean,
        "max_cycles": longest,
        "balance": mean / longest,
    }
    return largest_first(columns, "max_cycles")


@analysis("step name tile ipu cycles:cycles active_cycles:cycles over_mean")
def slowest_tiles(report: Report, *, step: int | None = None, count: int = 10) -> Columns:
    """Return which tiles an executed step waits for: without `step`, the longest that is no sync.

    `cycles` of each tile, the most first, and `over_mean` as the ratio to the mean of all tiles.
    For compute, `active_cycles` are those in which a vertex was run; for an exchange, bytes
    received and sent. A sync has no cycles by tile, and no rows. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    if step is None:
        waits = phases(report) == PHASES.index(SYNC)
        step = (
            int(np.where(waits, -1, data.column("steps", "cycles")).argmax()) if len(waits) else 0
        )
    step = chosen("step", step, data.length("steps"))
    values = _cycles_of_step(report, step)
    cycles = values["cycles"]
    tiles = np.argsort(-cycles, kind="stable")[: rows_wanted(count)]
    program = data.column("steps", "program")[step : step + 1]
    return {
        "step": np.full(len(tiles), step),
        "name": np.repeat(labels(report, program), len(tiles)),
        "tile": tiles,
        "ipu": tiles // max(int(data.value("target", "tiles_per_ipu")), 1),
        **{name: of[tiles] for name, of in values.items()},
        "over_mean": cycles[tiles] / (cycles.mean() if cycles.any() else 1.0),
    }


def _cycles_of_step(report: Report, step: int) -> dict[str, Any]:
    """Return the row of a step's program by tile; nothing for a sync."""
    data = report.dataset
    program = int(data.column("steps", "program")[step])
    tag = data.texts("programs", "type")[program] if program >= 0 else ""
    if tag not in OPERANDS:
        return {"cycles": np.zeros(0, dtype=np.int64)}
    column, name = OPERANDS[tag]
    row = int(data.column("programs", column)[program])
    if tag == "OnTileExecute":
        names = {
            "cycles": f"{name}_cycles_by_tile",
            "active_cycles": f"{name}_active_cycles_by_tile",
        }
    else:
        names = {
            "cycles": f"{name}_cycles",
            "bytes_received": f"{name}_bytes_received",
            "bytes_sent": f"{name}_bytes_sent",
        }
    return {key: data.row(array, row) for key, array in names.items()}


@analysis(
    "tile ipu compute:cycles exchange:cycles host_exchange:cycles busy:cycles waiting:cycles "
    "busy_share:fraction"
)
def cycles_by_tile(report: Report) -> Columns:
    """Return what each tile did with the cycles of the recorded runs, the busiest tile first.

    `compute`, `exchange` (on and between IPUs) and `host_exchange` make up `busy`; `waiting`
    is the rest of all cycles: in syncs, and for the end of the run. `busy_share` is of all cycles.
    Raises NotRecordedError.
    """
    data = report.dataset
    parts = _busy_by_tile(report)
    busy = sum(parts.values(), np.zeros(tile_count(report), dtype=np.int64))
    total = int(data.value("execution", "cycles"))
    tiles = np.arange(len(busy))
    columns = {
        "tile": tiles,
        "ipu": tiles // max(int(data.value("target", "tiles_per_ipu")), 1),
        **parts,
        "busy": busy,
        "waiting": total - busy,
        "busy_share": busy / max(total, 1),
    }
    return largest_first(columns, "busy")


def _busy_by_tile(report: Report) -> dict[str, Integers]:
    """Add up the rows of programs, by how often each was executed, to cycles by tile."""
    data = report.dataset
    counts = executions(report)
    types = data.texts("programs", "type")
    parts: dict[str, Integers] = {}
    for part, tags in _TILE_COLUMNS.items():
        spent = np.zeros(tile_count(report), dtype=np.int64)
        for tag in tags:
            _, name = OPERANDS[tag]
            if int(counts[types == tag].sum()):
                array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
                cycles = data.array(array)
                spent = spent + executions_of_rows(report, tag, len(cycles)) @ cycles
        parts[part] = spent
    return parts


@analysis(
    "ipu tiles compute_share:fraction exchange_share:fraction host_exchange_share:fraction "
    "waiting_share:fraction busiest_tile busiest_share:fraction"
)
def cycles_by_ipu(report: Report) -> Columns:
    """Return which IPU works most: the share of its tiles' cycles in each phase, busiest IPU first.

    Shares are of all cycles of the recorded runs on all tiles of the IPU and add up to 1;
    `waiting_share` is syncs and the end of runs. `busiest_tile` is busy for `busiest_share`.
    A program whose IPUs take turns shows here. Raises NotRecordedError.
    """
    of_tile = cycles_by_tile(report).arrays
    total = max(int(report.dataset.value("execution", "cycles")), 1)
    # The rows are sorted by what is busy: the first of an IPU is its busiest tile.
    ipus, busiest, place, tiles = np.unique(
        of_tile["ipu"], return_index=True, return_inverse=True, return_counts=True
    )
    shares = {
        f"{name}_share": np.bincount(place, weights=of_tile[name]) / tiles / total
        for name in (*_TILE_COLUMNS, "waiting")
    }
    columns = {
        "ipu": ipus,
        "tiles": tiles,
        **shares,
        "busiest_tile": of_tile["tile"][busiest],
        "busiest_share": of_tile["busy_share"][busiest],
    }
    return rows_of(columns, np.argsort(shares["waiting_share"], kind="stable"))


@analysis("sync_type after syncs cycles:cycles share:fraction")
def sync_waits(report: Report) -> Columns:
    """Return what syncs cost, by the program that the tiles come from, the most cycles first.

    `cycles` is by how many the `syncs` that follow the program `after` made the recorded runs
    longer: the way to the farthest tile and back, for each of them. `share` is of the cycles of all
    steps. Waiting for the slowest tile of `after` is a matter of `tile_balance`. Raises
    NotRecordedError.
    """
    data = report.dataset
    spent = elapsed(report)
    is_sync = phases(report) == PHASES.index(SYNC)
    places = np.flatnonzero(is_sync)
    last = np.maximum.accumulate(np.where(is_sync, -1, np.arange(len(spent))))[places]
    run, programs = (data.column("steps", name) for name in ("run", "program"))
    in_run = (last >= 0) & (run[last] == run[places])
    after, programs = np.unique(np.where(in_run, programs[last], -1), return_inverse=True)
    texts = np.where(after >= 0, labels(report, after), "(begin of the run)")
    names, name_of = np.unique(texts, return_inverse=True)
    _, example, code = np.unique(
        data.column("steps", "sync_type")[places], return_index=True, return_inverse=True
    )
    types, type_of = np.unique(
        data.texts("steps", "sync_type")[places][example], return_inverse=True
    )
    one, other = type_of[code], name_of[programs]
    pairs, place = np.unique(one * len(names) + other, return_inverse=True)
    cycles = np.bincount(place, weights=spent[places], minlength=len(pairs)).astype(np.int64)
    columns = {
        "sync_type": types[pairs // max(len(names), 1)],
        "after": names[pairs % max(len(names), 1)],
        "syncs": np.bincount(place, minlength=len(pairs)),
        "cycles": cycles,
        "share": cycles / max(int(spent.sum()), 1),
    }
    return largest_first(columns, "cycles")
