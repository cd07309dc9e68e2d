"""Whole files and directories put in place, each fault as one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pva.errors import PvaError

ATTEMPTS = 10  # to be the one whose directory is there


def beside(path: Path, kind: str) -> Path:
    """Name a file or directory beside another that no other writer takes: `out.json.1f2e.part`."""
    return path.with_name(f"{path.name}.{os.urandom(4).hex()}.{kind}")


def put_in_place(part: Path, target: Path) -> None:
    """Put a directory in the place of another, again where another writer was quicker."""
    for remaining in reversed(range(ATTEMPTS)):
        old = beside(target, "old")
        with suppress(FileNotFoundError):
            os.replace(target, old)
        try:
            os.replace(part, target)
        except OSError:
            with suppress(OSError):
                os.replace(old, target)
            if not remaining:
                raise
            continue
        finally:
            import shutil  # which takes a while

            shutil.rmtree(old, ignore_errors=True)
        return


@contextmanager
def replacing(path: Path, kind: str) -> Iterator[BinaryIO]:
    """Write a file; one that was there stays until the new one is whole. Raises PvaError.

    A pipe or a device is written to as it is, and a link stays one.
    """
    is_file = path.is_file() or not path.exists()
    target = Path(os.path.realpath(path)) if is_file else path
    part = beside(target, "part") if is_file else target
    try:
        with part.open("wb") as stream:
            yield stream
        if is_file:
            os.replace(part, target)
    except BaseException as error:
        if is_file:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        problem = error.strerror or str(error)
        raise PvaError(path, problem, f"a place where {kind} can be written") from error


def replaced(path: Path, data: bytes, kind: str) -> None:
    """Write a whole file, as `replacing` does."""
    with replacing(path, kind) as stream:
        stream.write(data)
