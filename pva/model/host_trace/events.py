"""Events of a host trace: columns a thread, how they nest, and objects that view them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Never, overload

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.errors import PvaError
from pva.model.host_trace.nesting import Check, Nesting, lying_across, nest, self_times
from pva.model.show import Shown, table
from pva.model.views import Listed

NANOSECONDS_A_MICROSECOND = 1000


class ThreadColumns:
    """The events of one thread, sorted by begin. Times in nanoseconds since the trace began.

    `label` is an index into `Trace.labels`, `channel` into `Trace.channels`, `kind` into
    `pvti.schema.KINDS`. An event that had not ended when the file was read is `is_open` and ends at
    the last time known. Depth, parent and self time are found when first asked for.
    """

    def __init__(
        self,
        times: tuple[Integers, Integers],
        label: npt.NDArray[np.int32],
        kind: npt.NDArray[np.uint8],
        open_rows: Integers,
        names: Names,
        metadata: Metadata,
    ) -> None:
        self.begin_ns, self.end_ns = times
        self.label = label
        self.kind = kind
        self.open_rows = open_rows  # those that had not ended, ascending
        self.metadata = metadata
        self._names, self.check = names, names.check
        for column in (*times, label, kind, open_rows):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def channel(self) -> npt.NDArray[np.int32]:
        """Index of the channel of each."""
        channels: npt.NDArray[np.int32] = self._names.label_channels[self.label]
        return channels

    @property
    def is_open(self) -> npt.NDArray[np.bool_]:
        """Whether each had not ended."""
        flags = np.zeros(len(self), np.bool_)
        flags[self.open_rows] = True
        return flags

    @cached_property
    def nesting(self) -> Nesting:
        """Depth, parent and self time."""
        return nest(self.begin_ns, self.end_ns, self.check)

    @property
    def depth(self) -> npt.NDArray[np.signedinteger[Any]]:
        """0 for roots."""
        return self.nesting.depth

    @property
    def parent(self) -> npt.NDArray[np.signedinteger[Any]]:
        """Row of the event around each, -1 for roots."""
        return self.nesting.parent

    @property
    def self_ns(self) -> Integers:
        """Duration without that of the events directly inside."""
        if "nesting" in self.__dict__:
            return self.nesting.self_ns
        return self_times(self.begin_ns, self.end_ns, self.check)

    @property
    def overlapping(self) -> npt.NDArray[np.bool_]:
        """Whether an event lies across the end of one that was open when it began.

        The others hold each other, or lie apart; of these there is no two at once at a depth.
        """
        return lying_across(self.begin_ns, self.end_ns, self.parent)

    @property
    def duration_ns(self) -> Integers:
        """End less begin."""
        return self.end_ns - self.begin_ns

    def children(self, row: int) -> Integers:
        """Rows of the events directly inside `row`; the roots for -1."""
        by_parent, starts = self._children
        return by_parent[starts[row + 1] : starts[row + 2]]

    @cached_property
    def _children(self) -> tuple[Integers, Integers]:
        parent = self.parent
        by_parent = np.argsort(parent, kind="stable")
        starts = np.zeros(len(parent) + 2, np.int64)
        np.cumsum(np.bincount(parent + 1, minlength=len(parent) + 1), out=starts[1:])
        return by_parent, starts


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the program attached to some events of a thread: their rows, ascending, and the JSON."""

    rows: Integers
    texts: Sequence[str] | npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, row: int) -> str | None:
        """Return that of an event, or None."""
        place = int(np.searchsorted(self.rows, row))
        has_text = place < len(self.rows) and self.rows[place] == row
        return str(self.texts[place]) if has_text else None


@dataclass(frozen=True, slots=True)
class Names:
    """The texts that columns point to."""

    labels: tuple[str, ...]
    channels: tuple[str, ...]
    label_channels: npt.NDArray[np.int32]  # index into channels of each label
    check: Check = lambda _: None  # of the memory of a file with very many events


