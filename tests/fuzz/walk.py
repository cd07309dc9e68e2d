"""Look at everything that a file lets one look at, and tell what was raised that is no PvaError.

`faults(path)` opens a report or a host trace and visits every frame, every object of libpva's API,
every analysis of the catalogue, the laws, the summary and the exports. New properties, tables and
analyses are found by themselves: objects are visited by reflection, the rest comes from the schema
and the catalogue. Sequences are visited at their ends, so that a walk of any file is short.
"""

from __future__ import annotations

import enum
import inspect
import io
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pva import schema
from pva.analysis import CATALOGUE
from pva.check import check
from pva.errors import PvaError
from pva.formats import registry
from pva.formats.traces.registry import write
from pva.model.programs import ProgramVisitor
from pva.query import by_sqlite
from pva.report import Report, openReport
from pva.summary import profile_summary
from pva.trace import openTrace
from pva.trace_frames import NAMES

VISITS = 4000  # objects of a report
DEPTH = 7
ENDS = 3  # of a sequence, from either end
SUMMARY_SECTIONS = (
    "show_var_storage",
    "show_execution_steps",
    "show_per_ipu_memory_usage",
    "show_optimizations",
)
QUERIED = ("programs", "steps", "exchange_cycles")
EXPORTS = ("report.json", "report.cbor", "report.pop", "graph.json", "debug.cbor")
# Arguments of what is called; whoever asks for a tile that is not there is told by IndexError.
ARGUMENTS: dict[str, Any] = {"visitor": ProgramVisitor()}
NUMBERS = (
    "tile", "ipu", "step", "run", "pid", "tid", "compute_set", "replica", "count", "program",
    "variable", "vertex_type", "exchange", "layer", "first", "stop", "limit",
)  # fmt: skip
# Not looked at: they change something else, or are visited in another way.
SKIPPED = {
    "close",
    "listPrintLength",
    "of",
    "dataset",
    "frames",
    "insights",
    "plot",
    "sql",
    "check",
    "reload",
    "window",
}


