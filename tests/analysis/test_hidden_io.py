"""What of the exchange with the host is hidden, against a count cycle by cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pva
from pva.analysis.execution.hidden_io import io_tiles_wanted, overlap_io
from pva.analysis.insight_rules import insights
from pva.data.dataset import Dataset
from pva.report import Report
from tests.io_tiles import IO_TILES, NUMBERS, clocks, report_of


def opened(folder: Path, **how: int | bool) -> Report:
    """Return the report of the program with and without I/O tiles."""
    report_of(folder, **how)  # type: ignore[arg-type]
    return pva.openReport(str(folder))


def counted(report: Report) -> tuple[int, int]:
    """Count the cycles in which tiles exchange with the host, and those in which others work."""
    data = report.dataset
    begin, end = clocks(data)
    types = data.texts("steps", "type")
    busy = {kind: np.zeros(int(end.max()), dtype=bool) for kind in ("host", "work")}
    for step in np.flatnonzero(types != "Sync").tolist():
        on = end[step] > begin[step]
        kind = "host" if types[step].startswith("StreamCopy") else "work"
        if on.any():
            busy[kind][begin[step][on].min() : end[step][on].max()] = True
    return int(busy["host"].sum()), int((busy["host"] & busy["work"]).sum())


@pytest.mark.parametrize("how", [{}, {"work": 0}, {"work": 3}, {"wait": True}])
def test_what_is_hidden_is_what_lies_beneath_work(tmp_path: Path, how: dict[str, int]) -> None:
    report = opened(tmp_path, **how)
    (row,) = overlap_io(report).to_dict("records")
    moved, hidden = counted(report)
    assert (row["io_cycles"], row["hidden_cycles"]) == (moved, hidden)
    assert row["exposed_cycles"] == moved - hidden and row["io_tiles"] == IO_TILES
    assert row["hidden_share"] == hidden / moved


def test_without_io_tiles_nothing_is_hidden(tmp_path: Path) -> None:
    (row,) = overlap_io(opened(tmp_path, io=False)).to_dict("records")
    assert (row["hidden_cycles"], row["io_tiles"]) == (0, 0)


def test_a_run_that_waits_for_the_host_is_told_how_many_io_tiles_would_hide_it(
    tmp_path: Path,
) -> None:
    report = opened(tmp_path / "apart", io=False, work=0)
    found = insights(report).set_index("rule").loc["bound_by_host"]
    assert "With 2 I/O tiles" in found["advice"] and "at most" in found["advice"]
    assert found["show"] == "overlap_io"
    exposed = overlap_io(report)["exposed_cycles"].sum()
    assert 0.95 < found["amount"] / exposed < 1.05 and 0 < found["saving"] <= found["amount"]
    beside = opened(tmp_path / "beside", work=20)
    assert "bound_by_host" not in set(insights(beside)["rule"])


def test_io_tiles_are_as_many_as_hold_what_is_exchanged(tmp_path: Path) -> None:
    report = opened(tmp_path, io=False, work=0)
    tile = report.dataset.value("target", "bytes_per_tile")
    assert tile > NUMBERS * 4 * 3  # numbers twice and their sum: one tile would do, and it is two
    assert io_tiles_wanted(report) == 2


def test_what_waits_on_io_tiles_is_not_said_to_lie_on_few(tmp_path: Path) -> None:
    report = opened(tmp_path, work=0)
    data = report.dataset
    fullest = insights(report).set_index("rule")
    name = str(fullest["what"].get("variable_on_few_tiles", ""))
    assert "waiting" in set(data.column("variables", "name")) and not name.startswith("waiting")
    capacity = {**data.table("target"), "bytes_per_tile": np.array([20_000])}  # of 8,192 each
    small = Report.of(Dataset.joined((Dataset.of({"target": capacity}), data)))
    told = insights(small).set_index("rule")["what"].get("variable_on_few_tiles", "")
    assert not str(told).startswith("waiting")
    none = Dataset.of({"io_tiles": {"tile": np.zeros(0, dtype=np.int64)}})
    apart = Report.of(Dataset.joined((none, small.dataset)))
    assert insights(apart).set_index("rule")["what"]["variable_on_few_tiles"].startswith("waiting")
