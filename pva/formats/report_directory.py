"""A report directory while a process writes into it: its own alone, its marker always right.

`claim` takes a directory for this process: another process is refused by name until this one lets
go or dies. Of what is there only the files of an earlier report that the marker knows, unchanged,
make room; anything else in the way is refused with nothing touched. Claims of one process share
the directory. Where the file system has no locks nobody is refused.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pva.errors import OverwriteError, PvaError
from pva.formats import marker
from pva.formats.files import beside
from pva.formats.marker import JOURNAL, Marker

EPOCH = "SOURCE_DATE_EPOCH"
NAMING_SECONDS = 1.0  # how long another writer may take to write its name
_WRITER = re.compile(r"process (\d+) on (.*)")
_AWAY = "move it away, or give another directory"


@dataclass(slots=True, eq=False)
class _Held:
    """A directory that this process holds, and how many of its claims."""

    directory: Path
    key: tuple[int, int]  # device and inode
    lock: int  # a file descriptor
    marker: Marker
    claims: int = 0


_HELD: dict[tuple[int, int], _Held] = {}
_lock = threading.RLock()


class Claim:
    """A claim on a report directory; `release` it when nothing more is written."""

    def __init__(self, lease: _Held) -> None:
        self._held: _Held | None = lease
        self.directory = lease.directory

    def grow(self, name: str) -> str:
        """Announce a file that grows; give the identity that is to stand in it. Raises PvaError."""
        fixed = os.environ.get(EPOCH)
        identity = f"{EPOCH}={fixed}" if fixed else secrets.token_hex(16)
        self.expect(name, identity)
        return identity

    def expect(self, name: str, identity: str) -> None:
        """Announce a file that grows and has this identity; raises PvaError."""
        self._know(name, "identity", identity)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Write a whole file: what stands at the path given is put in its place at the end.

        Raises PvaError.
        """
        part = beside(self.directory / name, "part")
        try:
            yield part
            self._know(name, "sha256", marker.digest(part))
            os.replace(part, self.directory / name)
        except OSError as error:
            problem = error.strerror or str(error)
            raise PvaError(self.directory / name, problem, "a place that can be written") from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def seal(self, name: str, identity: str | None = None) -> None:
        """Know a file that grows no more by its content, unless another has taken its place."""
        lease = self._held
        with _lock, suppress(OSError, PvaError):
            if lease is None or not _is_there(lease):
                return
            if identity is None or lease.marker.files.get(name) == ("identity", identity):
                self._know(name, "sha256", marker.digest(self.directory / name))

    def release(self) -> None:
        """Let go of the directory; the last claim of the process unlocks it."""
        with _lock:
            lease, self._held = self._held, None
            if lease is None or lease not in _HELD.values():  # a forked child has none
                return
            lease.claims -= 1
            with suppress(OSError, PvaError):
                if not lease.claims and _is_there(lease):
                    _write_last(lease)
            _unlock(lease)

    def _know(self, name: str, kind: str, value: str) -> None:
        with _lock:
            if self._held is not None:
                self._held.marker.files[name] = (kind, value)
                marker.write(self.directory, self._held.marker)


def claim(directory: Path, names: Collection[str], *, alone: bool = False) -> Claim:
    """Take a directory, made if need be, to write files of these names or patterns into it.

    The files of an earlier report are removed. `alone` refuses a directory that holds other things
    and has no marker. Raises OverwriteError, with nothing touched, and PvaError.
    """
    with _lock, ExitStack() as unlocked:
        lease = _take(directory.absolute(), directory)
        unlocked.callback(_unlock, lease)
        own_files = _checked(lease, directory, names, alone=alone)
        if lease.claims and not alone:  # the rest is of other engines of this process
            own_files = [name for name in own_files if name in names]
        below = {}
        for name in _folders(lease) if alone else ():
            folder = _take(lease.directory / name, directory / name)
            unlocked.callback(_unlock, folder)
            below[name] = folder, _checked(folder, directory / name, names)
        _remove(lease, own_files)
        for folder, files in below.values():
            _remove(folder, files)
            _write_last(folder)
            with suppress(OSError):  # there is something of somebody else's in it
                folder.directory.rmdir()
        lease.marker.writer = f"process {os.getpid()} on {socket.gethostname()}"
        marker.write(lease.directory, lease.marker)
        lease.claims += 1
        _enter_above(lease)
        return Claim(lease)


@contextmanager
def added(path: Path, patterns: Collection[str]) -> Iterator[None]:
    """Enter a file that is written inside into the marker of its directory, if that has one.

    A name of none of these patterns is no part of the report. Raises OverwriteError while another
    process writes into the directory, and PvaError.
    """
    folder = path.absolute().parent
    if not _matches(path.name, patterns) or marker.read(folder) is None:
        yield
        return
    with _lock:
        lease = _take(folder, path.parent)
        lease.claims += 1
        entry = Claim(lease)
    try:
        yield
        entry.seal(path.name)
    finally:
        entry.release()


