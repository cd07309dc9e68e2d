"""What an analysis declares where it is: the columns or fields of its result, with their units.

    @analysis("step name cycles:cycles share:fraction")
    def longest_steps(report: Report) -> Columns:

`NAME:UNIT`, a number without a unit is a count, an index or an identifier; `*` stands for columns
that depend on the report. The function computes NumPy columns by name; its caller gets a `Table` of
them. The module has an ORDER, by which the catalogue lists its analyses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from pva.analysis.glossary import MEANINGS
from pva.analysis.table import Columns, Declared, Table

Parameters = ParamSpec("Parameters")
Figures = TypeVar("Figures")  # a small frozen dataclass


class Declare(Protocol):
    """Makes an analysis of a function; figures stay as they are, columns become a table."""

    @overload
    def __call__(self, function: Callable[Parameters, Columns]) -> Callable[Parameters, Table]: ...
    @overload
    def __call__(
        self, function: Callable[Parameters, Figures]
    ) -> Callable[Parameters, Figures]: ...


# Columns and their units by analysis, of the modules that have been imported.
COLUMNS: dict[str, dict[str, str]] = {}
DECLARED: dict[str, Declared] = {}  # with what they mean, also of tables that no catalogue lists


def analysis(text: str, *, index: str | None = None, **meanings: str) -> Declare:
    """Declare a function as an analysis whose result has these columns or fields.

    `index` is the column that is the index of the rows of its DataFrame; `meanings` are those of
    columns that mean something else here than the glossary says.
    """
    declare = table(text, index=index, **meanings)

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        declaring = declare(function)
        COLUMNS[function.__name__] = DECLARED[function.__name__].units
        return declaring

    return listed


def table(text: str, *, index: str | None = None, **meanings: str) -> Declare:
    """Declare the columns of a function that no catalogue lists, as `analysis` does."""
    units = dict(map(_column, text.split()))
    general = {
        name: meanings.get(name) or MEANINGS.get(f"{name}:{unit}") or MEANINGS[name]
        for name, unit in units.items()
    }
    declared = Declared(units, general)

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        DECLARED[function.__name__] = declared
        if is_dataclass(_result(function)):
            return function
        function.__annotations__["return"] = Table.__name__  # for help() and the documents

        @functools.wraps(function)
        def tabled(*arguments: object, **named: object) -> Table:
            return Table(function(*arguments, **named), declared, index)

        return tabled

    return declare


def _result(function: Callable[..., Any]) -> object:
    """Return the class that a function returns, where its module has it."""
    annotation = function.__annotations__["return"]
    return function.__globals__.get(annotation) if isinstance(annotation, str) else annotation


def _column(word: str) -> tuple[str, str]:
    name, _, unit = word.partition(":")
    return name, unit.replace("-", " ")
