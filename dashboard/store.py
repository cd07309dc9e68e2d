"""The only place that opens reports and traces: those found under the paths given at start.

What is open is kept until its files change or too many others were opened since. Nothing outside of
the paths given is read: not by `..`, and not by a link that leads out of them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pva.errors import NotFoundError, PvaError
from pva.report import Report as Report
from pva.report import openReport
from pva.trace import Trace as Trace
from pva.trace import openTrace

Value = TypeVar("Value")

KEPT_OPEN = 8
# Of the files of all that is kept: what was read of a report takes some times its files. What is
# looked at last is kept whatever its size.
KEPT_BYTES = 80_000_000
DEEPEST, MOST_SOURCES = 4, 500  # how far below a path reports are looked for, and how many
REPORT_FILES = (
    "profile.pop", "graph.json", "graph.cbor", "execution.json", "execution.cbor", "debug.cbor",
    "framework.json", "app.json",
)  # fmt: skip
TRACE_SUFFIX = ".pvti"

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class _Opened:
    """A source as it was at one stamp, and what was worked out of it."""

    stamp: Stamp
    report: Report | None = None
    trace: Trace | None = None
    derived: dict[str, object] = field(default_factory=dict)


class Store:
    """Reports and traces by key. May be asked from several threads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._given = list(paths)
        self._roots = [path.resolve() for path in paths]
        self._paths: dict[str, Path] = {}
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.RLock()
        self.scan()

    def scan(self) -> None:
        """Look for reports that came since; those known keep their keys."""
        with self._lock:
            for root in self._given:
                for source in _sources(root):
                    self._add(source, root)

    def _add(self, source: Path, root: Path) -> str:
        known = {path: key for key, path in self._paths.items()}
        if source not in known:
            key = _free_key(source, root, self._paths)
            self._paths[key] = source
            return key
        return known[source]

    def find(self, text: str) -> str:
        """Give the key of the report at a path below those given; raises NotFoundError.

        The path is absolute or starts from one of those given.
        """
        for given, root in zip(self._given, self._roots, strict=True):
            path = (root / text.strip()).resolve()
            if not path.exists() or not (path == root or root in path.parents):
                continue
            sources = _sources(path) if path.is_dir() else [path]
            found = [source for source in sources if _is_source(source) or source.is_file()]
            if text.strip() and found:
                with self._lock:
                    return self._add(_as_given(found[0], given, root), given)
        wanted = "give a report or a directory of one, below the paths given at start"
        raise NotFoundError(text.strip() or "the path", "no report there", wanted)

    def give(self, path: Path) -> str:
        """Add a path to those given at start, and tell the key of the report there."""
        with self._lock:
            self._given.append(path)
            self._roots.append(path.resolve())
            return self._add(path, path)

    def size(self, key: str = "") -> int:
        """Give the bytes of the files of a source; raises PvaError."""
        return sum(size for _, size, _ in self.stamp(key))

    def forget(self, key: str = "") -> None:
        """Let a source go, so that it is read again."""
        with self._lock:
            self._opened.pop(key or self.keys[0], None)

    @property
    def keys(self) -> list[str]:
        """Name the sources in the order given."""
        return list(self._paths)

    def path(self, key: str = "") -> Path:
        """Give the path of a source, the first one without a key; raises NotFoundError."""
        if not self._paths:
            raise NotFoundError(
                "dashboard", "no report was given", "start it with tilescope serve REPORT"
            )
        if key and key not in self._paths:
            raise NotFoundError(f"report={key}", "not there", f"known: {', '.join(self._paths)}")
        return self._paths[key or self.keys[0]]

    def has_report(self, key: str = "") -> bool:
        """Tell whether a source is more than a host trace; raises NotFoundError."""
        path = self.path(key)
        if path.is_dir():
            return any((path / name).is_file() for name in REPORT_FILES)
        return path.suffix != TRACE_SUFFIX

    def report(self, key: str = "") -> Report:
        """Open a report, or give the open one; raises PvaError."""
        opened = self._current(key)
        with self._lock:
            if opened.report is None:
                opened.report = openReport(str(self.path(key)))
            return opened.report

    def report_anew(self, key: str = "") -> Report:
        """Open a report that is not kept, with what is read of it; raises PvaError."""
        return openReport(str(self.path(key)))

    def trace(self, key: str = "") -> Trace | None:
        """Open the host trace of a source; None when it has none. Raises PvaError."""
        traces = [file for file in self._files(key) if file.suffix == TRACE_SUFFIX]
        if not traces:
            return None
        opened = self._current(key)
        with self._lock:
            if opened.trace is None:
                opened.trace = openTrace(str(traces[-1]))
            return opened.trace

    def derived(self, key: str, name: str, make: Callable[[], Value]) -> Value:
        """Give what was worked out of a source under this name, or work it out and keep it."""
        opened = self._current(key)
        with self._lock:
            if name not in opened.derived:
                opened.derived[name] = make()
            return opened.derived[name]  # type: ignore[return-value]

    def stamp(self, key: str = "") -> Stamp:
        """Give what changes when a file of the source does: names, sizes and times."""
        states = ((file.name, file.stat()) for file in self._files(key))
        return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)

    def _files(self, key: str) -> list[Path]:
        """List the files of a source; raises PvaError when one is a link out of the paths given."""
        path = self.path(key)
        names = [path] if path.is_file() else [path / name for name in REPORT_FILES]
        names += sorted(_files(path, TRACE_SUFFIX)) if path.is_dir() else []
        files = [file for file in names if file.is_file()]
        for file in files:
            real = file.resolve()
            if not any(real == root or root in real.parents for root in self._roots):
                wanted = "start tilescope serve with the directory that it leads to, too"
                raise PvaError(file.name, "a link out of the paths given", wanted)
        return files

    def _is_much(self) -> bool:
        """Tell whether what is open stands for more bytes of files than are kept."""
        sizes = (size for opened in self._opened.values() for _, size, _ in opened.stamp)
        return sum(sizes) > KEPT_BYTES

    def _current(self, key: str) -> _Opened:
        """Give the entry of a source as its files are now."""
        self.path(key)
        key, stamp = key or self.keys[0], self.stamp(key)
        with self._lock:
            opened = self._opened.get(key)
            if opened is None or opened.stamp != stamp:
                opened = self._opened[key] = _Opened(stamp)
            self._opened.move_to_end(key)
            while len(self._opened) > 1 and (len(self._opened) > KEPT_OPEN or self._is_much()):
                self._opened.popitem(last=False)
            return opened


