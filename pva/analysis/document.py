"""`docs/analyses.md`, made from the catalogue. A test compares the file with what this gives."""

from __future__ import annotations

import inspect

from pva import analysis
from pva.analysis.catalogue import Analysis, Catalogue, question_of
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


_TWO_REPORTS = """# Comparisons

Each is a function of two reports, or host traces, and gives such a table, too. `COMPARISONS` has
them by name; `before.compare(after, "tiles")` is the DataFrame of `compare_tiles`. On the command
line, `tilescope compare BEFORE AFTER` prints the figures, and with `--by` one of the others.
"""


def markdown() -> str:
    """Write the page."""
    return "\n".join(
        [
            _HEAD,
            _contents(analysis.CATALOGUE),
            *(_section(name, _calls(name, of)) for name, of in analysis.CATALOGUE.items()),
            _TWO_REPORTS,
            _contents(analysis.COMPARISONS),
            *(_section(name, _call(name, of)) for name, of in analysis.COMPARISONS.items()),
        ]
    )


def _contents(catalogue: Catalogue) -> str:
    rows = [
        f"| [{name}](#{name}) | {question_of(analysis)} |" for name, analysis in catalogue.items()
    ]
    return "\n".join(["| analysis | what it tells |", "| --- | --- |", *rows, ""])


def _call(name: str, function: Analysis) -> str:
    arguments = map(_argument, inspect.signature(function).parameters.values())
    return f"    pva.analysis.{name}({', '.join(arguments)})"


def _calls(name: str, function: Analysis) -> str:
    subject, *keywords = inspect.signature(function).parameters.values()
    command = " ".join(["tilescope show", name, subject.name.upper(), *map(_option, keywords)])
    return f"{_call(name, function)}\n    {command}"


def _section(name: str, calls: str) -> str:
    function = getattr(analysis, name)
    lines = (
        f"## {name}",
        "",
        inspect.getdoc(function) or "",
        "",
        _columns(name, function),
        "",
        calls,
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


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return parameter.name
    required = parameter.default is inspect.Parameter.empty
    return f"{parameter.name}=..." if required else f"{parameter.name}={parameter.default}"


def _option(keyword: inspect.Parameter) -> str:
    option = f"--{keyword.name.replace('_', '-')} N"
    return option if keyword.default is inspect.Parameter.empty else f"[{option}]"
