"""What is recorded and not yet in the file: rows that every file needs, and buffers a thread.

Threads append to lists of their own and draw numbers from counters. The interpreter does both
atomically, so that no event waits for a lock and no lock can outlive a fork.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, Protocol

from pvti.schema import LABEL_MASK, Cell

# Rows that each file of the process holds: tables that grow and never shrink.
# A writer keeps its own place in each.
catalogue: dict[str, list[tuple[Cell, ...]]] = {
    "channels": [],
    "labels": [],
    "series": [],
    "heatmaps": [],
}

next_number = {table: itertools.count(1).__next__ for table in catalogue}


class LabelKeys(dict[str, int]):
    """Labels of one channel -> their number, in the upper half of a 64-bit word."""

    __slots__ = ("_channel",)

    def __init__(self, channel: int) -> None:
        super().__init__()
        self._channel = channel

    def __missing__(self, label: str) -> int:
        number = next_number["labels"]() & LABEL_MASK
        catalogue["labels"].append((number, self._channel, writable(label)))
        return self.setdefault(label, number << 32)


def writable(text: object) -> str:
    """Give the text of anything, and spell out what UTF-8 cannot hold (lone surrogates)."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


class ThreadState:
    """What one thread has recorded and the writer has not yet taken."""

    __slots__ = (
        "tid",
        "name",
        "number",
        "open",
        "events",
        "rows",
        "open_written",
        "unmatched_ends",
        "retired",
    )

    def __init__(self, number: int, tid: int, name: str) -> None:
        self.number = number
        self.tid = tid
        self.name = name
        self.open: list[tuple[int, int]] = []  # key and begin, the innermost last
        self.events: list[int] = []  # two words a record: begin, then duration | kind | label
        self.rows: list[tuple[str, tuple[Cell, ...]]] = []  # table and row, for what is rarer
        self.open_written: list[tuple[int, int]] = []  # the writer's: what the file holds as open
        self.unmatched_ends = 0
        self.retired = False  # the thread is gone: its identifier belongs to another now


class Buffers(Protocol):
    """Where a channel sends its events."""

    @property
    def state(self) -> ThreadState:
        """The calling thread's own buffers."""
        ...


class ThreadBuffers(threading.local):
    """Each thread's `state`, made by `register` when the thread first records."""

    def __init__(self, register: Callable[[], ThreadState]) -> None:
        self.state = register()


class Unstarted:
    """Stands for buffers until the first event asks for them; only then is a trace started."""

    __slots__ = ("_start",)

    def __init__(self, start: Callable[[], Buffers]) -> None:
        self._start = start

    @property
    def state(self) -> ThreadState:
        """Start the trace and give the calling thread's buffers."""
        return self._start().state


class Taken:
    """What the writer took from one thread for one commit."""

    __slots__ = ("words", "rows", "open")

    def __init__(self, state: ThreadState) -> None:
        """Take all that has ended, and a copy of what is open, without stopping the thread."""
        words_before, rows_before = len(state.events), len(state.rows)
        still_open = state.open.copy()
        self.words = _take(state.events)
        self.rows = _take(state.rows)
        # What ended since the copy of the open spans was made is not open.
        ended = set(self.words[words_before::2])
        ended.update(row[1] for _, row in self.rows[rows_before:] if isinstance(row[1], int))
        self.open = [span for span in still_open if span[1] not in ended] if ended else still_open


def _take(items: list[Any]) -> list[Any]:
    count = len(items)
    taken = items[:count]
    del items[:count]
    return taken
