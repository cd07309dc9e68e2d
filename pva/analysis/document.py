"""`docs/analyses.md`, made from the catalogue. A test compares the file with what this gives."""

from __future__ import annotations

import inspect
import textwrap

from pva.analysis import CATALOGUE
from pva.analysis.catalogue import Analysis, told
from pva.analysis.columns import COLUMNS

_HEAD = """# Analyses

Each is a function that takes a report (or a host trace, or a run of many instances) and gives a
DataFrame or a small frozen dataclass. `pva.analysis.CATALOGUE` has them by name; they are imported
from the module that stands with each, or from `pva.analysis` where no module there has the name.
On the command line:

    tilescope show NAME REPORT [OPTIONS] [--where 'COLUMN OP VALUE'] [--sort COLUMN] [--limit N]
                               [--format table|json|csv|parquet]

This file is made from their docstrings by `make documents`.
"""


_ENTRIES = tuple(CATALOGUE.items())


def markdown() -> str:
    """Write the page."""
    contents = [f"| [{name}](#{name}) | {told(analysis)} |" for name, analysis in _ENTRIES]
    table = "\n".join(["| analysis | what it tells |", "| --- | --- |", *contents, ""])
    return "\n".join([_HEAD, table, *(_section(*entry) for entry in _ENTRIES)])


def _section(name: str, analysis: Analysis) -> str:
    subject, *keywords = inspect.signature(analysis).parameters.values()
    call = ", ".join([subject.name, *map(_argument, keywords)])
    command = " ".join(["tilescope show", name, subject.name.upper(), *map(_option, keywords)])
    lines = (
        f"## {name}",
        "",
        inspect.getdoc(analysis) or "",
        "",
        _columns(name, analysis),
        "",
        f"    {analysis.__module__}.{name}({call})",
        f"    {command}",
        "",
    )
    return "\n".join(lines)


def _columns(name: str, analysis: Analysis) -> str:
    """Name the columns, or the fields of a dataclass, with their units."""
    of_frame = inspect.signature(analysis).return_annotation == "pd.DataFrame"
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
