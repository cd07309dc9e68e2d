"""When things happen: the longest steps, what varies, what overlaps, what lies between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import PHASES, elapsed, executions_of_rows, labels, phases
from pva.analysis.columns import analysis
from pva.analysis.execution.totals import device_microseconds
from pva.analysis.selection import chosen, program_texts, rows_wanted
from pva.analysis.spans import common, length, merged
from pva.analysis.table import Columns, largest_first
from pva.array_types import Floats, Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 360  # of its analyses in the catalogue


@analysis(
    "step run type name cycles:cycles all_cycles:cycles cycles_from:cycles active_tiles "
    "tile_balance:fraction"
)
def longest_steps(report: Report, *, run: int | None = None, count: int = 20) -> Columns:
    """Return the single executed steps that made the recorded runs, or one, longer by most.

    `cycles` are those by which the run became longer, `all_cycles` include what went on behind
    earlier steps. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    cycles = elapsed(report)
    of_run = np.arange(len(cycles))
    if run is not None:
        row = chosen("run", run, len(data.column("runs", "name")))
        first, end = (int(data.column("runs", name)[row]) for name in ("first_step", "end_step"))
        of_run = of_run[first:end]
    steps = of_run[np.argsort(-cycles[of_run], kind="stable")][: rows_wanted(count)]
    programs = data.column("steps", "program")[steps]
    return {
        "step": steps,
        "run": data.column("steps", "run")[steps],
        "type": data.texts("steps", "type")[steps],
        "name": labels(report, programs),
        "cycles": cycles[steps],
        "all_cycles": data.column("steps", "cycles")[steps],
        "cycles_from": data.column("steps", "cycles_from")[steps],
        "active_tiles": data.column("steps", "active_tiles")[steps],
        "tile_balance": data.column("steps", "tile_balance")[steps],
    }


@analysis(
    "program type name executions min_cycles:cycles mean_cycles:cycles max_cycles:cycles "
    "longest_step spread_cycles:cycles"
)
def varying_programs(report: Report) -> pd.DataFrame:
    """Return which programs take a different time each time; no rows when none does.

    The least, mean and most cycles of a program's steps, and the step with the most. Compute varies
    with data; a sync with how far apart its tiles are. `spread_cycles` is what all `executions`
    cost above the least one, the most first. Raises NotRecordedError.
    """
    data = report.dataset
    cycles = data.column("steps", "cycles")
    rows = np.flatnonzero(cycles >= 0)
    frame = pd.DataFrame({"program": data.column("steps", "program")[rows], "cycles": cycles[rows]})
    frame.index = pd.Index(rows)
    grouped = frame.groupby("program")["cycles"]
    result = grouped.agg(["size", "min", "mean", "max", "sum", "idxmax"]).reset_index()
    programs = result["program"].to_numpy()
    types, _ = program_texts(report, programs)
    table = pd.DataFrame(
        {
            "program": programs,
            "type": types,
            "name": labels(report, programs),
            "executions": result["size"],
            "min_cycles": result["min"],
            "mean_cycles": result["mean"],
            "max_cycles": result["max"],
            "longest_step": result["idxmax"],
            "spread_cycles": result["sum"] - result["size"] * result["min"],
        }
    )
    table = table[table["spread_cycles"] > 0]
    return table.sort_values("spread_cycles", ascending=False, kind="stable", ignore_index=True)


@analysis(
    "compute_set name executions estimated_cycles:cycles mean_cycles:cycles min_cycles:cycles "
    "max_cycles:cycles measured_cycles:cycles excess_cycles:cycles"
)
def estimated_against_measured(report: Report) -> pd.DataFrame:
    """Compare the cycles estimated at compile time with those taken, for each compute set that ran.

    `estimated_cycles` are those of the slowest tile; `mean_cycles`, `min_cycles` and `max_cycles`
    what its steps took; `measured_cycles` what `debug.instrumentCompute` of tiles, IPUs or devices
    saw last, not a number without. `excess_cycles` is what all `executions` took above the
    estimate, the farthest from it first. Without steps, measurements stand in their place: one
    execution of each compute set measured. Raises NotRecordedError when there is neither.
    """
    data = report.dataset
    names = data.column("compute_sets", "name")
    estimated = data.row_maxima("compute_set_cycles_by_tile")
    measured = _measured(report, len(estimated))
    if data.has("steps") or not any(data.has(name) for name in _MEASURED):
        runs, least, mean, most = _taken(report, len(estimated))
    else:
        runs = (measured > 0).astype(np.int64)
        least = mean = most = np.full(len(estimated), np.nan)
    spent = np.where(np.isnan(mean), measured, mean)
    frame = pd.DataFrame(
        {
            "compute_set": np.arange(len(estimated)),
            "name": names,
            "executions": runs,
            "estimated_cycles": estimated,
            "mean_cycles": mean,
            "min_cycles": least,
            "max_cycles": most,
            "measured_cycles": measured,
            "excess_cycles": runs * (spent - estimated),
        }
    )
    frame = frame[frame["executions"] > 0]
    order = pd.DataFrame({"off": frame["excess_cycles"].abs(), "total": runs[frame.index]})
    order["total"] *= frame["estimated_cycles"]
    order = order.sort_values(["off", "total"], ascending=False, kind="stable")
    return frame.loc[order.index].reset_index(drop=True)


