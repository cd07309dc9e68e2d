"""Open Chrome trace JSON, as PyTorch, viztracer and browsers write it, with the tables of a trace.

Begins and ends are matched by thread, asynchronous ones by identity; these stand on threads of
their own, as they overlap. Counters are series. Time 0 is the first event, or what the file says.
What has no place in the tables is counted in `problems`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.formats import chrome_events as events
from pva.formats.chrome_events import Numbers, Read, Texts
from pva.formats.files import opened
from pva.formats.json_pieces import Array
from pva.formats.matching import matched
from pvti.schema import TABLES

Integers = npt.NDArray[np.int64]
Columns = dict[str, Any]

KEY = "traceEvents"
OTHER = "otherData"
CHUNK = 1 << 14  # events of one thread that a window reads together
EPOCH = 10**18  # nanoseconds since 1970: a time beyond is no time since a machine was started
PROCESS = 1  # number of the first row
_WHAT = "a host trace"
_UNWRAPPED = b'{"metadata":'


class ChromeFile:
    """A trace read whole into columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path, _WHAT) as stream:
            array = Array(path, stream, KEY)
            try:
                found = events.read(array)
            except events.TooManyUnknownError:
                found_out = f"more than {events.UNKNOWN_LIMIT} events of no phase that is known"
                raise DamagedFileError(path, found_out, "Chrome trace JSON") from None
            except MemoryError as error:
                raise DamagedFileError(path, "too large for the memory") from error
        self._about = _about(array)
        self._own = "wall_clock_ns" in self._about
        self._problems = found.problems
        self._finished = array.closed and bool(self._about.get("finished", True))
        self._tables: dict[str, Columns] = {table.name: _empty(table.name) for table in TABLES}
        self._fill(found)
        self.problems = (*_cut(array), *_counted(found.problems))

    def tables(self) -> dict[str, Columns]:
        """Give all tables."""
        return self._tables

    def events(self, chunks: Columns) -> tuple[Any, Any, Any, Any]:
        """Give begin, end, label and kind of the events of these rows of `event_chunks`."""
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
        return begin, end, label, np.zeros(len(begin), np.uint8)

    def close(self) -> None:
        """Let go of the file, which was read whole."""

    def _fill(self, found: Read) -> None:
        read = _Columns(found)
        moment = 0 if self._own else read.first
        self._threads = _Threads(found.lanes, found.names)
        labels = Numbers()
        self._spans(read, labels, moment)
        self._instants(read, labels)
        self._points(found)
        self._names(found.labels, labels)
        self._processes(read, moment)

    def _spans(self, read: _Columns, labels: Numbers, moment: int) -> None:
        """Put together what has a begin and an end, by thread, each in reverse order of begin."""
        nested = matched(*read.ends((events.BEGIN, events.END), read.lane))
        crossing = matched(*read.ends((events.ASYNC_BEGIN, events.ASYNC_END), read.identity))
        some = read.at((events.BEGIN, events.END)), read.at((events.ASYNC_BEGIN, events.ASYNC_END))
        self._count_unmatched(nested, crossing)
        complete = read.at((events.COMPLETE,))
        rows = np.concatenate((complete, some[0][nested.begin], some[1][crossing.begin]))
        duration = read.duration[complete].astype(np.int64)
        ends = [some[0][nested.end], some[1][crossing.end]]
        end = np.concatenate((read.time[complete] + duration, *(read.time[one] for one in ends)))
        thread = self._threads.of(read.lane[rows])
        first = len(rows) - len(crossing.begin)
        thread[first:] = self._threads.crossing(read.lane[rows[first:]])
        unended = np.concatenate((some[0][nested.unended], some[1][crossing.unended]))
        self._open(read, labels, unended, len(nested.unended))
        begin, label = read.time[rows], self._label(read, labels, rows)
        # As a file has it: of equal begins the longest last, and of equal events the first.
        order = np.lexsort((-np.arange(len(rows)), end, -begin, thread))
        self._events = begin[order], end[order], label[order].astype(np.int32)
        self._chunks(thread[order])
        self._metadata(read, rows, (thread, begin, label))
        self._end = int(end.max(initial=moment))

    def _count_unmatched(self, *pairs: Any) -> None:
        alone = sum(len(pair.unbegun) for pair in pairs)
        if alone:
            self._problems["end what had not begun, and are left out"] += alone

    def _open(self, read: _Columns, labels: Numbers, rows: Integers, nested: int) -> None:
        """Take in what has not ended, the outermost first."""
        thread = self._threads.of(read.lane[rows])
        thread[nested:] = self._threads.crossing(read.lane[rows[nested:]])
        order = np.lexsort((read.time[rows], thread))
        rows, thread = rows[order], thread[order]
        first = np.searchsorted(thread, thread)
        self._set("open_spans", thread=thread, position=np.arange(len(rows)) - first,
                  begin_ns=read.time[rows], label=self._label(read, labels, rows))  # fmt: skip

    def _chunks(self, thread: Integers) -> None:
        """Cut the events of each thread, so that a window is a few of the parts."""
        starts = np.flatnonzero(np.diff(thread, prepend=0))
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

    def _metadata(self, read: _Columns, rows: Integers, told: tuple[Integers, ...]) -> None:
        place = np.full(len(read.time), -1)
        place[rows] = np.arange(len(rows))
        mine = np.flatnonzero(place[read.told] >= 0)
        if not len(mine):
            return
        at = place[read.told[mine]]
        thread, begin, label = (column[at] for column in told)
        texts = read.texts[mine].without(_UNWRAPPED) if self._own else read.texts[mine]
        self._set("event_metadata", thread=thread, begin_ns=begin, label=label, metadata=texts)

    def _instants(self, read: _Columns, labels: Numbers) -> None:
        rows = read.at((events.INSTANT, events.ASYNC_INSTANT))
        texts = np.full(len(read.time), None, dtype=object)
        texts[read.told] = list(read.texts.without(_UNWRAPPED) if self._own else read.texts)
        self._set("instants", thread=self._threads.of(read.lane[rows]), time_ns=read.time[rows],
                  label=self._label(read, labels, rows), metadata=texts[rows])  # fmt: skip

    def _label(self, read: _Columns, labels: Numbers, rows: Integers) -> Integers:
        """Number the labels that are used, from 1."""
        used, place = np.unique(read.label[rows], return_inverse=True)
        numbers = labels.of(used.tolist(), len(used)).astype(np.int64)
        found: Integers = numbers[place] + 1
        return found

    def _names(self, known: Numbers, labels: Numbers) -> None:
        pairs = list(known)
        used = [pairs[number] for number in labels]
        channels = Numbers()
        owner = channels.of((category for category, _ in used), len(used))
        self._set("channels", id=np.arange(1, len(channels) + 1), name=_objects(channels))
        self._set("labels", id=np.arange(1, len(used) + 1), channel=owner.astype(np.int64) + 1,
                  text=_objects(text for _, text in used))  # fmt: skip

    def _points(self, found: Read) -> None:
        lines = list(found.points)
        owners = np.array([self._threads.process(pid) for pid, _, _ in lines], np.int64)
        self._set("series", id=np.arange(1, len(lines) + 1), process=owners,
                  graph=_objects(graph for _, graph, _ in lines),
                  unit=_objects("" for _ in lines),
                  name=_objects(name for _, _, name in lines))  # fmt: skip
        points = list(found.points.values())
        counts = [len(times) for times, _ in points]
        self._set("series_points", series=np.repeat(np.arange(1, len(lines) + 1), counts),
                  time_ns=_joined([np.array(times) for times, _ in points], float).astype(np.int64),
                  value=_joined([np.array(values) for _, values in points], float))  # fmt: skip
        self._set("heatmaps", **_empty("heatmaps"), process=np.zeros(0, np.int64))

    def _processes(self, read: _Columns, moment: int) -> None:
        pids, names = self._threads.processes()
        count = max(len(pids), 1)
        last = max(self._end, moment + int(self._about.get("duration_ns", 0)),
                   int(read.time.max(initial=moment)))  # fmt: skip
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

    def _set(self, table: str, **columns: Any) -> None:
        self._tables[table] = columns


