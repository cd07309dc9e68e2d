"""`tilescope convert IN OUT`: a report in another encoding."""

from __future__ import annotations

from pathlib import Path

import click

from cli.faults import Command
from pva import units
from pva.errors import PvaError

EXAMPLES = """
\b
Examples:
  tilescope convert run/ report.json          graph and execution profile as JSON
  tilescope convert run/ graph.cbor           the graph profile alone
  tilescope convert old.json profile.pop      one file that opens quickly
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--format", "form", help="pop, json, cbor, plain or debug.  [default: by suffix]")
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def convert(source: Path, target: Path, form: str | None, force: bool) -> None:
    """Write a report in another encoding: profile.pop, JSON or CBOR."""
    from pva.formats import registry

    if target.exists() and not force:
        raise PvaError(target, "already there", "give another name, or --force to replace it")
    registry.write(registry.read(source), target, form)
    click.echo(f"{target}: {units.size(target.stat().st_size)}")
