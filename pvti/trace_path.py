"""Where a trace goes: a directory, and a name in it that no other file has."""

from __future__ import annotations

import os
import time


class TracePath:
    """The directory and the name of one trace's files."""

    def __init__(self, directory: str) -> None:
        self._given = directory
        self._directory = _absolute(directory)  # the program may change its own meanwhile
        self._first_name = self._name = file_name(time.time(), os.getpid())
        self._names = 1  # tried
        self._find_free_name()

    def __str__(self) -> str:
        return os.path.join(self._directory, self._name)

    @property
    def path(self) -> str:
        """Where the last file is, or will be, from the directory as it was given."""
        return os.path.join(self._given, self._name)

    def free(self) -> str:
        """Make the directory; give the path of a file that is not there.

        Raises OSError.
        """
        os.makedirs(self._directory, exist_ok=True)
        self._find_free_name()
        return str(self)

    def _find_free_name(self) -> None:
        while os.path.exists(str(self)):
            self._names += 1
            self._name = f"{self._first_name.removesuffix('.pvti')}_{self._names}.pvti"


def file_name(seconds: float, pid: int) -> str:
    """Name a trace after its local time, time zone and process, as libpvti does."""
    local = time.localtime(seconds)
    name = f"{time.asctime(local)} {local.tm_zone} {pid}.pvti".replace(" ", "_").replace("/", "_")
    return name.replace(":", "-") if os.name == "nt" else name


def _absolute(directory: str) -> str:
    try:
        return os.path.abspath(directory)
    except OSError:  # the working directory is gone: what is to be made in it will fail, and say so
        return directory or os.curdir
