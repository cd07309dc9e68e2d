"""Cycles by cause, against what each step took and its tiles did."""

from __future__ import annotations

import numpy as np

from pva.analysis import cycles_by_cause, cycles_by_phase
from tests.analysis.samples import every_report, executed, longer, opened


@every_report
def test_causes_add_up_to_the_phases(name: str) -> None:
    causes = cycles_by_cause(opened(name)).set_index("cause")["cycles"]
    phases = cycles_by_phase(opened(name)).set_index("phase")["cycles"]
    parts = {
        "compute": ("compute", "uneven work", "tiles without work"),
        "exchange": ("exchange", "exchange between IPUs"),
        "host exchange": ("host exchange",),
        "sync": ("sync",),
    }
    for phase, added in parts.items():
        assert causes[list(added)].sum() == phases[phase]
    assert (causes >= 0).all()


@every_report
def test_compute_is_what_even_work_would_take(name: str) -> None:
    report = opened(name)
    cycles = np.asarray(report.dataset.array("compute_set_cycles_by_tile"))
    even = of_active = 0.0
    for kind, step, row in executed(report):
        if kind == "OnTileExecute" and cycles[row].max() > 0:
            share = longer(step) / cycles[row].max()
            even += share * cycles[row].mean()
            of_active += share * (cycles[row].max() - cycles[row][cycles[row] > 0].mean())
    causes = cycles_by_cause(report).set_index("cause")["cycles"]
    assert abs(causes["compute"] - even) <= 1
    assert abs(causes["uneven work"] - of_active) <= 1
