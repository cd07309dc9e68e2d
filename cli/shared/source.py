"""What a command reads: a report, a trace or a run at a path, `-` standing for standard input."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.output import printable
from pva.errors import DamagedFileError

if TYPE_CHECKING:
    from pva.many.run import Run
    from pva.report import Report
    from pva.trace import Align, Trace

STANDARD_INPUT = "-"
_NAME = "standard-input"
_FOLDER = "tilescope-stdin-"
_COPY = re.compile(rf"\S*{_FOLDER}\w+[/\\\\]{_NAME}")


def open_report(path: str) -> Report:
    """Open a report; raises PvaError."""
    from pva.report import openReport

    return openReport(source(path))


def open_trace(path: str, *paths: str, align: Align = "wall") -> Trace:
    """Open a host trace, or several as one; raises PvaError."""
    from pva.trace import openTrace

    return openTrace([source(one) for one in (path, *paths)], align=align)


def open_run(path: str) -> Run:
    """Open a run of several instances; raises PvaError."""
    from pva.many.run import openRun

    return openRun(path)


def name_problems(opened: object) -> None:
    """Write on stderr what of a run could not be read, a line each."""
    if hasattr(opened, "instances"):
        for line in getattr(opened, "problems", ()):
            click.echo(f"tilescope: left out: {printable(line)}", err=True)


def source(path: str) -> str:
    """Return a path to read from: of `-` that of a copy, which goes when the command ends."""
    if path != STANDARD_INPUT:
        return path
    data = sys.stdin.buffer.read() if sys.stdin else b""  # None where it was closed
    if not data:
        raise DamagedFileError("standard input", "empty", "send a report to it")
    folder = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix=_FOLDER))
    copy = Path(folder) / _NAME
    copy.write_bytes(data)
    return str(copy)


def name_stdin(text: str) -> str:
    """Write "standard input" in a text that names the copy."""
    return _COPY.sub("standard input", text)


def is_trace(path: Path) -> bool:
    """Return whether this is a host trace, or a directory of some and no report."""
    from pva.formats import registry
    from pva.formats.traces.registry import in_directory, is_trace

    if path.is_dir():
        parts = {"profile", "graph", "execution", "debug"} & set(registry.directory_files(path))
        return not parts and bool(in_directory(path))
    return path.is_file() and is_trace(path)