class _Columns:
    """The events of all pieces together, by time in whole nanoseconds."""

    def __init__(self, found: Read) -> None:
        self.phase = _joined([c.phase for c in found.columns], np.uint8)
        self.duration = _joined([c.duration for c in found.columns], np.float64)
        self.lane = _joined([c.lane for c in found.columns], np.int32)
        self.label = _joined([c.label for c in found.columns], np.int32)
        self.time = _joined([c.time for c in found.columns], np.float64).astype(np.int64)
        found.columns.clear()
        self.identity = np.zeros(len(self.phase), np.int32)
        self.identity[self.at(events.OF_IDENTITIES)] = _joined(found.identity, np.int32)
        self.told = _joined([rows for rows, _ in found.arguments], np.int64)
        self.texts = Texts.joined([texts for _, texts in found.arguments])
        counted = [min(times) for times, _ in found.points.values()]
        firsts = [int(time) for time in counted]
        if len(self.time):
            firsts.append(int(self.time.min()))
        self.first = min(firsts, default=0)

    def at(self, phases: Sequence[int]) -> Integers:
        """Find the events of some phases, in the order of the file."""
        return np.flatnonzero(np.isin(self.phase, phases))

    def ends(
        self, phases: tuple[int, int], group: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], Integers, npt.NDArray[np.bool_]]:
        """Give group and time of begins and ends, and which are begins."""
        rows = self.at(phases)
        return group[rows], self.time[rows], self.phase[rows] == phases[0]


