"""Which formats of host traces there are, told by how a file begins; several joined to one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pva.errors import PvaError, UnknownFormatError
from pva.formats.beginnings import GZIP, JSON_MARK
from pva.formats.database.sqlite_outside import MAGIC
from pva.plain_file import opened

if TYPE_CHECKING:
    from pva.formats.traces.joined_traces import TraceFile

_HEAD_BYTES, _LOOKED_AT = 512, 1 << 20
SUFFIX = ".pvti"
CHROME_SUFFIXES = (".json", ".json.gz")  # of what may be a Chrome trace
NOT_TRACES = frozenset({"graph.json", "execution.json", "debug.json", "framework.json", "app.json"})
WANTED = "a .pvti file, a trace of Triton, or Chrome trace JSON, packed by gzip or not"
# What is brought instead, by how it begins, and what can be done.
OTHERS = (
    (rb"\xff\xfe|\xfe\xff|\x00[\[{]|[\[{]\x00", "text in UTF-16", "write it as UTF-8"),
    (rb"PK\x03\x04|\x28\xb5\x2f\xfd|\xfd7zXZ|BZh", "packed in another way",
     "unpack it or use gzip"),
    (rb'\n(?!\s*[\[{]\s*[\[\]{}"])(?s:.)*[\x00-\x08]',
     "protocol buffers, as those of Perfetto", "export it as Chrome trace JSON"),
)  # fmt: skip


def open_files(paths: Sequence[Path], *, by_wall_clock: bool = True) -> TraceFile:
    """Open one trace, or several as one; raises PvaError."""
    if not paths:
        raise PvaError("openTrace", "no path", "give the path of a trace, or several")
    from pva.formats.traces.joined_traces import JoinedFile

    files: list[TraceFile] = []
    try:
        files.extend(map(_open, paths))
    except BaseException:
        for file in files:
            file.close()
        raise
    return files[0] if len(files) == 1 else JoinedFile(files, by_wall_clock=by_wall_clock)


def _open(path: Path) -> TraceFile:
    """Open a file by what it begins with; raises PvaError."""
    # Each takes a while to import, and who asks what a file is needs none of them.
    from pva.formats.traces.chrome_file import ChromeFile
    from pva.formats.traces.pvti_trace import PvtiFile
    from pva.formats.traces.triton_file import TritonFile
    from pva.formats.traces.triton_trace import is_triton

    with opened(path, "a host trace") as stream:
        head = stream.read(_HEAD_BYTES)
    for begin, problem, way in OTHERS:
        if re.match(begin, head):
            raise UnknownFormatError(path, problem, way)
    if is_triton(head):
        return TritonFile(path)
    if is_chrome(head):
        return ChromeFile(path)
    if not MAGIC.startswith(head[: len(MAGIC)]):
        raise UnknownFormatError(path, f"begins with {head[: len(MAGIC)]!r}", WANTED)
    return PvtiFile(path)


def is_chrome(head: bytes) -> bool:
    """Return what may be Chrome trace JSON, packed by gzip or not."""
    text = head.removeprefix(JSON_MARK).lstrip()
    return text.startswith((b"{", b"[")) or head.startswith(GZIP)


def is_trace(path: Path) -> bool:
    """Return whether a file is a host trace, by how it begins; raises PvaError."""
    with opened(path, "a host trace") as stream:
        head = stream.read(_LOOKED_AT)
    if head.startswith(MAGIC):
        from pvti.schema import APPLICATION_ID

        # Where SQLite keeps the application id: www.sqlite.org/fileformat.html, section 1.3.
        return head[68:72] == APPLICATION_ID.to_bytes(4, "big")
    text = head.removeprefix(JSON_MARK).lstrip()
    return head.startswith(GZIP) or text.startswith(b"[") or (
        text.startswith(b"{") and b'"traceEvents"' in text
    )  # fmt: skip


def in_directory(path: Path) -> list[Path]:
    """List the traces of a directory: `.pvti`, or without any Chrome traces; raises PvaError."""
    try:
        files = sorted(path.iterdir())
    except OSError as error:
        raise PvaError(path, error.strerror or "cannot be listed", "give a directory") from None
    pvti_files = [file for file in files if file.suffix == SUFFIX]
    named = (file for file in files if file.name.endswith(CHROME_SUFFIXES) and file.is_file())
    return pvti_files or [file for file in named if file.name not in NOT_TRACES and is_trace(file)]


def write(trace: object, out: BinaryIO, form: str) -> None:
    """Write a `pva.trace.Trace` as `chrome` or `perfetto`, in parts; raises MissingPackageError."""
    from pva.formats.traces import chrome_trace, perfetto_trace

    (chrome_trace if form == "chrome" else perfetto_trace).write(trace, out)


def is_directory(path: Path) -> bool:
    """Return whether a path is a directory; raises PvaError for one that no system has."""
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise PvaError(ascii(fspath(path)), problem, "the path of a trace") from error
