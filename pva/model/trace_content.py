"""What the tables of a host trace mean: processes, threads, names, and times from one anchor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.model.events import Names, Process, Thread, ThreadColumns, begin_order
from pva.model.series import Heatmap, Instants, Series

Integers = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]


class RawEvents(Protocol):
    """Ended events in the order of their end, on the monotonic clock."""

    begin: Integers
    end: Integers
    label: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]


class EventFile(Protocol):
    """Where tables and events come from; a format implements it."""

    path: Path

    def tables(self) -> dict[str, Columns]:
        """Give all tables at one moment."""
        ...

    def events(self, chunks: Columns) -> Any:
        """Give the events of these rows of `event_chunks`, as RawEvents."""
        ...


@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on both clocks, where the trace's time is 0.

    `clock_ns` is the process's monotonic clock (time.perf_counter_ns), `wall_ns` the time since
    1970-01-01 UTC.
    """

    clock_ns: int
    wall_ns: int


class Numbering:
    """Numbers that rows have in the file -> indexes without gaps."""

    def __init__(self, path: Path, table: str, numbers: Integers, indexes: Integers) -> None:
        self._place = f"table {table}"
        self._path = path
        order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[order]
        self._indexes = indexes[order]

    def of(self, numbers: npt.NDArray[Any]) -> Integers:
        """Give the index of each; raises DamagedFileError for a number that no row has."""
        if not len(numbers):
            return np.zeros(0, np.int64)
        last = len(self._numbers) - 1
        places = np.minimum(np.searchsorted(self._numbers, numbers), last)
        wrong = numbers if last < 0 else numbers[self._numbers[places] != numbers]
        if len(wrong):
            found = f"no row {int(wrong[0])}"
            raise DamagedFileError(self._path, found, "each number used", place=self._place)
        return self._indexes[places]


