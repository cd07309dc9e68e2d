"""The figures of a notebook: each with title, units and hover, and the numbers of the report."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plotly.io import renderers

import pva
from pva.errors import MissingPackageError, PvaError
from pva.plot.theme import THEMES, Theme
from pva.report import Report
from tests.builders import small_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
MARKS = 2000  # of a bar trace; above, browsers stall


@pytest.fixture(scope="module")
def report() -> Report:
    return pva.openReport(SAMPLES / "newton_pipeline_replicas")


@pytest.fixture(scope="module")
def trace() -> pva.Trace:
    return pva.openTrace(SAMPLES / "mlp_digits_tiny")


def figures(report: Report, trace: pva.Trace, theme: Theme) -> list[Any]:
    """Draw each figure once."""
    other = pva.openReport(SAMPLES / "matmul_chain_tiny")
    return [
        *(report.plot.memory(by=by, theme=theme) for by in ("category", "region", "liveness")),
        report.plot.tile_map(theme=theme),
        report.plot.liveness(theme=theme),
        report.plot.execution(theme=theme),
        report.plot.operations(theme=theme),
        *(report.plot.compare(other, of, theme=theme) for of in ("memory", "liveness", "cycles")),
        trace.plot.timeline(theme=theme),
        trace.plot.labels(theme=theme),
    ]


@pytest.mark.parametrize("theme", THEMES)
def test_each_figure_has_a_title_with_its_unit_a_hover_and_few_bars(
    report: Report, trace: pva.Trace, theme: Theme
) -> None:
    for figure in figures(report, trace, theme):
        title = figure.layout.title.text
        assert re.search("bytes|cycles|events|time", title), title
        assert any(data.hovertemplate for data in figure.data), title
        assert all(data.type != "bar" or len(data.y) <= MARKS for data in figure.data), title
        assert figure.layout.paper_bgcolor == ("#ffffff" if theme == "light" else "#1c2027")


@pytest.mark.parametrize(
    ("notebook", "form"),
    [
        ("jupyterlab", "application/vnd.plotly.v1+json"),
        ("vscode", "application/vnd.plotly.v1+json"),
        ("colab", "text/html"),
    ],
)
def test_each_notebook_gets_the_form_that_it_draws(
    notebook: str, form: str, report: Report, trace: pva.Trace
) -> None:
    for figure in figures(report, trace, "light"):
        content = renderers[notebook].to_mimebundle(figure.to_dict())[form]
        text = content if isinstance(content, str) else json.dumps(content)
        assert figure.layout.title.text.partition("<")[0] in text


def test_the_categories_of_the_fullest_tile_add_up_to_what_it_needs(report: Report) -> None:
    drawn = sum(np.asarray(data.y, dtype=float) for data in report.plot.memory().data)
    needs = report.dataset.column("memory_by_tile", "total_including_gaps")
    assert drawn.max() * 1024 == pytest.approx(needs.max())


def test_execution_shows_the_steps_from_first_to_last(report: Report) -> None:
    begin, end = (report.dataset.column("steps", n) for n in ("cycles_from", "cycles_to"))
    figure = report.plot.execution(10, 60)
    assert figure.layout.title.text.startswith("Execution, steps 10 to 60,")
    assert figure.layout.xaxis.range == (begin[10:61].min(), end[10:61].max())


@pytest.mark.parametrize(("first", "last"), [(5, 4), (-1, 3), (0, 1_000_000)])
def test_steps_that_are_not_there_are_refused(report: Report, first: int, last: int) -> None:
    with pytest.raises(PvaError, match="866 executed steps"):
        report.plot.execution(first, last)


def test_operations_are_bars_of_their_cycles_the_most_on_top(report: Report) -> None:
    figure = report.plot.operations()
    by_operation = report.sql("select sum(cycles) from steps where type != 'Sync'").iloc[0, 0]
    lengths = sum(np.asarray(data.x, dtype=np.int64) for data in figure.data)
    assert (np.diff(lengths) <= 0).all()
    assert lengths.sum() >= by_operation > 0


def test_names_are_data_in_figures_and_at_a_glance() -> None:
    names = small_report().table("programs") | {"name": ["<script>alert(1)</script>"] * 14}
    report = Report.of(small_report(programs=names))
    drawn = report.plot.execution(), report.plot.operations()
    for text in (report._repr_html_(), *(figure.to_json() for figure in drawn)):
        assert "alert(1)" in text
        assert "<script>" not in text


def test_a_glance_says_what_was_not_recorded() -> None:
    html = Report.of(small_report(liveness_steps=None))._repr_html_()
    assert re.search("Fit</th><td[^>]*>fits", html)
    html = Report.of(small_report().select("execution"))._repr_html_()
    assert re.search("Memory</th><td[^>]*>not recorded: .*autoReport.outputGraphProfile", html)


def test_each_finding_has_the_command_that_proves_it(report: Report) -> None:
    html = report._repr_html_()
    for name in report.insights["show"].head(3):
        assert f"tilescope show {name} {report.path}" in html


def test_insights_and_comparisons_are_one_attribute_away(report: Report) -> None:
    from pva.analysis import CATALOGUE, COMPARISONS

    assert report.insights.equals(CATALOGUE["insights"](report).frame())
    assert (report.compare(report)["change"] == 0).all()
    wanted = COMPARISONS["compare_categories"](report, report).frame()
    assert report.compare(report, "categories").equals(wanted)
    with pytest.raises(PvaError, match="did you mean figures"):
        report.compare(report, "figure")


def test_without_plotly_the_message_names_the_extra(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("pva.plot", "plotly"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.delitem(report.__dict__, "plot", raising=False)
    with pytest.raises(MissingPackageError, match="tilescope\\[notebook\\]"):
        _ = report.plot
