"""What may be given to choose tiles, steps and variables, and how many rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.analysis import CATALOGUE
from pva.analysis.selection import SelectionError
from pva.report import Report, openReport
from pva.trace import openTrace

SAMPLES = Path(__file__).parents[2] / "sample_reports"
REPORT = openReport(SAMPLES / "matmul_chain_tiny")
TRACE = openTrace(SAMPLES / "mlp_digits_tiny")


def test_a_number_from_a_column_of_floats_chooses_as_the_whole_number() -> None:
    as_float = CATALOGUE["memory_by_category"](REPORT, tile=np.float64(3))
    assert as_float.equals(CATALOGUE["memory_by_category"](REPORT, tile=3))


@pytest.mark.parametrize("variable", [1.5, "1", float("nan"), float("inf"), -1])
def test_what_is_no_number_of_a_variable_is_not_there(variable: Any) -> None:
    with pytest.raises(SelectionError, match="not there; the report has variables 0 to 16"):
        CATALOGUE["variable_by_tile"](REPORT, variable=variable)


def test_steps_may_be_an_array_or_one_by_itself() -> None:
    of = CATALOGUE["live_at_steps"]
    assert of(REPORT, steps=np.array([3, 4])).equals(of(REPORT, steps=(3, 4)))
    assert of(REPORT, steps=3).equals(of(REPORT, steps=(3,)))


def test_a_tile_named_twice_counts_once() -> None:
    for name in ("vertices_on_tiles", "exchanges_on_tiles", "variables_on_tiles", "tile_details"):
        analysis = CATALOGUE[name]
        assert analysis(REPORT, tiles=(1, 1)).equals(analysis(REPORT, tiles=(1,))), name


def test_vertices_on_a_tile_are_unknown_where_their_places_were_not_recorded() -> None:
    data = REPORT.dataset
    tables = {name: dict(data.table(name)) for name in data.tables}
    arrays = {name: data.array(name) for name in data.arrays if name != "vertex_count_by_tile"}
    report = Report.of(type(data).of(tables, arrays))
    assert set(CATALOGUE["vertices_on_tiles"](report, tiles=(1,))["vertices"]) == {-1}
    everywhere = data.column("compute_set_vertices", "count").sum()
    assert CATALOGUE["vertices_on_tiles"](report)["vertices"].sum() == everywhere


@pytest.mark.parametrize("name", ["longest_steps", "slowest_tiles", "fullest_tiles"])
def test_fewer_than_no_rows_are_not_given(name: str) -> None:
    with pytest.raises(SelectionError, match="count -1: less than 0"):
        CATALOGUE[name](REPORT, count=-1)
    with pytest.raises(SelectionError, match="count -1: less than 0"):
        CATALOGUE["longest_events"](TRACE, count=-1)
    with pytest.raises(SelectionError, match="count '5': no number; give how many rows"):
        CATALOGUE[name](REPORT, count="5")
