"""What is looked at before SQLite opens a file: what it is, and what stands beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pva.errors import DamagedFileError, NotFoundError, PvaError, UnknownFormatError

MAGIC = b"SQLite format 3\x00"
VERSIONS = slice(18, 20)  # where a header says how to write and to read; above 1: WAL
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def check_outside(path: Path, what: str) -> None:
    """Refuse what is no database, and what our writers do not leave.

    Raises NotFoundError, UnknownFormatError, DamagedFileError and PvaError.
    """
    try:
        _check_is_file(path, what)
        with path.open("rb") as stream:
            head = stream.read(VERSIONS.stop)
        _check_beside(path.resolve(), what)
    except FileNotFoundError:
        raise NotFoundError(path, "no such file", f"give the path of {what}") from None
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise PvaError(path, found, f"{what} that can be read") from error
    if not head:
        raise DamagedFileError(path, "empty: nothing had been committed", f"{what}")
    magic = head[: len(MAGIC)]
    if magic != MAGIC[: len(head)]:
        raise UnknownFormatError(path, f"begins with {magic!r}", f"{what} is an SQLite database")
    if len(head) < len(MAGIC):
        raise DamagedFileError(path, f"cut short: {len(head)} bytes", f"{what}")
    if max(head[VERSIONS], default=1) > 1:
        raise DamagedFileError(path, "kept with a write-ahead log", f"{what} has none")


def _check_is_file(path: Path, what: str) -> None:
    """Refuse what is no file: a pipe would be waited for without end."""
    if path.is_dir():
        raise UnknownFormatError(path, "a directory", f"give {what}")
    if not stat.S_ISREG(path.stat().st_mode):
        raise UnknownFormatError(path, "no file", f"give {what}")


def _check_beside(path: Path, what: str) -> None:
    """Refuse what our writers never leave beside a file, before SQLite looks at it.

    With a log it would make further files there. A journal that names another one, as commits of
    several databases have it, would have that file deleted, whatever it is:
    https://sqlite.org/fileformat.html#the_rollback_journal and `pager_delsuper` of SQLite.
    """
    log, journal = path.with_name(f"{path.name}-wal"), journal_of(path)
    if _is_there(log):
        raise DamagedFileError(log, "a write-ahead log", f"{what} has none: it was changed")
    if not _is_there(journal):
        return
    if not journal.is_file():
        raise DamagedFileError(journal, "no file", "a journal, or nothing")
    with journal.open("rb") as stream:
        stream.seek(-min(len(JOURNAL_MAGIC), journal.stat().st_size), os.SEEK_END)
        if stream.read() == JOURNAL_MAGIC:
            raise DamagedFileError(journal, "names another journal", f"that of {what} does not")


def _is_there(path: Path) -> bool:
    """Tell whether SQLite would look at a file; an empty one is none to it."""
    return path.exists() and (not path.is_file() or path.stat().st_size > 0)


def journal_of(path: Path) -> Path:
    """Give the path of the rollback journal."""
    return path.with_name(f"{path.name}-journal")
