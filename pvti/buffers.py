"""What is recorded and not yet in the file: rows that every file needs, and tracks.

Threads append to lists of their own and draw numbers from counters. The interpreter does both
atomically, so that no event waits for a lock and no lock can outlive a fork. What is recorded stays
with its track until it is in the file, so that nothing is lost where a commit is cut short.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pvti.implementation import Spans
from pvti.schema import LABEL_MASK, OVERLAPPING, Cell
from pvti.spans import writable

# Rows that each file of the process holds: tables that grow and never shrink.
# A writer keeps its own place in each.
catalogue: dict[str, list[tuple[Cell, ...]]] = {
    "channels": [],
    "labels": [],
    "series": [],
    "heatmaps": [],
}

next_number = {table: itertools.count(1).__next__ for table in catalogue}

HURRY_NANOSECONDS = 100_000_000  # without the writer, then a thread packs what it has itself

LABEL_BYTES = 250  # about what a label takes in memory beside its text
OTHER_LABELS = "(labels that found no room)"
label_room = 64 << 20  # bytes left for labels of the process, which are kept for good

Row = tuple[str, tuple[Cell, ...]]  # table, and its cells


class LabelKeys(dict[str, int]):
    """Labels of one channel -> their number."""

    __slots__ = ("_channel",)

    def __init__(self, channel: int) -> None:
        super().__init__()
        self._channel = channel

    def __missing__(self, label: str) -> int:
        global label_room
        text = writable(label)
        size = LABEL_BYTES + sys.getsizeof(text)
        if size > label_room and text != OTHER_LABELS:
            return self[OTHER_LABELS]
        label_room -= size
        number = next_number["labels"]() & LABEL_MASK
        label_or_text = (
            label if type(label) is str and label == text else text
        )  # not the same text twice
        catalogue["labels"].append((number, self._channel, label_or_text))
        return self.setdefault(label, number)


class Metadata:
    """JSON that goes with a tracepoint."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def createJsonMetadata(value: object) -> Metadata:
    """Make metadata of JSON text, or of anything that JSON can spell; other text is quoted.

    >>> [createJsonMetadata(value).text for value in ({"batch": 8}, '{"epoch": 1}', "warm up")]
    ['{"batch": 8}', '{"epoch": 1}', '"warm up"']
    """
    import json

    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return Metadata(json.dumps(value))
        return Metadata(writable(value))
    try:
        return Metadata(json.dumps(value, default=writable))
    except (ValueError, TypeError, RecursionError):  # circular, or keys that are no text
        return Metadata(json.dumps(writable(value)))


def json_text(metadata: object) -> str | None:
    """Return the JSON of a tracepoint's metadata, whatever the program gave; None of none."""
    if metadata is None:
        return None
    return (metadata if isinstance(metadata, Metadata) else createJsonMetadata(metadata)).text


class Chunk(NamedTuple):
    """Records of ended events, as the file holds them, and what the file says of them."""

    records: int
    begin_ns: int
    end_ns: int
    data: bytes


class Track(Spans):
    """What one thread, or one task of it, has recorded and the writer has not yet taken."""

    __slots__ = (
        "number", "tid", "name", "rows", "siblings", "unmatched_ends", "retired",
        "_help",
    )  # fmt: skip

    def __init__(
        self, number: int, tid: int, name: str, siblings: list[Track], help: Callable[[], None]
    ) -> None:
        super().__init__()
        self.number = number
        self.tid = tid
        self.name = name
        self.rows: list[Row] = []  # what is rarer than events
        self.siblings = siblings  # all tracks of the thread, this one included
        self.unmatched_ends = 0
        self.retired = False  # the thread is gone: its identifier belongs to another now
        siblings.append(self)
        self._help = help

    def hurry(self, now: int) -> None:
        """Do the writer's part, which did not come: where many threads compute it has few turns."""
        self.due = now + HURRY_NANOSECONDS
        self.pack()
        self._help()

    def finish(self, key: int, end: int, metadata: object = None, count: bool = False) -> bool:
        """End the innermost span of this key, of this track or else of another of the thread.

        Without one, False, and counted when `count` asks for it.
        """
        for track in (self, *self.siblings):
            begin = track.end(key, end)
            if begin is not None:
                track.attach(begin, key, metadata)
                return True
        self.unmatched_ends += count
        return False

    def end_elsewhere(self, key: int, end: int, begin: int) -> None:
        """End a span in another thread: records are in the order in which the owner ended them."""
        if self.drop(key, begin):
            row = (self.number, begin, end - begin, OVERLAPPING, key & LABEL_MASK)
            self.rows.append(("long_events", row))

    def attach(self, begin: int, key: int, metadata: object) -> None:
        """Record what goes with an event."""
        text = json_text(metadata)
        if text is not None:
            self.rows.append(("event_metadata", (self.number, begin, key & LABEL_MASK, text)))


class Tasks(Protocol):
    """The tracks of the tasks of a thread."""

    def of(self, loop: object) -> Track:
        """The track of the task that runs in this loop, else the thread's own."""
        ...


class Buffers(Protocol):
    """Where a channel sends its events."""

    @property
    def track(self) -> Track:
        """The calling thread's own track."""
        ...

    @property
    def tasks(self) -> Tasks:
        """The tracks of the calling thread's tasks."""
        ...

    @property
    def current(self) -> Track:
        """The track of the running task, else the thread's own."""
        ...


class Unstarted:
    """Stands for buffers until the first event asks for them; only then is a trace started."""

    __slots__ = ("_start",)

    def __init__(self, start: Callable[[], Buffers]) -> None:
        self._start = start

    @property
    def track(self) -> Track:
        """Start the trace and give the calling thread's track."""
        return self._start().track

    @property
    def tasks(self) -> Tasks:
        """Start the trace and give the tracks of the calling thread's tasks."""
        return self._start().tasks

    @property
    def current(self) -> Track:
        """Start the trace and give the calling task's track."""
        return self._start().current
