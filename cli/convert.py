"""`tilescope convert IN OUT`: a report in another encoding."""

from __future__ import annotations

from pathlib import Path

import click

from cli.faults import Command
from cli.output import counted
from pva import units
from pva.errors import OverwriteError

EXAMPLES = """
\b
Examples:
  tilescope convert run/ report.json          graph and execution profile as JSON
  tilescope convert run/ graph.cbor           the graph profile alone
  tilescope convert old.json profile.pop      one file that opens quickly
  tilescope convert run/ tables.parquet       a directory, one file for each table
  tilescope convert run/ plain.cbor --format plain
"""
FORMATS = "pop, json, cbor, plain (CBOR without tags), parquet or debug.  [default: by suffix]"


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--format", "form", help=FORMATS)
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def convert(source: Path, target: Path, form: str | None, force: bool) -> None:
    """Write a report in another encoding: profile.pop, JSON, CBOR or Parquet.

    A file named graph, execution or debug holds that part of the report alone.
    """
    from pva.formats import registry

    if target.exists() and not force:
        raise OverwriteError(target, "already there", "give another name, or --force to replace it")
    registry.write(registry.read(source), target, form)
    files = list(target.iterdir()) if target.is_dir() else [target]
    size = units.size(sum(file.stat().st_size for file in files))
    more = f" in {counted(len(files), 'file')}" if target.is_dir() else ""
    click.echo(f"{target}: {size}{more}")
