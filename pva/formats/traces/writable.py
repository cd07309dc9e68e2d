"""What the writers of traces ask of a `pva.trace.Trace`, which lies above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers

Codes = npt.NDArray[np.int32]


class Anchor(Protocol):
    """The moment that times count from."""

    @property
    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""


class Metadata(Protocol):
    """Rows of events, ascending, and the JSON that the program attached to each."""

    @property
    def rows(self) -> Integers:
        """The rows."""

    @property
    def texts(self) -> Sequence[str] | npt.NDArray[np.object_]:
        """Their JSON."""


class Columns(Protocol):
    """The events of a thread, sorted by begin."""

    begin_ns: Integers
    end_ns: Integers
    label: Codes
    open_rows: Integers

    def __len__(self) -> int: ...
    @property
    def metadata(self) -> Metadata:
        """What the program attached to some."""

    @property
    def duration_ns(self) -> Integers:
        """How long each took."""

    @property
    def depth(self) -> npt.NDArray[np.signedinteger]:
        """How many events are around each."""

    @property
    def overlapping(self) -> npt.NDArray[np.bool_]:
        """Which lie across the end of another."""


class Thread(Protocol):
    """A thread: its identifier, its name, how many events it has, and these."""

    tid: int
    name: str
    count: int

    @property
    def columns(self) -> Columns:
        """Its events."""


class Process(Protocol):
    """A process and its threads."""

    @property
    def pid(self) -> int:
        """Its identifier."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def threads(self) -> Sequence[Thread]:
        """Its threads."""


class Texts(Protocol):
    """JSON or None of each instant, some of which a slice takes."""

    @overload
    def __getitem__(self, place: int) -> str | None: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str | None]: ...
    def tolist(self) -> list[str | None]:
        """Return all."""


class Instants(Protocol):
    """Events without duration."""

    def __len__(self) -> int: ...
    @property
    def time_ns(self) -> Integers:
        """When each was."""

    @property
    def label(self) -> Codes:
        """Index of the label of each."""

    @property
    def channel(self) -> Codes:
        """Index of the channel of each."""

    @property
    def thread(self) -> Integers:
        """Index of the thread of each."""

    @property
    def metadata(self) -> Texts:
        """What the program attached to each."""


class Flows(Protocol):
    """What led to what."""

    @property
    def label(self) -> Codes:
        """Index of the label of each."""

    @property
    def thread(self) -> Integers:
        """Index of the thread that each comes from."""

    @property
    def time_ns(self) -> Integers:
        """When each begins."""

    @property
    def to_thread(self) -> Integers:
        """Index of the thread that each leads to."""

    @property
    def to_time_ns(self) -> Integers:
        """When each arrives."""


class Series(Protocol):
    """A line of a graph."""

    @property
    def process(self) -> int:
        """Index of its process."""

    @property
    def graph(self) -> str:
        """The graph that it is a line of."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def unit(self) -> str:
        """The unit of its values."""

    @property
    def time_ns(self) -> Integers:
        """When each value was."""

    @property
    def value(self) -> npt.NDArray[np.float64]:
        """Its values."""


class Heatmap(Protocol):
    """A histogram over time."""

    @property
    def process(self) -> int:
        """Index of its process."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def time_ns(self) -> Integers:
        """When each row of counts was."""

    def bins(self) -> Iterator[tuple[str, Integers]]:
        """Return each bin: its name, and its counts."""


class Trace(Protocol):
    """The parts of a trace that are written."""

    @property
    def anchor(self) -> Anchor:
        """The moment that all times count from."""

    @property
    def duration_ns(self) -> int:
        """Time from there to the end."""

    @property
    def is_finished(self) -> bool:
        """Whether the trace was closed."""

    @property
    def processes(self) -> Sequence[Process]:
        """The processes."""

    @property
    def threads(self) -> Sequence[Thread]:
        """The threads of all processes."""

    @property
    def labels(self) -> Sequence[str]:
        """Texts of events."""

    @property
    def label_channels(self) -> Codes:
        """Index of the channel of each label."""

    @property
    def channels(self) -> Sequence[str]:
        """Names of channels."""

    @property
    def instants(self) -> Instants:
        """Events without duration."""

    @property
    def flows(self) -> Flows:
        """What led to what."""

    @property
    def series(self) -> Sequence[Series]:
        """Lines of line graphs."""

    @property
    def heatmaps(self) -> Sequence[Heatmap]:
        """Histograms over time."""