def _measured(report: Report, count: int) -> Floats:
    """Return what instrumentation measured of each compute set, not a number for never."""
    data = report.dataset
    for name in _MEASURED:
        if data.has(name):
            cycles = data.array(name)
            cycles = cycles.max(axis=1, initial=0) if cycles.ndim > 1 else cycles
            return np.where(cycles > 0, cycles, np.nan)
    return np.full(count, np.nan)


# By the level of instrumentation: device, IPU or tile.
_MEASURED = (
    "measured_compute_set_cycles",
    "measured_compute_set_cycles_by_ipu",
    "measured_compute_set_cycles_by_tile",
)


def _taken(report: Report, count: int) -> tuple[Integers, Floats, Floats, Floats]:
    """Return how often each compute set ran, and the least, mean and most cycles of its steps."""
    data = report.dataset
    programs = data.column("steps", "program")
    is_run = (data.texts("steps", "type") == "OnTileExecute") & (programs >= 0)
    steps = np.flatnonzero(is_run & (data.column("steps", "cycles") >= 0))
    rows = data.column("programs", "compute_set")[programs[steps]]
    steps, rows = steps[rows >= 0], rows[rows >= 0]
    cycles = data.column("steps", "cycles")[steps].astype(np.float64)
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, rows, cycles)
    np.maximum.at(most, rows, cycles)
    times = np.bincount(rows, minlength=count)
    mean = np.bincount(rows, weights=cycles, minlength=count) / np.maximum(times, 1)
    never = times == 0
    least, mean, most = (np.where(never, np.nan, values) for values in (least, mean, most))
    return executions_of_rows(report, "OnTileExecute", count), least, mean, most


@analysis(
    "run name gap_microseconds:µs gap_share:fraction run_microseconds:µs device_microseconds:µs"
)
def time_between_runs(report: Report) -> Columns:
    """Return how long the device waits for the host before each run, the longest wait first.

    `gap_microseconds` lies between the end of the run before and the begin of this one on the host
    (not a number for the first), without the time of `other_runs` in it; `gap_share` is its part of
    the time from begin to begin. `run_microseconds` is the run as the host saw it,
    `device_microseconds` what its cycles take on the tile clock. In a simulation the host's times
    are those of the simulator. Raises NotRecordedError.
    """
    data = report.dataset
    start, end = (data.column("runs", f"{name}_microseconds") for name in ("start", "end"))
    gaps = np.full(len(start), np.nan)
    gaps[1:] = start[1:] - end[:-1] - _other_time(report, start)[1:]
    period = np.full(len(start), np.nan)
    period[1:] = start[1:] - start[:-1]
    timed = period >= 1e-3  # no clock of a host tells less than a nanosecond
    columns = {
        "run": np.arange(len(start)),
        "name": data.column("runs", "name"),
        "gap_microseconds": gaps,
        "gap_share": np.where(timed, gaps / np.where(timed, period, 1), np.nan),
        "run_microseconds": end - start,
        "device_microseconds": device_microseconds(report),
    }
    return largest_first(columns, "gap_microseconds")


def _other_time(report: Report, start: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how long runs outside the profile took on the host before each run began."""
    data, spent = report.dataset, np.zeros(len(start) + 1)
    if data.has("other_runs"):
        names = ("start_microseconds", "end_microseconds")
        begin, end = (data.column("other_runs", name) for name in names)
        np.add.at(spent, np.searchsorted(start, begin, side="right"), end - begin)
    return spent[:-1]


@analysis("ipu io_cycles:cycles compute_cycles:cycles both_cycles:cycles hidden_share:fraction")
def overlap(report: Report) -> pd.DataFrame:
    """Return how much of the exchange with the host goes on while an IPU computes, by IPU.

    `io_cycles`: cycles in which some tile of the IPU exchanges with the host, from the first begin
    to the last end of each step; `compute_cycles` the same for compute; `both_cycles` are in both.
    `hidden_share` is that of `io_cycles` in both: 1 when all of it is behind compute. The IPU with
    the most exchange that is not hidden first. Raises NotRecordedError.
    """
    data = report.dataset
    ipus, begin, end = (data.column("steps_by_ipu", c) for c in ("ipu", "from_min", "to_max"))
    phase = phases(report)[data.column("steps_by_ipu", "step")]
    phase = np.where((begin >= 0) & (end >= begin), phase, -1)
    rows = []
    for ipu in range(data.of_replica("num_ipus")):
        io, compute = (
            merged(begin[mask], end[mask])
            for mask in ((ipus == ipu) & (phase == PHASES.index(word)) for word in _AT_ONCE)
        )
        rows.append((ipu, length(io), length(compute), common(io, compute)))
    names = ["ipu", "io_cycles", "compute_cycles", "both_cycles"]
    frame = pd.DataFrame.from_records(rows, columns=names)
    frame["hidden_share"] = frame["both_cycles"] / frame["io_cycles"].clip(lower=1)
    exposed = frame["io_cycles"] - frame["both_cycles"]
    order = exposed.sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


_AT_ONCE = ("host exchange", "compute")