@dataclass(frozen=True, slots=True, repr=False)
class Event(Shown):
    """One event. Times are whole microseconds since the trace began, rounded down."""

    _figures = ("channel", "timestamp", "duration")

    _thread: Thread
    _row: int

    @property
    def label(self) -> str:
        """What the program called it."""
        return self._thread.names.labels[int(self._thread.columns.label[self._row])]

    @property
    def channel(self) -> str:
        """Name of its channel."""
        names = self._thread.names
        channel = names.label_channels[self._thread.columns.label[self._row]]
        return names.channels[int(channel)]

    @property
    def timestamp(self) -> int:
        """Begin, in microseconds."""
        return int(self._thread.columns.begin_ns[self._row]) // NANOSECONDS_A_MICROSECOND

    @property
    def duration(self) -> int:
        """Duration in microseconds."""
        columns, row = self._thread.columns, self._row
        nanoseconds = int(columns.end_ns[row]) - int(columns.begin_ns[row])
        return nanoseconds // NANOSECONDS_A_MICROSECOND

    @property
    def isOpen(self) -> bool:
        """Whether it had not ended: the program still ran, or was killed."""
        return self._row in self._thread.columns.open_rows

    @property
    def metadata(self) -> str | None:
        """JSON that the program attached, or None."""
        return self._thread.columns.metadata.of(self._row)

    def children(self) -> Events:
        """The events directly inside."""
        return Events(self._thread, self._thread.columns.children(self._row))

    def _title(self) -> tuple[str, ...]:
        return (repr(self.label),)


class Events(Listed[Event]):
    """Events of one thread, made when asked for."""

    __slots__ = ("_rows", "_thread")

    def __init__(self, thread: Thread, rows: Integers) -> None:
        self._thread = thread
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        if isinstance(index, slice):
            return Events(self._thread, self._rows[index])
        try:
            row = int(self._rows[index])
        except IndexError:
            raise self._outside(index) from None
        return Event(self._thread, row)

    def __repr__(self) -> str:
        return f"<{len(self)} events of thread {self._thread.tid}>"

    def _repr_html_(self) -> str:
        return table(self[:10], max(len(self) - 10, 0))


class Thread(Shown):
    """A thread that recorded something. Its columns are read when first asked for."""

    _figures = ("events",)

    def __init__(
        self,
        identity: tuple[int, int, str],
        count: int,
        names: Names,
        load: Callable[[], ThreadColumns],
    ) -> None:
        self.pid, self.tid, self.name = identity
        self.count = count  # of its events, known without reading them
        self.names = names
        self._load = load

    def __deepcopy__(self, memo: object) -> Thread:
        return self  # what it shows never changes

    def __reduce__(self) -> Never:
        remedy = "pickle the trace, which is opened anew from its path, or a frame"
        raise TypeError(f"what shows a trace cannot be pickled; {remedy}")

    @cached_property
    def columns(self) -> ThreadColumns:
        """All its events as arrays."""
        return self._load()

    def read(self) -> ThreadColumns:
        """Read all its events as arrays, and keep none of them."""
        return self._load()

    @property
    def events(self) -> Events:
        """Its outermost events."""
        return Events(self, self.columns.children(-1))

    def _title(self) -> tuple[str, ...]:
        return (str(self.tid), *super()._title())


@dataclass(frozen=True, slots=True, repr=False)
class Process(Shown):
    """A process and its threads, in the order in which they first recorded something."""

    _figures = ("threads",)

    pid: int
    name: str
    threads: tuple[Thread, ...]

    def thread(self, tid: int) -> Thread:
        """Return the first thread with this identifier; raises PvaError."""
        for thread in self.threads:
            if thread.tid == tid:
                return thread
        identifiers = ", ".join(str(thread.tid) for thread in self.threads[:10])
        raise PvaError(f"process {self.pid}", f"no thread {tid}", f"its threads are {identifiers}")

    def _title(self) -> tuple[str, ...]:
        return (str(self.pid), *Shown._title(self))
