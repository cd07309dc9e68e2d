"""Rows of the tables of a host trace: found by number, by thread, by the event they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.errors import DamagedFileError

BLOCK = 1 << 16
Columns = dict[str, Any]  # arrays by name; texts may be another sequence that takes rows


class RawEvents(NamedTuple):
    """Ended events in the order of their end. Times in nanoseconds of the monotonic clock."""

    begin: Integers
    end: Integers
    label: npt.NDArray[np.int32]  # rows of `labels`
    kind: npt.NDArray[np.uint8]  # index into pvti.schema.KINDS
    records: Integers  # of each chunk asked for; 0 of one that is damaged


# RawEvents as any tuple.
Events = tuple[Integers, Integers, npt.NDArray[np.int32], npt.NDArray[np.uint8], Integers]


class EventFile(Protocol):
    """Where tables and events come from; a format implements it. Tables are as in `pvti.schema`.

    `series` and `heatmaps` may have one more column, `process`; a table `flows` may be there.
    """

    path: Path

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what the file has and the tables have not, a line each."""
        ...

    def tables(self) -> dict[str, Columns]:
        """Return all tables at one moment; of `event_chunks` all but the data."""
        ...

    def events(self, chunks: Columns) -> Events:
        """Return the events of these rows of `event_chunks`, as RawEvents."""
        ...

    def check(self, amount: int, place: str) -> None:
        """Raise PvaError when so many bytes more are too many for a file of its size."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Numbering:
    """Numbers that rows have in the file -> indexes without gaps."""

    def __init__(self, path: Path, table: str, numbers: Integers, indexes: Integers) -> None:
        self._place = f"table {table}"
        self._path = path
        order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[order]
        self._indexes = indexes[order]
        count = np.arange(len(numbers))
        # Numbered from 1 without gaps, as our writer does: nothing to search.
        self._plain = np.array_equal(self._numbers, count + 1) and np.array_equal(indexes, count)

    def of(self, numbers: npt.NDArray[np.integer]) -> Integers:
        """Return the index of each; raises DamagedFileError for a number that no row has."""
        if not len(numbers):
            return np.zeros(0, np.int64)
        last = len(self._numbers) - 1
        if self._plain and int(numbers.min()) >= 1 and int(numbers.max()) <= last + 1:
            return numbers.astype(np.int64) - 1
        places = np.minimum(np.searchsorted(self._numbers, numbers), last)
        wrong = numbers if last < 0 else numbers[self._numbers[places] != numbers]
        if len(wrong):
            problem = f"no row {int(wrong[0])}"
            raise DamagedFileError(self._path, problem, "each number used", place=self._place)
        return self._indexes[places]

    def in_place(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Put the index of each in place of its number, a few at a time, and give the array."""
        for first in range(0, len(numbers), BLOCK):
            part = slice(first, first + BLOCK)
            numbers[part] = self.of(numbers[part])
        return numbers


class Grouped:
    """Rows of a table by the thread that they belong to, in their order."""

    def __init__(self, rows: Columns, lanes: Integers, count: int) -> None:
        self._rows = rows
        self._order = np.argsort(lanes, kind="stable")
        self._starts = np.searchsorted(lanes[self._order], np.arange(count + 1))

    def of(self, lane: int) -> Columns:
        """Select the rows of a thread."""
        return taken(self._rows, self._order[self._starts[lane] : self._starts[lane + 1]])

    def count(self, lane: int) -> int:
        """Count the rows of a thread."""
        return int(self._starts[lane + 1] - self._starts[lane])

    def between(self, first: int, stop: int) -> tuple[Columns, Integers]:
        """Select the rows of threads that follow each other, and give the thread of each."""
        rows = self._order[self._starts[first] : self._starts[stop]]
        counts = np.diff(self._starts[first : stop + 1])
        return taken(self._rows, rows), np.repeat(np.arange(first, stop), counts)


def taken(rows: Columns, selection: npt.NDArray[np.integer | np.bool_] | slice) -> Columns:
    """Select some rows of a table."""
    return {name: column[selection] for name, column in rows.items()}


def rows_of_events(
    begin: Integers, label: npt.NDArray[np.int32], begins: Integers, labels: Integers
) -> Integers:
    """Look up events by begin and label, -1 where there is none; `begin` ascends.

    Of several that are alike the first goes to the first, and so on.
    """
    begun, group = np.unique(begins, return_inverse=True)
    first = np.searchsorted(begin, begun)
    counts = np.searchsorted(begin, begun, side="right") - first
    starts = np.cumsum(counts) - counts
    candidates = np.repeat(first - starts, counts) + np.arange(int(counts.sum()))
    many = int(max(label.max(initial=0), labels.max(initial=0))) + 1
    event_keys = np.repeat(np.arange(len(begun)), counts) * many + label[candidates]
    searched = group * many + labels
    by_known, by_wanted = (np.argsort(keys, kind="stable") for keys in (event_keys, searched))
    event_keys, searched = event_keys[by_known], searched[by_wanted]
    again = np.arange(len(searched)) - np.searchsorted(searched, searched)
    places = np.searchsorted(event_keys, searched) + again
    rows = np.full(len(begins), -1)
    fit = np.flatnonzero(places < len(event_keys))
    fit = fit[event_keys[places[fit]] == searched[fit]]
    rows[by_wanted[fit]] = candidates[by_known[places[fit]]]
    return rows
