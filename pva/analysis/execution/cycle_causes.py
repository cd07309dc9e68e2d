"""Why the recorded runs are as long as they are: their cycles by cause, which add up to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import PHASES, elapsed, phases, summed
from pva.analysis.columns import analysis
from pva.analysis.table import Columns
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 170  # of its analyses in the catalogue
COMPUTE, EXCHANGE, HOST, SYNC = PHASES
UNEVEN, WITHOUT_WORK, BETWEEN_IPUS = "uneven work", "tiles without work", "exchange between IPUs"
CAUSES = (COMPUTE, UNEVEN, WITHOUT_WORK, EXCHANGE, BETWEEN_IPUS, HOST, SYNC)


@analysis("cause cycles:cycles share:fraction")
def cycles_by_cause(report: Report) -> Columns:
    """Return why the recorded runs are as long as they are: cycles by cause, in a fixed order.

    The cycles by which compute steps made the runs longer have three parts: `compute` is what they
    would take if all tiles shared the work evenly, `tiles without work` what is added by tiles that
    have none of it, `uneven work` by active tiles that have less than the slowest. Then exchange on
    an IPU, between IPUs, with the host, and sync. The rows add up to the cycles of the recorded
    runs; `share` is of these. Raises NotRecordedError without steps.
    """
    cycles = _cycles(report)
    share = cycles / max(int(cycles.sum()), 1)
    return {"cause": list(CAUSES), "cycles": cycles, "share": share}


def _cycles(report: Report) -> Integers:
    data, longer = report.dataset, elapsed(report)
    sums = dict.fromkeys(CAUSES, 0)
    phase = phases(report)
    by_phase = summed(phase, longer, len(PHASES))
    sums |= dict(zip(PHASES, by_phase.tolist(), strict=True))
    between = data.texts("steps", "type") == "GlobalExchange"
    sums[BETWEEN_IPUS] = int(longer[between].sum())
    sums[EXCHANGE] -= sums[BETWEEN_IPUS]
    computes = phase == PHASES.index(COMPUTE)
    total = longer[computes]
    even, active = (
        np.nan_to_num(data.column("steps", name)[computes], nan=1.0).clip(0, 1)
        for name in ("tile_balance", "active_tile_balance")
    )
    # Rounded once, on the sums, so that no cycle is lost.
    shared = round(float(total @ even))
    of_active = round(float(total @ np.maximum(1 - active, 0)))
    sums[COMPUTE], sums[UNEVEN] = shared, of_active
    sums[WITHOUT_WORK] = int(total.sum()) - shared - of_active
    return np.array([sums[cause] for cause in CAUSES], dtype=np.int64)
