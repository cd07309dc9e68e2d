"""Cycles are written as time on every page, where the reader chose so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.address import parse
from dashboard.figures.steps import tile_histogram
from dashboard.pages.liveness import page as liveness
from dashboard.pages.operations import details as operation_details
from dashboard.pages.operations import page as operations
from dashboard.pages.programs import details as program_details
from dashboard.store import Store
from pva.plot.axes import cycle_axis
from pva.units import Writing, write_as
from tests.builders import write_report
from tests.dashboard.layouts import words


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store of the small report, read by who wants time: a cycle takes a nanosecond."""
    write_as(Writing(clock=1e9))
    yield Store([write_report(tmp_path / "small")])
    write_as(Writing())


def shown(page: Any, store: Store, search: str) -> str:
    return words(page.details(store, parse("/", search), "light"))


def test_operation_tells_its_phases_as_time(store: Store) -> None:
    chosen = parse(operations.PATH, "operation=multiply&tab=cycles")
    costs = operations.costs_of(store, chosen)
    pane = words(operation_details.details(store, chosen, "light", costs))
    assert "Compute 444 ns (69.6 %)" in pane  # twice 114 and 108, of 638


def test_estimate_of_a_program_is_told_as_time(store: Store) -> None:
    assert "Estimate of one execution 114 ns" in shown(program_details, store, "program=6")


def test_longest_estimate_of_a_step_is_told_as_time(store: Store) -> None:
    assert "the longest takes 114 ns." in shown(liveness, store, "step=6&tab=cycles")


@pytest.mark.parametrize(
    ("clock", "title", "marks"),
    [(0.0, "Cycles", None), (1e9, None, ("0.0 µs", "0.5 µs", "1.0 µs", "1.5 µs", "2.0 µs"))],
)
def test_axis_of_cycles_says_its_unit(clock: float, title: str, marks: Any) -> None:
    write_as(Writing(clock=clock))
    axis = cycle_axis(1_950)
    write_as(Writing())
    assert axis.get("title", {}).get("text") == title
    assert axis.get("ticktext") == (marks and list(marks))


def test_tiles_of_a_step_are_spread_over_time(store: Store) -> None:
    del store
    figure = tile_histogram(np.array([2000, 0, 4000]), "OnTileExecute", "light")
    assert figure.layout.xaxis.ticktext[-1] == "5 µs"
    assert figure.data[0].customdata[-1] == "1 tile takes 3.9 µs to 4.0 µs"
