"""Who arrives at a sync last: computations whose cycles are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva import Report
from pva.analysis.selection import SelectionError
from pva.analysis.waiting.segments import joins_of
from pva.analysis.waiting.sync_arrivals import arrivals
from tests.analysis.samples import NAMES, opened
from tests.shared_work import THREADS, TILES, report_of

WITHOUT_SMALL = [name for name in NAMES if name != "small"]  # whose clocks are made up


def sync_after(report: Report, name: str) -> int:
    """Return the first external sync behind a step."""
    data = report.dataset
    names = data.column("programs", "name")[data.column("steps", "program")]
    (step,) = np.flatnonzero(names == name)
    joins = joins_of(report)
    return int(joins.step[(joins.step > step) & joins.external][0])


def test_the_tile_that_works_longest_arrives_last(tmp_path: Path) -> None:
    report = report_of(tmp_path, [(0, "a", 1000), (1, "b", 1000), (1, "c", 10)], in_turn=True)
    frame = arrivals(report, step=sync_after(report, "a"))
    assert frame["ipu"].tolist() == [0, 1]
    assert (frame["tile"][0], frame["name"][0]) == (0, "a")
    assert frame["waits"].tolist() == [0, pytest.approx(1000 * THREADS, rel=0.02)]
    mean = 1000 * THREADS * (TILES - 1) / TILES  # one of four works
    assert frame["mean_wait"].tolist() == [
        pytest.approx(mean, rel=0.02), pytest.approx(1000 * THREADS, rel=0.02),
    ]  # fmt: skip
    second = arrivals(report, step=sync_after(report, "b"))
    assert (second["ipu"][0], second["tile"][0], second["name"][0]) == (1, TILES, "b")


@pytest.mark.parametrize("name", WITHOUT_SMALL)
def test_the_last_of_all_waits_for_nobody_and_no_one_comes_later(name: str) -> None:
    report = opened(name)
    joins = joins_of(report)
    step = int(joins.step[joins.step >= 0][-1])
    frame = arrivals(report, step=step)
    outside = bool(joins.external[joins.step == step][0])
    assert frame["waits"][0] == 0 and (frame["waits"] >= 0).all()
    if outside:
        assert (frame["cycle"] + frame["waits"] == frame["cycle"][0]).all()


def test_what_is_no_sync_has_no_arrivals_and_what_is_not_there_is_refused() -> None:
    report = opened("matmul_chain_tiny")
    kinds = report.dataset.texts("steps", "type")
    assert not len(arrivals(report, step=int((kinds == "OnTileExecute").argmax())))
    with pytest.raises(SelectionError, match="not there"):
        arrivals(report, step=len(kinds))
