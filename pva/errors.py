"""Errors of `pva`, each a single line: the file, the place, what was found, what would be right.

PvaError                    all that `pva` raises on purpose (a RuntimeError, as libpva's are)
├── NotFoundError           the path leads to nothing
├── UnknownFormatError      the file is none of the formats that are known
├── DamagedFileError        the file is of a known format, but cut short or changed
├── NewerVersionError       the file was written by a newer version than this one reads
├── InconsistentDataError   columns or arrays do not fit the schema or each other
├── NotRecordedError        the report has no such table, because nobody asked to record it
├── MissingPackageError     the work needs an optional package
├── QueryError              an SQL query asks for what is not there, or is no query
├── OptionError             an option of the summary is unknown, or neither true nor false
├── OverwriteError          there is something already where a file is to be written
└── SelectionError          a tile, step, IPU or run was asked for that is not there; it stands in
                            `pva.analysis.selection`
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from itertools import takewhile

PACKAGE = os.path.dirname(__file__) + os.sep
NOTEBOOK = f"{os.sep}IPython{os.sep}"  # in the names of its files


def _text(value: object) -> str:
    """Return what can be written everywhere: the name of a file may be no UTF-8."""
    return str(value).encode(errors="backslashreplace").decode()


class PvaError(RuntimeError):
    """Format one line: file or object, place, what was found, what would be right."""

    def __init__(self, subject: object, found: str, wanted: str = "", *, place: str = "") -> None:
        self.subject = _text(subject)
        self.place = _text(place)
        self.found = _text(found)
        self.wanted = _text(wanted)
        head = ": ".join(part for part in (self.subject, self.place, self.found) if part)
        super().__init__(" ".join(f"{head}; {self.wanted}".split()) if wanted else head)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the user's own lines, then the error's one line."""
        import traceback

        frames = traceback.extract_tb(self.__traceback__)
        until = takewhile(lambda frame: not frame.filename.startswith(PACKAGE), frames)
        lines = traceback.format_list([f for f in until if NOTEBOOK not in f.filename])
        return [*"".join(lines).splitlines(), f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, ...]:
        """Be raised in another process with what it says: one that cannot ends the whole pool."""
        arguments = (self.subject, self.found, self.wanted)
        return partial(type(self), place=self.place), arguments, self.__dict__


class NotFoundError(PvaError):
    """The path leads to nothing."""


class UnknownFormatError(PvaError):
    """The file is none of the formats that are known."""


class DamagedFileError(PvaError):
    """The file is of a known format, but cut short or changed."""


class NewerVersionError(PvaError):
    """The file was written by a newer version than this one reads."""


class InconsistentDataError(PvaError):
    """Columns or arrays do not fit the schema or each other."""


class NotRecordedError(PvaError):
    """The report has no such table, because nobody asked to record it."""


class MissingPackageError(PvaError):
    """The work needs an optional package."""


class OptionError(PvaError):
    """An option of the summary is unknown, or neither true nor false."""


class QueryError(PvaError):
    """An SQL query asks for what is not there, or is no query."""


class OverwriteError(PvaError):
    """There is something already where a file is to be written."""


def nearest(name: str, candidates: Iterable[str], lists: str = "") -> str:
    """Return which known names are near; else name what `lists` them, or list them all."""
    import difflib

    names = list(candidates)
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{lists} lists them" if lists else f"there are {', '.join(names)}"
