"""Where the cycles go. Tile cycles count each tile: ten tiles busy for ten cycles are a hundred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import PHASES, elapsed, executions_of_rows, phases, summed
from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.selection import chosen, program_texts, tile_count
from pva.analysis.table import Columns, largest_first
from pva.array_types import Values

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 150  # of its analyses in the catalogue
Cycles = npt.NDArray[np.int64]

ACTIVITIES = (
    "active_compute", "compute", "copy_shared_structure", "do_exchange", "global_exchange",
    "stream_copy", "sync", "idle_at_end",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExecutionOverview(Facts):
    """How the recorded runs spent their cycles. Shares and balances are fractions of 1.

    `time_shares` are of `cycles`, by the kind of step that was being run; the other shares are of
    all tile cycles (`cycles` * tiles). `tile_balance` is the share of compute, idle threads
    included; `thread_balance` how much of that the threads were active.
    """

    cycles: int
    seconds: float
    runs: int
    recorded_runs: int
    steps: int
    time_shares: dict[str, float]
    tile_cycles: dict[str, int]
    compute_share: float
    exchange_share: float
    host_share: float
    sync_share: float
    idle_share: float
    tile_balance: float
    thread_balance: float


@analysis(
    "cycles:cycles seconds:s runs recorded_runs steps time_shares:fraction "
    "tile_cycles:tile-cycles compute_share:fraction exchange_share:fraction host_share:fraction "
    "sync_share:fraction idle_share:fraction tile_balance:fraction thread_balance:fraction"
)
def execution_overview(report: Report) -> ExecutionOverview:
    """Return how long the recorded runs took and what the tiles did in that time.

    Cycles, seconds and fractions of 1; runs not recorded in full are counted and no more. Documents
    may have neither runs nor steps: `runs` is then 0, and `time_shares` is empty. Raises
    NotRecordedError.
    """
    data = report.dataset
    cycles = int(data.value("execution", "cycles"))
    spent = {name: int(data.value("tile_cycles", name)) for name in ACTIVITIES}
    all_cycles = cycles * tile_count(report)
    exchange = spent["do_exchange"] + spent["global_exchange"] + spent["copy_shared_structure"]
    recorded = np.zeros(0, dtype=bool)
    if data.has("runs"):
        recorded = data.column("runs", "end_step") > data.column("runs", "first_step")
    return ExecutionOverview(
        cycles=cycles,
        seconds=_fraction(cycles, float(data.value("target", "clock_frequency"))),
        runs=len(recorded),
        recorded_runs=int(recorded.sum()),
        steps=data.length("steps"),
        time_shares=_time_shares(report) if data.has("steps") else {},
        tile_cycles=spent,
        compute_share=_fraction(spent["compute"], all_cycles),
        exchange_share=_fraction(exchange, all_cycles),
        host_share=_fraction(spent["stream_copy"], all_cycles),
        sync_share=_fraction(spent["sync"], all_cycles),
        idle_share=_fraction(spent["idle_at_end"], all_cycles),
        tile_balance=_fraction(spent["compute"], all_cycles),
        thread_balance=_fraction(spent["active_compute"], spent["compute"]),
    )


def _time_shares(report: Report) -> dict[str, float]:
    """Share the time out among the kinds of step, the overlapped part to the earlier step."""
    cycles = summed(phases(report), elapsed(report), len(PHASES))
    shares = {
        phase: _fraction(spent, float(cycles.sum()))
        for phase, spent in zip(PHASES, cycles.tolist(), strict=True)
    }
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _fraction(part: float, total: float) -> float:
    """Divide, nothing of nothing being 0."""
    return part / total if total else 0.0


@analysis("vertex_type instances cycles_once:cycles cycles:cycles share:fraction")
def cycles_by_vertex_type(report: Report) -> Columns:
    """Return the active cycles of each vertex type in the recorded runs, most first.

    `instances` are the vertices of the type in the graph and `cycles_once` what they take when each
    of them runs once, whether or not the program ran them: the table of the profile summary.
    Raises NotRecordedError.
    """
    return vertex_type_columns(report)


def vertex_type_columns(report: Report) -> dict[str, Values]:
    """Return the columns of `cycles_by_vertex_type`, for which nothing imports pandas."""
    data = report.dataset
    cycles: Cycles = data.array("compute_set_active_cycles_by_vertex_type")
    spent: Cycles = executions_of_rows(report, "OnTileExecute", len(cycles)) @ cycles
    names = data.column("vertex_types", "name")
    types, counts = (data.column("compute_set_vertices", c) for c in ("vertex_type", "count"))
    instances = np.zeros(len(names), dtype=np.int64)
    np.add.at(instances, types, counts)
    columns = {
        "vertex_type": names,
        "instances": instances,
        "cycles_once": cycles.sum(axis=0),
        "cycles": spent,
        "share": spent / max(int(spent.sum()), 1),
    }
    order = np.argsort(-spent, kind="stable")
    return {name: values[order] for name, values in columns.items()}


@analysis(
    "vertex_type instances cycles:cycles",
    instances="vertices that the step runs",
    cycles="active cycles of all of them together",
)
def vertices_of_step(report: Report, *, step: int) -> Columns:
    """Return the vertex types that an executed step runs, with active cycles, most first.

    No rows for a step that does not compute. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    programs = data.column("steps", "program")
    program = int(programs[chosen("step", step, len(programs))])
    compute_set = int(data.column("programs", "compute_set")[program]) if program >= 0 else -1
    names = ("vertex_type", "instances", "cycles")
    if compute_set < 0:
        return {name: values[:0] for name, values in compute_set_columns(report).items()
                if name in names}  # fmt: skip
    columns = compute_set_columns(report, compute_set=compute_set)
    return {name: columns[name] for name in names}


