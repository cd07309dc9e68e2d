"""`pva.openRun`: all instances of a run, their reports and their host traces, as one."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from os.path import expanduser
from pathlib import Path

from pva.errors import NotFoundError, NotRecordedError, PvaError, nearest
from pva.formats import registry
from pva.formats.run_file import (
    INSTANCE_NAME,
    NAME,
    InstanceFile,
    RunFile,
    folder_name,
    read_instance,
    read_run,
)
from pva.frames import NAMES, frame_of
from pva.lazy import pandas as pd
from pva.many.query import HOST, INSTANCE, REPORT, select
from pva.model.show import Shown
from pva.report import Report, openReport
from pva.trace import Trace, openTrace

RunPath = str | PathLike[str]
FOLDER = re.compile(r"instance_(\d{1,9})")
PROFILES = {"profile", "graph", "execution"}  # parts of which one makes a report


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One instance: its place, what it says about itself, its reports and its trace."""

    index: int
    path: Path
    file: InstanceFile | None
    reports: tuple[Report, ...]
    trace: Trace | None
    problems: tuple[str, ...]

    @property
    def host(self) -> str:
        """The host that it ran on, empty where nothing says so."""
        return self.file.host if self.file else ""

    @property
    def report(self) -> Report | None:
        """Its report: of several, the first by name; None when there is none to read."""
        return self.reports[0] if self.reports else None


def openRun(source: RunPath | Sequence[RunPath]) -> Run:
    """Open a run: its directory, a pattern such as `runs/*/report`, or a list of reports.

    What is damaged or not there is left out and stands in `problems`. Raises PvaError when
    nothing is left: NotFoundError, or that of `run.json`.

    >>> run = openRun(["sample_reports/matmul_chain_tiny", "sample_reports/mlp_digits_tiny"])
    >>> [(one.index, len(one.reports), one.trace is not None) for one in run.instances]
    [(0, 1, False), (1, 1, True)]
    """
    return Run(source)


