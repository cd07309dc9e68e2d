"""Analyses of execution, on the hand-made report: two runs of twelve steps on ten tiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pva.analysis.execution import totals as execution
from pva.analysis.selection import SelectionError
from tests.builders import small_report


def report(**changes: Any) -> Any:
    return SimpleNamespace(dataset=small_report(**changes))


def test_shares_of_the_tile_cycles_add_up_to_all_of_them() -> None:
    overview = execution.execution_overview(report())
    shares = (
        overview.compute_share, overview.exchange_share, overview.host_share,
        overview.sync_share, overview.idle_share,
    )  # fmt: skip
    assert sum(shares) == pytest.approx(1)
    # Two runs: multiply (870) twice, add (150) twice, reduce (84), on ten tiles for 1,024 cycles.
    assert overview.compute_share == pytest.approx(2 * (2 * 870 + 2 * 150 + 84) / 10_240)


def test_time_is_shared_out_among_the_kinds_of_step() -> None:
    shares = execution.execution_overview(report()).time_shares
    # Of a run's 512 cycles: compute 114 + 21 + 108 + 30 + 48, exchange 49 + 48 + 12, sync 36 + 34,
    # host exchange 7 + 5.
    of_a_run = {"compute": 321, "exchange": 109, "sync": 70, "host exchange": 12}
    assert {kind: round(512 * share) for kind, share in shares.items()} == of_a_run
    assert list(shares) == list(of_a_run)


def test_overview_gives_cycles_with_time_and_balances() -> None:
    overview = execution.execution_overview(report())
    assert (overview.cycles, overview.seconds) == (1024, pytest.approx(1.024e-6))
    assert (overview.runs, overview.recorded_runs, overview.steps) == (2, 2, 24)
    assert overview.thread_balance == pytest.approx(716 / 4248)


def test_cycles_by_vertex_type_count_every_execution() -> None:
    frame = execution.cycles_by_vertex_type(report()).set_index("vertex_type")
    # Multiply runs twice in each of two runs, 145 active cycles each time.
    assert frame["cycles"].tolist() == [4 * 145, 4 * 25 + 2 * 4, 2 * 14]
    assert frame["instances"].tolist() == [10, 6, 2]
    assert frame["cycles_once"].tolist() == [145, 29, 14]
    assert (
        frame["cycles"].sum()
        == execution.execution_overview(report()).tile_cycles["active_compute"]
    )


def test_cycles_by_program_add_up_to_those_of_the_runs() -> None:
    frame = execution.cycles_by_program(report())
    assert frame["cycles"].sum() == 1024
    assert frame["share"].sum() == pytest.approx(1)
    first = frame.iloc[0]
    assert (first["name"], first["executions"], first["cycles"]) == ("multiply", 4, 444)


def test_steps_of_a_run_are_those_between_its_rows() -> None:
    frame = execution.steps(report(), run=1)
    assert frame["step"].tolist() == list(range(12, 24))
    assert frame["type"].tolist()[:3] == ["Sync", "StreamCopy", "DoExchange"]
    assert frame["sync_type"].tolist()[:2] == ["External", "None"]
    assert frame["name"].tolist()[1] == "x/StreamCopy"


def test_a_run_that_is_not_there_is_refused() -> None:
    with pytest.raises(SelectionError, match="run 2: not there; the report has runs 0 to 1"):
        execution.steps(report(), run=2)


def test_runs_tell_whether_their_steps_were_recorded() -> None:
    runs = report().dataset.table("runs")
    later = report(runs=dict(runs) | {"end_step": [12, 12], "first_step": [0, 12]})
    frame = execution.runs(later)
    assert frame["recorded"].tolist() == [True, False]
    assert frame["device_microseconds"].sum() == pytest.approx(1.024)
    assert execution.execution_overview(later).recorded_runs == 1


def test_runs_without_cycles_take_an_unknown_time() -> None:
    runs = dict(report().dataset.table("runs")) | {"cycles": [-1, -1], "cycles_from": [-1, -1]}
    frame = execution.runs(report(runs=runs))
    assert frame["cycles"].tolist() == [-1, -1]
    assert frame["device_microseconds"].isna().all()


def test_vertices_of_a_compute_set_are_given_with_their_cycles() -> None:
    frame = execution.vertices_by_compute_set(report(), compute_set=1)
    assert frame["vertex_type"].tolist() == ["popops::Reduce<float,float>", "popops::Add<float>"]
    assert frame[["instances", "cycles"]].to_numpy().tolist() == [[2, 14], [1, 4]]
    assert len(execution.vertices_by_compute_set(report())) == 4


def test_vertices_of_a_step_are_those_of_its_compute_set() -> None:
    # Step 10 is the reduction; step 0 is a sync.
    assert execution.vertices_of_step(report(), step=10)["cycles"].tolist() == [14, 4]
    assert len(execution.vertices_of_step(report(), step=0)) == 0