@analysis("compute_set name vertex_type instances cycles:cycles")
def vertices_by_compute_set(report: Report, *, compute_set: int | None = None) -> Columns:
    """Return the vertices of each compute set, or of one, by type, with their active cycles.

    Cycles are those of one execution, those in which a vertex was run, summed over the tiles;
    within a compute set the most come first. Raises SelectionError, NotRecordedError.
    """
    return compute_set_columns(report, compute_set=compute_set)


def compute_set_columns(
    report: Report, *, compute_set: int | None = None
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the columns of `vertices_by_compute_set`, for which nothing imports pandas."""
    data = report.dataset
    names = ("compute_set", "vertex_type", "count")
    rows, types, counts = (data.column("compute_set_vertices", name) for name in names)
    if compute_set is not None:
        row = chosen("compute set", compute_set, len(data.column("compute_sets", "name")))
        of_set = rows == row
        rows, types, counts = rows[of_set], types[of_set], counts[of_set]
    columns = {
        "compute_set": rows,
        "name": data.column("compute_sets", "name")[rows],
        "vertex_type": data.column("vertex_types", "name")[types],
        "instances": counts,
        "cycles": data.array("compute_set_active_cycles_by_vertex_type")[rows, types],
    }
    order = np.lexsort((-columns["cycles"], rows))
    return {name: values[order] for name, values in columns.items()}


@analysis("program type name executions cycles:cycles share:fraction mean_tile_balance:fraction")
def cycles_by_program(report: Report) -> Columns:
    """Return by how many cycles each program made the recorded runs longer, most first.

    What a step hides behind earlier ones does not count; `share` is of the cycles of all runs, and
    `mean_tile_balance` of its steps. Raises NotRecordedError.
    """
    data = report.dataset
    rows, place = np.unique(data.column("steps", "program"), return_inverse=True)
    executions = np.bincount(place, minlength=len(rows))
    longer = summed(place, elapsed(report), len(rows))
    balance = data.column("steps", "tile_balance")
    measured_steps = ~np.isnan(balance)
    measured = np.bincount(place[measured_steps], minlength=len(rows))
    balances = np.bincount(
        place[measured_steps], weights=balance[measured_steps], minlength=len(rows)
    )
    types, names = program_texts(report, rows)
    columns = {
        "program": rows,
        "type": types,
        "name": names,
        "executions": executions,
        "cycles": longer,
        "share": longer / max(int(data.value("execution", "cycles")), 1),
        "mean_tile_balance": np.where(measured > 0, balances / np.maximum(measured, 1), np.nan),
    }
    return largest_first(columns, "cycles")


@analysis(
    "step run name type sync_type program cycles:cycles cycles_from:cycles cycles_to:cycles "
    "cycles_overlapped:cycles active_tiles tile_balance:fraction active_tile_balance:fraction "
    "thread_balance:fraction total_data:bytes data_balance:fraction"
)
def steps(report: Report, *, run: int | None = None) -> Columns:
    """Return the executed steps in order, of all recorded runs or one; -1 for what is unknown.

    Columns are those of the table of steps, with the name of the program. Raises SelectionError,
    NotRecordedError.
    """
    return step_columns(report, run=run)


def step_columns(
    report: Report, *, run: int | None = None
) -> dict[str, npt.NDArray[np.generic] | list[str]]:
    """Return the columns of `steps`, for which nothing imports pandas."""
    data = report.dataset
    first, stop = 0, data.length("steps")
    if run is not None:
        row = chosen("run", run, len(data.column("runs", "name")))
        first, stop = (int(data.column("runs", name)[row]) for name in ("first_step", "end_step"))
    table = {name: values[first:stop] for name, values in data.table("steps").items()}
    types = data.texts("steps", "type")[first:stop]
    syncs = data.texts("steps", "sync_type")[first:stop]
    _, names = program_texts(report, table["program"])
    return {
        "step": np.arange(first, stop),
        "run": table["run"],
        "name": names,
        **(table | {"type": types, "sync_type": syncs}),
    }


@analysis(
    "run name program first_step end_step cycles_from:cycles cycles:cycles "
    "start_microseconds:µs end_microseconds:µs trace_begin:ns trace_end:ns items batches stages "
    "steps recorded device_microseconds:µs",
    name="name of the run",
)
def runs(report: Report) -> Columns:
    """Assign each run of the program: cycles, time on the device, and whether its steps are there.

    Times in microseconds, of the host since the epoch, and of the device by its clock. On a CPU
    cycles are -1, and the time on the device is not a number. Raises NotRecordedError.
    """
    data = report.dataset
    table = data.table("runs")
    recorded = table["end_step"] > table["first_step"]
    return {
        "run": np.arange(len(recorded)),
        **table,
        "steps": table["end_step"] - table["first_step"],
        "recorded": recorded,
        "device_microseconds": device_microseconds(report),
    }


@dataclass(frozen=True, slots=True)
class RunTotals:
    """How many runs have a time on the device, with their cycles and seconds."""

    runs: int
    cycles: int
    seconds: float


def total_of_runs(report: Report) -> RunTotals:
    """Sum up the runs, whether or not their steps were recorded; none where the report has none."""
    if not (report.dataset.has("runs") and report.dataset.has("target")):
        return RunTotals(0, 0, 0.0)
    timed = runs(report).frame().dropna(subset="device_microseconds")
    seconds = float(timed["device_microseconds"].sum()) / 1e6
    return RunTotals(len(timed), int(timed["cycles"].sum()), seconds)


@analysis("name runs cycles:cycles device_microseconds:µs", name="name of the runs")
def other_runs(report: Report) -> Columns:
    """Sum up the runs made while profiling was disabled, by name, in the order of the first.

    Such are PopART's that move weights, seeds and what an optimiser needs. No other figure counts
    their cycles. On a CPU cycles are -1, and the time is not a number. Raises NotRecordedError.
    """
    by_name = other_runs_by_name(report)
    number = {name: place for place, name in enumerate(by_name)}
    names = report.dataset.column("other_runs", "name").tolist()
    group = np.array([number[name] for name in names], dtype=np.int64)
    times = device_microseconds(report, "other_runs")
    timed = ~np.isnan(times)
    sums = np.bincount(group[timed], weights=times[timed], minlength=len(by_name))
    counts = np.bincount(group[timed], minlength=len(by_name))
    return {
        "name": np.array([*by_name], object),
        "runs": np.array([runs for runs, _ in by_name.values()], np.int64),
        "cycles": np.array([cycles for _, cycles in by_name.values()], np.int64),
        "device_microseconds": np.where(counts > 0, sums, np.nan),
    }


def other_runs_by_name(report: Report) -> dict[str, tuple[int, int]]:
    """Count the runs made while profiling was disabled, and their cycles; -1 where one has none.

    In the order of the first of each name. Raises NotRecordedError.
    """
    data = report.dataset
    names, cycles = (data.column("other_runs", name).tolist() for name in ("name", "cycles"))
    sums: dict[str, tuple[int, int]] = {}
    for name, spent in zip(names, cycles, strict=True):
        runs, together = sums.get(name, (0, 0))
        sums[name] = runs + 1, -1 if min(spent, together) < 0 else together + spent
    return sums


def device_microseconds(report: Report, table: str = "runs") -> npt.NDArray[np.float64]:
    """Return how long each run took by the clock of the tiles; not a number where it is unknown."""
    cycles = report.dataset.column(table, "cycles")
    clock = float(report.dataset.value("target", "clock_frequency")) or np.inf
    with np.errstate(over="ignore"):  # a file may tell any clock
        return np.where(cycles >= 0, cycles, np.nan) / clock * 1e6
