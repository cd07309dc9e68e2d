"""The declared columns of analyses against what they give."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pva.analysis
from pva.analysis import CATALOGUE, COMPARISONS
from pva.analysis.columns import COLUMNS
from pva.analysis.glossary import MEANINGS
from pva.errors import NotRecordedError
from pva.report import Report, openReport
from pva.trace import openTrace
from tests.analysis.samples import SAMPLES
from tests.builders import small_report
from tests.many.planted import Plan, planted

SERVED = Path(__file__).parents[1] / "traces" / "served.json"  # as Triton writes it
SOURCES: dict[str, Any] = {
    "trace": lambda: openTrace(SAMPLES / "mlp_digits_tiny"),
    "served": lambda: openTrace(SERVED),
    "report": lambda: Report.of(small_report()),
    "traced": lambda: openReport(SAMPLES / "mlp_digits_tiny"),
    "run": lambda: planted(Plan(instances=3), 0),
}


def given_columns(name: str) -> list[str]:
    subject, *more = inspect.signature(CATALOGUE[name]).parameters.values()
    required = {p.name: 0 for p in more if p.default is inspect.Parameter.empty}
    wing = CATALOGUE[name].__module__.rpartition(".")[2]
    source = {"serving": "served", "delays": "traced"}.get(wing, subject.name)
    result = CATALOGUE[name](SOURCES[source](), **required)
    if dataclasses.is_dataclass(result):
        return [field.name for field in dataclasses.fields(result)]
    return list((result.reset_index() if result.index.name else result).columns)


def test_every_analysis_declares_its_columns() -> None:
    assert sorted({*CATALOGUE, *COMPARISONS} ^ set(COLUMNS)) == []


@pytest.mark.parametrize("name", sorted(set(COLUMNS) & set(CATALOGUE)))
def test_declared_columns_are_those_given(name: str) -> None:
    declared, found = list(COLUMNS[name]), given_columns(name)
    if "*" in declared:
        place = declared.index("*")
        assert found[:place] == declared[:place]
        after = declared[place + 1 :]
        assert found[len(found) - len(after) :] == after
    else:
        assert found == declared, " ".join(found)


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_declares_its_columns(name: str) -> None:
    subject = next(iter(inspect.signature(COMPARISONS[name]).parameters.values()))
    source = SOURCES["trace" if subject.annotation == "Trace" else "report"]()
    table = COMPARISONS[name](source, source)
    assert list(table.units.items()) == list(COLUMNS[name].items())
    assert all(table.meanings.values())


def test_the_glossary_has_the_columns_that_there_are() -> None:
    """`MEANINGS[name]` fails for a column that it lacks; what no analysis has goes."""
    columns = {column for units in COLUMNS.values() for column in units.items()}
    used = {f"{name}:{unit}" if f"{name}:{unit}" in MEANINGS else name for name, unit in columns}
    assert sorted(set(MEANINGS) ^ used) == []


def test_an_analysis_that_needs_no_pandas_imports_none() -> None:
    names = [name for name in CATALOGUE if name in OF_ARRAYS and "report" in parameters(name)]
    assert len(names) > 50
    without = "import sys; sys.modules['pandas'] = None"
    code = f"{without}; from tests.analysis.test_columns import arrays; arrays({names})"
    subprocess.run([sys.executable, "-c", code], check=True)


def arrays(names: list[str]) -> None:
    """Compute analyses of a report, where pandas may not be there."""
    report = openReport(SAMPLES / "newton_pipeline_replicas")
    for name in names:
        required = {key: 0 for key, p in parameters(name).items() if p.default is p.empty}
        try:
            CATALOGUE[name](**required | {"report": report}).arrays  # noqa: B018
        except NotRecordedError:
            continue


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(CATALOGUE[name]).parameters)


# Functions that say that they give columns, not a DataFrame; the rules of two ask for frames.
OF_ARRAYS = {
    function.name
    for path in Path(pva.analysis.__file__).parent.rglob("*.py")
    for function in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(function, ast.FunctionDef)
    and isinstance(function.returns, ast.Name)
    and function.returns.id == "Columns"
} - {"insights", "unchecked_rules"}