def is_claimed(directory: Path) -> bool:
    """Return whether this process holds a directory."""
    try:
        status = directory.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in _HELD


def _take(directory: Path, shown: Path) -> _Held:
    """Return the directory as this process holds it, locked now or before."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise PvaError(f"cannot make {shown}", problem) from None
    status = os.fstat(number)
    key = (status.st_dev, status.st_ino)
    if key in _HELD:
        os.close(number)
        return _HELD[key]
    try:
        if not _has_locked(number):
            raise OverwriteError(
                shown, f"{_writer(directory)} writes into it",
                "give each program a directory of its own",
            )  # fmt: skip
        lease = _Held(directory, key, number, marker.read(directory) or Marker())
    except BaseException:
        os.close(number)
        raise
    _HELD[key] = lease
    return lease


def _has_locked(number: int) -> bool:
    """Lock a directory until it is closed or the process dies; False when another has."""
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _writer(directory: Path) -> str:
    """Name who has the lock: the marker may still name one that was killed."""
    deadline = time.monotonic() + NAMING_SECONDS
    while time.monotonic() < deadline:
        with suppress(PvaError):
            named = marker.read(directory)
            if named is not None and _lives(named.writer):
                return named.writer
        time.sleep(0.05)
    return "another process"


def _lives(writer: str) -> bool:
    parts = _WRITER.fullmatch(writer)
    if parts is None or parts[2] != socket.gethostname():
        return parts is not None  # of another host nothing is known
    try:
        os.kill(int(parts[1]), 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _checked(
    lease: _Held, shown: Path, names: Collection[str], *, alone: bool = False
) -> list[str]:
    """Name the files of an earlier report; raises OverwriteError for others in the way."""
    present = sorted(os.listdir(lease.directory))
    files = lease.marker.files
    if alone and present and marker.NAME not in present:
        raise OverwriteError(
            shown, f"holds something else: {present[0]}, and no {marker.NAME} that says what "
            "may be replaced", "give a new directory, or take away what is there",
        )  # fmt: skip
    own_files = [n for n in present if marker.is_own(lease.directory, n, files.get(n))]
    # Of a database that is not there, or is ours.
    free = {*own_files, *files.keys() - present}
    own_files += [n for n in present if n.endswith(JOURNAL) and n.removesuffix(JOURNAL) in free]
    for name in present:
        if name not in own_files and _matches(name.removesuffix(JOURNAL), names):
            problem = (
                "changed since it was written" if name in files else "not written by tilescope"
            )
            raise OverwriteError(shown / name, problem, _AWAY)
    return own_files


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _remove(lease: _Held, names: Collection[str]) -> None:
    """Remove files; those of databases go before their journals, without which they are damaged."""
    for name in sorted(names):
        try:
            os.unlink(lease.directory / name)
        except OSError as error:
            problem = error.strerror or str(error)
            raise PvaError(lease.directory / name, problem, "a file that can be replaced") from None
    present = set(os.listdir(lease.directory))
    files = lease.marker.files
    lease.marker.files = {
        name: files[name] for name in files if name in present and name not in names
    }


def _is_there(lease: _Held) -> bool:
    """Return whether the directory is still the one that was taken."""
    status = lease.directory.stat()
    return lease.key == (status.st_dev, status.st_ino)


def _folders(lease: _Held) -> list[str]:
    """Name the reports of named engines below, but for those that this process holds."""
    folders = [name for name, (kind, _) in lease.marker.files.items() if kind == "folder"]
    return [
        name for name in folders
        if (lease.directory / name / marker.NAME).is_file()
        and not is_claimed(lease.directory / name)
    ]  # fmt: skip


def _enter_above(lease: _Held) -> None:
    """Enter a report into the marker of the directory around it, where this process holds that."""
    with suppress(OSError, PvaError):
        above = lease.directory.parent.stat()
        around = _HELD.get((above.st_dev, above.st_ino))
        if around is not None and around is not lease:
            around.marker.files[lease.directory.name] = ("folder", "")
            marker.write(around.directory, around.marker)


def _unlock(lease: _Held) -> None:
    """Let go of a directory that has no claims."""
    if not lease.claims:
        del _HELD[lease.key]
        os.close(lease.lock)


def _write_last(lease: _Held) -> None:
    """Write the marker without its writer; where nothing was written there is none."""
    present = set(os.listdir(lease.directory))
    files = {name: identity for name, identity in lease.marker.files.items() if name in present}
    if files:
        marker.write(lease.directory, Marker(files))
    else:
        (lease.directory / marker.NAME).unlink(missing_ok=True)


def _forget() -> None:
    """Leave the directories to the parent: a child that outlives it must not hold them."""
    global _lock
    _lock = threading.RLock()
    for lease in _HELD.values():
        with suppress(OSError):
            os.close(lease.lock)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
