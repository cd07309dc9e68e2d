"""The few figures that stand for a report: what is compared first, and what budgets name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pva.analysis.execution.main_runs import main_run
from pva.analysis.execution.totals import execution_overview
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.memory.totals import memory_overview
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report


NO_RUN = "no run was recorded"
RECORDED = "recorded_runs"
RUN_IT = "run the program, with autoReport.executionProfileProgramRunCount above 0"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a report: the field of an analysis, and its unit."""

    unit: str
    analysis: Callable[..., Any]
    field: str
    of_runs: str = ""  # the field that counts runs: nothing, rather than 0, where there is none

    def of(self, report: Report) -> float:
        """Return the number; raises NotRecordedError, also where it is held as unknown."""
        result = self.analysis(report)
        # Documents that do not tell their runs may have the cycles of an execution.
        ran = not self.of_runs or getattr(result, self.of_runs)
        if not (ran or (self.of_runs == RECORDED and result.cycles)):
            raise no_run(report)
        value: float = getattr(result, self.field)
        if not value >= 0:
            raise NotRecordedError(report.path, f"no {self.field} in this report")
        return value


def no_run(report: Report) -> NotRecordedError:
    """Make the error for what only a recorded run can tell."""
    return NotRecordedError(report.path, NO_RUN, RUN_IT)


FIGURES: dict[str, Figure] = {
    "largest_tile": Figure("bytes", memory_overview, "fullest_bytes"),
    "total_memory": Figure("bytes", memory_overview, "total"),
    "tiles_out_of_memory": Figure("", memory_overview, "tiles_out_of_memory"),
    "always_live": Figure("bytes", liveness_overview, "always_live"),
    "max_live": Figure("bytes", liveness_overview, "max_live"),
    "recorded_runs": Figure("", execution_overview, "recorded_runs"),
    "steps": Figure("", execution_overview, "steps"),
    "total_cycles": Figure("cycles", execution_overview, "cycles", RECORDED),
    "tile_balance": Figure("fraction", execution_overview, "tile_balance", RECORDED),
    "run_cycles": Figure("cycles", main_run, "cycles", "runs"),
    "items_per_second": Figure("items/s", main_run, "items_per_second", "runs"),
    "steady_items_per_second": Figure("items/s", main_run, "steady_items_per_second", "runs"),
    "latency": Figure("cycles", main_run, "latency_cycles", "runs"),
    "setup_cycles": Figure("cycles", main_run, "setup_cycles", "setup_runs"),
}


def figures(report: Report) -> dict[str, float]:
    """Return the value of each of FIGURES that the report holds, in their order.

    `largest_tile` is what the fullest tile needs with its gaps; `total_memory` is without gaps.
    `total_cycles` and balance are of the runs recorded step by step, `run_cycles` of all runs of
    the model, without `setup_cycles`.
    """
    values = {}
    for name, figure in FIGURES.items():
        try:
            values[name] = float(figure.of(report))
        except NotRecordedError:
            continue
    return values
