"""A file that is saved holds what the screen shows: its rows, its filter, its values in full."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.app import create_app
from dashboard.downloads import file_name
from tests.builders import small_report, write_report
from tests.dashboard.test_bad_timelines import write

OPTIONS = {"name": ["autoReport.all", "debug.instrument"], "value": ["true", "false"]}
LONG = "x" * 1000
# thread, begin, end, label: b runs twice in a, and once by itself
EVENTS = [(0, 0, 100, 0), (0, 10, 30, 1), (0, 40, 50, 1), (1, 0, 5, 1)]


@pytest.fixture
def served(tmp_path: Path) -> Any:
    """Return a client of a report, and of a trace as `?report=t.pvti`."""
    report = write_report(tmp_path / "small", small_report(engine_options=OPTIONS))
    (report / "app.json").write_text(json.dumps({"text": LONG, "other": 1}))
    app = create_app([report, write(tmp_path / "t.pvti", EVENTS, ["a", "b"])])
    return app.server.test_client()


def saved(served: Any, name: str, search: str) -> pd.DataFrame:
    answer = served.get(f"/download/{name}.csv?{search}")
    assert answer.status_code == 200, answer.text
    return pd.read_csv(io.StringIO(answer.text), keep_default_na=False)


def test_plot_of_variables_saves_the_bytes_of_each_on_each_tile(served: Any) -> None:
    found = saved(served, "memory-variables-by-tile", "report=small&graph=variables&variable=0,2")
    data = small_report()
    for row in (0, 2):
        name = f"{data.column('variables', 'name')[row]} ({row})"
        own = data.column("variable_pieces", "variable") == row
        tiles, sizes = (data.column("variable_pieces", key)[own] for key in ("tile", "bytes"))
        assert found[name].tolist() == np.bincount(tiles, sizes, minlength=10).tolist()


def test_options_are_saved_as_they_are_filtered(served: Any) -> None:
    found = saved(served, "summary-options", "report=small&tab=options&find=DEBUG")
    assert found["name"].tolist() == ["debug.instrument"]


def test_values_of_documents_are_saved_in_full(served: Any) -> None:
    found = saved(served, "summary-documents", "report=small&tab=documents&find=text")
    assert found["value"].tolist() == [LONG]


def test_program_tree_is_saved_without_syncs_where_they_are_left_out(served: Any) -> None:
    every = saved(served, "program-tree", "report=small")
    found = saved(served, "program-tree", "report=small&syncs=off")
    assert (every["type"] == "Sync").sum() > 0
    assert found["program"].tolist() == every["program"][every["type"] != "Sync"].tolist()


def test_call_tree_is_saved_where_it_is_shown(served: Any) -> None:
    found = saved(served, "trace-calls", "report=t.pvti&tab=calls")
    rows = [tuple(row) for row in found[["label", "count", "total", "self_time"]].to_numpy()]
    assert sorted(rows) == [("a", 1, 100, 70), ("b", 1, 5, 5), ("b", 2, 30, 30)]
    inner = found[found["total"] == 30].iloc[0]
    assert found["label"][found["node"] == inner["parent"]].tolist() == ["a"]


def test_callers_are_saved_where_they_are_shown(served: Any) -> None:
    found = saved(served, "trace-callers", "report=t.pvti&tab=callers&filter=label~b")
    outermost = found[found["parent"] == -1]
    assert outermost[["label", "count", "self_time"]].to_numpy().tolist() == [["b", 3, 35]]


@pytest.mark.parametrize(
    ("tab", "told"), [("tiles", "mean"), ("vertices", "vertex_type"), ("cycles", "cycles")]
)
def test_each_table_of_the_chosen_steps_is_saved(served: Any, tab: str, told: str) -> None:
    found = saved(served, f"liveness-{tab}", f"report=small&tab={tab}&step=6")
    assert len(found[told]) == 1


def test_file_is_named_after_the_reports_it_is_of() -> None:
    assert file_name("memory.csv", "runs/a b\u202e") == "runs_a_b-memory.csv"
    assert file_name("compare.csv", "before", "../after") == "before-after-compare.csv"
    assert file_name("memory.csv", "") == "memory.csv"
