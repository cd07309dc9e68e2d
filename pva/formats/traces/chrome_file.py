"""Open Chrome trace JSON, as PyTorch, viztracer and browsers write it, with the tables of a trace.

Begins and ends are matched by thread, asynchronous ones by identity; these stand on threads of
their own, as they overlap. Counters are series. Time 0 is the first event, or what the file says.
What has no place in the tables is counted in `problems`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.errors import DamagedFileError
from pva.formats.builders import IN_RUNS, Codes, GrowingTexts, Numbers, looked_up, used
from pva.formats.memory_limit import SHORTER, Budget
from pva.formats.traces import chrome_events as events
from pva.formats.traces import chrome_pieces
from pva.formats.traces.chrome_arguments import of_begins
from pva.formats.traces.chrome_events import KEY, Read
from pva.formats.traces.chrome_flows import arrows
from pva.formats.traces.chrome_order import backward, taken
from pva.formats.traces.chrome_threads import Threads
from pva.formats.traces.json_pieces import Array
from pva.formats.traces.pair_begin_end import Pairs, paired
from pva.plain_file import opened
from pva.progress import part_of, reading
from pvti.schema import TABLES

if TYPE_CHECKING:
    from pva.formats.traces.joined_traces import Events

Scalar = TypeVar("Scalar", bound=np.generic)
Columns = dict[str, Any]

OTHER = "otherData"
CHUNK = 1 << 14  # events of one thread that a window reads together
EPOCH = 10**18  # nanoseconds since 1970: a time beyond is no time since a machine was started
TEXT = 200  # bytes of a label that is held, and of those above it
_WHAT = "a host trace"
_UNWRAPPED = b'{"metadata":'
THREAD, BEGIN, END, LABEL = range(4)  # columns of what has a begin and an end


class ChromeFile:
    """A trace read whole into columns."""

    path: Path
    budget: Budget
    problems: tuple[str, ...]
    _about: dict[str, int]
    _tables: dict[str, Columns]

    def __init__(self, path: Path) -> None:
        self.path = path
        with (
            opened(path, _WHAT) as stream,
            part_of(reading(path), size := os.fstat(stream.fileno()).st_size),
        ):
            self.budget = Budget(path, size, held=0, otherwise=SHORTER)
            array = Array(path, stream, KEY)
            try:
                content = chrome_pieces.read(array, self.budget)
            except events.TooManyUnknownError as error:
                raise DamagedFileError(path, str(error), "Chrome trace JSON") from None
            except MemoryError as error:
                raise DamagedFileError(path, "too large for the memory") from error
        self._about = _about(array)
        self._own = "wall_clock_ns" in self._about
        self._problems = content.problems
        self._finished = array.closed and bool(self._about.get("finished", True))
        self._tables = tables_of_nothing()
        self._fill(content)
        self.problems = (*_cut(array), *_counted(content.problems))
        column_bytes = sum(
            column.nbytes
            for columns in (*self._tables.values(), self._events)
            for column in (columns.values() if isinstance(columns, dict) else columns)
        )
        self.budget.hold(column_bytes + TEXT * len(self._tables["labels"]["id"]))

    def tables(self) -> dict[str, Columns]:
        """Return all tables."""
        return self._tables

    def check(self, amount: int, place: str) -> None:
        """Raise DamagedFileError when so many bytes more are too many for the file."""
        self.budget.check_whole(amount, place)

    def events(self, chunks: Columns) -> Events:
        """Return begin, end, label and kind of the events of these rows, and each row's number."""
        rows = [
            slice(first, first + count)
            for first, count in zip(
                self._first[chunks["id"] - 1].tolist(), chunks["records"].tolist(), strict=True
            )
        ]
        begin, end, label = (
            np.concatenate([column[part] for part in rows]) if rows else column[:0].copy()
            for column in self._events
        )
        return begin, end, label, np.zeros(len(begin), np.uint8), chunks["records"]

    def close(self) -> None:
        """Let go of the file, which was read whole."""

    def _fill(self, content: Read) -> None:
        read = _Columns(content, _UNWRAPPED if self._own else b"")
        moment = 0 if self._own else read.first
        self._end = max(moment, int(read.time.max(initial=moment)))
        self._threads = Threads(content.lanes, content.names)
        self._label_of = np.zeros(len(content.labels), np.int32)  # numbers from 1 of those used
        self._used: list[int] = []
        spans = self._spans(read)
        self._instants(read)
        read.__dict__.clear()
        self._flows(content)
        self._sort(spans)
        self._points(content)
        self._names(content.labels)
        self._processes(moment)

    def _spans(self, read: _Columns) -> list[object]:
        """Put together what has a begin and an end: thread, begin, end and label of each."""
        complete = read.phase == events.COMPLETE
        nested = paired(*read.ends((events.BEGIN, events.END), read.lane))
        crossing = paired(*read.ends((events.ASYNC_BEGIN, events.ASYNC_END), read.identity))
        some = read.at((events.BEGIN, events.END)), read.at((events.ASYNC_BEGIN, events.ASYNC_END))
        self._count_unmatched(nested, crossing)
        begun = np.concatenate((some[0][nested.begin], some[1][crossing.begin]))
        ended = np.concatenate((some[0][nested.end], some[1][crossing.end]))
        unended = np.concatenate((some[0][nested.unended], some[1][crossing.unended]))
        every = bool(complete.all())  # as in most files, of which no column is copied then
        lanes, labels = (
            [column if every else column[complete], column[begun]]
            for column in (read.lane, read.label)
        )
        self._threads.see(lanes)
        crossed = self._threads.crossing(lanes[1][len(nested.begin) :])
        waiting = self._open(read, unended, len(nested.unended))
        self._see(labels)
        first = len(read.duration)
        begin = _filled(read.time if every else read.time[complete], read.time[begun])
        end = _filled(read.duration, read.time[ended])
        end[:first] += begin[:first]
        thread = _filled(*map(self._threads.of, lanes))
        thread[len(thread) - len(crossed) :] = crossed
        label = _filled(*map(self._label, labels))
        read.told, read.texts = of_begins(read.told, read.texts, begun, ended, self.budget)
        of_lane, since, of_label = waiting
        span_columns = (
            _filled(thread, of_lane),
            _filled(begin, since),
            _filled(label, of_label),
        )
        self._metadata(read, complete, np.concatenate((begun, unended)), span_columns)
        self._end = max(self._end, int(end.max(initial=self._end)))
        return [thread, begin, end, label]

    def _sort(self, spans: list[Any]) -> None:
        """Put events by thread, each in reverse order of begin, one column after the other."""
        rows = backward(*(spans[place] for place in (THREAD, BEGIN, END)))
        for place in (BEGIN, END, LABEL, THREAD):
            spans[place] = taken(spans[place], rows)
        del rows
        self._events = spans[BEGIN], spans[END], spans[LABEL]
        self._chunks(spans[THREAD])

    def _count_unmatched(self, *pairs: Pairs) -> None:
        alone = sum(len(pair.unbegun) for pair in pairs)
        if alone:
            self._problems["of phase E, e or F without a begin, left out"] += alone

    def _open(self, read: _Columns, rows: Integers, nested: int) -> tuple[Codes, Integers, Codes]:
        """Take in what has not ended, the outermost first; give thread, begin and label."""
        lane, begin = self._threads.of(read.lane[rows]), read.time[rows]
        lane[nested:] = self._threads.crossing(read.lane[rows[nested:]])
        label = self._label(read.label[rows])
        order = np.lexsort((begin, lane))
        thread = lane[order]
        first = np.searchsorted(thread, thread)
        self._set("open_spans", thread=thread, position=np.arange(len(rows)) - first,
                  begin_ns=begin[order], label=label[order])  # fmt: skip
        return lane, begin, label

    def _chunks(self, thread: Codes) -> None:
        """Cut the events of each thread, so that a window is a few of the parts."""
        starts = np.flatnonzero(thread[1:] != thread[:-1]) + 1
        starts = np.append(0, starts) if len(thread) else starts
        counts = np.diff(starts, append=len(thread))
        parts = -(-counts // CHUNK)
        within = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        self._first = np.repeat(starts, parts) + within * CHUNK
        records = np.minimum(np.repeat(counts, parts) - within * CHUNK, CHUNK)
        begin, end, _ = self._events
        least, most = (
            reduce.reduceat(column, self._first) if len(column) else column
            for reduce, column in ((np.minimum, begin), (np.maximum, end))
        )
        self._set("event_chunks", id=np.arange(1, len(records) + 1), thread=thread[self._first],
                  records=records, begin_ns=least, end_ns=most,
                  crc32=np.zeros(len(records), np.int64))  # fmt: skip

    def _metadata(
        self,
        read: _Columns,
        complete: npt.NDArray[np.bool_],
        begun: Integers,
        columns: tuple[npt.NDArray[np.integer], ...],
    ) -> None:
        """Name what events had beside their times."""
        if not len(read.told):
            return
        ordinary = complete[read.told]
        at = np.cumsum(complete, dtype=np.int32)[read.told].astype(np.int64) - 1
        separate = np.flatnonzero(~ordinary)
        by_row = np.argsort(begun, kind="stable")
        place = np.searchsorted(begun, read.told[separate], sorter=by_row)
        place = np.minimum(place, max(len(begun) - 1, 0))
        mine = begun[by_row[place]] == read.told[separate] if len(begun) else place < 0
        ordinary[separate[mine]] = True
        at[separate[mine]] = len(read.duration) + (
            by_row[place[mine]] if len(begun) else place[mine]
        )
        at = at[ordinary]
        thread, begin, label = (column[at] for column in columns)
        self._set("event_metadata", thread=thread, begin_ns=begin, label=label,
                  metadata=read.texts[ordinary])  # fmt: skip

    def _instants(self, read: _Columns) -> None:
        rows = read.at((events.INSTANT, events.ASYNC_INSTANT))
        places = np.searchsorted(rows, read.told)
        places = np.minimum(places, max(len(rows) - 1, 0))
        mine = rows[places] == read.told if len(rows) else np.zeros(len(read.told), np.bool_)
        self._set("instants", thread=self._threads.of(read.lane[rows]), time_ns=read.time[rows],
                  label=self._label(read.label[rows]),
                  metadata=read.texts[mine].at(places[mine], len(rows)))  # fmt: skip

    def _flows(self, content: Read) -> None:
        """Take in what leads to what; a file without flows has no such table."""
        found = arrows(content.flows, events.FLOW_START, events.FLOW_END)
        if found.alone:
            self._problems["of a flow without a start left out"] += found.alone
        known = self._threads.known(found.lane) & self._threads.known(found.to_lane)
        if not known.all():
            count = int(np.count_nonzero(~known))
            self._problems["of a flow on threads without events left out"] += count
        label, lane, to_lane = (
            column[known] for column in (found.label, found.lane, found.to_lane)
        )
        self._set("flows", label=self._label(label), thread=self._threads.of(lane),
                  time_ns=found.time[known], to_thread=self._threads.of(to_lane),
                  to_time_ns=found.to_time[known])  # fmt: skip

    def _label(self, codes: Codes) -> Codes:
        """Number the labels that are used, from 1."""
        self._see([codes])
        return looked_up(self._label_of, codes)

    def _see(self, columns: Iterable[Codes]) -> None:
        """Number the labels of these columns that have no number."""
        new = used(columns, len(self._label_of))
        new = new[self._label_of[new] == 0]
        self._label_of[new] = len(self._used) + 1 + np.arange(len(new))
        self._used.extend(new.tolist())

    def _names(self, numbers: Numbers) -> None:
        pairs = list(numbers)
        numbers.clear()
        pairs = [pairs[number] for number in self._used]
        channels = Numbers()
        owner = channels.of((category for category, _ in pairs), len(pairs))
        self._set("channels", id=np.arange(1, len(channels) + 1), name=_objects(channels))
        self._set("labels", id=np.arange(1, len(pairs) + 1), channel=owner.astype(np.int64) + 1,
                  text=_objects(text for _, text in pairs))  # fmt: skip

    def _points(self, content: Read) -> None:
        lines = list(content.points)
        owners = np.array([self._threads.process(pid) for pid, _, _ in lines], np.int64)
        self._set("series", id=np.arange(1, len(lines) + 1), process=owners,
                  graph=_objects(graph for _, graph, _ in lines),
                  unit=_objects("" for _ in lines),
                  name=_objects(name for _, _, name in lines))  # fmt: skip
        points = list(content.points.values())
        counts = [len(times) for times, _ in points]
        self._set("series_points", series=np.repeat(np.arange(1, len(lines) + 1), counts),
                  time_ns=_joined([np.frombuffer(t, np.int64) for t, _ in points], np.int64),
                  value=_joined([np.frombuffer(v) for _, v in points], np.float64))  # fmt: skip
        self._set("heatmaps", **_empty("heatmaps"), process=np.zeros(0, np.int64))

    def _processes(self, moment: int) -> None:
        pids, names = self._threads.processes()
        count = max(len(pids), 1)
        last = max(self._end, moment + int(self._about.get("duration_ns", 0)))
        wall = self._about.get("wall_clock_ns", self._about.get("base", 0) + moment)
        self._set(
            "processes", id=np.arange(1, count + 1), pid=np.array(pids or [0], np.int64),
            name=_objects(names or [self.path.name]), clock_ns=np.full(count, moment),
            wall_ns=np.full(count, wall if wall > EPOCH or self._own else 0),
            last_ns=np.full(count, last), finished=np.full(count, int(self._finished)),
            unmatched_ends=np.zeros(count, np.int64),
        )  # fmt: skip
        owners, tids, titles = self._threads.rows()
        self._set("threads", id=np.arange(1, len(tids) + 1), process=np.array(owners, np.int64),
                  tid=np.array(tids, np.int64), name=_objects(titles))  # fmt: skip

    def _set(self, table: str, **columns: object) -> None:
        self._tables[table] = columns


class _Columns:
    """The events of all pieces together, by time in whole nanoseconds."""

    def __init__(self, content: Read, unwrap: bytes) -> None:
        self.phase, self.time = content.phase.taken(), content.time.taken()
        self.lane, self.label = content.lane.taken(), content.label.taken()
        self.duration = content.duration.taken()  # of complete events
        self._identity = content.identity.taken()
        self.told, texts = content.told.taken(), content.texts.taken()
        self.texts = texts.without(unwrap) if unwrap else texts
        firsts = [int(min(times)) for times, _ in content.points.values()]
        if len(self.time):
            firsts.append(int(self.time.min()))
        self.first = min(firsts, default=0)

    def at(self, phases: Sequence[int]) -> Integers:
        """Return the events of some phases, in the order of the file."""
        of_one = self.phase == phases[0]
        for phase in phases[1:]:
            of_one |= self.phase == phase
        return np.flatnonzero(of_one)

    @property
    def identity(self) -> Codes:
        """What belongs together of asynchronous events, 0 for others."""
        identities = np.zeros(len(self.phase), np.int32)
        identities[self.at(events.OF_IDENTITIES)] = self._identity
        return identities

    def ends(
        self, phases: tuple[int, int], group: Codes
    ) -> tuple[Codes, Integers, npt.NDArray[np.bool_]]:
        """Return group and time of begins and ends, and which are begins."""
        rows = self.at(phases)
        return group[rows], self.time[rows], self.phase[rows] == phases[0]


def _about(array: Array) -> dict[str, int]:
    """Return the clock of a file: of ours its wall clock, of PyTorch's the base of its times."""
    fields = array.before | array.after
    facts: dict[str, int] = {}
    for name, key in ((OTHER, ""), ("baseTimeNanoseconds", "base")):
        value = _decoded(fields.get(name))
        inside = {key: value} if key else value if isinstance(value, dict) else {}
        facts |= {k: v for k, v in inside.items() if isinstance(v, int) and 0 <= v < 1 << 61}
    return facts


def _decoded(text: Any) -> object:
    try:
        return msgspec.json.decode(text) if text is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _cut(array: Array) -> Iterable[str]:
    """Return how the text ended, where it should not have."""
    if array.damaged:
        yield "its packed text is cut off or damaged"
    if array.endless:
        yield "an event does not end: it and what stands behind it were left out"
    elif array.cut_off:
        yield f"its last event is cut off: {array.cut_off} bytes were left out"
    elif not array.closed and array.in_object:
        yield "it is cut off behind its last event"
    if array.more_after:
        yield "what stands behind its events was not read"


def _counted(problems: dict[str, int]) -> Iterable[str]:
    for problem, count in problems.items():
        if count:
            yield f"{count} {'event' if count == 1 else 'events'} {problem}"


def tables_of_nothing() -> dict[str, Columns]:
    """Return all tables of a trace, without rows."""
    return {table.name: _empty(table.name) for table in TABLES}


def _empty(table: str) -> Columns:
    declared = next(table_type for table_type in TABLES if table_type.name == table)
    kinds = {"INTEGER": np.int64, "REAL": np.float64}
    return {
        column.name: GrowingTexts().taken() if column.name in IN_RUNS
        else np.zeros(0, kinds.get(column.type.split()[0], np.object_))
        for column in declared.columns
        if column.name != "data"
    }  # fmt: skip


def _filled(first: npt.NDArray[Scalar], second: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Put arrays after each other; the first itself when there is nothing to add."""
    return np.concatenate((first, second)) if len(second) else first


def _joined(parts: Sequence[npt.NDArray[Scalar]], dtype: type[Scalar]) -> npt.NDArray[Scalar]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _objects(texts: Iterable[str]) -> npt.NDArray[np.object_]:
    items = list(texts)
    objects = np.empty(len(items), dtype=object)
    objects[:] = items
    return objects
