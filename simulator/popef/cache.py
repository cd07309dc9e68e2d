"""A folder of PopEF files of compiled programs: each is made once, whoever asks for it.

Several processes may use it: one compiles, the others that want the same wait for it. What was not
used for the longest time goes when the files take more than the limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pva.errors import PvaError
from simulator.fingerprint import fingerprint
from simulator.graph.errors import PoplarError
from simulator.logging import log
from simulator.popef.declaration import MAGIC
from simulator.popef.model import Model, load_model
from simulator.popef.program import name_of
from simulator.popef.writer import FileWriter

ENVIRONMENT = "POPLAR_EXECUTABLE_CACHE_PATH"
LIMIT = "POPLAR_EXECUTABLE_CACHE_LIMIT"  # bytes
DEFAULT_LIMIT = 10 << 30
SUFFIX, LOCK = ".popef", ".lock"


def cached(
    directory: Path,
    digest: str,
    take: Callable[[Model], None],
    make: Callable[[], None],
    write: Callable[[FileWriter], None],
) -> bool:
    """Take a program from a folder, or make it and leave it there; return whether it was there.

    `digest` is the hash of what it depends on. A file that cannot be read is made anew, a folder
    that cannot be written to is left alone: each is said in a line of the log (WARN).
    """
    path = directory / f"{name_of(fingerprint(digest, source_stamp()))}{SUFFIX}"
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        if path.is_file() and _taken(path, take):
            return True
        make()
        try:
            with FileWriter(path) as writer:
                write(writer)
            log("PO", "CACHE", "INFO", f"cache: {path} written")
        except (PvaError, PoplarError, OSError) as error:
            _warn(f"{error}; the program is not kept")
    _make_room(directory, path)
    return False


def source_stamp() -> str:
    """Return what changes with any file of the simulator: programs of an older one are not used."""
    root = Path(__file__).parents[1]
    stamps = sorted(
        (str(file.relative_to(root)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in root.rglob("*")
        if file.suffix in (".py", ".toml", ".so")
    )
    return fingerprint(stamps)


def limit() -> int:
    """Return the bytes that the files of a folder may take; raises PoplarError."""
    text = os.environ.get(LIMIT, "")
    if text and not text.isdigit():
        raise PoplarError(f"{LIMIT} is {text!r}; a number of bytes is needed")
    return int(text) if text else DEFAULT_LIMIT


def _taken(path: Path, take: Callable[[Model], None]) -> bool:
    """Take what a file has; return whether that was possible."""
    try:
        take(load_model(path))
    except (PvaError, PoplarError) as error:
        _warn(f"{error}; compiled again")
        return False
    with suppress(OSError):
        os.utime(path)
    log("PO", "CACHE", "INFO", f"cache: {path} used")
    return True


def _make_room(directory: Path, newest: Path) -> None:
    """Remove our files that were not used for the longest time, as many as are too much."""
    most, files = limit(), []
    for file in directory.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            with file.open("rb") as stream:
                ours = file.stem.isdigit() and stream.read(len(MAGIC)) == MAGIC
            if ours:
                files.append((file.stat().st_mtime_ns, file.stat().st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= most:
            break
        if file != newest:
            with suppress(OSError):
                file.unlink()
                file.with_suffix(LOCK).unlink(missing_ok=True)
            total -= size


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process or thread after another have a file; all at once where there are no locks."""
    try:
        import fcntl

        stream = path.with_suffix(LOCK).open("wb")
    except (ImportError, OSError):
        yield
        return
    with stream:
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _warn(text: str) -> None:
    log("PO", "CACHE", "WARN", f"cache: {text}")
