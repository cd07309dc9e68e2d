"""Host traces: processes, threads and events as objects, and the same as arrays."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pva.errors import NotFoundError, PvaError
from pva.formats.pvti_trace import PvtiFile
from pva.model.events import Process, Thread, ThreadColumns
from pva.model.series import Heatmap, Instants, Series
from pva.model.show import Shown
from pva.model.trace_content import Anchor, TraceContent


def openTrace(path: str | PathLike[str]) -> Trace:
    """Open a `.pvti` file, or a directory that holds exactly one.

    Raises PvaError: NotFoundError, UnknownFormatError, DamagedFileError or NewerVersionError.
    """
    return Trace(_file(Path(path)))


class Trace(Shown):
    """What a process did on the host. May be read from several threads, and while the file grows.

    Objects and arrays keep what they show; `reload` makes new ones.
    """

    _figures = ("processes",)

    def __init__(self, path: str | PathLike[str]) -> None:
        self._file = PvtiFile(path)
        self.path = self._file.path
        self._content = TraceContent(self._file)

    def reload(self) -> bool:
        """Take in what was written since; tell whether there was something."""
        before = self._content
        self._content = TraceContent(self._file)
        after = self._content
        return (after.duration_ns, after.finished) != (before.duration_ns, before.finished)

    def close(self) -> None:
        """Let go of the file; threads never looked at cannot be read any more."""
        self._file.close()

    @property
    def processes(self) -> tuple[Process, ...]:
        """The processes; `pvti` writes one a file."""
        return self._content.processes

    def process(self, pid: int) -> Process:
        """Give a process by its identifier; raises PvaError."""
        for process in self.processes:
            if process.pid == pid:
                return process
        known = ", ".join(str(process.pid) for process in self.processes)
        raise PvaError(self.path, f"no process {pid}", f"its processes are {known}")

    @property
    def threads(self) -> tuple[Thread, ...]:
        """The threads of all processes, in the order in which they first recorded something."""
        return self._content.threads

    def columns(self, pid: int, tid: int) -> ThreadColumns:
        """Give all events of a thread as arrays; raises PvaError."""
        return self.process(pid).thread(tid).columns

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts of events; a text used on two channels stands here twice."""
        return self._content.names.labels

    @property
    def label_channels(self) -> npt.NDArray[np.int32]:
        """Index into `channels` of each label."""
        return self._content.label_channels

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

    def _title(self) -> tuple[str, ...]:
        return (self.path.name,)


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.pvti"))
    if not found:
        raise NotFoundError(path, "no .pvti file in this directory", "give the path of a trace")
    if len(found) > 1:
        raise PvaError(path, f"{len(found)} traces", f"give one of them, such as {found[-1].name}")
    return found[0]
