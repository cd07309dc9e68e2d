"""The declared columns of analyses against what they give."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

from pva.analysis import CATALOGUE
from pva.analysis.columns import COLUMNS
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
    assert sorted(set(CATALOGUE) ^ set(COLUMNS)) == []


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
