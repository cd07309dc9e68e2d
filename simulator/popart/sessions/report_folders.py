"""Which folder below `autoReport.directory` a session writes its report to: that of its name.

Each session of a process has a folder of its own. The first of a name has `training`, `inference`
or what `name=` says; those after it have a number behind it, so that none replaces the report of
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from os.path import realpath
from pathlib import Path

from simulator.engine import OUTPUTS
from simulator.popart.errors import popart_exception
from simulator.popart.logging import log

_owners: dict[str, Folder] = {}  # by path, for as long as the process lasts


class Folder:
    """The folder of one session, by its name and its resolved engine options.

    Raises popart_exception for a name that leads out of `autoReport.directory`.
    """

    __slots__ = ("_directory", "_name")

    def __init__(self, name: str, options: Mapping[str, object]) -> None:
        wrong = not isinstance(name, str) or "\0" in name
        if wrong or Path(name).is_absolute() or ".." in Path(name).parts:
            raise popart_exception(
                f"session: name is {name!r}; a folder below autoReport.directory is needed"
            )
        self._name = name
        writes = any(options[option] for option in OUTPUTS)
        self._directory = Path(str(options["autoReport.directory"])) if writes else None

    def claimed(self) -> str:
        """Take the folder, or the next one that no other session has; give its name."""
        if self._directory is None:
            return self._name
        for number in count(1):
            name = self._name if number == 1 else f"{self._name or 'session'}_{number}"
            if _owners.setdefault(realpath(self._directory / name), self) is self:
                break
        if name != self._name:
            words = f"another session has the report {self._name!r}; this one writes {name!r}"
            log("session", "WARN", words)
        return name


def give_back(directory: Path) -> None:
    """Let the next session have this folder, whose report is to be written anew."""
    _owners.pop(realpath(directory), None)
