"""What the tables of a host trace mean: processes, threads, names, and times from one anchor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers, Values
from pva.data.long_texts import cut_tables
from pva.errors import DamagedFileError
from pva.model.host_trace.events import Names, Process, Thread
from pva.model.host_trace.label_sums import LabelSums, label_sums
from pva.model.host_trace.series import Flows, Heatmap, Instants, Series, no_flows
from pva.model.host_trace.trace_lanes import Clocks, Lanes, loader
from pva.model.host_trace.trace_rows import Columns, EventFile, Grouped, Numbering

# Bytes that are taken beside the tables: of a thread with its objects, of an instant, of a value of
# a series, of a column of a heatmap beside its counts, and to sum up, of an event and of a label.
LANE, INSTANT, POINT, COLUMN, SUMMED, LABEL = 1500, 50, 50, 60, 40, 500
FLOW = 100  # the same of a flow


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

    def __init__(self, file: EventFile, longest: int | None = None) -> None:
        self._file = file
        read = file.tables()
        self._tables = read if longest is None else cut_tables(read, longest)
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
        self.files: list[int] = [int(place) for place in rows.get("file", 0 * rows["id"])]
        backward = int((self._tables["long_events"]["duration_ns"] < 0).sum())
        self._problems = (
            *_counted(int(rows["unmatched_ends"].sum()), "end without a begin", "left out"),
            *_lost(self._tables["lost_events"]),
            *_counted(backward, "event of negative duration", "shown with none"),
        )
        self._read_names()
        self._read_threads()

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what is not shown, a line each: of events, what was met as they were read."""
        return (*self._file.problems, *self._problems)

    def check(self, amount: int, place: str) -> None:
        """Raise PvaError when so many bytes more are too many for a file of its size."""
        self._file.check(amount, place)

    def _read_names(self) -> None:
        channels, labels = self._tables["channels"], self._tables["labels"]
        numbers: dict[str, int] = {}
        indexes = [numbers.setdefault(name, len(numbers)) for name in channels["name"]]
        channel_of = self._numbering("channels", np.array(indexes, np.int64))
        owners, texts = channel_of.of(labels["channel"]), labels["text"]
        places, first = _alike(owners, texts)  # two threads may have numbered one label twice
        self._label_of = self._numbering("labels", places)
        label_channels = owners[first].astype(np.int32)
        label_channels.flags.writeable = False
        check = partial(_check_events, self._file)
        self.names = Names(tuple(texts[first].tolist()), tuple(numbers), label_channels, check)

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
        self.check(LANE * len(lanes), "threads")
        self._owner = np.array([owner for owner, _, _ in lanes], np.int64)
        clocks = Clocks(self._shift[self._owner], self._last[self._owner])
        self.lanes = Lanes(self._file, self._tables, self._thread_of, self._label_of, clocks)
        pids, counts = processes["pid"].tolist(), self.lanes.counts.tolist()
        self.threads = tuple(
            Thread(
                (pids[owner], tid, name), counts[lane], self.names,
                loader(self.lanes, lane, self.names),
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

    @cached_property
    def label_sums(self) -> LabelSums:
        """The events of each label together."""
        labels, events = len(self.names.labels), int(self.lanes.counts.sum())
        amount = LABEL * labels + SUMMED * events
        self.check(amount, "labels")
        lanes = self.lanes.load(self.threads)
        return label_sums(lanes, labels, lambda extra: self.check(amount + extra, "labels"))

    @cached_property
    def instants(self) -> Instants:
        """Events without duration."""
        rows = self._tables["instants"]
        self.check(INSTANT * len(rows["time_ns"]), "instants")
        thread, label = self._thread_of.of(rows["thread"]), self._label_of.of(rows["label"])
        time = rows["time_ns"] + self._shift[self._owner[thread]]
        order = np.argsort(time, kind="stable")
        label = label[order]
        return Instants(
            time[order], label.astype(np.int32), self.names.label_channels[label],
            thread[order], rows["metadata"][order],
        )  # fmt: skip

    @cached_property
    def flows(self) -> Flows:
        """What led to what."""
        if "flows" not in self._tables:
            return no_flows()
        rows = self._tables["flows"]
        self.check(FLOW * len(rows["time_ns"]), "flows")
        threads = [self._thread_of.of(rows[name]) for name in ("thread", "to_thread")]
        times = [
            rows[name] + self._shift[self._owner[thread]]
            for name, thread in zip(("time_ns", "to_time_ns"), threads, strict=True)
        ]
        order = np.argsort(times[0], kind="stable")
        label = self._label_of.of(rows["label"]).astype(np.int32)
        return Flows(
            label[order], threads[0][order], times[0][order], threads[1][order], times[1][order]
        )

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Lines of line graphs that have a value."""
        points, lines = self._tables["series_points"], self._tables["series"]
        self.check(POINT * len(points["time_ns"]), "series")
        lane_of = self._numbering("series", np.arange(len(lines["id"])))
        grouped = Grouped(points, lane_of.of(points["series"]), len(lines["id"]))
        result = []
        for row, owner in enumerate(self._owners_of(lines)):
            mine = grouped.of(row)
            if len(mine["time_ns"]):
                graph, unit, name = (lines[key][row] for key in ("graph", "unit", "name"))
                times = mine["time_ns"] + int(self._shift[owner])
                of = self.processes[owner].pid, int(self._last[owner]), owner
                result.append(Series(graph, unit, name, times, mine["value"], *of))
        return tuple(result)

    @cached_property
    def heatmaps(self) -> tuple[Heatmap, ...]:
        """Histograms over time that have a column."""
        columns, maps = self._tables["heatmap_columns"], self._tables["heatmaps"]
        self.check(COLUMN * len(columns["time_ns"]), "heatmaps")
        map_of = self._numbering("heatmaps", np.arange(len(maps["id"])))
        grouped = Grouped(columns, map_of.of(columns["heatmap"]), len(maps["id"]))
        histograms = []
        for row, owner in enumerate(self._owners_of(maps)):
            mine = grouped.of(row)
            if not len(mine["time_ns"]):
                continue
            data = maps["edges"][row]
            edges = self._numbers(data, "<f8", len(data) // 8, "heatmaps")
            bins = 8 * (len(edges) - 1)
            wrong = mine["counts"].sizes - {bins or -1}
            if wrong:
                problem = f"{min(wrong)} bytes of numbers"
                raise self._damaged(problem, f"{max(bins, 8)} bytes", "heatmap_columns")
            cells = np.frombuffer(mine["counts"].run(bins), "<u8").reshape(-1, bins // 8)
            times = mine["time_ns"] + int(self._shift[owner])
            of = self.processes[owner].pid, int(self._last[owner]), owner
            name, unit = maps["name"][row], maps["unit"][row]
            below, above = mine["below"], mine["above"]
            histograms.append(Heatmap(name, unit, edges, times, cells, below, above, *of))
        return tuple(histograms)

    def _owners_of(self, rows: Columns) -> list[int]:
        """Return the process of each series or heatmap; a file of one process does not tell."""
        if "process" in rows:
            owners: list[int] = self._process_of.of(rows["process"]).tolist()
            return owners
        return [0] * len(rows["id"])

    def _numbers(self, data: bytes, dtype: str, count: int, table: str) -> Values:
        if len(data) != 8 * count or count < 1:
            raise self._damaged(f"{len(data)} bytes of numbers", f"{8 * max(count, 1)}", table)
        return np.frombuffer(data, dtype)

    def _damaged(self, problem: str, remedy: str, table: str) -> DamagedFileError:
        return DamagedFileError(self._file.path, problem, remedy, place=f"table {table}")


def _check_events(file: EventFile, amount: int) -> None:
    file.check(amount, "events")


def _alike(owners: Integers, texts: npt.NDArray[np.object_]) -> tuple[Integers, Integers]:
    """Number pairs, equal ones alike, by their first place; give the numbers and these places.

    Pairs are compared where what is made of them meets, as few do: objects of all take memory.
    """
    many = np.fromiter(map(hash, texts), np.int64, len(texts))
    many ^= owners * 0x9E3779B1
    order = np.argsort(many, kind="stable")
    meets = np.flatnonzero(many[order[1:]] == many[order[:-1]])
    again = np.unique(order[np.concatenate((meets, meets + 1))])
    place = np.arange(len(texts))
    first_rows: dict[tuple[int, str], int] = {}
    pairs = zip(owners[again].tolist(), texts[again].tolist(), strict=True)
    place[again] = [first_rows.setdefault(pair, row)
                    for pair, row in zip(pairs, again.tolist(), strict=True)]  # fmt: skip
    is_first = place == np.arange(len(texts))
    numbers = np.cumsum(is_first) - 1
    return numbers[place], np.flatnonzero(is_first)


def _counted(count: int, subject: str, outcome: str) -> tuple[str, ...]:
    """Return how many of something there were, and what became of them."""
    if not count:
        return ()
    first, _, qualifier = subject.partition(" ")
    return (
        f"{count} {subject} was {outcome}"
        if count == 1
        else f"{count} {first}s {qualifier} were {outcome}",
    )


def _lost(rows: Columns) -> tuple[str, ...]:
    """Return how many events faults of tracing cost, and what the first fault was."""
    count = int(rows["events"].sum())
    if not count:
        return ()
    events = (
        "1 event, or its metadata, was"
        if count == 1
        else f"{count} events, or their metadata, were"
    )
    return (f"{events} lost to a fault of tracing: {rows['reason'][0]}",)
