"""`tilescope trace FILE`: what the host did, by thread and by label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.faults import Command
from cli.output import counted, format_option, limit_option, write, write_result
from pva import units

if TYPE_CHECKING:
    from pva.trace import Trace

EXAMPLES = """
\b
Examples:
  tilescope trace run/                                 the trace of a report directory
  tilescope trace run.pvti --only labels --limit 0     every label
  tilescope trace run.pvti --only threads --format json
"""
TABLES = ("threads", "labels")


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--only", type=click.Choice(TABLES), help="One of the two tables.")
@format_option
@limit_option
def trace(file: str, only: str | None, form: str, limit: int | None) -> None:
    """Print the threads of a host trace, and where its time went."""
    from pva.analysis import host
    from pva.trace import openTrace

    if form != "table" and only is None:
        raise click.UsageError(f"--format {form} writes one table; add --only threads or labels")
    opened = openTrace(file)
    analyses = {"threads": host.threads, "labels": host.label_statistics}
    if form == "table":
        write([_headline(opened), *opened.problems])
    for name in TABLES if only is None else [only]:
        if form == "table":
            write(["", f"{name.capitalize()}:"])
        write_result(analyses[name](opened), form, limit)


def _headline(opened: Trace) -> str:
    events = sum(len(thread.columns) for thread in opened.threads)
    state = "" if opened.is_finished else "; not closed: still growing, or its program was killed"
    return (
        f"{opened.path}: {counted(events, 'event')} on {counted(len(opened.threads), 'thread')}"
        f" in {units.duration(opened.duration_ns / 1e9)}{state}"
    )
