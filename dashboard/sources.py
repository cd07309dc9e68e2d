"""Where reports and host traces lie below the paths given at start, and their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from os.path import isdir, isfile  # false, too, of what may not be looked at
from pathlib import Path

from pva.errors import PvaError
from pva.many.exploration import point_words
from pva.plain_file import as_text
from pva.schema.exploration import ABOUT, TABLE
from pva.trace import CHROME_SUFFIXES, isTrace
from pva.trace import SUFFIX as TRACE_SUFFIX

DEEPEST, MAX_SOURCES = 4, 500  # how far below a path reports are looked for, and how many
INSTANCE = re.compile(r"instance_\d{1,9}")  # a directory of one, as `poprun` names it
REPORT_FILES = (
    "profile.pop", "graph.json", "graph.cbor", "execution.json", "execution.cbor", "debug.cbor",
    "framework.json", "app.json",
)  # fmt: skip
MAX_COMPLETED, MAX_LOOKED_AT = 20, 5000  # names that a path may go on with, of so many files
READ_SUFFIXES = (
    ".pop", ".json", ".cbor", ".pvti", ".gz", ".parquet", "-journal", "-wal", "-shm",
)  # fmt: skip


def is_trace(path: Path) -> bool:
    """Return whether a file is a host trace: by its suffix, or by how it begins."""
    if path.suffix == TRACE_SUFFIX:
        return True
    named = path.name.endswith(CHROME_SUFFIXES) and path.name not in REPORT_FILES
    if not named or not isfile(path):
        return False
    state = path.stat()
    return _begins_as_trace(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _begins_as_trace(path: Path, _size: int, _time: int) -> bool:
    try:
        return isTrace(path)
    except PvaError:
        return False


def files_of(path: Path) -> list[Path]:
    """List the files of a source that there are, its traces last."""
    if not isdir(path):
        return [path] if isfile(path) else []
    files = (path / name for name in REPORT_FILES)
    return [*(file for file in files if isfile(file)), *traces_in(path)]


def traces_in(folder: Path) -> list[Path]:
    """List the traces of a directory: `.pvti`, or without any those of other formats."""
    files: list[Path] = []
    with suppress(OSError):  # one that may not be listed
        files = sorted(folder.iterdir()) if isdir(folder) else []
    named = [file for file in files if file.suffix == TRACE_SUFFIX and isfile(file)]
    return named or [file for file in files if is_trace(file)]


def has_report(path: Path) -> bool:
    """Return whether a source is more than a host trace."""
    if isdir(path):
        return any(isfile(path / name) for name in REPORT_FILES)
    return not is_trace(path)


def run_of(path: Path, roots: Sequence[Path]) -> Path | None:
    """Return the directory of the run that a source is an instance of, when it lies in a root."""
    for folder in (path, *path.parents[:2]):
        if INSTANCE.fullmatch(folder.name) and is_within(real(folder.parent), roots):
            return folder.parent
    return None


def exploration_of(path: Path, roots: Sequence[Path]) -> Path | None:
    """Return the directory of the exploration that a source is in, when its files lie in a root."""
    for folder in (path, *path.parents[:2]):
        files = [folder / name for name in (ABOUT, TABLE)]
        if all(isfile(file) and is_within(real(file), roots) for file in files):
            return folder
    return None


def is_source(path: Path) -> bool:
    """Return whether a directory holds a report or a trace."""
    return any(isfile(path / name) for name in REPORT_FILES[:5]) or bool(traces_in(path))


def sources(path: Path) -> list[Path]:
    """List the reports at a path: itself, and in a directory those below it."""
    if not isdir(path):
        return [path]
    return [*_own(path), *_below(path)] or [path]


def _own(path: Path) -> list[Path]:
    """List a directory of a report or of `.pvti`, or of a directory of Chrome traces each file."""
    if has_report(path):
        return [path] if is_source(path) else []
    traces = traces_in(path)
    return traces if len(traces) > 1 and traces[0].suffix != TRACE_SUFFIX else [path][: len(traces)]


def _below(path: Path) -> list[Path]:
    """List the reports below a directory, not following links to directories."""
    reports: list[Path] = []
    for folder, names, _ in os.walk(path):
        directory = Path(folder)
        reports += _own(directory) if directory != path else []
        deep = len(directory.relative_to(path).parts) >= DEEPEST or len(reports) >= MAX_SOURCES
        names[:] = [] if deep else sorted(name for name in names if not name.startswith("."))
    return reports


def completions(roots: Sequence[Path], typed: str) -> list[str]:
    """List what a path that is being typed may become: directories, with a slash, and reports.

    `roots` are resolved. Only what lies in them is looked at: not what `..` or a link leads to.
    """
    typed = typed.strip()
    folder, _, begun = typed.rpartition("/")
    before = typed[: len(typed) - len(begun)]
    candidates: list[str] = []
    for root in roots:
        for directory in filter(isdir, within(root, folder or ("/" if before else "."))):
            candidates += (before + name for name in _named(directory, begun, root))
    typed_so = (name for name in dict.fromkeys(candidates) if as_text(name) == name)
    return list(islice(typed_so, MAX_COMPLETED))


def within(root: Path, text: str) -> list[Path]:
    """List what a path may name in a root: from there, or from the working directory, as typed."""
    named = [real(start / text) for start in (root, Path())]
    return [path for path in named if is_within(path, [root])]


def real(path: Path) -> Path:
    """Return where a path leads; one that leads to itself stays where it is."""
    return Path(os.path.realpath(path))


def readable(path: Path) -> list[Path]:
    """List what may be read of a source, whatever its name: its files, and journals beside them."""
    folder, name = (path, "") if isdir(path) else (path.parent, path.name)
    files: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        files = [
            folder / entry.name
            for entry in entries
            if entry.name.startswith(name) and entry.name.endswith(READ_SUFFIXES)
        ]
    return files if isdir(path) else [path, *files]


def is_within(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a resolved path is one of the roots or lies in one."""
    return any(path == root or root in path.parents for root in roots)


def _named(folder: Path, begun: str, root: Path) -> Iterator[str]:
    """Name what is in a directory and begins so: what may lead to a report, or is one."""
    hidden = begun.startswith(".")
    with suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MAX_LOOKED_AT))
        for name in names:
            path = folder / name
            fits = name.lower().startswith(begun.lower()) and name.startswith(".") <= hidden
            if not fits or not is_within(real(path), [root]):
                continue
            if isdir(path):
                yield f"{name}/"
            elif name in REPORT_FILES[:5] or path.suffix == ".pop" or is_trace(path):
                yield name


def name_of(path: Path) -> str:
    """Return the name of a source's directory or file; of a point, what was varied there."""
    return as_text(point_words(path) or real(path).name) or "report"


def free_key(path: Path, root: Path, paths: dict[str, Path], *, alone: bool) -> str:
    """Name a source after its directory or file; when it is not `alone` with that, by its place.

    When that is taken, too, it is numbered.
    """
    name = name_of(path)
    place = as_text(path.relative_to(root).as_posix()) if path != root else name
    numbered = (f"{name}-{number}" for number in range(2, len(paths) + 3))
    names = (name, place) if alone else (place, name)
    return next(key for key in (*names, *numbered) if key not in paths)
