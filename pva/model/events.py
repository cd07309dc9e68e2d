"""Events of a host trace: columns a thread, how they nest, and objects that view them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from pva.errors import PvaError
from pva.model.show import Shown, table

Integers = npt.NDArray[np.int64]

NANOSECONDS_A_MICROSECOND = 1000


@dataclass(frozen=True, slots=True)
class Nesting:
    """How the events of one thread lie in each other; rows are in the order of their begin."""

    depth: npt.NDArray[np.int32]  # 0 for roots
    parent: Integers  # row of the event around it, -1 for roots
    self_ns: Integers  # duration without that of the events directly inside


def begin_order(begin: Integers) -> Integers:
    """Sort events, given in the order of their end, by begin; of equal begins the longest first."""
    order: Integers = len(begin) - 1 - np.argsort(begin[::-1], kind="stable")
    return order


def nest(begin: Integers, end: Integers) -> Nesting:
    """Find depth, parent and self time of events sorted by `begin_order`.

    An event is inside another that has not ended when it begins. Events that overlap without one
    holding the other (a program may begin and end in any order) go by the same rule, the later on
    top; a depth never holds two events at once.
    """
    depth = _open_at_begin(begin, end)
    parent, nested = _parents(depth, end)
    if not nested.all():
        component = np.cumsum(depth == 0)
        _sweep(np.flatnonzero(np.isin(component, component[~nested])), begin, end, depth, parent)
    return Nesting(depth.astype(np.int32), parent, _self_times(begin, end, parent))


def _open_at_begin(begin: Integers, end: Integers) -> Integers:
    """Count the earlier events that have not ended when each begins."""
    instant = begin == end
    # An event of no duration has ended for what begins later, not for what begins with it.
    ended = np.searchsorted(np.sort(end[~instant]), begin, side="right")
    if instant.any():
        ended += np.searchsorted(np.sort(end[instant]), begin, side="left")
    return np.subtract(np.arange(len(begin)), ended, out=ended)


def _parents(depth: Integers, end: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Find the last event before each that is one less deep, and whether it holds the event."""
    # Of 16-bit numbers NumPy sorts by radix: many times as fast.
    small = depth.astype(np.int16) if depth.max(initial=0) < 1 << 15 else depth
    by_depth = np.argsort(small, kind="stable")
    # An event one deeper than its predecessor is the first inside it; the next ones of that depth
    # are inside it too, until there is another first. A depth's first event is always such a one.
    first = np.zeros(len(depth), np.bool_)
    first[1:] = small[1:] > small[:-1]
    group = np.where(first[by_depth], np.arange(len(depth)), 0)
    np.maximum.accumulate(group, out=group)
    parent = np.empty(len(depth), np.int64)
    parent[by_depth] = by_depth[group] - 1
    parent[depth == 0] = -1
    return parent, (parent < 0) | (end[parent] >= end)


def _sweep(
    rows: Integers, begin: Integers, end: Integers, depth: Integers, parent: Integers
) -> None:
    """Nest these rows one after another; for the few stretches of a thread that overlap."""
    begins, ends = begin[rows].tolist(), end[rows].tolist()
    stack: list[int] = []
    depths, parents = [], []
    for place, now in enumerate(begins):
        while stack and (ends[stack[-1]] < now or begins[stack[-1]] < ends[stack[-1]] == now):
            stack.pop()
        depths.append(len(stack))
        parents.append(stack[-1] if stack else -1)
        stack.append(place)
    depth[rows] = depths
    found = np.array(parents, np.int64)
    parent[rows] = np.where(found >= 0, rows[found], -1)


def _self_times(begin: Integers, end: Integers, parent: Integers) -> Integers:
    child = np.flatnonzero(parent >= 0)
    around = parent[child]
    inside = np.minimum(end[child], end[around]) - begin[child]
    covered = np.bincount(around, weights=inside, minlength=len(begin)).astype(np.int64)
    own: Integers = np.maximum(end - begin - covered, 0)
    return own


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
        channel: npt.NDArray[np.int32],
        kind: npt.NDArray[np.uint8],
        is_open: npt.NDArray[np.bool_],
        metadata: Mapping[tuple[int, int], str],
    ) -> None:
        self.begin_ns, self.end_ns = times
        self.label = label
        self.channel = channel
        self.kind = kind
        self.is_open = is_open
        self.metadata = metadata  # begin and label -> JSON
        for column in (*times, label, channel, kind, is_open):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.begin_ns)

    @cached_property
    def nesting(self) -> Nesting:
        """Depth, parent and self time."""
        return nest(self.begin_ns, self.end_ns)

    @property
    def depth(self) -> npt.NDArray[np.int32]:
        """0 for roots."""
        return self.nesting.depth

    @property
    def parent(self) -> Integers:
        """Row of the event around each, -1 for roots."""
        return self.nesting.parent

    @property
    def self_ns(self) -> Integers:
        """Duration without that of the events directly inside."""
        return self.nesting.self_ns

    @property
    def overlapping(self) -> npt.NDArray[np.bool_]:
        """Whether an event, or one that is open at some time with it, lies across another's end.

        The others hold each other, or lie apart; of these there is no two at once at a depth.
        """
        around = np.maximum(self.parent, 0)
        across = (self.parent >= 0) & (self.end_ns > self.end_ns[around])
        component = np.cumsum(self.depth == 0)
        return np.isin(component, component[across])

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
        starts = np.searchsorted(parent[by_parent], np.arange(-1, len(parent) + 1))
        return by_parent, starts


@dataclass(frozen=True, slots=True)
class Names:
    """The texts that columns point to."""

    labels: tuple[str, ...]
    channels: tuple[str, ...]


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
        return self._thread.names.channels[int(self._thread.columns.channel[self._row])]

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
        return bool(self._thread.columns.is_open[self._row])

    @property
    def metadata(self) -> str | None:
        """JSON that the program attached, or None."""
        thread, row = self._thread, self._row
        begin, label = int(thread.columns.begin_ns[row]), int(thread.columns.label[row])
        return thread.columns.metadata.get((begin, label))

    def children(self) -> Events:
        """The events directly inside."""
        return Events(self._thread, self._thread.columns.children(self._row))

    def _title(self) -> tuple[str, ...]:
        return (repr(self.label),)


class Events(Sequence[Event]):
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
        return Event(self._thread, int(self._rows[index]))

    def __repr__(self) -> str:
        return f"<{len(self)} events of thread {self._thread.tid}>"

    def _repr_html_(self) -> str:
        return table(self[:10], max(len(self) - 10, 0))


class Thread(Shown):
    """A thread that recorded something. Its columns are read when first asked for."""

    _figures = ("events",)

    def __init__(
        self, pid: int, tid: int, name: str, names: Names, load: Callable[[], ThreadColumns]
    ) -> None:
        self.pid = pid
        self.tid = tid
        self.name = name
        self.names = names
        self._load = load

    @cached_property
    def columns(self) -> ThreadColumns:
        """All its events as arrays."""
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
        """Give the first thread with this identifier; raises PvaError."""
        for thread in self.threads:
            if thread.tid == tid:
                return thread
        known = ", ".join(str(thread.tid) for thread in self.threads[:10])
        raise PvaError(f"process {self.pid}", f"no thread {tid}", f"its threads are {known}")

    def _title(self) -> tuple[str, ...]:
        return (str(self.pid), *Shown._title(self))
