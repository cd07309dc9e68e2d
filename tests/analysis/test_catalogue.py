"""The catalogue of analyses and the page made from it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from pva import schema
from pva.analysis import CATALOGUE, COMPARISONS
from pva.analysis.document import markdown
from pva.analysis.table import Table
from pva.data.dataset import Dataset
from pva.errors import NotRecordedError, PvaError
from pva.report import Report, openReport
from tests.analysis.reads import parts_read
from tests.analysis.samples import NAMES, opened, small
from tests.builders import small_report
from tests.pva import chapter
from tests.strategies import datasets

PAGE = Path(__file__).parents[2] / "docs" / "analyses.md"
OF_REPORTS = [
    name
    for name, analysis in CATALOGUE.items()
    if next(iter(inspect.signature(analysis).parameters)) == "report"
]
# Of rows like these a report has at least one.
NEVER_EMPTY = {
    "report",
    "target",
    "graph",
    "execution",
    "tile_cycles",
    "liveness",
    "memory_by_tile",
}
QUESTIONS = {
    "Add", "Assign", "Compare", "Count", "Describe", "Find", "Lay", "List", "Return", "Sketch",
    "Sum",
}  # fmt: skip


def required(analysis: Any) -> dict[str, int]:
    """Return 0 for every option that has no default."""
    parameters = list(inspect.signature(analysis).parameters.values())[1:]
    return {p.name: 0 for p in parameters if p.default is inspect.Parameter.empty}


def asked(name: str, report: Report) -> Any:
    return CATALOGUE[name](report, **required(CATALOGUE[name]))


@cache
def answered(name: str, sample: str) -> Any:
    """Return the answer on a sample, or the error that says what was not recorded."""
    try:
        return asked(name, opened(sample))
    except NotRecordedError as error:
        return error


@cache
def emptied(table: str) -> Any:
    return small(**{table: {column.name: [] for column in schema.TABLE[table].columns}})


def test_catalogue_has_what_users_ask_for() -> None:
    assert len(CATALOGUE) >= 30
    assert all(analysis.__name__ == name for name, analysis in CATALOGUE.items())


@pytest.mark.parametrize("sample", NAMES)
@pytest.mark.parametrize("name", OF_REPORTS)
def test_every_analysis_answers_or_says_what_was_not_recorded(name: str, sample: str) -> None:
    result = answered(name, sample)
    if isinstance(result, NotRecordedError):
        options = ("engine option", "compileIPUCode", "PVTI_OPTIONS")
        assert "\n" not in str(result) and any(option in str(result) for option in options)
        return
    assert isinstance(result, Table) or dataclasses.is_dataclass(result)


@pytest.mark.parametrize("sample", NAMES)
@pytest.mark.parametrize("name", OF_REPORTS)
def test_shares_and_balances_are_fractions(name: str, sample: str) -> None:
    result = answered(name, sample)
    if isinstance(result, NotRecordedError):
        return
    fields = result if isinstance(result, Table) else dataclasses.asdict(result)
    for column in fields:
        if column.endswith(("share", "balance")):
            values = np.asarray(fields[column], dtype=np.float64)
            known = values[~np.isnan(values)]
            assert ((known >= 0) & (known <= 1 + 1e-9)).all(), column


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Open a sample as documents with the keys of the user guide's chapter alone."""
    return cut("matmul_chain_tiny", tmp_path_factory)


