"""Chosen program steps side by side, on the hand-made report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.analysis.memory import step_comparison
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, small


def rows(frame: Any, *columns: str) -> list[list[Any]]:
    found: list[list[Any]] = frame[list(columns)].to_numpy().tolist()
    return found


def test_steps_stand_side_by_side_with_the_change_from_first_to_last() -> None:
    # Live at 5: x 80, message 40; at 6 product 80 too; at 12: partials 32, y 4.
    frame = step_comparison.live_at_steps(small(), steps=(5, 6, 12))
    assert rows(frame, "name", "step_5", "step_6", "step_12", "change") == [
        ["x", 80, 80, 0, -80],
        ["message", 40, 40, 0, -40],
        ["partials", 0, 0, 32, 32],
        ["y", 0, 0, 4, 4],
        ["product", 0, 80, 0, 0],
    ]


def test_steps_on_one_tile_count_the_bytes_there() -> None:
    frame = step_comparison.live_at_steps(small(), steps=(6, 12), tile=5)
    assert rows(frame, "name", "step_6", "step_12", "change") == [
        ["partials", 0, 16, 16], ["x", 8, 0, -8], ["product", 8, 0, -8], ["message", 4, 0, -4],
    ]  # fmt: skip


def test_peak_is_taken_when_no_step_is_chosen() -> None:
    frame = step_comparison.live_at_steps(small())
    assert rows(frame, "name", "step_6", "change") == [["x", 80, 0], ["product", 80, 0],
                                                       ["message", 40, 0]]  # fmt: skip


@every_report
def test_changes_add_up_to_the_difference_of_the_curve(name: str) -> None:
    report = opened(name)
    live = report.dataset.column("liveness_steps", "bytes")
    first, last = int(live.argmax()), len(live) - 1
    frame = step_comparison.live_at_steps(report, steps=(first, last))
    assert frame["change"].sum() == live[last] - live[first]


def test_vertices_of_steps_are_those_of_their_compute_sets() -> None:
    # Step 6 multiplies with 10 vertices, step 12 reduces with 3, step 5 runs none.
    frame = step_comparison.vertices_at_steps(small(), steps=(5, 6, 12))
    assert rows(frame, "vertex_type", "state", "step_5", "step_6", "step_12", "change") == [
        ["popops::Reduce<float,float>", 16, 0, 0, 2, 2],
        ["popops::Add<float>", 8, 0, 0, 1, 1],
        ["popops::Multiply<float>", 12, 0, 10, 0, 0],
    ]


def test_cycles_of_a_step_are_those_of_what_it_holds() -> None:
    # Step 3 repeats exchange, multiply and add: 49, 114 and 30 cycles on the slowest tile.
    frame = step_comparison.cycle_estimates(small(), step=3)
    assert rows(frame, "step", "name", "cycles", "mean_cycles", "active_tiles", "slowest_tile") == [
        [6, "multiply", 114, 87.0, 10, 9],
        [5, "multiply/ExchangePre", 49, 44.5, 10, 9],
        [9, "add", 30, 15.0, 5, 0],
    ]
    assert rows(step_comparison.cycle_estimates(small()), "step") == [[6]]
    assert not len(step_comparison.cycle_estimates(small(), step=1))


def test_intervals_of_chosen_variables_stand_in_the_order_chosen() -> None:
    frame = step_comparison.lifetime_intervals(small(), variables=(4, 1, 0))
    assert rows(frame, "name", "begin", "end") == [["partials", 11, 13], ["w", 0, 14], ["x", 2, 10]]
    largest = step_comparison.lifetime_intervals(small())
    assert largest["name"].tolist() == ["x", "product", "message", "partials", "y"]


def test_variable_that_is_live_twice_has_two_intervals() -> None:
    intervals = {"variable": [0, 0], "begin": [9, 2], "end": [12, 4]}
    frame = step_comparison.lifetime_intervals(small(variable_intervals=intervals), variables=(0,))
    assert rows(frame, "begin", "end") == [[2, 4], [9, 12]]


@pytest.mark.parametrize("steps", [(99,), (0, -1)])
def test_step_that_is_not_there_is_refused(steps: tuple[int, ...]) -> None:
    for analysis in (step_comparison.live_at_steps, step_comparison.vertices_at_steps):
        with pytest.raises(SelectionError, match="steps 0 to 13"):
            analysis(small(), steps=steps)
    with pytest.raises(SelectionError, match="variables 0 to 6"):
        step_comparison.lifetime_intervals(small(), variables=(7,))


def test_report_without_steps_gives_no_rows() -> None:
    none = {column: np.zeros(0, dtype=np.int64) for column in ("program", "parent", "bytes")}
    report = small(liveness_steps=none, liveness_bytes_by_ipu=np.zeros((0, 2), dtype=np.int64))
    assert not len(step_comparison.cycle_estimates(report))
    assert not len(step_comparison.vertices_at_steps(report))


def test_spread_over_tiles_counts_what_each_of_them_holds_at_a_step() -> None:
    # At 6, tile 0 holds 438 always, tile 5 360; both 20 that move: x 8, product 8, message 4.
    frame = step_comparison.live_over_tiles(small(), steps=(6,), tiles=(0, 5))
    assert rows(frame, "step", "name", "least", "mean", "most", "deviation", "fullest_tile") == [
        [6, "multiply", 380, 419.0, 458, 39.0, 0]
    ]


@every_report
def test_mean_over_all_tiles_is_the_curve_divided_by_their_number(name: str) -> None:
    report = opened(name)
    frame = step_comparison.live_over_tiles(report)
    always = report.dataset.array("always_live_bytes")
    total = always.sum() + report.dataset.column("liveness_steps", "bytes").max()
    assert frame["mean"].tolist() == [pytest.approx(total / len(always))]