class Run(Shown):
    """What the instances of a run did. `problems` names what could not be read, a line each."""

    _figures = ("instances", "reports", "traces", "problems")

    def __init__(self, source: RunPath | Sequence[RunPath]) -> None:
        self._source = source
        self.name = str(source) if isinstance(source, str | PathLike) else "a list of reports"
        self.file: RunFile | None = None
        places = self._places(source)
        self.instances = tuple(self._instance(index, path) for index, path in places)
        self._late: list[str] = []  # what was found while tables were read
        if not any(one.reports or one.trace for one in self.instances):
            problem = next((line for one in self.instances for line in one.problems), "nothing")
            raise NotFoundError(self.name, f"no instance can be read: {problem}",
                                "give the directory of a run, or its reports")  # fmt: skip

    def __reduce__(self) -> tuple[Callable[..., Run], tuple[RunPath | Sequence[RunPath]]]:
        """Be pickled as its paths."""
        return Run, (self._source,)

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of all instances."""
        return tuple(report for one in self.instances for report in one.reports)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The host traces of all instances."""
        return tuple(one.trace for one in self.instances if one.trace is not None)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is left out, a line each."""
        return (*(line for one in self.instances for line in one.problems), *self._late)

    @cached_property
    def frames(self) -> RunFrames:
        """Every table of every report, with the columns `instance` and `host`."""
        return RunFrames(self)

    def sql(self, query: str) -> pd.DataFrame:
        """Answer one SELECT over the tables of all reports; each has `instance` and `host`.

        `row` counts within a report: tables are joined by instance and row. Raises QueryError,
        NotRecordedError, and MissingPackageError without DuckDB.
        """
        return select(self, query)

    def frame(self, name: str, columns: frozenset[str] | None = None) -> pd.DataFrame:
        """Return a table or array of all reports, with only these of its columns.

        A report that lacks it, or where it is damaged, is named in `problems`. Raises
        NotRecordedError when all lack it.
        """
        frames, faults = [], []
        is_numbered = any(len(one.reports) > 1 for one in self.instances)
        for one, report in self._owned():
            try:
                frame = frame_of(report.dataset, name, copy=False, columns=columns)
            except PvaError as error:
                faults.append(error)
                self._note(one.index, error)
                continue
            frame.insert(0, INSTANCE, one.index)
            frame.insert(1, HOST, pd.Series([one.host] * len(frame), dtype="str"))
            if is_numbered:
                frame.insert(2, REPORT, pd.Series([report.path.name] * len(frame), dtype="str"))
            frames.append(frame)
        if not frames:
            if faults:
                raise faults[0]
            raise NotRecordedError(self.name, f"no report has {name}", "host traces alone are here")
        return pd.concat(frames, ignore_index=True)

    def _owned(self) -> Iterator[tuple[Instance, Report]]:
        return ((one, report) for one in self.instances for report in one.reports)

    def _note(self, index: int, error: PvaError) -> None:
        line = f"instance {index}: {error}"
        if line not in self._late:
            self._late.append(line)

    def _places(self, source: RunPath | Sequence[RunPath]) -> list[tuple[int, Path]]:
        """Number the places of the instances; read `run.json` where there is one."""
        if not isinstance(source, str | PathLike):
            return list(enumerate(Path(expanduser(one)) for one in source))
        path = Path(expanduser(source))
        if path.name == NAME:
            path = path.parent
        if (path / NAME).is_file():
            self.file = read_run(path / NAME)
            count = min(self.file.topology.instances, 1 << 20)
            return [(index, path / folder_name(index)) for index in range(count)]
        if path.is_dir():
            places = _numbered(path.iterdir())
            if places:
                return places
            remedy = "give the directory that poprun wrote, a pattern, or a list of reports"
            raise NotFoundError(path, f"no {NAME} and no instance_0000", remedy)
        matches = [Path(one) for one in sorted(glob.glob(str(path)))]
        if not matches:
            raise NotFoundError(path, "nothing is there", "a directory, a pattern or a list")
        return _numbered(matches) or list(enumerate(matches))

    def _instance(self, index: int, path: Path) -> Instance:
        problems: list[str] = []
        instances = self.file.instances if self.file else ()
        file = next((one for one in instances if one.instance == index), None)
        if (path / INSTANCE_NAME).exists():
            with noted(problems, index):
                file = read_instance(path / INSTANCE_NAME)
        if self.file and file and file.run != self.file.run:
            problems.append(f"instance {index}: {path}: left by another run; it is not shown")
            return Instance(index, path, None, (), None, tuple(problems))
        reports = []
        for place in _report_places(path):
            with noted(problems, index):
                reports.append(_checked(openReport(place)))
        trace = None
        with noted(problems, index):
            trace = _trace(path, file)
        if not reports and not problems:
            problem = "no report" if path.exists() else "nothing: it never wrote"
            problems.append(f"instance {index}: {path}: {problem}")
        return Instance(index, path, file, tuple(reports), trace, tuple(problems))


class RunFrames:
    """Tables and arrays by name, each a function without arguments that gives a DataFrame."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in NAMES:
            hint = "" if name.startswith("_") else nearest(name, NAMES, "frames.schema()")
            raise AttributeError(f"no table or array {name}; {hint}")
        return lambda: self._run.frame(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *NAMES]


class noted(suppress):  # noqa: N801  # as contextlib's
    """Turn a PvaError inside the block into a line for an instance."""

    def __init__(self, lines: list[str], index: int) -> None:
        super().__init__(PvaError)
        self._lines, self._index = lines, index

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        """Keep the line."""
        if isinstance(error, PvaError):
            self._lines.append(f"instance {self._index}: {error}")
        return isinstance(error, PvaError)


def _numbered(paths: Iterable[Path]) -> list[tuple[int, Path]]:
    """Number directories by their names; empty unless all are of instances, each another."""
    named = [(FOLDER.fullmatch(path.name), path) for path in paths]
    places = sorted((int(match[1]), path) for match, path in named if match)
    return places if len(dict(places)) == len(places) else []


def _report_places(path: Path) -> Iterator[Path]:
    """Yield the reports of an instance: its directory, or the named ones below it."""
    if not path.is_dir():
        if path.exists():
            yield path
        return
    for place in (path, *sorted(below for below in path.iterdir() if below.is_dir())):
        if PROFILES & set(registry.directory_files(place)):
            yield place


def _checked(report: Report) -> Report:
    """Read what every report has, so that one that is cut short is known at once."""
    for table in ("report", "target", "runs"):
        if report.dataset.has(table):
            report.dataset.table(table)
    return report


def _trace(path: Path, file: InstanceFile | None) -> Trace | None:
    """Open the trace of the program's process; else all traces of the directory as one."""
    files = sorted(path.glob("*.pvti")) if path.is_dir() else []
    of_process = [one for one in files if file and one.stem.endswith(f"_{file.pid}")]
    return openTrace(of_process or files) if files else None
