"""The only place that opens reports and traces: those found under the paths given at start.

What is open is kept until its files change or too many others were opened since. Nothing outside of
the paths given is read: not by `..`, and not by a link that leads out of them.

Keys joined by JOIN, such as `demo+other.pvti`, name one source: the first report among them, and
the traces of all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from os.path import exists, isfile  # false, too, of what may not be looked at
from pathlib import Path
from typing import TypeVar

from dashboard import sources
from pva.errors import NotFoundError, PvaError
from pva.many.exploration import Exploration, openExploration
from pva.many.run import Run, openRun
from pva.plain_file import as_text
from pva.report import Report as Report
from pva.report import openReport
from pva.schema.exploration import REPORTS
from pva.trace import Align as Align
from pva.trace import Trace as Trace
from pva.trace import openTrace

Value = TypeVar("Value")

MAX_LETTERS = 2000  # of a name or another text of a report or trace that pages show
KEPT_OPEN = 8
# Of the files of all that is kept: what was worked out of a report takes about as much. What is
# looked at last is kept whatever its size.
KEPT_BYTES = 200_000_000
HELD_BYTES = 80_000_000  # of the columns of all reports, which can be read again
KEPT_ANSWERS = 600  # small results, which stay when their source is let go
JOIN = "+"
MAX_JOINED = 64
# Files that grow are read again when that took at most one part in SPARED of the time since.
SPARED, QUICK = 5, 0.25  # and what took less seconds than this is read again at once

Stamp = tuple[tuple[str, int, int], ...]
Counting = tuple[Callable[[], str], Callable[[Report, str], Report]]


@dataclass(slots=True)
class _Opened:
    """A source as it was at one stamp, and what was worked out of it, each under a lock.

    `former` is what was worked out of an earlier state and can be continued.
    """

    stamp: Stamp
    former: dict[str, object] = field(default_factory=dict)
    kept: dict[str, object] = field(default_factory=dict)
    locks: dict[str, threading.RLock] = field(default_factory=dict)
    cost: float = 0.0  # seconds that the most expensive took
    made: float = 0.0  # when it was done

    @property
    def report(self) -> Report | None:
        """The report, where it was opened."""
        return self.kept.get("report")  # type: ignore[return-value]

    def get(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what is kept under a name, or make it."""
        with self.locks.setdefault(name, threading.RLock()):
            if name not in self.kept:
                begin = time.monotonic()
                self.kept[name] = make()
                self.made = time.monotonic()
                self.cost = max(self.cost, self.made - begin)
            return self.kept[name]  # type: ignore[return-value]

    @property
    def is_spared(self) -> bool:
        """Return whether it is too early to read the files again."""
        return self.cost > QUICK and time.monotonic() - self.made < SPARED * self.cost


