"""The host timeline: one lane a thread, with a row of flags and one for each depth of its events.

Its events are numbered through the rows. Columns of threads are read one after another and let go,
so that the timeline alone holds the events in memory. How it grows: timeline/host_growth.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.analysis.host.alignment import RUN
from pva.analysis.spans import without_overlap
from pva.analysis.timeline.growth import joined
from pva.analysis.timeline.level_of_detail import Tracks
from pva.analysis.timeline.pyramid import build
from pva.array_types import Values
from pva.plain_file import as_text
from pva.plot.lanes import Lane, Timeline
from pva.plot.theme import SERIES
from pva.trace import ThreadColumns, Trace

Row = tuple[Values, Values, Values]

NANOSECONDS = 1e9  # a second
NUMBERED = re.compile(r"thread \d+ \((.+)\)")  # the name of a thread around its number
LATE = 2_000_000_000  # nanoseconds before the last commit; what ended until then is in the file


@dataclass(frozen=True, slots=True)
class Known:
    """A thread that was laid out: whether it has a row of flags, and how many depths."""

    tid: int
    flags: bool
    depths: int


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """The timeline; what a program attached to events, by event; and the events still open.

    `self_time` is that of all events of each label, without what is directly inside them. Where the
    file may grow, `until` is the moment up to which all is settled, with that part of the self time
    which is; otherwise it is 0.
    """

    timeline: Timeline
    metadata: Mapping[int, str]
    still_open: frozenset[int]
    self_time: Values
    events: int
    until: int
    settled: Values
    threads: tuple[Known, ...]


@dataclass(slots=True)
class Making:
    """What the rows add to while they are given out; an event is noted by row and place in it.

    Rows begin with what had not ended at `since`.
    """

    self_time: npt.NDArray[np.float64]
    since: int = -1
    lanes: list[Lane] = field(default_factory=list)
    metadata: list[tuple[Values, Values, Iterable[str]]] = field(default_factory=list)
    still_open: list[tuple[Values, Values]] = field(default_factory=list)
    threads: list[Known] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    rows: int = 0
    is_derived: bool = False


def host_timeline(trace: Trace, *, from_start: bool = False) -> HostTimeline:
    """Lay out the events of all threads; with `from_start` they lie by no one clock."""
    grows = not trace.is_finished and len(trace.paths) == 1
    until = max(trace.duration_ns - LATE, 0) if grows else 0
    making = Making(np.zeros(len(trace.labels) + 1))
    late_time = np.zeros(len(making.self_time))
    rows = rows_of(trace, _timed(trace, until, late_time), making, ())
    if until:
        late: list[Row] = []
        early = build(_cut(rows, making, until, late), kinds_of(trace))
        tracks = joined(early, np.arange(early.rows), build(late, kinds_of(trace)))
    else:
        tracks = build(rows, kinds_of(trace))
    settled = making.self_time - late_time
    metadata, still_open = numbered(making, tracks.offset)
    return made(trace, making, tracks, (metadata, still_open), (until, settled), from_start)


def made(
    trace: Trace,
    making: Making,
    tracks: Tracks,
    noted: tuple[dict[int, str], set[int]],
    settled: tuple[int, Values],
    from_start: bool = False,
) -> HostTimeline:
    """Put the timeline together."""
    colours = [
        (f"series-{number % len(SERIES)}", name) for number, name in enumerate(trace.channels)
    ]
    timeline = Timeline(
        "ns", NANOSECONDS, tuple(making.lanes), tracks, trace.labels,
        [*colours, ("quiet", "Other")], wall_ns=0 if from_start else trace.anchor.wall_ns,
    )  # fmt: skip
    events = sum(thread.count for thread in trace.threads)
    spent = making.self_time.astype(np.int64)
    metadata, still_open = noted
    return HostTimeline(
        timeline, metadata, frozenset(still_open), spent, events, *settled, tuple(making.threads)
    )


def kinds_of(trace: Trace) -> Any:
    """Return what gives the colour of each label: that of its channel."""
    return lambda: [*trace.label_channels.tolist(), 0]


def numbered(making: Making, starts: Values) -> tuple[dict[int, str], set[int]]:
    """Number the events noted: those of each row from its start on."""
    metadata: dict[int, str] = {}
    for rows, places, texts in making.metadata:
        numbers = (starts[rows] + places).tolist()
        metadata.update((n, str(text)) for n, text in zip(numbers, texts, strict=True) if text)
    still_open: set[int] = set()
    for rows, places in making.still_open:
        still_open.update((starts[rows] + places).tolist())
    return metadata, still_open


def _timed(trace: Trace, until: int, late_time: npt.NDArray[np.float64]) -> Iterator[object]:
    """Read the columns of threads, and add up the self time of what had not ended at a moment."""
    for columns in trace.read_threads():
        if until:
            late_time += _self_time_since(columns, until, len(late_time))
        yield columns


def _self_time_since(columns: ThreadColumns, until: int, labels: int) -> npt.NDArray[np.float64]:
    """Add up, by label, the self time among the events that had not ended at a moment."""
    begin, end, label = columns.begin_ns, columns.end_ns, columns.label
    late = (end > until) | (begin >= until)
    events = np.flatnonzero(late)
    around = columns.parent[events]
    inside = (around >= 0) & late[np.maximum(around, 0)]
    events_in, around = events[inside], around[inside]
    time: Any = np.bincount(label[events], end[events] - begin[events], labels)
    covered = np.minimum(end[events_in], end[around]) - begin[events_in]
    self_time: npt.NDArray[np.float64] = time - np.bincount(label[around], covered, labels)
    return self_time


def _cut(rows: Iterable[Row], making: Making, until: int, late: list[Row]) -> Iterator[Row]:
    """Return of each row what had ended at a moment, and put the others aside.

    What is derived from other rows may change all along.
    """
    for begin, end, label in rows:
        ended = min(np.searchsorted(end, until, "right"), np.searchsorted(begin, until, "left"))
        cut = 0 if making.is_derived else int(ended)
        late.append((begin[cut:], end[cut:], label[cut:]))
        yield begin[:cut], end[:cut], label[:cut]


def rows_of(
    trace: Trace, lanes_of_threads: Iterable[Any], making: Making, thread_records: Sequence[Known]
) -> Iterator[Row]:
    """Return the rows of all threads, and note lanes, metadata and what is open.

    `lanes_of_threads` are the columns of threads; `thread_records` tell their rows from before.
    """
    flagged = _flags(trace)
    runs = np.flatnonzero([text == RUN for text in trace.labels])
    places = list(threads_in_order(trace))
    names_of_threads = {number: (path, name) for number, path, name in places}
    for number, (thread, columns) in enumerate(zip(trace.threads, lanes_of_threads, strict=True)):
        before = (
            thread_records[number] if number < len(thread_records) else Known(thread.tid, False, 0)
        )
        run = np.isin(columns.label, runs) if len(runs) else np.zeros(0, np.int64)
        if run.any():
            making.runs.append((columns.begin_ns[run], columns.end_ns[run], columns.label[run]))
        first, flags = making.rows, flagged[number]
        has_flags = before.flags or len(flags) > 0
        if has_flags:
            yield _flag_row(trace, flags, making)
        yield from _depths(columns, making, before.depths)
        depths = making.rows - first - has_flags
        kinds = ("flag",) * has_flags + ("event",) * depths
        outermost = first + (1 if has_flags and depths else 0)
        names = flag_names(len(flags), len(kinds))
        lane = Lane(
            names_of_threads[number][1],
            names_of_threads[number][0],
            first,
            making.rows,
            names,
            kinds,
            outermost,
        )
        making.lanes.append(lane)
        making.threads.append(Known(thread.tid, has_flags, depths))
    making.lanes[:] = [making.lanes[number] for number, _, _ in places]
    if making.runs:
        making.is_derived = True
        yield _activity(making.runs)
        above = (as_text(trace.path.name),) if len(trace.paths) == 1 else ()
        row = making.rows
        lane = Lane("IPU activity", (*above, "Derived"), row, row + 1, ("from runs",),
                    ("derived",), row)  # fmt: skip
        making.lanes.insert(0, lane)


def _flags(trace: Trace) -> list[Values]:
    """Return the instants of each thread."""
    thread = trace.instants.thread
    by_thread = np.argsort(thread, kind="stable")
    edges = np.searchsorted(thread[by_thread], np.arange(1, len(trace.threads)))
    return np.split(by_thread, edges)


def _flag_row(trace: Trace, flags: Values, making: Making) -> Row:
    instants = trace.instants
    flags = flags[instants.time_ns[flags] >= making.since]
    times = instants.time_ns[flags]
    rows = np.full(len(flags), making.rows)
    making.metadata.append((rows, np.arange(len(flags)), instants.metadata[flags].tolist()))
    making.rows += 1
    return times, times, instants.label[flags]


def flag_names(flags: int, rows: int) -> tuple[str, ...]:
    """Name the rows of a lane: the first one counts its flags, if it has any."""
    return (f"⚑ ×{flags:,}", *[""] * (rows - 1)) if flags else ()


def _activity(run_rows: list[Row]) -> Row:
    """Return when any thread was in a run of the program on the device."""
    begin, end, label = (np.concatenate(columns) for columns in zip(*run_rows, strict=True))
    order = np.argsort(begin, kind="stable")
    return *without_overlap(begin[order], end[order]), label[order]


def _depths(columns: ThreadColumns, making: Making, least: int) -> Iterator[Row]:
    """Return a row of each depth of a thread; a depth never holds two events at once."""
    making.self_time += np.bincount(
        columns.label, weights=columns.self_ns, minlength=len(making.self_time)
    )
    depth = columns.depth
    short = depth.astype(np.int16) if depth.max(initial=0) < 1 << 15 else depth
    order = np.argsort(short, kind="stable")
    depths = max(int(depth.max(initial=-1)) + 1, least)
    edges = np.searchsorted(depth[order], np.arange(depths + 1))
    if len(columns.metadata) or len(columns.open_rows):
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        place -= edges[depth]
        attached, is_open = columns.metadata.rows, columns.open_rows
        first = making.rows
        noted = first + depth[attached], place[attached], columns.metadata.texts
        making.metadata.append(noted)
        making.still_open.append((first + depth[is_open], place[is_open]))
    making.rows += depths
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        events = order[low:high]
        yield columns.begin_ns[events], columns.end_ns[events], columns.label[events]


def threads_in_order(trace: Trace) -> Iterator[tuple[int, tuple[str, str], str]]:
    """Return number, headings and name of the threads, those of a process after each other.

    Headings are file and process; a name is that of the thread, and what tells it from others.
    """
    places = {id(thread): number for number, thread in enumerate(trace.threads)}
    files = _told_apart(trace.files)
    for process, file in zip(trace.processes, files, strict=True):
        path = (file, f"{process.name or 'Process'} {process.pid}")
        names = [_short(thread.name) for thread in process.threads]
        alike = Counter(names)
        for thread, short in zip(process.threads, names, strict=True):
            name = short or f"Thread {thread.tid}"
            if short and (alike[short] > 1 or short != thread.name):
                name = f"{short} {thread.tid}"
            yield places[id(thread)], path, name


def _short(name: str) -> str:
    """Return a name without the number of its thread, as PyTorch writes it: `thread 7 (main)`."""
    match = NUMBERED.fullmatch(name)
    return match[1] if match else name


def _told_apart(files: Sequence[Path]) -> list[str]:
    """Name files, those of one name with their directory."""
    alike = Counter(file.name for file in set(files))
    named = (f"{one.parent.name}/{one.name}" if alike[one.name] > 1 else one.name for one in files)
    return list(map(as_text, named))
