"""The only place that opens reports and traces: those found under the paths given at start.

What is open is kept until its files change or too many others were opened since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pva.errors import NotFoundError
from pva.report import Report as Report
from pva.report import openReport
from pva.trace import Trace as Trace
from pva.trace import openTrace

Value = TypeVar("Value")

KEPT_OPEN = 8
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
        self._paths: dict[str, Path] = {}
        for path in paths:
            for source in _sources(path):
                self._paths[_free_key(source, self._paths)] = source
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._lock = threading.RLock()

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

    def trace(self, key: str = "") -> Trace | None:
        """Open the host trace of a source; None when it has none. Raises PvaError."""
        path = self.path(key)
        traces = [path] if path.suffix == TRACE_SUFFIX else sorted(_files(path, TRACE_SUFFIX))
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
        path = self.path(key)
        names = [path] if path.is_file() else [path / name for name in REPORT_FILES]
        names += sorted(_files(path, TRACE_SUFFIX)) if path.is_dir() else []
        states = ((file.name, file.stat()) for file in names if file.is_file())
        return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)

    def _current(self, key: str) -> _Opened:
        """Give the entry of a source as its files are now."""
        self.path(key)
        key, stamp = key or self.keys[0], self.stamp(key)
        with self._lock:
            opened = self._opened.get(key)
            if opened is None or opened.stamp != stamp:
                opened = self._opened[key] = _Opened(stamp)
            self._opened.move_to_end(key)
            while len(self._opened) > KEPT_OPEN:
                self._opened.popitem(last=False)
            return opened


def _files(path: Path, suffix: str) -> list[Path]:
    return [file for file in path.iterdir() if file.suffix == suffix] if path.is_dir() else []


def _is_source(path: Path) -> bool:
    return any((path / name).is_file() for name in REPORT_FILES[:5]) or bool(
        _files(path, TRACE_SUFFIX)
    )


def _sources(path: Path) -> list[Path]:
    """List the reports at a path: itself, or, in a plain directory, the reports one level down."""
    if not path.is_dir() or _is_source(path):
        return [path]
    inside = [child for child in sorted(path.iterdir()) if child.is_dir() and _is_source(child)]
    return inside or [path]


def _free_key(path: Path, taken: dict[str, Path]) -> str:
    """Name a source after its directory or file, numbered when the name is taken."""
    name = path.resolve().name or "report"
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(key for key in numbered if key not in taken)