class Store:
    """Reports and traces by key. May be asked from several threads."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._counting: Counting = (lambda: "", lambda report, _: report)
        self._given = list(paths)
        self._roots = [sources.real(path) for path in paths]
        self._paths: dict[str, Path] = {}
        self._gone: set[str] = set()
        self._joined: list[str] = []
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._answers: OrderedDict[Hashable, object] = OrderedDict()
        self._making: dict[Hashable, threading.RLock] = {}
        self._lock = threading.RLock()
        self._looked = threading.local()
        self.scan()
        together: dict[Path | None, list[str]] = {}  # of files given, and of each directory
        for key, path in self._paths.items():
            if isfile(path) and sources.is_trace(path):
                together.setdefault(None if path in paths else path.parent, []).append(key)
        groups = [keys for keys in together.values() if 1 < len(keys) <= MAX_JOINED]
        self._joined += map(JOIN.join, groups)

    def count_runs(
        self, selection: Callable[[], str], counted: Callable[[Report, str], Report]
    ) -> None:
        """Let `report` return those runs of a report that are asked for when it is called.

        What is worked out of a report is kept for each of these.
        """
        self._counting = (selection, counted)

    def scan(self) -> None:
        """Look for reports that came or went since; those known keep their keys."""
        with self._lock:
            paths, new = set(self._paths.values()), dict[Path, Path]()
            places = ((one, root) for root in self._given for one in sources.sources(root))
            for one, root in places:
                if one not in paths:
                    new.setdefault(one, root)
            names = Counter(map(sources.name_of, new))
            for one, root in new.items():
                self._add(one, root, alone=names[sources.name_of(one)] == 1)
            entries = self._paths.items()
            self._gone = {key for key, at in entries if at not in self._given and not exists(at)}

    def _add(self, source: Path, root: Path, *, alone: bool = True) -> str:
        keys = {path: key for key, path in self._paths.items()}
        if source not in keys:
            key = sources.free_key(source, root, self._paths, alone=alone)
            self._paths[key] = source
            return key
        return keys[source]

    def find(self, text: str) -> str:
        """Return the key of the report at a path below those given; raises NotFoundError.

        The path is absolute, or starts from one of those given or from the working directory.
        """
        both = zip(self._given, self._roots, strict=True)
        named = ((*pair, path) for pair in both for path in sources.within(pair[1], text.strip()))
        for start, root, path in named:
            if not exists(path):
                continue
            below = sources.sources(path)
            reports = [one for one in below if sources.is_source(one) or isfile(one)]
            if text.strip() and reports:
                with self._lock:
                    return self._add(_as_given(reports[0], start, root), start)
        hint = "give a report or a directory of one, below the paths given at start"
        raise NotFoundError(text.strip() or "the path", "no report there", hint)

    def holds(self, path: Path) -> bool:
        """Return whether a path lies below those given at start, links followed."""
        return sources.is_within(sources.real(path), self._roots)

    def completions(self, text: str) -> list[str]:
        """List what a path may become that is being typed for `find`."""
        return sources.completions(self._roots, text)

    def give(self, path: Path) -> str:
        """Add a path to those given at start, and tell the key of the report there."""
        with self._lock:
            self._given.append(path)
            self._roots.append(sources.real(path))
            return self._add(path, path)

    def size(self, key: str = "") -> int:
        """Return the bytes of the files of a source; raises PvaError."""
        return sum(size for _, size, _ in self.stamp(key))

    def forget(self, key: str = "") -> None:
        """Let a source go, so that it is read again."""
        with self._lock:
            self._opened.pop(key or self.keys[0], None)
            self._answers.clear()
        if getattr(self._looked, "stamps", None):
            self.look_once()

    @property
    def keys(self) -> list[str]:
        """Name the sources in the order given, those joined before their parts.

        One that was found below a path given, and that has gone since, is not among them.
        """
        keys = [key for key in self._paths if key not in self._gone]
        for joined in self._joined:
            parts = joined.split(JOIN)
            if self._gone.isdisjoint(parts):
                keys.insert(keys.index(parts[0]), joined)
        return keys

    @property
    def reports(self) -> list[str]:
        """Name the sources that are more than a host trace, in the order given."""
        return [key for key, path in self._paths.items() if sources.has_report(path)]

    def parts(self, key: str = "") -> tuple[str, ...]:
        """Return the keys that a key joins, or it alone; raises NotFoundError."""
        if not self._paths:
            raise NotFoundError(
                "dashboard", "no report was given", "start it with tilescope serve REPORT"
            )
        key = key or self.keys[0]
        parts = (key,) if key in self._paths else tuple(dict.fromkeys(key.split(JOIN)))
        if len(parts) <= MAX_JOINED and not self._knows(parts):
            self.scan()  # it may have been written since
            parts = (key,) if key in self._paths else parts
        if len(parts) > MAX_JOINED or not self._knows(parts):
            keys = ", ".join(name for name, path in self._paths.items() if exists(path))
            hint = f"known: {keys}" if keys else "no report is left below the paths given"
            raise NotFoundError(f"report={key}", "not there", hint)
        if len(parts) > 1 and key not in self._joined and len(self._joined) < MAX_JOINED:
            self._joined.append(key)
        return parts

    def _knows(self, parts: Sequence[str]) -> bool:
        return all(part in self._paths for part in parts)

    def path(self, key: str = "") -> Path:
        """Return the path of a source, the first one without a key; raises NotFoundError.

        That of several is the path of the first report among them.
        """
        paths = [self._paths[part] for part in self.parts(key)]
        return next((path for path in paths if sources.has_report(path)), paths[0])

    def has_report(self, key: str = "") -> bool:
        """Return whether a source is more than a host trace; raises NotFoundError."""
        return sources.has_report(self.path(key))

    def report(self, key: str = "") -> Report:
        """Open a report, or give the open one; raises PvaError."""
        selection, counted = self._counting
        return counted(self.whole_report(key), selection())

    def whole_report(self, key: str = "") -> Report:
        """Open a report with all of its runs, or give the open one; raises PvaError."""
        return self._current(key).get("report", lambda: self._open(key))

    def report_anew(self, key: str = "") -> Report:
        """Open a report that is not kept, with what is read of it; raises PvaError."""
        selection, counted = self._counting
        return counted(self._open(key), selection())

    def _open(self, key: str) -> Report:
        self._files(key)
        return openReport(str(self.path(key)), longest=MAX_LETTERS)

    def has_trace(self, key: str = "") -> bool:
        """Return whether a source has a host trace; raises PvaError."""
        return any(map(sources.is_trace, self._files(key)))

    def trace(self, key: str = "", align: Align = "wall") -> Trace | None:
        """Open the host traces of a source as one; None when it has none. Raises PvaError."""
        if not self.has_trace(key):
            return None
        return self._current(key).get(f"trace {align}", lambda: self._trace(key, align))

    def _trace(self, key: str, align: Align) -> Trace:
        """Open the traces of a source: of a directory those of its last run."""
        paths: list[str] = []
        for part in self.parts(key):
            path = self._paths[part]
            files = sources.traces_in(path) if path.is_dir() else [path]
            paths += map(str, _of_last_run(files) if len(files) > 1 else files)
        return openTrace(list(dict.fromkeys(paths)), align=align, longest=MAX_LETTERS)

    def run(self, key: str = "") -> Run | None:
        """Open the run that a source is an instance of; None when it is of none. Raises PvaError.

        A run with an instance that is a link out of the paths given is refused.
        """
        folder = sources.run_of(self.path(key), self._roots)
        if folder is None:
            return None
        for place in folder.iterdir():
            if sources.INSTANCE.fullmatch(place.name) and not sources.is_within(
                sources.real(place), self._roots
            ):
                hint = "start tilescope serve with the directory that it leads to, too"
                raise PvaError(as_text(place.name), "a link out of the paths given", hint)
        return self._current(key).get("run", lambda: openRun(folder))

    def of_instance(self, key: str, instance: int) -> str:
        """Return the key of a source of another instance of the same run, or the empty text."""
        folder = sources.run_of(self.path(key), self._roots)
        for sibling, path in self._paths.items():
            if folder and folder / f"instance_{instance:04d}" in (path, *path.parents[:2]):
                return sibling
        return ""

    def exploration(self, key: str = "") -> Exploration | None:
        """Open the exploration that a source is a point of; None when it is of none.

        Raises PvaError.
        """
        folder = sources.exploration_of(self.path(key), self._roots)
        if folder is None:
            return None
        return self._current(key).get("exploration", lambda: openExploration(folder))

    def of_point(self, key: str, point: str) -> str:
        """Return the key of the report of a point of the same exploration, or the empty text."""
        folder = sources.exploration_of(self.path(key), self._roots)
        if folder is None:
            return ""
        report = folder / REPORTS / point
        return next((sibling for sibling, path in self._paths.items() if path == report), "")

    def traces(self, key: str = "") -> list[str]:
        """Name sources that have traces and can be joined to this one; raises NotFoundError."""
        parts, entries = self.parts(key), list(self._paths.items())
        return [
            candidate for candidate, path in entries
            if candidate not in parts and any(map(sources.is_trace, sources.files_of(path)))
        ]  # fmt: skip

    def derived(self, key: str, name: str, make: Callable[[], Value]) -> Value:
        """Return what was worked out of a source under this name, or work it out and keep it."""
        return self._current(key).get(self._of(name), make)

    def knows(self, key: str, name: str) -> bool:
        """Return whether `derived` has what is under this name and need not make it."""
        return self._of(name) in self._current(key).kept

    def _of(self, name: str) -> str:
        """Return under what something is kept that was worked out of the runs asked for."""
        return f"of {name}, {self._counting[0]()}"

    def continued(self, key: str, name: str, make: Callable[[Value | None], Value]) -> Value:
        """Return what was worked out of a source as `derived` does.

        `make` is given what was worked out under this name before the files changed, or None.
        """
        opened = self._current(key)

        def anew() -> Value:
            result = make(opened.former.pop(self._of(name), None))  # type: ignore[arg-type]
            opened.former[self._of(name)] = result
            return result

        return opened.get(self._of(name), anew)

    def answer(self, entry: Hashable, make: Callable[[], Value]) -> Value:
        """Return a small result that was made under this entry, or make it and keep it for a while.

        The entry tells all that it depends on, the stamps of its files with it. What raises is not
        kept, and what is kept stays when the source is let go.
        """
        with self._lock:
            making = self._making.setdefault(entry, threading.RLock())
        with making:  # who asks for the same waits, and takes what was made
            with self._lock:
                if entry in self._answers:
                    self._answers.move_to_end(entry)
                    return self._answers[entry]  # type: ignore[return-value]
            try:
                result = make()
            finally:
                with self._lock:
                    self._making.pop(entry, None)
            with self._lock:
                self._answers[entry] = result
                while len(self._answers) > KEPT_ANSWERS:
                    self._answers.popitem(last=False)
                self.let_go()
            return result

    def is_answered(self, entry: Hashable) -> bool:
        """Return whether `answer` has a result under this entry and need not make it."""
        return entry in self._answers

    def let_go(self) -> None:
        """Let go of columns until few are held, the largest of all reports first.

        What is small is kept of each report, and so are names: an array is cheaper to read again.
        """
        with self._lock:
            rooms = [one.report.dataset.room for one in self._opened.values() if one.report]
        while sum(room.held for room in rooms) > HELD_BYTES:
            max(rooms, key=lambda room: room.largest).let_go_of_largest()

    def look_once(self) -> None:
        """Look at the files of a source once until `look_again`: this thread answers a request."""
        self._looked.stamps = {}

    def look_again(self) -> None:
        """Look at the files whenever they are asked for."""
        self._looked.stamps = None

    def stamp(self, key: str = "") -> Stamp:
        """Return what changes when a file of the source does: names, sizes and times."""
        stamps: dict[str, Stamp] | None = getattr(self._looked, "stamps", None)
        if stamps is None:
            return self._stamp(key)
        if key not in stamps:
            stamps[key] = self._stamp(key)
        return stamps[key]

    def _stamp(self, key: str) -> Stamp:
        entries = []
        for file in self._files(key):
            try:
                state = file.stat()
            except OSError:  # it went away since it was listed
                continue
            entries.append((as_text(file.name), state.st_size, state.st_mtime_ns))
        return tuple(entries)

    def shown(self, key: str = "") -> Stamp:
        """Return the stamp of what is shown of a source: large files that grow are read seldom."""
        return self._current(key).stamp

    def _files(self, key: str) -> list[Path]:
        """List the files of a source; raises PvaError when one is a link out of the paths given."""
        paths = [self._paths[part] for part in self.parts(key)]
        for file in (file for path in paths for file in sources.readable(path)):
            if not sources.is_within(sources.real(file), self._roots):
                hint = "start tilescope serve with the directory that it leads to, too"
                raise PvaError(as_text(file.name), "a link out of the paths given", hint)
        return [file for path in paths for file in sources.files_of(path)]

    def _is_much(self) -> bool:
        """Return whether what is open stands for more bytes of files than are kept."""
        sizes = (size for opened in self._opened.values() for _, size, _ in opened.stamp)
        return sum(sizes) > KEPT_BYTES

    def _current(self, key: str) -> _Opened:
        """Return the entry of a source as its files are now, or were a little while ago."""
        self.parts(key)
        key, stamp = key or self.keys[0], self.stamp(key)
        with self._lock:
            opened = self._opened.get(key)
            if opened is None or (opened.stamp != stamp and not (stamp and opened.is_spared)):
                former = dict(opened.former) if opened else {}
                opened = self._opened[key] = _Opened(stamp, former)
            self._opened.move_to_end(key)
            while len(self._opened) > 1 and (len(self._opened) > KEPT_OPEN or self._is_much()):
                self._opened.popitem(last=False)
            return opened


def _of_last_run(files: list[Path]) -> list[Path]:
    """Return the traces that were written at the same time as the last one, and that one."""
    spans = {file: span for file in files if (span := _span(file))}
    group: list[Path] = []
    superset = [max(spans, key=lambda file: spans[file])] if spans else files[-1:]
    while len(superset) > len(group):
        group = superset
        first = min(spans[file][0] for file in group) if spans else 0
        last = max(spans[file][1] for file in group) if spans else 0
        superset = [file for file, (begin, end) in spans.items() if begin <= last and end >= first]
    return group


def _span(file: Path) -> tuple[int, int] | None:
    """Return begin and end of a trace by the wall clock; none of one that cannot be read."""
    try:
        trace = openTrace(str(file))
    except PvaError:
        return None
    with closing(trace):
        return trace.anchor.wall_ns, trace.anchor.wall_ns + trace.duration_ns


def _as_given(path: Path, start: Path, root: Path) -> Path:
    """Write a resolved path as it stands below the path given."""
    return start / path.relative_to(root) if path != root else start
