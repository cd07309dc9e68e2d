"""The run of the model: by hand on the small report, and on pipelines worked out by a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.analysis import main_run
from pva.analysis.execution.batch_times import BatchTimes
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, never_run, opened, rows, small
from tests.builders import small_report


def runs_with(**columns: Any) -> dict[str, Any]:
    """Return the two runs of the small report with other values."""
    return dict(small_report().table("runs")) | columns


def test_figures_of_the_small_report_by_hand() -> None:
    others = {"name": ["weightsFromHost"], "program": [1], "cycles": [300], "cycles_from": [-1],
              "start_microseconds": [0.0], "end_microseconds": [1.0]}  # fmt: skip
    run = main_run(small(other_runs=others))
    # Two runs of 512 cycles at 1 GHz and 4 items each; x comes at 36, y has left at 512.
    assert (run.runs, run.cycles, run.items) == (2, 1024, 8)
    assert [run.seconds, run.items_per_second] == pytest.approx([1.024e-6, 8 / 1.024e-6])
    assert (run.latency_cycles, run.latency_seconds) == (476, pytest.approx(476e-9))
    assert (run.setup_runs, run.setup_cycles) == (1, 300)
    assert np.isnan(run.steady_cycles)  # a run has one batch


@every_report
def test_cycles_are_those_of_all_runs(name: str) -> None:
    run = main_run(opened(name))
    cycles = [row["cycles"] for row in rows(opened(name), "runs")]
    assert (run.runs, run.cycles) == (len(cycles), sum(cycles))


@pytest.mark.parametrize("column", ["items", "batches", "stages"])
def test_what_an_older_writer_does_not_tell_is_not_known(column: str) -> None:
    runs = runs_with()
    del runs[column]
    run = main_run(small(runs=runs))
    assert (run.cycles, getattr(run, column)) == (1024, -1)
    assert np.isnan(run.items_per_second) == (column == "items")


def test_items_are_not_known_when_one_run_does_not_tell_them() -> None:
    run = main_run(small(runs=runs_with(items=[4, -1])))
    assert run.items == -1
    assert np.isnan(run.items_per_second)


def test_reports_without_runs_and_without_execution() -> None:
    assert main_run(never_run()).runs == main_run(never_run()).cycles == 0
    assert main_run(small(runs=None)).cycles == 1024
    with pytest.raises(NotRecordedError, match="outputExecutionProfile"):
        main_run(small(runs=None, execution=None))


def pipeline(stages: int, batches: int, slow: int) -> BatchTimes:
    """Run a pipeline whose cycles take 10 for each stage with a batch, and more for one stage."""
    begins, ends, clock = [], [], 0
    for cycle in range(batches + stages - 1):
        active = [stage for stage in range(stages) if 0 <= cycle - stage < batches]
        if 0 in active:
            begins.append(clock + 1)
        clock += 10 * len(active) + (100 if slow in active else 0)
        if stages - 1 in active:
            ends.append(clock)
    return BatchTimes(np.array(begins), np.array(ends), 1)


@pytest.mark.parametrize("slow", [0, 1, 2])
@pytest.mark.parametrize("batches", [4, 5, 20])
def test_a_full_pipeline_has_its_period_whichever_stage_is_slow(batches: int, slow: int) -> None:
    assert pipeline(3, batches, slow).steady(3) == 130


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_pipeline_of_three_stages_has_none_before_the_fourth_batch(batches: int) -> None:
    assert np.isnan(pipeline(3, batches, 0).steady(3))


def test_the_longest_latency_is_that_of_the_full_pipeline() -> None:
    assert pipeline(3, 20, 1).latency == 3 * 130 - 1


def test_accumulated_micro_batches_count_with_what_follows_them() -> None:
    # Two micro-batches of 10 cycles, then an update of 5.
    begins = np.array([0, 10, 25, 35, 50, 60])
    times = BatchTimes(begins, begins + 10, 2)
    assert (times.steady(1), times.latency) == (25, 10)


def test_without_outputs_of_each_batch_inputs_tell_the_period() -> None:
    times = BatchTimes(np.array([0, 7, 17, 27]), np.zeros(0, dtype=np.int64), 1)
    assert (times.steady(2), times.latency) == (10, -1)