def _files(path: Path, suffix: str) -> list[Path]:
    return [file for file in path.iterdir() if file.suffix == suffix] if path.is_dir() else []


def _is_source(path: Path) -> bool:
    return any((path / name).is_file() for name in REPORT_FILES[:5]) or bool(
        _files(path, TRACE_SUFFIX)
    )


def _sources(path: Path) -> list[Path]:
    """List the reports at a path: itself, or, in a plain directory, those below it."""
    if not path.is_dir() or _is_source(path):
        return [path]
    return _below(path) or [path]


def _below(path: Path) -> list[Path]:
    """List the reports below a directory, not following links to directories."""
    found: list[Path] = []
    for folder, names, _ in os.walk(path):
        here = Path(folder)
        if here != path and _is_source(here):
            found.append(here)
        deep = len(here.relative_to(path).parts) >= DEEPEST or len(found) >= MOST_SOURCES
        names[:] = [] if deep else sorted(name for name in names if not name.startswith("."))
    return found


def _as_given(path: Path, given: Path, root: Path) -> Path:
    """Write a resolved path as it stands below the path given."""
    return given / path.relative_to(root) if path != root else given


def _free_key(path: Path, root: Path, taken: dict[str, Path]) -> str:
    """Name a source after its directory or file; when that is taken, by its place, or numbered."""
    name = path.resolve().name or "report"
    place = path.relative_to(root).as_posix() if path != root else name
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(key for key in (name, place, *numbered) if key not in taken)