class Walk:
    """What was visited, and what was wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.messages: list[str] = []
        self.opened = False
        self._visited: dict[Any, Any] = {}
        self._left = VISITS

    def attempt(self, place: str, action: Callable[[], Any]) -> Any:
        """Return what `action` gives; None when it raises, which is a fault unless a PvaError."""
        try:
            return action()
        except PvaError as error:
            text = str(error)
            if "\n" in text or not text:
                self.faults.append(f"{place}: a message of several lines: {text!r}")
            self.messages.append(text)
        except Exception as error:
            self.faults.append(f"{place}: {_where(error)}")
        return None

    def visit(self, place: str, value: Any, depth: int = 0) -> None:
        """Look at a value and at what it leads to."""
        if _is_plain(value) or depth > DEPTH or self._left <= 0:
            return
        self._left -= 1
        if isinstance(value, Mapping):
            for key in list(value)[:ENDS]:
                self.visit(f"{place}[{key!r}]", value[key], depth + 1)
        elif isinstance(value, Sequence):
            self._sequence(place, value, depth)
        elif type(value).__module__.startswith("pva."):
            self._object(place, value, depth)

    def _sequence(self, place: str, value: Sequence[Any], depth: int) -> None:
        self.attempt(f"repr({place})", lambda: repr(value))
        count = self.attempt(f"len({place})", lambda: len(value)) or 0
        whole = range(count)
        for index in sorted({*whole[:ENDS], *whole[-ENDS:]}):
            here = f"{place}[{index}]"
            found = self.attempt(here, lambda index=index: value[index])
            self.visit(here, found, depth + 1)
        self.attempt(f"iter({place})", lambda: _first(value))

    def _object(self, place: str, value: Any, depth: int) -> None:
        row = getattr(value, "_row", None)
        key = (type(value), row if isinstance(row, int) else id(value))
        if key in self._visited:
            return
        self._visited[key] = value  # kept, so that no other object gets its id
        self.attempt(f"repr({place})", lambda: repr(value))
        for name in dir(value):
            if name in SKIPPED or (name.startswith("_") and name not in ("_id", "_repr_html_")):
                continue
            here = f"{place}.{name}"
            found = self.attempt(here, lambda name=name: getattr(value, name))
            if inspect.ismethod(found):
                found = self._call(here, found)
            self.visit(here, found, depth + 1)

    def _call(self, place: str, method: Callable[..., Any]) -> Any:
        given = _arguments(method)
        if given is None:
            return None
        try:
            return method(**given)
        except IndexError as error:
            if "is not there" not in str(error):
                self.faults.append(f"{place}(): {_where(error)}")
        except PvaError as error:
            self.messages.append(str(error))
        except Exception as error:
            self.faults.append(f"{place}(): {_where(error)}")
        return None


def walk(
    path: Path,
    lift_limits: Callable[[], None] | None = None,
    analyses: Collection[str] = CATALOGUE.keys(),
) -> Walk:
    """Visit all of a report, or of a host trace, with these analyses.

    `lift_limits` is called before the work that DuckDB and Arrow do, which takes longest: they
    reserve address space for threads and end the process when they get none. None leaves it out.
    """
    found = Walk()
    if _is_trace(path):
        found.opened = _trace(found, path, analyses)
        return found
    report = found.attempt("openReport", lambda: openReport(path))
    found.opened = report is not None
    if report is not None:
        _report(found, report, analyses)
        if lift_limits is not None:
            lift_limits()
            _engines(found, report)
    return found


def _report(found: Walk, report: Report, analyses: Collection[str]) -> None:
    data = report.dataset
    for table in schema.TABLES:
        found.attempt(f"dataset.table({table.name})", lambda name=table.name: data.table(name))
        found.attempt(
            f"frames.{table.name}", lambda name=table.name: getattr(report.frames, name)()
        )
    for array in schema.ARRAYS:
        found.attempt(f"dataset.array({array.name})", lambda name=array.name: data.array(name))
        found.attempt(
            f"frames.{array.name}", lambda name=array.name: getattr(report.frames, name)()
        )
    found.attempt("frames.schema", lambda: report.frames.schema())
    found.visit("report", report)
    found.attempt("check", lambda: [str(violation) for violation in check(data)])
    found.attempt("report.check", report.check)
    for shown in (False, True):
        sections = dict.fromkeys(SUMMARY_SECTIONS, shown)
        found.attempt("summary", lambda sections=sections: profile_summary(report, **sections))
    ask(found, "report", report, analyses)
    _exports(found, report)
    trace = found.attempt("trace_path", lambda: report.trace_path)
    if trace is not None:
        _trace(found, trace, analyses)


def _is_trace(path: Path) -> bool:
    """Return whether a seed was a trace, whatever became of it."""
    return path.suffix in (".pvti", ".trace", ".gz") or path.name == "trace.json"


def _trace(found: Walk, path: Path, analyses: Collection[str]) -> bool:
    trace = found.attempt("openTrace", lambda: openTrace(path))
    if trace is None:
        return False
    found.visit("trace", trace)
    for name in NAMES:
        found.attempt(f"frames.{name}", lambda name=name: getattr(trace.frames, name)())
    found.attempt("trace.window", lambda: trace.window(0, trace.duration_ns // 2))
    ask(found, "trace", trace, analyses)
    for form in ("chrome", "perfetto"):
        found.attempt(f"write {form}", lambda form=form: write(trace, io.BytesIO(), form))
    found.attempt("two files", lambda: openTrace([path, path]).frames.labels())
    found.attempt("trace.reload", trace.reload)
    return True


def ask(found: Walk, subject: str, value: Any, analyses: Collection[str]) -> None:
    """Ask for these analyses of a report or of a trace, with each number that one may want."""
    for name in analyses:
        analysis = CATALOGUE[name]
        first, *others = inspect.signature(analysis).parameters.values()
        if first.name != subject:
            continue
        needed = [p for p in others if p.default is inspect.Parameter.empty]
        known = all(parameter.name in NUMBERS for parameter in needed)
        assert known, f"what to give to {name}? Add {needed} to NUMBERS"
        for number in (0, 1) if needed else (0,):
            given = {parameter.name: number for parameter in needed}
            found.attempt(f"{name}({given})", lambda a=analysis, given=given: a(value, **given))
        one_by_one = [p for p in others if p.name in NUMBERS and p not in needed]
        for parameter in one_by_one:
            given = {p.name: 0 for p in (*needed, parameter)}
            found.attempt(f"{name}({given})", lambda a=analysis, given=given: a(value, **given))


def _exports(found: Walk, report: Report) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name in EXPORTS:
            target = Path(directory) / name
            found.attempt(f"write {name}", lambda t=target: registry.write(report.dataset, t))
        for name in ("to_json", "to_cbor"):
            write = getattr(report, name)
            found.attempt(name, lambda w=write, n=name: w(Path(directory) / n))
    for table in QUERIED:
        text = f"SELECT * FROM {table} LIMIT 3"
        found.attempt(f"sql({table})", lambda text=text: by_sqlite(report.dataset, text))


def _engines(found: Walk, report: Report) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found.attempt("to_parquet", lambda: report.to_parquet(Path(directory) / "parquet"))
    for table in QUERIED:
        text = f"SELECT * FROM {table} LIMIT 3"
        found.attempt(f"sql({table})", lambda text=text: report.sql(text))


def _arguments(method: Callable[..., Any]) -> dict[str, Any] | None:
    """Return arguments for a method; None when it wants something else."""
    needed = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    if any(name not in NUMBERS and name not in ARGUMENTS for name in needed):
        return None
    return {name: ARGUMENTS.get(name, 0) for name in needed}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(
        value, bool | int | float | str | bytes | enum.Enum | type | Path
    )


def _first(items: Sequence[Any]) -> list[Any]:
    iterator: Iterator[Any] = iter(items)
    return [item for item, _ in zip(iterator, range(ENDS), strict=False)]


def _where(error: Exception) -> str:
    """Return what was raised, and where in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/tests/" not in frame.filename] or list(frames)
    last = [f for f in ours if "site-packages" not in f.filename and "/pva/" in f.filename]
    frame = (last or ours)[-1]
    name = "/".join(Path(frame.filename).parts[-2:])
    return f"{type(error).__name__} in {name}:{frame.lineno} {frame.name}: {error}"
