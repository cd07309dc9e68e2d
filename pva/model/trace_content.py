"""What the tables of a host trace mean: processes, threads, names, and times from one anchor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.model.events import Metadata, Names, Process, Thread, ThreadColumns
from pva.model.nesting import begin_order
from pva.model.series import Heatmap, Instants, Series
from pva.model.trace_rows import Columns, EventFile, Grouped, Numbering, rows_of_events, taken

Integers = npt.NDArray[np.int64]
Window = tuple[int, int]

OF_THREADS = ("event_chunks", "long_events", "open_spans", "event_metadata")


@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on both clocks, where the trace's time is 0.

    `clock_ns` is the process's monotonic clock (time.perf_counter_ns), `wall_ns` the time since
    1970-01-01 UTC; 0 when the file does not tell.
    """

    clock_ns: int
    wall_ns: int


class TraceContent:
    """The tables of a trace at one moment. Never changes: a reload makes another."""

    def __init__(self, file: EventFile) -> None:
        self._file = file
        self._tables = file.tables()
        rows = self._tables["processes"]
        if not len(rows["id"]):
            raise DamagedFileError(file.path, "table processes is empty", "one row a process")
        first = int(rows["wall_ns"].argmin())
        self.anchor = Anchor(int(rows["clock_ns"][first]), int(rows["wall_ns"][first]))
        # A further process's clock is moved by what the anchors tell of the wall clock.
        self._shift = rows["wall_ns"] - self.anchor.wall_ns - rows["clock_ns"]
        self._last = rows["last_ns"] + self._shift
        self.duration_ns = int(self._last.max())
        self.finished = bool(rows["finished"].all())
        backward = int((self._tables["long_events"]["duration_ns"] < 0).sum())
        self.problems = (
            *file.problems,
            *_counted(int(rows["unmatched_ends"].sum()), "end without a begin", "left out"),
            *_counted(backward, "event of negative duration", "shown with none"),
        )
        self._read_names()
        self._read_threads()

    def _read_names(self) -> None:
        channels, labels = self._tables["channels"], self._tables["labels"]
        numbers: dict[str, int] = {}
        indexes = [numbers.setdefault(name, len(numbers)) for name in channels["name"]]
        channel_of = self._numbering("channels", np.array(indexes, np.int64))
        pairs = zip(channel_of.of(labels["channel"]).tolist(), labels["text"], strict=True)
        known: dict[tuple[int, str], int] = {}  # two threads may have numbered one label twice
        places = np.array([known.setdefault(pair, len(known)) for pair in pairs], np.int64)
        self._label_of = self._numbering("labels", places)
        label_channels = np.array([channel for channel, _ in known], np.int32)
        label_channels.flags.writeable = False
        self.names = Names(tuple(text for _, text in known), tuple(numbers), label_channels)

    def _read_threads(self) -> None:
        """Make threads and processes; the thread numbers of one lane are taken together.

        A system gives the identifier of a thread that ended to a new one: one lane if named alike.
        """
        rows, processes = self._tables["threads"], self._tables["processes"]
        self._process_of = self._numbering("processes", np.arange(len(processes["id"])))
        owners = self._process_of.of(rows["process"]).tolist()
        lanes: dict[tuple[int, int, str], int] = {}
        keys = zip(owners, rows["tid"].tolist(), rows["name"], strict=True)
        lane_of = np.array([lanes.setdefault(key, len(lanes)) for key in keys], np.int64)
        self._thread_of = self._numbering("threads", lane_of)
        self._owner = np.array([owner for owner, _, _ in lanes], np.int64)
        self._grouped = {name: self._group(name, len(lanes)) for name in OF_THREADS}
        self.threads = tuple(
            Thread(
                (int(processes["pid"][owner]), tid, name), self._count(lane), self.names,
                partial(self.columns, lane),
            )
            for (owner, tid, name), lane in lanes.items()
        )  # fmt: skip
        self.processes = tuple(
            Process(pid, name, tuple(self.threads[lane] for lane in mine))
            for pid, name, mine in zip(
                processes["pid"].tolist(), processes["name"], self._lanes_of_processes(),
                strict=True,
            )
        )  # fmt: skip

    def _lanes_of_processes(self) -> list[list[int]]:
        mine: list[list[int]] = [[] for _ in self._shift]
        for lane, owner in enumerate(self._owner.tolist()):
            mine[owner].append(lane)
        return mine

    def _numbering(self, table: str, indexes: Integers) -> Numbering:
        return Numbering(self._file.path, table, self._tables[table]["id"], indexes)

    def _group(self, table: str, count: int) -> Grouped:
        rows = self._tables[table]
        return Grouped(rows, self._thread_of.of(rows["thread"]), count)

    def _count(self, lane: int) -> int:
        chunks, *others = (self._grouped[name].of(lane) for name in OF_THREADS[:3])
        return int(chunks["records"].sum()) + sum(len(rows["thread"]) for rows in others)

    def columns(self, lane: int, window: Window | None = None) -> ThreadColumns:
        """Put ended, long and open events of a thread together, in the order of their begin.

        With a window, those that are open at some time in it; nothing else is read.
        """
        parts, ended = self._in_order_of_end(lane, window)
        order = begin_order(parts["begin"])
        for name in parts:  # one after another, so that not all are held twice
            parts[name] = parts[name][order]
        is_open = np.flatnonzero(order >= ended)
        del order
        times = parts["begin"], np.maximum(parts["end"], parts["begin"], out=parts["end"])
        metadata = self._metadata(lane, parts["begin"], parts["label"])
        return ThreadColumns(times, parts["label"], parts["kind"], is_open, self.names, metadata)

    def _in_order_of_end(self, lane: int, window: Window | None) -> tuple[dict[str, Any], int]:
        """Give begin, end, label and kind, and how many of the events have ended."""
        shift = int(self._shift[self._owner[lane]])
        chunks, long, spans = (self._grouped[name].of(lane) for name in OF_THREADS[:3])
        if window is not None:
            meets = _meets(chunks["begin_ns"] + shift, chunks["end_ns"] + shift, window)
            chunks = taken(chunks, meets)
        spans = {name: column[::-1] for name, column in spans.items()}
        begin, end, label, kind = self._file.events(chunks)
        begin = _join(begin, long["begin_ns"], spans["begin_ns"])
        end = _join(end, long["begin_ns"] + long["duration_ns"])
        label = _join(label, long["label"], spans["label"])
        begin += shift
        end += shift
        ended, is_open = len(end), len(spans["begin_ns"])
        latest = end.max(initial=self._last[self._owner[lane]])
        parts = {
            "begin": begin,
            "end": _join(end, np.full(is_open, latest)),
            "label": self._label_of.in_place(label.astype(np.int32, copy=False)),
            "kind": _join(kind, long["kind"].astype(np.uint8), np.zeros(is_open, np.uint8)),
        }
        if window is not None:
            chosen = np.flatnonzero(_meets(begin, parts["end"], window))
            ended = int(np.searchsorted(chosen, ended))
            parts = taken(parts, chosen)
        return parts, ended

    def _metadata(self, lane: int, begin: Integers, label: npt.NDArray[np.int32]) -> Metadata:
        rows = self._grouped["event_metadata"].of(lane)
        if not len(rows["thread"]):
            return Metadata(np.zeros(0, np.int64), ())
        begins = rows["begin_ns"] + self._shift[self._owner[lane]]
        found = rows_of_events(begin, label, begins, self._label_of.of(rows["label"]))
        order = np.argsort(found, kind="stable")
        order = order[np.searchsorted(found[order], 0) :]
        return Metadata(found[order], rows["metadata"][order])

    @cached_property
    def instants(self) -> Instants:
        """Events without duration."""
        rows = self._tables["instants"]
        thread, label = self._thread_of.of(rows["thread"]), self._label_of.of(rows["label"])
        time = rows["time_ns"] + self._shift[self._owner[thread]]
        order = np.argsort(time, kind="stable")
        label = label[order]
        return Instants(
            time[order], label.astype(np.int32), self.names.label_channels[label],
            thread[order], rows["metadata"][order],
        )  # fmt: skip

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Lines of line graphs that have a value."""
        points, lines = self._tables["series_points"], self._tables["series"]
        lane_of = self._numbering("series", np.arange(len(lines["id"])))
        grouped = Grouped(points, lane_of.of(points["series"]), len(lines["id"]))
        made = []
        for row, owner in enumerate(self._owners_of(lines)):
            mine = grouped.of(row)
            if len(mine["time_ns"]):
                graph, unit, name = (lines[key][row] for key in ("graph", "unit", "name"))
                times, pid = mine["time_ns"] + int(self._shift[owner]), self.processes[owner].pid
                made.append(Series(graph, unit, name, times, mine["value"], pid))
        return tuple(made)

    @cached_property
    def heatmaps(self) -> tuple[Heatmap, ...]:
        """Histograms over time that have a column."""
        columns, maps = self._tables["heatmap_columns"], self._tables["heatmaps"]
        map_of = self._numbering("heatmaps", np.arange(len(maps["id"])))
        grouped = Grouped(columns, map_of.of(columns["heatmap"]), len(maps["id"]))
        made = []
        for row, owner in enumerate(self._owners_of(maps)):
            mine = grouped.of(row)
            if not len(mine["time_ns"]):
                continue
            data = maps["edges"][row]
            edges = self._numbers(data, "<f8", len(data) // 8, "heatmaps")
            bins = 8 * (len(edges) - 1)
            wrong = {len(cells) for cells in mine["counts"]} - {bins or -1}
            if wrong:
                found = f"{min(wrong)} bytes of numbers"
                raise self._damaged(found, f"{max(bins, 8)} bytes", "heatmap_columns")
            cells = np.frombuffer(b"".join(mine["counts"]), "<u8").reshape(-1, bins // 8)
            times, pid = mine["time_ns"] + int(self._shift[owner]), self.processes[owner].pid
            name, unit = maps["name"][row], maps["unit"][row]
            below, above = mine["below"], mine["above"]
            made.append(Heatmap(name, unit, edges, times, cells, below, above, pid))
        return tuple(made)

    def _owners_of(self, rows: Columns) -> list[int]:
        """Give the process of each series or heatmap; a file of one process does not tell."""
        if "process" in rows:
            owners: list[int] = self._process_of.of(rows["process"]).tolist()
            return owners
        return [0] * len(rows["id"])

    def _numbers(self, data: bytes, dtype: str, count: int, table: str) -> npt.NDArray[Any]:
        if len(data) != 8 * count or count < 1:
            raise self._damaged(f"{len(data)} bytes of numbers", f"{8 * max(count, 1)}", table)
        return np.frombuffer(data, dtype)

    def _damaged(self, found: str, wanted: str, table: str) -> DamagedFileError:
        return DamagedFileError(self._file.path, found, wanted, place=f"table {table}")


def _counted(count: int, what: str, done: str) -> tuple[str, ...]:
    """Say how many of something there were, and what became of them."""
    if not count:
        return ()
    first, _, rest = what.partition(" ")
    return (f"{count} {what} was {done}" if count == 1 else f"{count} {first}s {rest} were {done}",)


def _meets(begin: Integers, end: Integers, window: Window) -> npt.NDArray[np.bool_]:
    """Tell what is open at some time of a window, whose end does not belong to it."""
    first, stop = window
    return (begin < stop) & ((end > first) | (begin >= first))


def _join(first: npt.NDArray[Any], *others: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Put arrays after each other; the first itself when the others are empty."""
    return np.concatenate((first, *others)) if any(map(len, others)) else first
