"""The example notebook runs, and shows what the library says of the same report."""

from __future__ import annotations

import base64
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.analysis import CATALOGUE
from pva.report import openReport

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebooks" / "explore_report.ipynb"
REPORT = ROOT / "sample_reports" / "matmul_chain_mk2"
FIGURE = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the notebook in a kernel of its own, whose settings are nobody's."""
    settings = tmp_path_factory.mktemp("jupyter")
    names = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    environment = dict.fromkeys(names, str(settings)) | {"PYTHONPATH": str(ROOT)}
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    place = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=600, resources=place)
    return client.execute(env=os.environ | environment)


def shown(notebook: Any, kind: str) -> list[Any]:
    """Give what the cells show of one kind, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def printed(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    nbformat.validate(notebook)


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
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.get("name") == "stderr"] == []


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
