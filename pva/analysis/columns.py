"""What an analysis declares where it is: the columns or fields of its result, with their units.

    @analysis("step name cycles:cycles share:fraction")
    def longest_steps(report: Report) -> pd.DataFrame:

`NAME:UNIT`, a number without a unit is a count, an index or an identifier; `*` stands for columns
that depend on the report. The module has an ORDER, by which the catalogue lists its analyses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Columns and their units by analysis, of the modules that have been imported.
COLUMNS: dict[str, dict[str, str]] = {}


def analysis(text: str) -> Callable[[Function], Function]:
    """Declare a function as an analysis whose result has these columns or fields."""

    def declare(function: Function) -> Function:
        COLUMNS[function.__name__] = dict(map(_column, text.split()))
        return function

    return declare


def _column(word: str) -> tuple[str, str]:
    name, _, unit = word.partition(":")
    return name, unit.replace("-", " ")
