"""Steady state: a report without the runs that a program makes once, such as those of weights.

A run is set-up where its program ran once and another one ran more often. The steady state has its
cycles among `other_runs`, as PopART's sessions record such runs by themselves; its runs and steps
are numbered anew. Where no run is set-up, a report is its own steady state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import OPERANDS
from pva.analysis.execution.tile_activity import tile_ends
from pva.analysis.selection import SelectionError
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

COUNTED = STEADY, ALL = ("steady", "all")
ACTIVITIES = {
    "OnTileExecute": "compute",
    "DoExchange": "do_exchange",
    "GlobalExchange": "global_exchange",
    "StreamCopy": "stream_copy",
}


def setup_runs(report: Report) -> Integers:
    """Return the rows of `runs` of programs that ran once while another one ran more often."""
    data = report.dataset
    programs = data.column("runs", "program") if data.has("runs") else np.zeros(0, dtype=np.int64)
    _, place, count = np.unique(programs, return_inverse=True, return_counts=True)
    once = count[place.reshape(-1)] == 1
    rows: Integers = np.flatnonzero(once & ~once.all())
    return rows


def steady_state(report: Report) -> Report:
    """Return the report without its set-up runs; the report itself where it has none."""

    def make(_: object) -> Report:
        setup = setup_runs(report)
        if not len(setup):
            return report
        return report.without_runs(setup, lambda: _spent(report, setup))

    return report.dataset.kept("steady state", make)


def counted(report: Report, runs: str) -> Report:
    """Return the report with `steady` or `all` of its runs; raises SelectionError."""
    if runs not in COUNTED:
        raise SelectionError(f"runs {runs}", "not there", f"known: {', '.join(COUNTED)}")
    return steady_state(report) if runs == STEADY else report


def _spent(report: Report, runs: Integers) -> Mapping[str, int]:
    """Add up what the tiles did in some runs, by column of `tile_cycles`."""
    data = report.dataset
    first, stop, cycles = (
        data.column("runs", name)[runs] for name in ("first_step", "end_step", "cycles")
    )
    recorded = np.flatnonzero(stop > first)
    steps = [np.arange(first[row], stop[row]) for row in recorded]
    spent = _in_steps(report, np.concatenate([np.zeros(0, dtype=np.int64), *steps]))
    ends = [tile_ends(report, int(stop[row]) - 1) for row in recorded]
    spent["idle_at_end"] = sum(int((clock.max(initial=0) - clock).sum()) for clock in ends)
    total = int(cycles[recorded].sum()) * data.of_replica("num_tiles")
    spent["sync"] = total - sum(of for name, of in spent.items() if name != "active_compute")
    return {"copy_shared_structure": 0, **spent}


def _in_steps(report: Report, steps: Integers) -> dict[str, int]:
    """Add up tile cycles of steps that are no syncs."""
    data = report.dataset
    programs = data.column("steps", "program")[steps]
    types = np.append(data.texts("programs", "type"), "")[programs]
    spent: dict[str, int] = {}
    for tag, activity in ACTIVITIES.items():
        column, name = OPERANDS[tag]
        rows = data.column("programs", column)[programs[types == tag]]
        arrays = {activity: f"{name}_cycles"}
        if tag == "OnTileExecute":
            active = "compute_set_active_cycles_by_tile"
            arrays = {activity: f"{name}_cycles_by_tile", "active_compute": active}
        for key, array in arrays.items():
            recorded = data.has(array) and len(rows)
            by_row = data.row_sums(array)[rows[rows >= 0]] if recorded else np.zeros(0)
            spent[key] = int(by_row.sum())
    return spent
