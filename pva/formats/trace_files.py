"""Which formats of host traces there are, told by how a file begins; several joined to one."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath
from pathlib import Path

from pva.errors import PvaError
from pva.formats.joined_traces import JoinedFile, TraceFile
from pva.formats.pvti_trace import PvtiFile


def open_files(paths: Sequence[Path], *, by_wall_clock: bool = True) -> TraceFile:
    """Open one trace, or several as one; raises PvaError."""
    if not paths:
        raise PvaError("openTrace", "no path", "give the path of a trace, or several")
    files: list[TraceFile] = []
    try:
        files.extend(map(_open, paths))
    except BaseException:
        for file in files:
            file.close()
        raise
    return files[0] if len(files) == 1 else JoinedFile(files, by_wall_clock=by_wall_clock)


def _open(path: Path) -> TraceFile:
    return PvtiFile(path)


def is_directory(path: Path) -> bool:
    """Tell whether a path is a directory; raises PvaError for one that no system has."""
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise PvaError(ascii(fspath(path)), found, "the path of a trace") from error
