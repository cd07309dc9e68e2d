"""When things happen: the longest steps, what varies, what overlaps, what lies between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import (
    PHASES,
    elapsed,
    executions_of_rows,
    labels,
    phases,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.execution.totals import device_microseconds
from pva.analysis.selection import chosen, program_texts, rows_wanted
from pva.analysis.spans import common, length, merged
from pva.analysis.table import Columns, largest_first, rows_of
from pva.array_types import Floats, Integers

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
def varying_programs(report: Report) -> Columns:
    """Return which programs take a different time each time; no rows when none does.

    The least, mean and most cycles of a program's steps, and the step with the most. Compute varies
    with data; a sync with how far apart its tiles are. `spread_cycles` is what all `executions`
    cost above the least one, the most first. Raises NotRecordedError.
    """
    data = report.dataset
    data.column("programs", "name")  # without programs, those of steps may be any numbers
    cycles = data.column("steps", "cycles")
    steps = np.flatnonzero(cycles >= 0)
    cycles, place = cycles[steps], data.column("steps", "program")[steps] + 1  # -1 for none
    counts = np.bincount(place)
    programs = np.flatnonzero(counts)
    least, most = np.full((2, len(counts)), cycles.max(initial=0), dtype=np.int64)
    most[:] = 0
    np.minimum.at(least, place, cycles)
    np.maximum.at(most, place, cycles)
    longest = np.zeros(len(counts), dtype=np.int64)
    hits = np.flatnonzero(cycles == most[place])[::-1]  # the first one is written last
    longest[place[hits]] = steps[hits]
    total = summed(place, cycles, len(counts))
    counts, least, most, longest, total = (
        column[programs] for column in (counts, least, most, longest, total)
    )
    programs, spread = programs - 1, total - counts * least
    types, _ = program_texts(report, programs)
    columns = {
        "program": programs,
        "type": types,
        "name": labels(report, programs),
        "executions": counts,
        "min_cycles": least,
        "mean_cycles": total / np.maximum(counts, 1),
        "max_cycles": most,
        "longest_step": longest,
        "spread_cycles": spread,
    }
    return largest_first(rows_of(columns, spread > 0), "spread_cycles")


@analysis(
    "compute_set name executions estimated_cycles:cycles mean_cycles:cycles min_cycles:cycles "
    "max_cycles:cycles measured_cycles:cycles excess_cycles:cycles"
)
def estimated_against_measured(report: Report) -> Columns:
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
    excess = runs * (spent - estimated)
    columns = {
        "compute_set": np.arange(len(estimated)),
        "name": names,
        "executions": runs,
        "estimated_cycles": estimated,
        "mean_cycles": mean,
        "min_cycles": least,
        "max_cycles": most,
        "measured_cycles": measured,
        "excess_cycles": excess,
    }
    order = np.lexsort((-runs * estimated, -np.abs(excess)))
    return rows_of(columns, order[runs[order] > 0])


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
    "run name gap_microseconds:µs gap_share:fraction run_microseconds:µs device_microseconds:µs",
    name="name of the run",
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
def overlap(report: Report) -> Columns:
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
    of_ipu, busy_io, busy_compute, both = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    columns = {
        "ipu": of_ipu,
        "io_cycles": busy_io,
        "compute_cycles": busy_compute,
        "both_cycles": both,
        "hidden_share": both / np.maximum(busy_io, 1),
    }
    return rows_of(columns, np.argsort(both - busy_io, kind="stable"))


_AT_ONCE = ("host exchange", "compute")
