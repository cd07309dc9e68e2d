"""Errors of `pva`, each a single line: the file, the place, what was found, what would be right.

PvaError                    all that `pva` raises on purpose (a RuntimeError, as libpva's are)
├── NotFoundError           the path leads to nothing
├── UnknownFormatError      the file is none of the formats that are known
├── DamagedFileError        the file is of a known format, but cut short or changed
├── NewerVersionError       the file was written by a newer version than this one reads
├── InconsistentDataError   columns or arrays do not fit the schema or each other
├── NotRecordedError        the report has no such table, because nobody asked to record it
├── MissingPackageError     the work needs an optional package
└── SelectionError          a tile, step, IPU or run was asked for that is not there; it stands in
                            `pva.analysis.selection`
"""

from __future__ import annotations


class PvaError(RuntimeError):
    """Say in one line: file or object, place, what was found, what would be right."""

    def __init__(self, subject: object, found: str, wanted: str = "", *, place: str = "") -> None:
        self.subject = str(subject)
        self.place = place
        self.found = found
        self.wanted = wanted
        head = ": ".join(part for part in (self.subject, place, found) if part)
        super().__init__(" ".join(f"{head}; {wanted}".split()) if wanted else head)


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
