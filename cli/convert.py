"""`tilescope convert REPORT -o OUT`: a report in another encoding."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import counted, write_bytes
from cli.shared.source import source
from pva import units
from pva.errors import OverwriteError

if TYPE_CHECKING:
    from pva.data.dataset import Dataset

EXAMPLES = """
\b
Examples:
  tilescope convert run/ -o report.json          graph and execution profile as JSON
  tilescope convert run/ -o graph.cbor           the graph profile alone
  tilescope convert old.json -o profile.pop      one file that opens quickly
  tilescope convert run/ -o tables.parquet       a directory, one file for each table
  tilescope convert run/ -o plain.cbor --to plain
  tilescope convert run/ -o - --to json | jq .memory
"""
STANDARD = "-"
STREAMED = ("json", "cbor", "plain", "pop")  # what is one file
FORMATS = "pop, json, cbor, plain (CBOR without tags), parquet or debug.  [default: by suffix]"


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("report", metavar="REPORT", type=click.Path())
@click.argument("target", metavar="[OUT]", required=False, type=click.Path())
@click.option("-o", "--out", metavar="OUT", type=click.Path(), help="Where to; - is stdout.")
@click.option("--to", "--format", "form", help=FORMATS)
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def convert(
    report: str, target: str | None, out: str | None, form: str | None, force: bool
) -> None:
    """Write a report in another encoding: profile.pop, JSON, CBOR or Parquet.

    A file named graph, execution or debug holds that part of the report alone.
    """
    from pva.formats import registry, report_directory

    if (target is None) == (out is None):
        raise click.UsageError("one place to write to is needed: -o OUT")
    where = target or str(out)
    dataset = registry.read(source(report))
    if where == STANDARD:
        _write_to_stdout(dataset, form)
        return
    path = Path(where)
    if path.exists() and not force:
        raise OverwriteError(path, "already there", "give another name, or --force to replace it")
    with report_directory.added(path, registry.PARTS):
        registry.write(dataset, path, form)
    files = list(path.iterdir()) if path.is_dir() else [path]
    size = units.size(sum(file.stat().st_size for file in files))
    extent = f" in {counted(len(files), 'file')}" if path.is_dir() else ""
    click.echo(f"{path}: {size}{extent}", err=True)


def _write_to_stdout(dataset: Dataset, form: str | None) -> None:
    from pva.formats import registry

    if form not in STREAMED:
        raise click.UsageError(f"-o -: add --to, one of {', '.join(STREAMED)}")
    if form != "json" and sys.stdout.isatty():
        raise click.UsageError(f"{form} is not for a terminal; give -o FILE")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report"
        registry.write(dataset, file, form)
        write_bytes(file.read_bytes())


COMMAND = Declaration(
    command=convert,
    order=120,
    usage={
        "`tilescope convert REPORT -o OUT`": (
            "The same report as `profile.pop`, JSON, CBOR or Parquet"
        ),
    },
    calls=(
        "convert run -o new.json",
        "convert run -o new.json",
        "convert run new.xml",
        "convert run -o - --to xml",
        "convert run",
    ),
    reports=("convert IN OUT",),
)
