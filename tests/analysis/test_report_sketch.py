"""A report in a few numbers: tiles, phases and liveness, against the tables they come from."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis import cycles_by_phase, liveness_curve, report_sketch
from tests.analysis.samples import every_report, opened, small


@every_report
@pytest.mark.parametrize("count", [1, 7, 1 << 20])
def test_stretches_show_the_highest_in_them(name: str, count: int) -> None:
    report = opened(name)
    frame = report_sketch(report, count=count).set_index("part")
    values = {
        "memory": report.dataset.column("memory_by_tile", "total_including_gaps"),
        "liveness": liveness_curve(report)["total"].to_numpy(),
    }
    for part, of in values.items():
        first = [*frame.loc[[part], "first"].tolist(), len(of)]
        assert first[0] == 0 and len(first) - 1 == min(count, len(of))
        most = [of[a:b].max() for a, b in zip(first, first[1:], strict=False)]
        assert frame.loc[[part], "amount"].tolist() == most


@every_report
def test_phases_add_up_to_the_runs(name: str) -> None:
    frame = report_sketch(opened(name))
    phases = frame[frame["part"] == "phase"]
    assert phases["amount"].sum() == cycles_by_phase(opened(name))["cycles"].sum()
    assert np.isclose(phases["share"].sum(), 1)


def test_parts_that_were_not_recorded_have_no_rows() -> None:
    frame = report_sketch(small(steps=None))
    assert set(frame["part"]) == {"memory", "liveness"}