class TraceContent:
    """The tables of a trace at one moment. Never changes: a reload makes another."""

    def __init__(self, file: EventFile) -> None:
        self._file = file
        self._tables = file.tables()
        rows = self._tables["processes"]
        if not len(rows["id"]):
            raise DamagedFileError(file.path, "table processes is empty", "one row a process")
        self.anchor = Anchor(int(rows["clock_ns"][0]), int(rows["wall_ns"][0]))
        # A further process's clock is moved by what the anchors tell of the wall clock.
        self._shift = rows["wall_ns"] - self.anchor.wall_ns - rows["clock_ns"]
        self._last = rows["last_ns"] + self._shift
        self.duration_ns = int(self._last.max())
        self.finished = bool(rows["finished"].all())
        unmatched = int(rows["unmatched_ends"].sum())
        ends = (
            f"{unmatched} ends without a begin were"
            if unmatched > 1
            else "1 end without a begin was"
        )
        self.problems = (f"{ends} left out",) if unmatched else ()
        self._read_names()
        self._read_threads()

    def _read_names(self) -> None:
        channels, labels = self._tables["channels"], self._tables["labels"]
        channel_of = self._numbering("channels", np.arange(len(channels["id"])))
        pairs = zip(channel_of.of(labels["channel"]).tolist(), labels["text"], strict=True)
        known: dict[tuple[int, str], int] = {}  # two threads may have numbered one label twice
        indexes = np.array([known.setdefault(pair, len(known)) for pair in pairs], np.int64)
        self._label_of = self._numbering("labels", indexes)
        self.label_channels = np.array([channel for channel, _ in known], np.int32)
        self.label_channels.flags.writeable = False
        self.names = Names(tuple(text for _, text in known), tuple(channels["name"]))

    def _read_threads(self) -> None:
        """Make threads and processes; the thread numbers of one lane are taken together.

        A system gives the identifier of a thread that ended to a new one: one lane if named alike.
        """
        rows, processes = self._tables["threads"], self._tables["processes"]
        process_of = self._numbering("processes", np.arange(len(processes["id"])))
        owners = process_of.of(rows["process"]).tolist()
        lanes: dict[tuple[int, int, str], int] = {}
        keys = zip(owners, rows["tid"].tolist(), rows["name"], strict=True)
        self._lane_of = np.array([lanes.setdefault(key, len(lanes)) for key in keys], np.int64)
        self._thread_of = self._numbering("threads", self._lane_of)
        self.threads = tuple(
            Thread(
                int(processes["pid"][owner]), tid, name, self.names,
                partial(self._columns, lane, owner),
            )
            for (owner, tid, name), lane in lanes.items()
        )  # fmt: skip
        owner_of_lane = [owner for owner, _, _ in lanes]
        self.processes = tuple(
            Process(
                int(processes["pid"][place]),
                name,
                tuple(t for t, owner in zip(self.threads, owner_of_lane, strict=True)
                      if owner == place),
            )
            for place, name in enumerate(processes["name"])
        )  # fmt: skip

    def _numbering(self, table: str, indexes: Integers) -> Numbering:
        return Numbering(self._file.path, table, self._tables[table]["id"], indexes)

    def _of_lane(self, table: str, lane: int) -> Columns:
        """Select the rows of a table that belong to one thread."""
        rows = self._tables[table]
        chosen = self._thread_of.of(rows["thread"]) == lane
        return {name: column[chosen] for name, column in rows.items()}

    def _columns(self, lane: int, owner: int) -> ThreadColumns:
        """Put ended, long and open events of a thread together, in the order of their begin."""
        parts = self._in_order_of_end(lane, owner)
        ended, count = int(parts.pop("ended")), len(parts["begin"])
        order = begin_order(parts["begin"])
        for name in parts:  # one after another, so that not all are held twice
            parts[name] = parts[name][order]
        return ThreadColumns(
            (parts["begin"], np.maximum(parts["end"], parts["begin"])),
            parts["label"],
            self.label_channels[parts["label"]],
            parts["kind"],
            order >= ended if ended < count else np.zeros(count, np.bool_),
            self._metadata(lane, int(self._shift[owner])),
        )

    def _in_order_of_end(self, lane: int, owner: int) -> dict[str, Any]:
        """Give begin, end, label and kind, and how many of the events have ended."""
        raw: RawEvents = self._file.events(self._of_lane("event_chunks", lane))
        long = self._of_lane("long_events", lane)
        spans = {name: column[::-1] for name, column in self._of_lane("open_spans", lane).items()}
        shift, is_open = int(self._shift[owner]), np.zeros(len(spans["begin_ns"]), np.uint8)
        begin = _join(raw.begin, long["begin_ns"], spans["begin_ns"])
        end = _join(raw.end, long["begin_ns"] + long["duration_ns"])
        label = _join(raw.label, long["label"], spans["label"])
        begin += shift
        end += shift
        latest = end.max(initial=self._last[owner])
        return {
            "ended": len(end),
            "begin": begin,
            "end": _join(end, np.full(len(is_open), latest)),
            "label": self._label_of.of(label).astype(np.int32),
            "kind": _join(raw.kind, long["kind"].astype(np.uint8), is_open),
        }

    def _metadata(self, lane: int, shift: int) -> dict[tuple[int, int], str]:
        rows = self._of_lane("event_metadata", lane)
        begins = (rows["begin_ns"] + shift).tolist()
        labels = self._label_of.of(rows["label"]).tolist()
        return dict(zip(zip(begins, labels, strict=True), rows["metadata"], strict=True))

    @cached_property
    def instants(self) -> Instants:
        """Events without duration."""
        rows = self._tables["instants"]
        thread, label = self._thread_of.of(rows["thread"]), self._label_of.of(rows["label"])
        pids = [int(pid) for pid in self._tables["processes"]["pid"]]
        owner = np.array([pids.index(t.pid) for t in self.threads], np.int64)
        time = rows["time_ns"] + self._shift[owner[thread]]
        order = np.argsort(time, kind="stable")
        label = label[order]
        return Instants(
            time[order], label.astype(np.int32), self.label_channels[label],
            thread[order], rows["metadata"][order],
        )  # fmt: skip

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Lines of line graphs that have a value."""
        points, shift = self._tables["series_points"], int(self._shift[0])
        made = []
        for number, graph, unit, name in _rows(self._tables["series"]):
            mine = points["series"] == number
            if mine.any():
                times = points["time_ns"][mine] + shift
                made.append(Series(graph, unit, name, times, points["value"][mine]))
        return tuple(made)

    @cached_property
    def heatmaps(self) -> tuple[Heatmap, ...]:
        """Histograms over time that have a column."""
        columns, shift = self._tables["heatmap_columns"], int(self._shift[0])
        made = []
        for number, name, unit, data in _rows(self._tables["heatmaps"]):
            mine = columns["heatmap"] == number
            if mine.any():
                edges = self._numbers(data, "<f8", len(data) // 8, "heatmaps")
                bins = len(edges) - 1
                counts = [
                    self._numbers(cells, "<u8", bins, "heatmap_columns")
                    for cells in columns["counts"][mine]
                ]
                others = (columns[key][mine] for key in ("below", "above"))
                times = columns["time_ns"][mine] + shift
                made.append(Heatmap(name, unit, edges, times, np.stack(counts), *others))
        return tuple(made)

    def _numbers(self, data: bytes, dtype: str, count: int, table: str) -> npt.NDArray[Any]:
        if len(data) != 8 * count or count < 1:
            found = f"{len(data)} bytes of numbers"
            wanted = f"{8 * max(count, 1)} bytes"
            raise DamagedFileError(self._file.path, found, wanted, place=f"table {table}")
        return np.frombuffer(data, dtype)


def _join(first: npt.NDArray[Any], *others: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put arrays after each other; the first itself when the others are empty."""
    return np.concatenate((first, *others)) if any(map(len, others)) else first


def _rows(table: Columns) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in table.values()), strict=True))
