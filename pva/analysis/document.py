"""`docs/analyses.md`, made from the catalogue. A test compares the file with what this gives."""

from __future__ import annotations

import inspect

from pva import analysis
from pva.analysis.catalogue import Analysis, question_of
from pva.analysis.columns import DECLARED
from pva.analysis.table import ANY, Table

_HEAD = """# Analyses

Each is a function that takes a report (or a host trace, or a run of many instances) and gives a
frozen table of NumPy columns or a small frozen dataclass. Each is imported from `pva.analysis`,
whose `CATALOGUE` has them by name. Of a table, `arrays`, `units` and `meanings` are by column, and
`frame()` is a DataFrame; whatever else is asked of it, such as `table.sort_values("bytes")` or
`table["bytes"].max()`, is asked of that DataFrame. On the command line:

    tilescope show NAME REPORT [OPTIONS] [--where 'COLUMN OP VALUE'] [--sort COLUMN] [--limit N]
                               [--format table|json|csv|parquet]

This file is made from their docstrings by `make documents`.
"""


def markdown() -> str:
    """Write the page."""
    contents = [
        f"| [{name}](#{name}) | {question_of(analysis)} |"
        for name, analysis in tuple(analysis.CATALOGUE.items())
    ]
    table = "\n".join(["| analysis | what it tells |", "| --- | --- |", *contents, ""])
    return "\n".join([_HEAD, table, *(_section(*entry) for entry in analysis.CATALOGUE.items())])


def _section(name: str, function: Analysis) -> str:
    subject, *keywords = inspect.signature(function).parameters.values()
    call = ", ".join([subject.name, *map(_argument, keywords)])
    command = " ".join(["tilescope show", name, subject.name.upper(), *map(_option, keywords)])
    lines = (
        f"## {name}",
        "",
        inspect.getdoc(function) or "",
        "",
        _columns(name, function),
        "",
        f"    pva.analysis.{name}({call})",
        f"    {command}",
        "",
    )
    return "\n".join(lines)


def _columns(name: str, function: Analysis) -> str:
    """Write a table of the columns, or of the fields of a dataclass: units and meanings."""
    of_rows = inspect.signature(function).return_annotation == Table.__name__
    declared = DECLARED[name]
    rows = (
        f"| {'(others)' if column == ANY else column} | {unit} | {declared.meaning(column)} |"
        for column, unit in declared.units.items()
    )
    head = f"| {'column' if of_rows else 'field'} | unit | meaning |"
    return "\n".join([head, "| --- | --- | --- |", *rows])


def _argument(keyword: inspect.Parameter) -> str:
    required = keyword.default is inspect.Parameter.empty
    return f"{keyword.name}=..." if required else f"{keyword.name}={keyword.default}"


def _option(keyword: inspect.Parameter) -> str:
    option = f"--{keyword.name.replace('_', '-')} N"
    return option if keyword.default is inspect.Parameter.empty else f"[{option}]"
