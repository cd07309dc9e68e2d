"""`docs/analyses.md`, made from the catalogue. A test compares the file with what this gives."""

from __future__ import annotations

import inspect
import textwrap

from pva import analysis
from pva.analysis.catalogue import Analysis, question_of
from pva.analysis.columns import COLUMNS
from pva.analysis.table import Table

_HEAD = """# Analyses

Each is a function that takes a report (or a host trace, or a run of many instances) and gives a
DataFrame or a small frozen dataclass. Each is imported from `pva.analysis`, whose `CATALOGUE` has
them by name. On the command line:

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
    """Name the columns, or the fields of a dataclass, with their units."""
    of_frame = inspect.signature(function).return_annotation == Table.__name__
    columns = COLUMNS[name].items()
    named = ((column.replace("*", "one for each that there is"), unit) for column, unit in columns)
    text = ", ".join(f"{column} ({unit})" if unit else column for column, unit in named)
    return "\n".join(textwrap.wrap(f"{'Columns' if of_frame else 'Fields'}: {text}.", 100))


def _argument(keyword: inspect.Parameter) -> str:
    required = keyword.default is inspect.Parameter.empty
    return f"{keyword.name}=..." if required else f"{keyword.name}={keyword.default}"


def _option(keyword: inspect.Parameter) -> str:
    option = f"--{keyword.name.replace('_', '-')} N"
    return option if keyword.default is inspect.Parameter.empty else f"[{option}]"