class _Threads:
    """Rows of `threads` and `processes`, made for what is used; texts get numbers below 0."""

    def __init__(self, lanes: Numbers, names: dict[tuple[str, Any], str]) -> None:
        self._lanes = list(lanes)
        self._names = names
        self._rows: dict[tuple[Any, Any, bool], int] = {}
        self._pids = Numbers()
        self._substitutes = Numbers()

    def of(self, lane: npt.NDArray[np.int32], crossing: bool = False) -> Integers:
        """Give the row of `threads` of each event."""
        used, place = np.unique(lane, return_inverse=True)
        rows = np.zeros(len(used), np.int64)
        for at, number in enumerate(used.tolist()):
            key = (*self._lanes[number], crossing)
            rows[at] = self._rows.setdefault(key, len(self._rows) + 1)
        found: Integers = rows[place]
        return found

    def crossing(self, lane: npt.NDArray[np.int32]) -> Integers:
        """Give the row of the thread that asynchronous events of each thread stand on."""
        return self.of(lane, crossing=True)

    def process(self, pid: Any) -> int:
        """Give the row of a process."""
        return self._pids[pid] + PROCESS

    def rows(self) -> tuple[list[int], list[int], list[str]]:
        """Give process, identifier and name of each thread."""
        owners, tids, names = [], [], []
        for pid, tid, crossing in self._rows:
            told = self._names.get(("thread_name", (pid, tid)))
            name = told or ("" if isinstance(tid, int | float) else str(tid))
            owners.append(self.process(pid))
            tids.append(self._number(tid))
            names.append(f"{name or tid}, asynchronous" if crossing else name)
        return owners, tids, names

    def processes(self) -> tuple[list[int], list[str]]:
        """Give identifier and name of each process."""
        for pid, _, _ in self._rows:
            self.process(pid)
        numbers = [self._number(pid) for pid in self._pids]
        told = [self._names.get(("process_name", pid)) for pid in self._pids]
        names = [
            name or ("" if isinstance(pid, int | float) else str(pid))
            for name, pid in zip(told, self._pids, strict=True)
        ]
        return numbers, names

    def _number(self, name: Any) -> int:
        if isinstance(name, int) and abs(name) < 1 << 62:
            return int(name)
        return -1 - self._substitutes[name]


def _about(array: Array) -> dict[str, int]:
    """Give what a file tells of its clock: our own its wall clock, PyTorch's what times add to."""
    told = array.before | array.after
    found: dict[str, int] = {}
    for name, key in ((OTHER, ""), ("baseTimeNanoseconds", "base")):
        value = _decoded(told.get(name))
        inside = {key: value} if key else value if isinstance(value, dict) else {}
        found |= {k: v for k, v in inside.items() if isinstance(v, int) and 0 <= v < 1 << 61}
    return found


def _decoded(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if text is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _cut(array: Array) -> Iterable[str]:
    """Tell how the text ended, where it should not have."""
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
            yield f"{count} {'event' if count == 1 else 'events'}: {problem}"


def _empty(table: str) -> Columns:
    declared = next(known for known in TABLES if known.name == table)
    kinds = {"INTEGER": np.int64, "REAL": np.float64}
    return {
        column.name: np.zeros(0, kinds.get(column.type.split()[0], np.object_))
        for column in declared.columns
        if column.name != "data"
    }


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _objects(texts: Iterable[str]) -> npt.NDArray[np.object_]:
    given = list(texts)
    found = np.empty(len(given), dtype=object)
    found[:] = given
    return found
