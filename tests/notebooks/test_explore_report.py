"""The example notebook runs, and shows what the library says of the same report."""

from __future__ import annotations

import base64
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.analysis import CATALOGUE
from pva.report import openReport
from tests.notebooks.notebook_runs import is_bare, kept, outputs, printed, run

ROOT = Path(__file__).parents[2]
NAME = "explore_report.ipynb"
NOTEBOOK = ROOT / "examples" / "notebooks" / NAME
REPORT = ROOT / "sample_reports" / "matmul_chain_mk2"
FIGURE = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(NAME, tmp_path_factory.mktemp("jupyter"), NOTEBOOK.parent)


def shown(notebook: Any, kind: str) -> list[Any]:
    """Return what the cells show of one kind, in order."""
    return [o.data[kind] for o in outputs(notebook) if kind in o.get("data", {})]


def test_the_notebook_is_kept_bare() -> None:
    assert is_bare(kept(NAME))


def test_the_extra_named_on_top_brings_what_the_cells_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = re.search(r"pip install 'tilescope\[(\w+)\]'", NOTEBOOK.read_text())
    assert extra
    wanted, brought = [extra[1]], set()
    while wanted:
        for package in project["optional-dependencies"][wanted.pop()]:
            parts = re.fullmatch(r"tilescope\[([\w,]+)\]", package)
            wanted += parts[1].split(",") if parts else []
            brought.add(re.split(r"[^\w-]", package)[0])
    assert brought >= {"duckdb", "ipykernel", "nbformat", "plotly", "pyarrow"}


def test_every_cell_runs_without_a_word_on_stderr(ran: Any) -> None:
    assert printed(ran, "stderr") == ""


def test_the_notebook_finds_the_fullest_tile(ran: Any) -> None:
    overview = CATALOGUE["memory_overview"](openReport(REPORT))
    line = f"tile {overview.fullest_tile} needs {overview.fullest_share:.1%} of its memory"
    assert line in printed(ran)


def test_the_notebook_prints_the_cycles_of_the_summary(ran: Any) -> None:
    cycles = CATALOGUE["execution_overview"](openReport(REPORT)).cycles
    assert f"{cycles:,} cycles in all runs" in printed(ran)


def test_the_notebook_shows_the_figures_of_the_dashboard(ran: Any) -> None:
    memory, liveness, tiles, execution, operations, compared = shown(ran, FIGURE)
    report = openReport(REPORT)
    needs = report.dataset.column("memory_by_tile", "total_including_gaps").max()
    assert sum(_array(trace["y"]) for trace in memory["data"]).max() * 1024 == needs  # in kB
    assert [trace["name"] for trace in liveness["data"]] == ["Always live", "Not always live"]
    assert _array(tiles["data"][0]["customdata"]).max() == 1471
    titles = [one["layout"]["title"]["text"] for one in (execution, operations, compared)]
    assert [text.partition(",")[0] for text in titles] == [
        "Execution",
        "Operations",
        "Cycles by cause",
    ]


def _array(values: Any) -> Any:
    """Read an array as plotly writes it: dtype and base64."""
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])


def test_a_report_by_itself_shows_fit_memory_peak_cycles_and_findings(ran: Any) -> None:
    html = shown(ran, "text/html")[0]
    heads = re.findall("<th[^>]*>([^<]+)</th>", html)
    assert heads == ["Fit", "Memory", "Peak", "Cycles", *(f"Finding {n}" for n in (1, 2, 3))]


def test_sql_in_the_notebook_names_the_slowest_tile_of_an_exchange(ran: Any) -> None:
    table = shown(ran, "text/plain")[-1]
    cycles = openReport(REPORT).dataset.array("exchange_cycles")
    tile = np.unravel_index(cycles.argmax(), cycles.shape)[1]
    first = next(line for line in table.splitlines() if line.startswith("0 "))
    assert first.split()[1:3] == [str(tile), str(cycles.max())]


def test_the_notebook_finds_no_broken_law(ran: Any) -> None:
    assert "laws hold, 0 are broken" in printed(ran)
