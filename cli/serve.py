"""`tilescope serve PATH...`: the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from cli.faults import Command
from pva.errors import MissingPackageError, NotFoundError

EXAMPLES = """
\b
Examples:
  tilescope serve run/                  one report, with its host trace
  tilescope serve before/ after/        two reports
  tilescope serve run.pvti --port 9000
"""
PORT = 8050

port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
    help="Port; the next free one when it is taken, any free one for 0.",
)  # fmt: skip


def serve_paths(paths: Sequence[Path], host: str, port: int) -> None:
    """Serve the dashboard until interrupted, and print its URL."""
    try:
        from dashboard.server import serve as serve_dashboard
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "dashboard":
            raise
        raise MissingPackageError(
            "dashboard", f"needs the package {error.name}", "pip install 'tilescope[dashboard]'"
        ) from None
    serve_dashboard(paths, host, port, announce=_announce)


def _announce(url: str) -> None:
    click.echo(f"dashboard: {url}  (Ctrl-C ends it)")


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@port_option
def serve(paths: tuple[Path, ...], host: str, port: int) -> None:
    """Show reports and traces in the browser."""
    for path in paths:
        if not path.exists():
            raise NotFoundError(path, "no such file or directory", "give a report or a trace")
    serve_paths(paths, host, port)
