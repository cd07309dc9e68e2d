"""`tilescope fleet`: thousands of reports in one directory, to ask, to compare and to map over."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command, Group
from cli.shared.output import (
    OBJECT,
    counted,
    format_option,
    limit_option,
    of_frame,
    printable,
    write_object,
    write_result,
    write_rows_object,
)
from pva.lazy import pandas as pd

EXAMPLES = """
\b
Examples:
  tilescope fleet add fleet/ runs/*/ --tags 'bs(?P<batch>[0-9]+)-(?P<sdk>.+)'
  tilescope fleet show trend total_cycles fleet/ --by sdk
  tilescope fleet sql fleet/ "select path, largest_tile from reports order by 2 desc limit 5"
  tilescope fleet map insights fleet/ --dask tcp://scheduler:8786
"""
ADD_EXAMPLES = """
\b
Examples:
  tilescope fleet add fleet/ runs/*/ --table runs       key figures, and the table runs
  tilescope fleet add fleet/ today/ --tag nightly       one tag, called tag
  tilescope fleet add fleet/ a/ b/ --tag sdk=3.4        a tag by name
"""
SHOWS = ("trend",)
_dask = click.option("--dask", metavar="ADDRESS", help="Run on Dask, as in tcp://host:8786.")
_workers = click.option(
    "--workers", type=click.IntRange(min=0), default=0,
    help="Processes on this machine.  [default: one a core]",
)  # fmt: skip


@click.group(cls=Group, epilog=EXAMPLES, no_args_is_help=True)
def fleet() -> None:
    """Keep the figures of many reports, ask all of them, or run an analysis on each."""


@fleet.command("add", cls=Command, epilog=ADD_EXAMPLES)
@click.argument("directory", metavar="FLEET", type=click.Path())
@click.argument("reports", metavar="REPORT...", nargs=-1, required=True, type=click.Path())
@click.option("--table", "tables", multiple=True, help="A table to keep, too; once for each.")
@click.option("--tag", "tag", multiple=True, metavar="[NAME=]VALUE", help="A tag of all of these.")
@click.option("--tags", metavar="REGEX", help="Tags from each path: groups as in (?P<sdk>[0-9.]+).")
@_workers
@_dask
@click.option("--json", "form", flag_value=OBJECT, help="Write one JSON object.")
def add(
    directory: str,
    reports: tuple[str, ...],
    tables: tuple[str, ...],
    tag: tuple[str, ...],
    tags: str | None,
    workers: int,
    dask: str | None,
    form: str | None,
) -> None:
    """Add reports to a fleet, each once by its content; a new FLEET is made.

    Keeps the key figures of each and the tables named when the fleet was made. A report that cannot
    be read is named, and the others are added.
    """
    from pva.many.fleet import addReports

    named = _tags(tag, tags)
    added, problems = addReports(
        directory, reports, tables=tables, tags=named, workers=workers, client=_client(dask),
        progress=_progress,
    )  # fmt: skip
    for line in problems:
        click.echo(f"tilescope: left out: {printable(line)}", err=True)
    existing = len(reports) - len(problems) - added
    if form == OBJECT:
        write_object("fleet add", directory, added=added, known=existing, problems=problems)
    else:
        suffix = f", {existing} there already" if existing else ""
        click.echo(f"{printable(directory)}: {counted(added, 'report')} added{suffix}")
    if problems and len(problems) == len(reports):
        sys.exit(1)


def _progress(finished: int, count: int) -> None:
    """Show on a terminal how many are done."""
    if sys.stderr.isatty():
        click.echo(f"\r{finished} of {counted(count, 'report')}", err=True, nl=finished == count)


def _client(address: str | None) -> object:
    from pva.dask_client import connected

    return connected(address) if address else None


def _tags(tag: tuple[str, ...], pattern: str | None) -> Callable[[str], Mapping[str, str]]:
    """Return what gives the tags of a path; raises UsageError."""
    fixed = {}
    for one in tag:
        name, equals, value = one.partition("=")
        fixed[name if equals else "tag"] = value if equals else name
    try:
        compiled = re.compile(pattern or "")
    except re.error as error:
        raise click.UsageError(f"--tags {pattern}: no regular expression: {error}") from None
    wrong = [name for name in fixed if not re.fullmatch(r"[A-Za-z]\w*", name)]
    if wrong:
        raise click.UsageError(f"--tag {wrong[0]}: a name is of letters, digits and _")

    def of(path: str) -> Mapping[str, str]:
        match = compiled.search(path)
        named = match.groupdict() if match else {}
        return fixed | {name: value for name, value in named.items() if value is not None}

    return of


@fleet.command("sql", cls=Command)
@click.argument("directory", metavar="FLEET", type=click.Path())
@click.argument("query", metavar="QUERY")
@format_option
@limit_option
def sql(directory: str, query: str, form: str, limit: int | None) -> None:
    """Answer one SELECT over `reports` (a row for each: figures, tags) and the tables kept.

    QUERY is SQL, or - to read it from stdin. Tables are joined by the column report.
    """
    from pva.many.fleet import openFleet

    text = query if query != "-" else sys.stdin.read() if sys.stdin else ""
    _write("fleet sql", directory, openFleet(directory).sql(text), form, limit)


@fleet.command("show", cls=Command)
@click.argument("subject", type=click.Choice(SHOWS))
@click.argument("figure", metavar="FIGURE")
@click.argument("directory", metavar="[FLEET]", default=".", type=click.Path())
@click.option("--by", default="tag", show_default=True, help="The tag whose values are compared.")
@format_option
@limit_option
def show(subject: str, figure: str, directory: str, by: str, form: str, limit: int | None) -> None:
    """Show the trend of a key figure over the values of a tag: least, median, most, and change.

    Without FLEET that of this directory. `tilescope check --help` names the figures.
    """
    from pva.many.fleet import openFleet

    del subject  # there is one
    _write("fleet show", directory, openFleet(directory).trend(figure, by=by), form, limit)


@fleet.command("map", cls=Command)
@click.argument("analysis", metavar="ANALYSIS")
@click.argument("directory", metavar="[FLEET]", default=".", type=click.Path())
@_workers
@_dask
@format_option
@limit_option
def map_(
    analysis: str, directory: str, workers: int, dask: str | None, form: str, limit: int | None
) -> None:
    """Run an analysis on every report of a fleet, and print all answers as one table.

    Answers are kept in FLEET/maps: killed, it goes on where it was.
    """
    from pva.many.fleet import openFleet

    opened = openFleet(directory, client=_client(dask))
    frame = opened.map(analysis, workers=workers, progress=_progress)
    for line in opened.problems:
        click.echo(f"tilescope: left out: {printable(line)}", err=True)
    _write("fleet map", directory, frame, form, limit)


def _write(command: str, of: str, frame: pd.DataFrame, form: str, limit: int | None) -> None:
    if form == OBJECT:
        write_rows_object(command, of, of_frame(frame), limit)
    else:
        write_result(frame, form, limit)


COMMAND = Declaration(
    command=fleet,
    order=170,
    usage={
        "`tilescope fleet add\\|sql\\|show\\|map`": (
            "The figures of thousands of reports in one directory"
            " ([docs/fleets.md](docs/fleets.md))"
        ),
    },
    calls=(
        "fleet add fleet run changed run --tag nightly --workers 1 --table runs",
        "fleet show trend total_cycles fleet",
        "fleet show trend total_cycle fleet",
        (
            "fleet sql fleet 'select tag, count(*) as runs from runs join reports using (report)"
            " group by tag'"
        ),
        "fleet map fullest_tile fleet",
        "fleet sql run 'select 1'",
    ),
    reports=(),
)
