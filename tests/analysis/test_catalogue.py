"""The catalogue of analyses and the page made from it."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pva.analysis import CATALOGUE
from pva.analysis.document import markdown
from tests.builders import small_report

PAGE = Path(__file__).parents[2] / "docs" / "analyses.md"
OF_REPORTS = [
    name
    for name, analysis in CATALOGUE.items()
    if next(iter(inspect.signature(analysis).parameters)) == "report"
]


def required(analysis: Any) -> dict[str, int]:
    """Give 0 for every option that has no default."""
    parameters = list(inspect.signature(analysis).parameters.values())[1:]
    return {p.name: 0 for p in parameters if p.default is inspect.Parameter.empty}


@pytest.mark.parametrize("name", OF_REPORTS)
def test_every_analysis_answers_with_a_frame_or_a_dataclass(name: str) -> None:
    report: Any = SimpleNamespace(dataset=small_report())
    result = CATALOGUE[name](report, **required(CATALOGUE[name]))
    assert isinstance(result, pd.DataFrame) or dataclasses.is_dataclass(result)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_analysis_says_what_it_gives(name: str) -> None:
    first = (inspect.getdoc(CATALOGUE[name]) or "").splitlines()[0]
    assert first.endswith((".", ";", ":")) and len(first) > 20


def test_page_is_what_the_catalogue_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "write it again: make documents"
