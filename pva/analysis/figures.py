"""The few figures that stand for a report: what is compared first, and what budgets name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pva.analysis.execution import execution_overview
from pva.analysis.liveness import liveness_overview
from pva.analysis.memory import memory_overview
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report


NO_RUN = "no run was recorded"
RUN_IT = "run the program, with autoReport.executionProfileProgramRunCount above 0"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a report: the field of an analysis, and its unit."""

    unit: str
    analysis: Callable[..., Any]
    field: str
    of_runs: bool = False  # nothing, rather than 0, where no run was recorded

    def of(self, report: Report) -> float:
        """Give the number; raises NotRecordedError, also where it is held as unknown."""
        found = self.analysis(report)
        if self.of_runs and not (found.recorded_runs or found.cycles):
            raise no_run(report)
        value: float = getattr(found, self.field)
        if value < 0:
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
    "total_cycles": Figure("cycles", execution_overview, "cycles", of_runs=True),
    "tile_balance": Figure("fraction", execution_overview, "tile_balance", of_runs=True),
}


def figures(report: Report) -> pd.DataFrame:
    """Give those of FIGURES that the report holds: figure, unit, value.

    `largest_tile` is what the fullest tile needs with its gaps; `total_memory` is without gaps.
    Cycles and balance are of the recorded runs.
    """
    import pandas as pd

    rows = []
    for name, figure in FIGURES.items():
        try:
            rows.append((name, figure.unit, float(figure.of(report))))
        except NotRecordedError:
            continue
    return pd.DataFrame(rows, columns=["figure", "unit", "value"])