@pytest.fixture(scope="module")
def old_replicas(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Open one with replicas so, of which the chapter has no key."""
    return cut("newton_pipeline_replicas", tmp_path_factory)


def cut(sample: str, tmp_path_factory: pytest.TempPathFactory) -> Report:
    data = opened(sample).dataset
    folder = tmp_path_factory.mktemp("old")
    documents = {"graph": chapter.graph_profile(data), "execution": chapter.execution_profile(data)}
    for document, content in documents.items():
        (folder / f"{document}.json").write_text(json.dumps(content))
    return openReport(folder)


@pytest.mark.parametrize("name", OF_REPORTS)
def test_old_documents_are_answered_or_the_part_is_named(name: str, old: Report) -> None:
    try:
        result = asked(name, old)
    except NotRecordedError as error:
        assert "not recorded" in str(error) or "compileIPUCode" in str(error)
        return
    assert isinstance(result, Table) or dataclasses.is_dataclass(result)


FIGURES = (
    "cycles_by_phase", "cycles_by_tile", "cycles_by_ipu", "tile_balance", "thread_balance",
    "sync_waits", "traffic_by_tile", "exchange_matrix", "stream_bandwidth", "overlap",
    "longest_steps", "fragmentation", "memory_by_ipu", "memory_by_region",
)  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_old_documents_give_the_same_figures(name: str, old: Report) -> None:
    pd.testing.assert_frame_equal(
        asked(name, old).frame(), asked(name, opened("matmul_chain_tiny")).frame()
    )


# Several runs: the chapter does not tell where they part, nor the programs of syncs.
@pytest.mark.parametrize("name", sorted({*FIGURES} - {"longest_steps", "sync_waits"}))
def test_old_documents_of_replicas_give_the_same_figures(name: str, old_replicas: Report) -> None:
    whole = opened("newton_pipeline_replicas")
    pd.testing.assert_frame_equal(asked(name, old_replicas).frame(), asked(name, whole).frame())


@pytest.mark.parametrize("name", OF_REPORTS)
def test_a_report_with_an_empty_table_is_answered(name: str) -> None:
    for table in parts_read(name) & {*small_report().tables} - NEVER_EMPTY:
        try:
            asked(name, emptied(table))
        except PvaError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("name", sorted({*OF_REPORTS} - {"host_delays"}))  # which has no trace
def test_steps_of_unknown_programs_are_no_fault(name: str) -> None:
    table = dict(small().dataset.table("steps"))
    report = small(steps=table | {"program": np.full(len(table["program"]), -1)})
    result = asked(name, report)
    assert isinstance(result, Table) or dataclasses.is_dataclass(result)


@cache
def lost(table: str) -> Any:
    """Return the small report without a table; what numbers its rows is as large as can be."""
    changes: dict[str, Any] = {table: None}
    for other in {*small_report().tables} - {table}:
        columns = [c.name for c in schema.TABLE[other].columns if c.range.rows == table]
        values = small_report().table(other)
        large = {name: np.full(len(values[name]), 2**62) for name in columns}
        changes |= {other: dict(values) | large} if columns else {}
    return small(**changes)


NUMBERED = sorted({column.range.rows for table in schema.TABLES for column in table.columns} - {""})


@pytest.mark.parametrize("table", NUMBERED)
@pytest.mark.parametrize("name", OF_REPORTS)
def test_rows_of_a_table_that_is_lost_may_be_any_numbers(name: str, table: str) -> None:
    try:
        result = asked(name, lost(table))
    except PvaError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(result, Table) or dataclasses.is_dataclass(result)


@settings(max_examples=40, deadline=None)
@given(datasets())
def test_any_report_is_answered_or_refused_in_one_line(data: Dataset) -> None:
    for name in OF_REPORTS:
        try:
            asked(name, Report.of(data))
        except PvaError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_analysis_says_what_it_gives(name: str) -> None:
    first = (inspect.getdoc(CATALOGUE[name]) or "").splitlines()[0]
    assert first.split()[0] in QUESTIONS
    assert first.endswith((".", ";", ":")) and len(first) > 20


def test_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "write it again: make documents"


def test_each_analysis_is_imported_from_pva_analysis_by_its_name() -> None:
    from pva import analysis

    modules = {file.stem for file in Path(analysis.__file__).parent.iterdir()}
    assert modules & set(CATALOGUE) == set()  # a module would stand in the function's place
    for name, function in {**CATALOGUE, **analysis.COMPARISONS}.items():
        assert name in dir(analysis)
        assert getattr(analysis, name) is function


def test_a_name_that_no_analysis_has_tells_the_nearest() -> None:
    from pva import analysis

    with pytest.raises(KeyError, match="no analysis cycle_by_program; did you mean cycles_by_pro"):
        CATALOGUE["cycle_by_program"]
    with pytest.raises(AttributeError, match="'cycle_by_program'; did you mean cycles_by_program"):
        _ = analysis.cycle_by_program


@pytest.mark.parametrize("name", OF_REPORTS)
def test_something_else_than_a_report_is_told_in_one_line(name: str) -> None:
    analysis = CATALOGUE[name]
    for kind, other in [("path", "r"), ("path", PAGE), ("path", b"r"), ("NoneType", None)]:
        wanted = f"{name}: report: a {kind}; give what pva.openReport(path) gives"
        assert refused(analysis, other, **required(analysis)) == wanted


def test_what_is_given_by_name_or_is_no_trace_is_told_too() -> None:
    report, traced = opened(NAMES[0]), CATALOGUE["longest_events"]
    assert "a path; give what pva.openTrace" in refused(traced, "run.pvti")
    assert "a Report; give what pva.openTrace" in refused(traced, trace=report)
    compared = COMPARISONS["compare_figures"]
    assert "after: a path; give what pva.openReport" in refused(compared, report, after="report")
    assert "before: a path; give what pva.openReport" in refused(compared, "report", report)
    labels = COMPARISONS["compare_labels"]
    assert "before: a Report; give what pva.openTrace" in refused(labels, report, report)


def refused(analysis: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(PvaError) as caught:
        analysis(*given, **named)
    return str(caught.value)


def test_the_catalogue_is_shown_with_what_each_analysis_tells() -> None:
    line = "Return by how many cycles each program made the recorded runs longer, most first."
    assert re.search(rf"^cycles_by_program +{line}$", repr(CATALOGUE), re.MULTILINE)
    assert f"<th>cycles_by_program</th><td>{line}</td>" in CATALOGUE._repr_html_()
    assert len(repr(CATALOGUE).splitlines()) == len(CATALOGUE)


def test_figures_are_shown_one_a_row_with_their_units() -> None:
    report = openReport(Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny")
    options: dict[str, dict[str, int]] = {"step_executions": {"step": 16}}
    options |= dict.fromkeys(("program_figures", "written_figures"), {"program": 0})
    options["variable_figures"] = {"variable": 0}
    shown = {}
    for name, analysis in CATALOGUE.items():
        if OF_REPORTS.count(name) and inspect.signature(analysis).return_annotation != "Table":
            shown[name] = analysis(report, **options.get(name, {}))._repr_html_()
    assert len(shown) == 11
    assert (
        "<tr><td>cycles</td><td>2,367,912</td><td>cycles</td></tr>" in shown["execution_overview"]
    )
    part = "<td>tile_cycles: stream_copy</td><td>358,159</td><td>tile cycles</td>"
    assert part in shown["execution_overview"]
    assert "<td>fullest_share</td><td>0.336338</td><td>fraction</td>" in shown["memory_overview"]
