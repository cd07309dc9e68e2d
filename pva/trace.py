"""Host traces: processes, threads and events as objects, and the same as arrays and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from numbers import Real
from os import PathLike, fspath
from os.path import expanduser
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pva.errors import NotFoundError, PvaError
from pva.formats.traces import registry
from pva.formats.traces.registry import CHROME_SUFFIXES as CHROME_SUFFIXES
from pva.formats.traces.registry import SUFFIX as SUFFIX
from pva.later import later
from pva.lazy import pandas as pd
from pva.model.host_trace.events import Process
from pva.model.host_trace.events import Thread as Thread
from pva.model.host_trace.events import ThreadColumns as ThreadColumns
from pva.model.host_trace.series import Flows, Heatmap, Instants, Series
from pva.model.host_trace.trace_content import Anchor, TraceContent
from pva.model.show import Shown
from pva.trace_frames import TraceFrames

TracePath = str | PathLike[str]
Align = Literal["wall", "start"]


def openTrace(
    path: TracePath | Sequence[TracePath], *, align: Align = "wall", longest: int | None = None
) -> Trace:
    """Open a host trace: a `.pvti` file, Chrome trace JSON (`.gz` too), or a directory.

    A directory has one `.pvti`, or Chrome traces. Several files make one trace of all their
    processes. They lie as the wall clock of each tells, or, with `align="start"`, all begin
    together. Labels and names of more letters than `longest` are cut. Raises PvaError:
    NotFoundError, UnknownFormatError, DamagedFileError or NewerVersionError.

    >>> trace = openTrace("sample_reports/mlp_digits_tiny")
    >>> [process.name for process in trace.processes]
    ['tilescope']
    """
    return Trace(path, align=align, longest=longest)


def isTrace(path: TracePath) -> bool:
    """Return whether a file is a host trace, by how it begins; raises PvaError."""
    return registry.is_trace(Path(fspath(path)))


class Trace(Shown):
    """What a process did on the host. May be read from several threads, and while the file grows.

    Objects and arrays keep what they show; `reload` makes new ones.
    """

    _figures = ("processes",)

    def __init__(
        self,
        path: TracePath | Sequence[TracePath],
        *,
        align: Align = "wall",
        longest: int | None = None,
    ) -> None:
        if align not in ("wall", "start"):
            raise PvaError(f"align={align!r}", "no such way", "wall or start")
        sources = [path] if isinstance(path, str | PathLike) else list(path)
        self._align, self._longest = align, longest
        self.paths = tuple(file for one in sources for file in _files(Path(expanduser(one))))
        self._file = registry.open_files(self.paths, by_wall_clock=align == "wall")
        self.path = self._file.path
        try:
            self._content = TraceContent(self._file, self._longest)
        except BaseException:
            self._file.close()
            raise

    def __reduce__(self) -> tuple[Callable[..., Trace], tuple[tuple[Path, ...]]]:
        """Be pickled as its paths: who unpickles it opens the files anew."""
        return partial(Trace, align=self._align, longest=self._longest), (self.paths,)

    def reload(self) -> bool:
        """Take in what was written since; tell whether there was something."""
        before = self._content
        self._content = TraceContent(self._file, self._longest)
        self.__dict__.pop("frames", None)
        after = self._content
        return (after.duration_ns, after.finished) != (before.duration_ns, before.finished)

    def close(self) -> None:
        """Let go of the file; threads never looked at cannot be read any more."""
        self._file.close()

    def verify(self) -> None:
        """Read all events, so that `problems` tells of each damaged chunk."""
        self._content.lanes.verify()

    @property
    def processes(self) -> tuple[Process, ...]:
        """The processes; `pvti` writes one a file."""
        return self._content.processes

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of each of the processes."""
        return tuple(self.paths[place] for place in self._content.files)

    def process(self, pid: int) -> Process:
        """Return a process by its identifier; raises PvaError."""
        for process in self.processes:
            if process.pid == pid:
                return process
        identifiers = ", ".join(str(process.pid) for process in self.processes)
        raise PvaError(self.path, f"no process {pid}", f"its processes are {identifiers}")

    @property
    def threads(self) -> tuple[Thread, ...]:
        """The threads of all processes, in the order in which they first recorded something."""
        return self._content.threads

    def columns(self, pid: int, tid: int) -> ThreadColumns:
        """Return all events of a thread as arrays; raises PvaError."""
        return self.process(pid).thread(tid).columns

    def read_threads(self) -> Iterator[ThreadColumns]:
        """Read the columns of one thread after another, as in `threads`, and keep none of them."""
        return self._content.lanes.each(self._content.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts of events; a text used on two channels stands here twice."""
        return self._content.names.labels

    @property
    def label_channels(self) -> npt.NDArray[np.int32]:
        """Index into `channels` of each label."""
        return self._content.names.label_channels

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of channels."""
        return self._content.names.channels

    @property
    def anchor(self) -> Anchor:
        """The moment that all times count from."""
        return self._content.anchor

    @property
    def duration_ns(self) -> int:
        """Time from the anchor to the last commit."""
        return self._content.duration_ns

    @property
    def is_finished(self) -> bool:
        """Whether the trace was closed; not so while the program runs, or when it was killed."""
        return self._content.finished

    @property
    def instants(self) -> Instants:
        """Events without duration."""
        return self._content.instants

    @property
    def flows(self) -> Flows:
        """What led to what, such as a launch to its kernel; only Chrome traces tell it."""
        return self._content.flows

    @property
    def series(self) -> tuple[Series, ...]:
        """Lines of line graphs."""
        return self._content.series

    @property
    def heatmaps(self) -> tuple[Heatmap, ...]:
        """Histograms over time."""
        return self._content.heatmaps

    @property
    def problems(self) -> tuple[str, ...]:
        """What was recorded and cannot be shown, a line each."""
        return self._content.problems

    @cached_property
    def frames(self) -> TraceFrames:
        """Every table as a DataFrame."""
        return TraceFrames(self._content)

    @cached_property
    def plot(self) -> Any:
        """The figures: `trace.plot.timeline()` and `labels()` (`pva.plot.trace_plots`).

        Raises MissingPackageError where plotly is not installed.
        """
        return later("plot.trace_plots", "TracePlots")(self)

    def window(self, begin_ns: int, end_ns: int) -> pd.DataFrame:
        """Return the events that are open at some time from `begin_ns` to before `end_ns`.

        Reads nothing else of the file. Columns as in `frames.events()`: thread, begin_ns,
        duration_ns, depth (among these events), label, channel, open. Raises PvaError.
        """
        from pva.trace_frames import window

        if _moment("begin_ns", begin_ns) > _moment("end_ns", end_ns):
            raise PvaError(f"window({begin_ns}, {end_ns})", "ends before it begins", "begin first")
        return window(self._content, begin_ns, end_ns)

    def chunks(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Return of each thread, as in `threads`, when each part of its events begins and ends.

        A part is some thousands of events, none of which is read.
        """
        return self._content.lanes.chunks()

    def since(self, begin_ns: int) -> list[ThreadColumns]:
        """Return the events of each thread, as in `threads`, that are not over at a moment.

        Depth, parent and self time are those among these events. Raises PvaError.
        """
        moment = _moment("begin_ns", begin_ns)
        return self._content.lanes.window((moment, 1 << 62), self._content.names)

    def _title(self) -> tuple[str, ...]:
        return (self.path.name,)


def _moment(name: str, value: object) -> Any:
    """Return a time back; raises PvaError for what is none."""
    if not isinstance(value, Real) or value != value:  # NaN
        raise PvaError(f"{name}={value!r}", "no time", "nanoseconds since the trace began")
    return value


def _files(path: Path) -> list[Path]:
    """List the traces at a path: the file itself, or those of a directory."""
    if not registry.is_directory(path):
        return [path]
    traces = registry.in_directory(path)
    if not traces:
        remedy = "give the path of a trace"
        raise NotFoundError(path, "no .pvti file or Chrome trace in this directory", remedy)
    if len(traces) > 1 and traces[0].suffix == registry.SUFFIX:
        remedy = f"give one of them, such as {traces[-1].name}, or a list of all"
        raise PvaError(path, f"{len(traces)} traces", remedy)
    return traces
