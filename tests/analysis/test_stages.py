"""Which IPU bounds a program and what could move: computations whose cycles are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from pva import Report
from pva.analysis.insight_rules import insights
from pva.analysis.waiting.stages import ipu_balance, layer_moves
from tests.analysis.samples import never_run, opened
from tests.shared_work import THREADS, report_of

UNEVEN = [(0, "stem/Run", 1000), (1, "first/Run", 1000), (1, "last/Run", 3000)]


def cycles_of(report: Report) -> int:
    return int(report.dataset.value("execution", "cycles"))


def test_an_ipu_works_but_for_what_it_waits_for_the_others(tmp_path: Path) -> None:
    report = report_of(tmp_path, UNEVEN)
    total, wait = cycles_of(report), 3000 * THREADS
    table = ipu_balance(report)
    assert table["ipu"].tolist() == [1, 0]
    assert table["own_cycles"].tolist() == [total, total - wait]
    assert table["waits"].tolist() == [0, wait / total]
    assert table["waited_for"].tolist() == [1, 0]


def test_the_layer_that_moves_takes_its_part_along(tmp_path: Path) -> None:
    report = report_of(tmp_path, UNEVEN)
    (move,) = layer_moves(report).to_dict("records")
    assert (move["first"], move["last"], move["layers"]) == ("first/Run", "first/Run", 1)
    assert (move["from_ipu"], move["to_ipu"]) == (1, 0)
    total = cycles_of(report)
    assert (move["cycles"], move["longest"]) == (total / 4, total * 3 / 4)
    assert move["saving"] == total / 4


def test_the_last_layers_move_on_and_the_first_ones_back(tmp_path: Path) -> None:
    work = [(0, "a/Run", 50), *((1, f"{name}/Run", 1000) for name in "bcde"), (2, "f/Run", 50)]
    moves = layer_moves(report_of(tmp_path, work))
    best = moves[moves["layers"] == 2].sort_values("to_ipu")
    assert best[["to_ipu", "first", "last"]].to_numpy().tolist() == [
        [0, "b/Run", "c/Run"], [2, "d/Run", "e/Run"],
    ]  # fmt: skip
    assert moves["saving"].tolist() == sorted(moves["saving"], reverse=True)


@pytest.mark.parametrize("work", [[(0, "a/Run", 1000)], [(0, "a/Run", 1000), (1, "b/Run", 1000)]])
def test_even_ipus_have_nothing_to_move(work: list[tuple[int, str, int]], tmp_path: Path) -> None:
    report = report_of(tmp_path, work)
    assert not len(layer_moves(report))
    assert "bound_by_an_ipu" not in insights(report)["rule"].tolist()


def test_insights_name_the_ipu_that_bounds_and_the_layer_to_move(tmp_path: Path) -> None:
    report = report_of(tmp_path, UNEVEN)
    row = insights(report).set_index("rule").loc["bound_by_an_ipu"]
    assert row["what"] == "IPU 1 bounds the runs: IPU 0 waits 71.9 % of the time"
    assert row["where"] == "longest for last/Run"
    assert row["advice"].startswith("Move first/Run to IPU 0: then no IPU works longer than")
    assert (row["amount"], row["saving"]) == (3000 * THREADS, cycles_of(report) / 4)


def test_one_large_layer_is_to_be_split(tmp_path: Path) -> None:
    report = report_of(tmp_path, [(0, "a/Run", 2000), (1, "b/Run", 4000)])
    row = insights(report).set_index("rule").loc["bound_by_an_ipu"]
    assert "split its largest layer" in row["advice"]
    assert row["saving"] == pytest.approx(2000 * THREADS / 2, abs=1)


def test_a_program_that_never_ran_bounds_nothing() -> None:
    assert ipu_balance(never_run())["waits"].tolist() == [0, 0]
    assert not len(layer_moves(never_run()))


def test_the_pipeline_of_the_samples_is_bound_by_its_second_ipu() -> None:
    frame = insights(opened("newton_pipeline_replicas")).set_index("rule")
    assert frame["what"]["bound_by_an_ipu"].startswith("IPU 1 bounds the runs: IPU 0 waits")


@pytest.mark.parametrize("in_turn", [True, False])
def test_ipus_that_work_in_turns_want_a_pipeline(in_turn: bool, tmp_path: Path) -> None:
    report = report_of(tmp_path, [(0, "a/Run", 3000), (1, "b/Run", 4000)], in_turn=in_turn)
    rules = insights(report).set_index("rule")
    assert ("ipus_in_turn" in rules.index) is in_turn
    if in_turn:
        row = rules.loc["ipus_in_turn"]
        assert row["saving"] == pytest.approx(3000 * THREADS, rel=0.01)  # IPU 1 waits for as long
        assert row["what"].startswith("The 2 IPUs work in turns: each waits for the others")
        assert row["amount"] == pytest.approx(7000 * THREADS / 2, rel=0.01)


@pytest.mark.parametrize(("cycles", "fires"), [(9600, False), (10500, True)])
def test_an_operation_that_is_a_tenth_of_the_critical_path_is_named(
    cycles: int, fires: bool, tmp_path: Path
) -> None:
    others = [(0, f"o{number}/Run", 9000) for number in range(10)]
    row = insights(report_of(tmp_path, [*others, (0, "x/Run", cycles)])).set_index("rule")
    assert ("on_the_critical_path" in row.index) is fires
    if fires:
        found = row.loc["on_the_critical_path"]
        assert found["amount"] == cycles * THREADS
        assert found["where"] == f"most in x/Run: {cycles * THREADS:,} cycles, run once"
