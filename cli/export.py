"""`tilescope export PATH... -o OUT.html`: reports and traces as one file for any browser."""

from __future__ import annotations

from pathlib import Path

import click

from cli.serve import checked_paths, with_dashboard
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import printable, write_bytes
from pva import units
from pva.errors import OverwriteError

EXAMPLES = """
\b
Examples:
  tilescope export run/ -o report.html           a report, with its host trace
  tilescope export before/ after/ -o both.html   two reports; choose one on top
  tilescope export run.pvti -o trace.html        a host trace
"""
STANDARD = "-"


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("-o", "--out", metavar="OUT", required=True, help="Where to; - is stdout.")
@click.option("--force", is_flag=True, help="Replace OUT when it is there.")
def export(paths: tuple[Path, ...], out: str, force: bool) -> None:
    """Write reports and traces as one HTML file that needs no server, no network and no install.

    It has the pages Summary, Insights, Memory, Liveness, Operations, Execution and Host trace, with
    the timelines of the dashboard. It stays below 10 MB: of more than 1,500,000 events the short
    ones that are close together become one; the page says which.
    """
    target = Path(out)
    if out != STANDARD and not force and (target.exists() or target.is_symlink()):
        raise OverwriteError(target, "already there", "give another name, or --force to replace it")
    sources = checked_paths(paths, strict=True)
    with with_dashboard():
        from dashboard.export.write import html_of
    data = html_of(sources)
    if out == STANDARD:
        write_bytes(data)
        return
    from pva.formats.files import replaced

    replaced(target, data, "an HTML file")
    click.echo(f"{printable(out)}: {units.size(len(data))}; any browser opens it, offline too")


COMMAND = Declaration(
    command=export,
    order=90,
    usage={
        "`tilescope export PATH... -o report.html`": (
            "The pages of a report as one file to mail or attach, which asks no server"
        ),
    },
    calls=(
        "export run -o run.html",
        "export run -o run.html",
        "export nowhere -o new.html",
        "export run",
    ),
    reports=("export IN -o OUT",),
    traces=("export IN -o OUT",),
)
