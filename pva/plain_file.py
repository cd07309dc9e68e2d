"""A plain file, read whole or in parts: a pipe or a device would be waited for without end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pva.errors import DamagedFileError, NotFoundError, PvaError, UnknownFormatError

SIZE_LIMIT = 8 << 30  # bytes; profile.pop has no such limit
# What opens a pipe without waiting for its other end; systems without pipes in folders lack it.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def contents(path: Path, kind: str, limit: int = SIZE_LIMIT) -> bytes:
    """Read a whole file; raises NotFoundError, UnknownFormatError, DamagedFileError or PvaError."""
    try:
        with opened(path, kind) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > limit:
                raise DamagedFileError(path, f"{size} bytes", f"{kind} has at most {limit}")
            return stream.read()
    except MemoryError as error:
        raise DamagedFileError(path, "too large for the memory", kind) from error


@contextmanager
def opened(path: Path, noun: str) -> Iterator[BinaryIO]:
    """Open a file to be read in parts; raises what `contents` does, inside of it too."""
    try:
        with open(path, "rb", opener=_open) as stream:
            kind = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(kind):
                problem = "a directory" if stat.S_ISDIR(kind) else "no file"
                raise UnknownFormatError(path, problem, f"give {noun}")
            yield stream
    except FileNotFoundError:
        raise NotFoundError(path, "no such file", f"give the path of {noun}") from None
    except IsADirectoryError:
        raise UnknownFormatError(path, "a directory", f"give {noun}") from None
    except OSError as error:
        problem = error.strerror or str(error)
        raise PvaError(path, problem, f"{noun} that can be read") from error
    except ValueError as error:
        if str(error) != "embedded null byte":
            raise
        raise PvaError(ascii(str(path)), str(error), f"{noun} that can be read") from None


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _AT_ONCE)


def as_text(name: str) -> str:
    r"""Return the name of a file as a page may show it: bytes that are no UTF-8 become `\xff`."""
    return os.fsencode(name).decode(errors="backslashreplace")
