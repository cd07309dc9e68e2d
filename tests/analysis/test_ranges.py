"""Ranges of the execution of the small report, worked out by step; executions of a step."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.execution.ranges import (
    range_by_ipu,
    range_by_program,
    step_executions,
    tile_cycles_of_step,
)
from pva.analysis.execution.totals import execution_overview
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError
from pva.report import Report
from tests.builders import TRACE, small_report

REPORT = Report.of(small_report())
DATA = REPORT.dataset
EDGES = (
    int(DATA.column("steps", "cycles_from").min()),
    int(DATA.column("steps", "cycles_to").max()),
)


@pytest.mark.parametrize("window", [(0, 4000), (37, 511), (100, 101)])
def test_programs_of_a_range_take_what_their_steps_have_in_it(window: tuple[int, int]) -> None:
    expected: dict[int, int] = {}
    columns = (
        DATA.column("steps", name).tolist() for name in ("program", "cycles_from", "cycles_to")
    )
    for program, begin, end in zip(*columns, strict=True):
        inside = min(end, window[1]) - max(begin, window[0])
        if end > window[0] and begin < window[1]:
            expected[program] = expected.get(program, 0) + max(inside, 0)
    frame = range_by_program(REPORT, begin=window[0], end=window[1])
    assert dict(zip(frame["program"], frame["cycles"], strict=True)) == expected
    assert frame["share"].tolist() == pytest.approx(frame["cycles"] / (window[1] - window[0]))


def test_shares_of_all_cycles_are_those_of_the_overview() -> None:
    frame, overview = range_by_ipu(REPORT), execution_overview(REPORT)
    cycles = EDGES[1] - EDGES[0]
    shares = frame[["compute", "exchange", "host_exchange"]].mean().to_numpy() * cycles
    wanted = [overview.compute_share, overview.exchange_share, overview.host_share]
    assert shares == pytest.approx(np.array(wanted) * overview.cycles, rel=1e-9)


def test_bytes_of_all_cycles_are_those_of_the_steps_of_each_ipu() -> None:
    frame = range_by_ipu(REPORT)
    rows = DATA.table("steps_by_ipu")
    host = DATA.texts("steps", "type")[rows["step"]] == "StreamCopy"
    for ipu, found in zip(frame["ipu"], frame["stream_bytes_in"], strict=True):
        assert found == rows["bytes_in"][host & (rows["ipu"] == ipu)].clip(0).sum()


@pytest.mark.parametrize(("sync", "kind"), [("Internal", "remote"), ("External", "stream")])
def test_a_copy_behind_an_internal_sync_is_with_a_remote_buffer(sync: str, kind: str) -> None:
    steps = {name: values.copy() for name, values in DATA.table("steps").items()}
    copies = np.flatnonzero(DATA.texts("steps", "type") == "StreamCopy")
    before = np.setdiff1d(copies - 1, copies)
    steps["type"][before] = DATA.words("steps", "type").index("Sync")
    steps["sync_type"][before] = DATA.words("steps", "sync_type").index(sync)
    frame = range_by_ipu(Report.of(small_report(steps=steps)))
    rows = DATA.table("steps_by_ipu")
    moved = rows["bytes_out"][np.isin(rows["step"], copies)].clip(0).sum()
    assert moved > 0 and frame[f"{kind}_bytes_out"].sum() == moved
    assert frame[["stream_bytes_out", "remote_bytes_out"]].to_numpy().sum() == moved


def test_programs_that_were_not_recorded_are_told_before_their_numbers_are_looked_at() -> None:
    steps = dict(DATA.table("steps"))
    steps["program"] = np.full(len(steps["program"]), 1 << 50)
    report = Report.of(small_report(steps=steps, programs=None))
    with pytest.raises(NotRecordedError, match="programs not recorded"):
        range_by_program(report)


def test_a_range_without_steps_is_waiting() -> None:
    frame = range_by_ipu(REPORT, begin=EDGES[1] + 10, end=EDGES[1] + 20)
    assert frame["waiting"].tolist() == [1.0, 1.0]
    assert frame["tile_balance"].isna().all()
    assert not len(range_by_program(REPORT, begin=EDGES[1] + 10, end=EDGES[1] + 20))


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (100, 50, "cycles 100 to 50: the end is before the begin"),
        (2000, None, "cycles 2,000 to 1,024: the end is before the begin"),
        (2**63, None, "cycle 9,223,372,036,854,775,808: not there; the execution ends at"),
        (0, 10**20, "cycle 100,000,000,000,000,000,000: not there"),
    ],
)
def test_a_range_that_cannot_be_is_refused(begin: int, end: int | None, words: str) -> None:
    for analysis in (range_by_ipu, range_by_program):
        with pytest.raises(SelectionError, match=words):
            analysis(REPORT, begin=begin, end=end)


def varied(cycles: list[int]) -> Report:
    """Return a report whose steps of the first program of the trace take these cycles."""
    steps = dict(DATA.table("steps"))
    places = np.flatnonzero(steps["program"] == TRACE[1])[: len(cycles)]
    changed, program = steps["cycles"].copy(), np.full(len(steps["program"]), TRACE[0])
    program[places], changed[places] = TRACE[1], cycles
    return Report.of(small_report(steps=steps | {"cycles": changed, "program": program}))


def test_executions_of_a_step_are_summed_up() -> None:
    found = step_executions(varied([10, 30]), step=1)
    assert (found.count, found.mean, found.p50) == (2, 20.0, 20.0)
    assert found.p95 == pytest.approx(29.0)
    assert (found.least, found.most, found.longest, found.outliers) == (10, 30, 13, ())


def test_an_execution_far_from_the_others_is_an_outlier() -> None:
    steps = dict(DATA.table("steps"))
    same = {"program": 0 * steps["program"] + TRACE[0], "cycles": 0 * steps["cycles"] + 9}
    same["cycles"][[3, 7]] = 4, 5000
    found = step_executions(Report.of(small_report(steps=steps | same)), step=0)
    assert found.outliers == (7, 3)


def test_cycles_of_a_step_by_tile_are_the_row_of_its_program() -> None:
    types = DATA.texts("steps", "type")
    step = int(np.flatnonzero(types == "OnTileExecute")[0])
    compute_set = DATA.column("programs", "compute_set")[DATA.column("steps", "program")[step]]
    frame = tile_cycles_of_step(REPORT, step=step)
    row = DATA.array("compute_set_cycles_by_tile")[compute_set]
    assert frame["cycles"].tolist() == row.tolist()
    assert frame["ipu"].max() == 1
    sync = int(np.flatnonzero(types == "Sync")[0])
    assert not len(tile_cycles_of_step(REPORT, step=sync))


def test_steps_that_are_not_there_are_refused() -> None:
    with pytest.raises(SelectionError, match="the report has steps 0 to 23"):
        step_executions(REPORT, step=24)
