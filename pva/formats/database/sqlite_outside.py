"""What is looked at before SQLite opens a file: what it is, and what stands beside it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pva.errors import DamagedFileError, NotFoundError, UnknownFormatError
from pva.plain_file import opened

MAGIC = b"SQLite format 3\x00"
VERSIONS = slice(18, 20)  # where a header says how to write and to read; above 1: WAL
INNER_PAGE, TABLE_PAGES = b"\x05", 64
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def check_outside(path: Path, kind: str) -> None:
    """Refuse what is no database, and what our writers do not leave.

    Raises NotFoundError, UnknownFormatError, DamagedFileError and PvaError.
    """
    with opened(path, kind) as stream:
        head = stream.read(VERSIONS.stop)
        many = head[: len(MAGIC)] == MAGIC and _has_many_tables(stream)
        _check_beside(path.resolve(), kind)
    if not head:
        raise DamagedFileError(path, "empty: nothing had been committed", f"{kind}")
    magic = head[: len(MAGIC)]
    if magic != MAGIC[: len(head)]:
        raise UnknownFormatError(path, f"begins with {magic!r}", f"{kind} is an SQLite database")
    if len(head) < len(MAGIC):
        raise DamagedFileError(path, f"cut short: {len(head)} bytes", f"{kind}")
    if max(head[VERSIONS], default=1) > 1:
        raise DamagedFileError(path, "kept with a write-ahead log", f"{kind} has none")
    if many:
        problem = f"a list of tables of more than {TABLE_PAGES} pages"
        raise DamagedFileError(path, problem, f"{kind} has few tables")


def _has_many_tables(stream: BinaryIO) -> bool:
    """Return whether the list of tables is long: SQLite reads all of it before any query.

    The list is a tree whose root is on the first page, behind the header of the file:
    https://sqlite.org/fileformat.html#b_tree_pages.
    """
    stream.seek(0)
    root = stream.read(1 << 16)
    page = int.from_bytes(root[16:18])
    if root[100:101] != INNER_PAGE:
        return False
    cells = int.from_bytes(root[103:105])
    if cells >= TABLE_PAGES:
        return True
    pointers = [int.from_bytes(root[112 + 2 * n : 114 + 2 * n]) for n in range(cells)]
    for place in (108, *pointers):
        number = int.from_bytes(root[place : place + 4])
        stream.seek(max(number - 1, 0) * (1 << 16 if page == 1 else page))
        if number > 1 and stream.read(1) == INNER_PAGE:
            return True
    return False


def _check_beside(path: Path, kind: str) -> None:
    """Refuse what our writers never leave beside a file, before SQLite looks at it.

    With a log it would make further files there. A journal that names another one, as commits of
    several databases have it, would have that file deleted, whatever it is:
    https://sqlite.org/fileformat.html#the_rollback_journal and `pager_delsuper` of SQLite.
    """
    log, journal = path.with_name(f"{path.name}-wal"), journal_of(path)
    if _is_there(log):
        raise DamagedFileError(log, "a write-ahead log", f"{kind} has none: it was changed")
    if not _is_there(journal):
        return
    with suppress(NotFoundError), opened(journal, "a journal") as stream:  # or its commit has ended
        size = stream.seek(0, os.SEEK_END)
        stream.seek(-min(len(JOURNAL_MAGIC), size), os.SEEK_END)
        if stream.read() == JOURNAL_MAGIC:
            raise DamagedFileError(journal, "names another journal", f"that of {kind} does not")


def _is_there(path: Path) -> bool:
    """Return whether SQLite would look at a file; an empty one is none to it."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(status.st_mode) or status.st_size > 0


def journal_of(path: Path) -> Path:
    """Return the path of the rollback journal."""
    return path.with_name(f"{path.name}-journal")
