"""The steady state of reports: which runs are left out, and that what is left keeps every law."""

from pathlib import Path

import numpy as np
import pytest

from pva import openReport
from pva.analysis import critical_path, execution_overview, insights, main_run, other_runs
from pva.analysis.execution.steady import setup_runs, steady_state
from pva.analysis.execution.tile_activity import tile_ends
from pva.errors import PvaError
from pva.report import Report
from simulator import poplar, popops
from simulator.poplar import FLOAT, program
from tests.analysis.samples import NAMES, opened, small
from tests.builders import small_report

LOAD, WORK, FETCH = range(3)


def report_of(folder: Path, order: tuple[int, ...]) -> Report:
    """Run programs of four tiles that load weights, work with them and fetch results."""
    model = poplar.IPUModel()
    model.numIPUs, model.tilesPerIPU = 1, 4
    device = model.createDevice()
    graph = poplar.Graph(device.getTarget())
    weights, sums = (graph.addVariable(FLOAT, [64], name) for name in ("weights", "sums"))
    for tile in range(4):
        for variable in (weights, sums):
            graph.setTileMapping(variable[16 * tile : 16 * tile + 16], tile)
    work = program.Sequence()
    popops.addInPlace(graph, sums, weights, work, "add")
    popops.mulInPlace(graph, sums[:16], weights[16:32], work, "mul")
    load = program.Copy(graph.addHostToDeviceFIFO("weights", FLOAT, 64), weights)
    fetch = program.Copy(sums, graph.addDeviceToHostFIFO("sums", FLOAT, 64))
    options = {
        "autoReport.all": "true",
        "autoReport.directory": str(folder),
        "autoReport.executionProfileProgramRunCount": "100",
    }
    engine = poplar.Engine(graph, [load, work, fetch], options)
    engine.load(device)
    for name in ("weights", "sums"):
        engine.connectStream(name, np.ones(64, np.float32))
    for number in order:
        engine.run(number)
    return openReport(folder)


def cycles(report: Report) -> list[int]:
    return report.dataset.column("runs", "cycles").tolist()


def test_runs_of_programs_that_ran_once_beside_repeated_ones_are_set_up(tmp_path: Path) -> None:
    whole = report_of(tmp_path, (LOAD, WORK, WORK, FETCH, WORK))
    assert setup_runs(whole).tolist() == [0, 3]
    steady = steady_state(whole)
    one = cycles(whole)
    assert cycles(steady) == [one[1], one[2], one[4]]
    assert other_runs(steady)["cycles"].tolist() == [one[0], one[3]]
    assert execution_overview(steady).cycles == one[1] + one[2] + one[4]
    assert critical_path(steady)["cycles"].sum() == one[1] + one[2] + one[4]
    assert main_run(whole).setup_cycles == one[0] + one[3]


@pytest.mark.parametrize(
    "order", [(LOAD, WORK, FETCH), (WORK, WORK), (WORK,), (LOAD, LOAD, WORK, WORK)]
)
def test_nothing_is_set_up_where_all_ran_once_or_all_more_often(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    whole = report_of(tmp_path, order)
    assert steady_state(whole) is whole


def test_the_steady_state_keeps_every_law_of_the_report(tmp_path: Path) -> None:
    steady = steady_state(report_of(tmp_path, (LOAD, WORK, WORK, FETCH, WORK)))
    laws = steady.check()
    assert laws["holds"].dropna().all()
    assert laws.set_index("law")["holds"]["activities_fill_the_time_of_all_tiles"]


def test_steps_refer_to_the_runs_that_are_left(tmp_path: Path) -> None:
    whole = report_of(tmp_path, (LOAD, WORK, WORK))
    steady = steady_state(whole).dataset
    first = int(whole.dataset.column("runs", "first_step")[1])
    assert steady.column("steps", "program").tolist() == (
        whole.dataset.column("steps", "program")[first:].tolist()
    )
    assert steady.column("steps_by_ipu", "step").max() == steady.length("steps") - 1
    assert steady_state(whole).whole[1].tolist() == [1, 2]


def test_first_steps_of_runs_are_as_written_where_no_steps_were_recorded() -> None:
    runs = {name: [*values] * 2 for name, values in small_report().table("runs").items()}
    count = len(runs["first_step"])
    whole = small(steps=None, steps_by_ipu=None, runs=runs | {"first_step": [2**40] * count})
    left = whole.without_runs(np.arange(1, count), dict)
    assert left.dataset.column("runs", "first_step").tolist() == [2**40]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_tile_ends_with_its_step(name: str) -> None:
    report = opened(name)
    steps = report.dataset.column("steps", "cycles_to")
    for step in range(0, len(steps), max(len(steps) // 5, 1)):
        assert tile_ends(report, step).max() == steps[step]


def test_insights_count_set_up_where_they_are_asked_to(tmp_path: Path) -> None:
    whole = report_of(tmp_path, (LOAD, WORK, WORK))
    steady, all_runs = (insights(whole, runs=runs)["what"].tolist() for runs in ("steady", "all"))
    assert steady != all_runs
    with pytest.raises(PvaError, match="known: steady, all"):
        insights(whole, runs="some")
