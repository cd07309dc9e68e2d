"""`tilescope sql REPORT QUERY`: any question that SQL can ask of a report's tables."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.descriptions.run_info import is_run
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import (
    OBJECT,
    format_option,
    limit_option,
    of_frame,
    write_result,
    write_rows_object,
)
from cli.shared.source import name_problems, open_report, open_run

EXAMPLES = """
\b
Examples:
  tilescope sql run/ "select name, bytes from variables order by bytes desc"
  tilescope sql run/ "select p.name, sum(s.cycles) as cycles
    from steps s join programs p on p.row = s.program group by p.name" --format csv
  tilescope sql run/ - < question.sql
  tilescope info run/ --tables         the tables and arrays that there are
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("report", metavar="REPORT", type=click.Path())
@click.argument("query", metavar="QUERY")
@format_option
@limit_option
def sql(report: str, query: str, form: str, limit: int | None) -> None:
    """Answer one SELECT over the tables and arrays of a report.

    QUERY is SQL, or - to read it from stdin. A table has a column row, from 0, that others refer
    to: steps.program = programs.row. An array has a column for each index and one for its values,
    without zeros. Whole numbers divide to whole numbers; what is missing is null. Quote the
    column "end". Tables of a run of several instances have columns instance and host, too. DuckDB
    answers when it is installed (pip install 'tilescope[sql]'), else SQLite,
    for tables that are not large.
    """
    text = query if query != "-" else sys.stdin.read() if sys.stdin else ""
    opened = open_run(report) if is_run(Path(report)) else open_report(report)
    result = opened.sql(text)
    name_problems(opened)
    if form == OBJECT:
        write_rows_object("sql", report, of_frame(result), limit, query=text)
    else:
        write_result(result, form, limit)


COMMAND = Declaration(
    command=sql,
    order=50,
    usage={
        "`tilescope sql REPORT QUERY`": "Any question that SQL can ask of the report's tables",
    },
    calls=(
        "sql run 'select name, bytes from variables where bytes > 40 order by bytes desc'",
        "sql run 'select nam from variables'",
    ),
    reports=(),
    steps=("sql IN SELECT",),
)
