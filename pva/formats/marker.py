"""The marker of a report directory: which of its files tilescope wrote, and with which content.

A file that was written whole is known by its SHA-256. One that grows, and that a kill may leave at
any length, is known by an identity that stands in the file and in the marker: an id of a report,
the process of a host trace. When its writer ends it is known by its SHA-256, too.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pva import schema
from pva.errors import DamagedFileError, PvaError
from pva.formats.database.sqlite_file import REPORT_ID, Declaration, open_read_only
from pva.formats.files import replaced

NAME = ".tilescope-report"
FORMAT = "the marker of a report directory"
SIZE_LIMIT = 1 << 20  # bytes
ID_TABLE = "identity"  # of profile.pop
TRACE_SUFFIX = ".pvti"
# What a writer that is killed may leave beside a file.
JOURNAL = "-journal"
KINDS = ("sha256", "identity", "folder")
_REPORT = Declaration("a report", REPORT_ID, schema.FORMAT_VERSION, {ID_TABLE: ("id",)})


@dataclass(slots=True)
class Marker:
    """What the file says: each file with its SHA-256 or identity, and who writes, while one does.

    `files` maps a name to one of KINDS and its value; a folder holds a report with its own marker.
    """

    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    writer: str = ""


def read(directory: Path) -> Marker | None:
    """Read the marker of a directory; None when there is none. Raises PvaError."""
    import json

    path = directory / NAME
    try:
        data = _contents(path, SIZE_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PvaError(path, error.strerror or str(error), f"{FORMAT} that can be read") from None
    try:
        return _parsed(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        remedy = "give another directory, or take this one away"
        raise DamagedFileError(path, f"not {FORMAT}", remedy) from None


def write(directory: Path, marker: Marker) -> None:
    """Write the marker of a directory; raises PvaError."""
    import json

    files = {name: {kind: value} for name, (kind, value) in sorted(marker.files.items())}
    value: dict[str, Any] = {"format": 1, "files": files}
    if marker.writer:
        value["writer"] = marker.writer
    replaced(directory / NAME, f"{json.dumps(value, indent=2)}\n".encode(), FORMAT)


def is_own(directory: Path, name: str, recorded: tuple[str, str] | None) -> bool:
    """Return whether a file is still what was written under this name; nothing known is not."""
    path = directory / name
    kind, value = recorded or ("", "")
    try:
        identities = {"sha256": digest, "identity": identity}
        return kind in identities and value == identities[kind](path)
    except (OSError, PvaError):
        return False


def digest(path: Path) -> str:
    """Return the SHA-256 of a plain file; raises OSError."""
    import hashlib  # which takes long

    with os.fdopen(_opened(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def identity(path: Path) -> str:
    """Return what a growing file says of who writes it; raises PvaError and OSError."""
    os.close(_opened(path))
    if path.suffix == TRACE_SUFFIX:
        from pvti.schema import APPLICATION_ID, FORMAT_VERSION

        tables = {"processes": ("pid",)}
        declaration = Declaration("a host trace", APPLICATION_ID, FORMAT_VERSION, tables)
        query = "SELECT pid FROM processes LIMIT 1"
    else:
        declaration, query = _REPORT, f"SELECT id FROM {ID_TABLE} LIMIT 1"
    database = open_read_only(path, declaration)
    try:
        return str(database.rows(query)[0][0])
    except IndexError:
        raise DamagedFileError(path, "says not who wrote it") from None
    finally:
        database.close()


def _opened(path: Path) -> int:
    """Open a plain file, never a link, a pipe or a device; raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no plain file")
    return number


def _contents(path: Path, limit: int) -> bytes:
    with os.fdopen(_opened(path), "rb") as stream:
        return stream.read(limit)


def _parsed(value: Any) -> Marker:
    files = {}
    for name, facts in value["files"].items():
        ((kind, identity),) = facts.items()
        # Who sends a report must not be able to name a file elsewhere.
        plain = name == os.path.basename(name) and name not in ("", ".", "..") and "\0" not in name
        if not plain or kind not in KINDS or not isinstance(identity, str):
            raise ValueError(name)
        files[name] = (kind, identity)
    return Marker(files, str(value.get("writer", "")))
