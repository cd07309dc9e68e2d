"""Which formats of host traces there are, told by how a file begins; several joined to one."""

from __future__ import annotations

from collections.abc import Sequence
from os import fspath
from pathlib import Path

from pva.errors import PvaError
from pva.formats.chrome_file import ChromeFile
from pva.formats.files import opened
from pva.formats.joined_traces import JoinedFile, TraceFile
from pva.formats.json_pieces import GZIP, MARK
from pva.formats.pvti_trace import PvtiFile

_HEAD_BYTES = 64


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
    """Open a file by what it begins with; what begins in no known way is taken for a `.pvti`."""
    with opened(path, "a host trace") as stream:
        head = stream.read(_HEAD_BYTES)
    return ChromeFile(path) if is_chrome(head) else PvtiFile(path)


def is_chrome(head: bytes) -> bool:
    """Tell what may be Chrome trace JSON, packed by gzip or not."""
    text = head.removeprefix(MARK).lstrip()
    return text.startswith((b"{", b"[")) or head.startswith(GZIP)


def is_directory(path: Path) -> bool:
    """Tell whether a path is a directory; raises PvaError for one that no system has."""
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise PvaError(ascii(fspath(path)), found, "the path of a trace") from error
