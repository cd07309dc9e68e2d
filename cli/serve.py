"""`tilescope serve PATH...`: the dashboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import printable
from pva.errors import MissingPackageError, NotFoundError, PvaError

EXAMPLES = """
\b
Examples:
  tilescope serve run/                  one report, with its host trace
  tilescope serve before/ after/        two reports
  tilescope serve run.pvti --port 9000
  tilescope serve a.pvti b.pvti t.json  several traces on one timeline
  tilescope serve traces/               a folder of Chrome traces: each, and all together
  tilescope serve                       what is in this directory
"""
PORT = 8050
LARGE = 50_000_000  # bytes of a trace that is not read just to see whether it can be

port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
    help="Port; the next free one when it is taken, any free one for 0.",
)  # fmt: skip


@contextmanager
def with_dashboard() -> Iterator[None]:
    """Import the dashboard; raises MissingPackageError where a package that it needs is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "dashboard":
            raise
        raise MissingPackageError(
            "dashboard", f"needs the package {error.name}", "pip install 'tilescope[dashboard]'"
        ) from None


def serve_paths(paths: Sequence[Path], host: str, port: int, link: str = "") -> None:
    """Serve the dashboard until interrupted; print its URL, and that of a page if given."""
    with with_dashboard():
        from dashboard.server import serve as serve_dashboard
    serve_dashboard(paths, host, port, announce=partial(_announce, link))


def _announce(link: str, url: str) -> None:
    click.echo(f"dashboard: {url}  (Ctrl-C ends it)")
    if link:
        click.echo(f"compare: {url.rstrip('/')}{link}")


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@port_option
def serve(paths: tuple[Path, ...], host: str, port: int) -> None:
    """Show reports and traces in the browser.

    Without PATH those of this directory, or else of the directories in it.
    """
    serve_paths(checked_paths(paths or reports_below(Path())), host, port)


def checked_paths(paths: Sequence[Path], *, strict: bool = False) -> Sequence[Path]:
    """Return paths that can be shown; a fault of some is told, of all, or if `strict`, raised."""
    for path in paths:
        if not path.exists():
            raise NotFoundError(path, "no such file or directory", "give a report or a trace")
    faults = [fault for fault in map(_fault, paths) if fault is not None]
    if faults and (strict or len(faults) == len(paths)):
        raise faults[0]
    for fault in faults:
        click.echo(f"tilescope: {printable(str(fault))}", err=True)
    return paths


def _fault(path: Path) -> PvaError | None:
    """Return why a path cannot be shown now; beside others it is served, and may yet be written."""
    from pva.errors import UnknownFormatError
    from pva.many.exploration import openExploration
    from pva.report import openReport
    from pva.schema.exploration import ABOUT

    if path.is_dir() and _any_below(path):
        return None
    if (path / ABOUT).is_file():  # its reports lie deeper, and there may be none
        try:
            openExploration(path)
        except PvaError as error:
            return error
        return None
    if path.is_file() and _is_large_trace(path):
        return None
    try:
        openReport(path)
    except (NotFoundError, UnknownFormatError) as error:
        return None if any(map(_opens, _timelines(path))) else error
    except PvaError as error:
        return error
    return None


def _is_large_trace(path: Path) -> bool:
    from pva.trace import isTrace

    return path.stat().st_size > LARGE and isTrace(path)


def _timelines(path: Path) -> list[list[Path]]:
    """List the files of each timeline at a path: all `.pvti` of a directory, or a Chrome trace."""
    from pva.formats.traces import registry as trace_files

    try:
        files = trace_files.in_directory(path) if path.is_dir() else [path]
    except PvaError:
        return []
    together = all(file.suffix == trace_files.SUFFIX for file in files)
    return [files] if together else [[file] for file in files]


def _opens(files: list[Path]) -> bool:
    """Return whether files open as one trace; a large one is not read just for that."""
    from pva.trace import openTrace

    try:
        if not any(map(_is_large_trace, files)):
            openTrace(files).close()
    except PvaError:
        return False
    return True


def _any_below(directory: Path) -> bool:
    """Return whether a directory that holds no report has some in the directories in it."""
    try:
        return reports_below(directory) != [directory]
    except PvaError:
        return False


def reports_below(directory: Path) -> list[Path]:
    """List the report of a directory, or those of the directories in it; raises PvaError."""
    if _holds_report(directory):
        return [directory]
    reports = [
        path for path in sorted(directory.iterdir()) if path.is_dir() and _holds_report(path)
    ]
    if not reports:
        remedy = "give the path of a report or a trace"
        raise NotFoundError(directory.resolve(), "no report here or in a directory below", remedy)
    return reports


def _holds_report(directory: Path) -> bool:
    from pva.formats import registry
    from pva.formats.traces import registry as trace_files

    parts = {"profile", "graph", "execution", "trace"}
    try:
        has_parts = bool(parts & set(registry.directory_files(directory)))
        return has_parts or bool(trace_files.in_directory(directory))
    except PvaError:  # one that may not be read
        return False


COMMAND = Declaration(
    command=serve,
    order=80,
    usage={
        "`tilescope serve [PATH]...`": "Reports and host traces in the browser",
    },
    calls=(
        "serve nowhere",
        "serve run --port 99999",
    ),
    reports=(),
)
