"""What pages sum, count and order, on tables of a few rows worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pva.analysis.distributed.pace import pace_of_instances
from pva.analysis.execution.ranges import busy_tiles, total_of_programs
from pva.analysis.host.profilers import longest_label
from pva.analysis.memory.liveness import total_bytes, with_share
from pva.analysis.memory.step_comparison import total_of_variables
from pva.analysis.memory.tile_series import stacked_heights
from pva.analysis.operations.costs import total_of_costs
from pva.analysis.operations.details import by_flops, executed_flops, filled_columns
from pva.analysis.waiting.causes import path_share
from pva.analysis.whole_report.comparison import (
    ChangeCounts,
    change_counts,
    in_tile_order,
    rows_of_waterfall,
    waterfall,
)

CHANGES = pd.DataFrame(
    {"tile": [3, 1, 2, 0], "before": [9, 5, 1, 2], "after": [1, 9, 2, 2], "change": [-8, 4, 1, 0]}
)


def test_rows_are_counted_by_the_sign_of_their_change() -> None:
    assert change_counts(CHANGES) == ChangeCounts(grown=2, shrunk=1, same=1)


@pytest.mark.parametrize(("count", "tiles"), [(2, [3, 1]), (3, [3, 1, 2]), (4, [3, 1, 2])])
def test_a_waterfall_shows_the_largest_changes_by_themselves(count: int, tiles: list[int]) -> None:
    steps = waterfall(CHANGES, count=count)
    assert rows_of_waterfall(CHANGES, steps)["tile"].tolist() == tiles


def test_tiles_of_a_comparison_are_put_in_order() -> None:
    assert in_tile_order(CHANGES)["change"].tolist() == [0, 4, 1, -8]


def test_a_critical_path_is_summed_by_ipu() -> None:
    path = pd.DataFrame({"ipu": [0, 1, 0], "cycles": [30, 50, 40]})
    most = path_share(path)
    assert (most.ipu, most.ipus) == (0, 2)
    assert most.share == pytest.approx(70 / 120)


def test_programs_of_a_range_have_a_share_of_its_cycles() -> None:
    totals = total_of_programs(pd.DataFrame({"executions": [2, 3], "cycles": [10, 20]}), 120)
    assert (totals.steps, totals.cycles, totals.share) == (5, 30, 0.25)
    assert total_of_programs(pd.DataFrame({"executions": [], "cycles": []}), 0).share == 0


def test_idle_tiles_are_not_among_the_slowest() -> None:
    frame = pd.DataFrame({"tile": [0, 1, 2], "cycles": [0, 7, 9]})
    assert busy_tiles(frame, 3)["tile"].tolist() == [2, 1]
    assert busy_tiles(frame, 1)["tile"].tolist() == [2]


def test_executed_operations_count_a_set_that_was_not_recorded_once() -> None:
    sets = pd.DataFrame({"flops": [5.0, np.nan, 7.0], "executions": [4.0, 9.0, np.nan]})
    assert executed_flops(sets) == 4 * 5 + 7
    assert by_flops(sets)["flops"].tolist()[:2] == [7.0, 5.0]


def test_columns_in_which_no_tile_has_anything_are_left_out() -> None:
    frame = pd.DataFrame({"code": [0, 0], "state": [0, 4], "untold": [-1, -1]})
    assert filled_columns(frame, ["code", "state", "untold"]) == ["state"]


def test_a_figure_that_no_operation_has_stays_missing_in_the_total() -> None:
    costs = pd.DataFrame({"cycles": [1.0, np.nan, 4.0], "flops": [np.nan] * 3})
    total = total_of_costs(costs, ["cycles", "flops"])
    assert total["cycles"].tolist() == [5.0]
    assert total["flops"].isna().all()


def test_shares_of_bytes_add_up_to_one() -> None:
    frame = pd.DataFrame({"bytes": [30, 10]})
    assert with_share(frame)["share"].tolist() == [0.75, 0.25]
    assert total_bytes(frame) == 40
    assert with_share(frame[:0])["share"].tolist() == []


def test_variables_are_summed_at_each_step() -> None:
    frame = pd.DataFrame(
        {"name": ["a", "b"], "step_1": [1, 2], "step_4": [4, 0], "change": [3, -2]}
    )
    total = total_of_variables(frame, ["step_1", "step_4"])
    assert total.to_dict("records") == [{"step_1": 3, "step_4": 4, "change": 1}]


def test_series_are_stacked_beside_their_place() -> None:
    frame = pd.DataFrame({"tile": [7, 8], "a": [1, 2], "b": [10, 20]})
    assert stacked_heights(frame).tolist() == [11, 22]


def test_the_pace_of_an_instance_is_its_median_run_and_mean_lateness() -> None:
    pace = pd.DataFrame(
        {"instance": [0, 0, 0, 1], "duration_ns": [1, 9, 2, 5], "late_ns": [0, 3, 6, 8]}
    )
    result = pace_of_instances(pace)
    assert result["duration_ns"].tolist() == [2, 5]
    assert result["late_ns"].tolist() == [3, 8]


def _trace(channels: list[str]) -> Any:
    """Make a trace whose labels are one a channel."""
    labels = [f"label {number}" for number in range(len(channels))]
    return SimpleNamespace(
        channels=channels, labels=labels, label_channels=np.arange(len(channels))
    )


def test_the_longest_label_is_not_one_that_wraps_others() -> None:
    trace = _trace(["host", "Trace", "host"])
    longest = longest_label(trace, np.array([20, 900, 60, 0]))
    assert longest is not None
    assert (longest.label, longest.self_ns, longest.share) == (2, 60, 0.75)
    assert longest.without == ("the profiler's own",)


def test_the_longest_label_is_no_phase_of_the_simulator() -> None:
    trace = _trace(["Poplar", "host"])
    trace.labels[0] = "run/values"
    longest = longest_label(trace, np.array([900, 40, 10]))
    assert longest is not None
    assert (longest.label, longest.self_ns, longest.share) == (1, 40, 0.8)
    assert longest.without == ("the simulator's own",)


def test_a_trace_without_time_in_events_has_no_longest_label() -> None:
    assert longest_label(_trace(["host"]), np.array([0, 0])) is None
