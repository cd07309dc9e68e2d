"""Device and host on one axis: where each run of the program lies in the host trace.

Two axes. *As on the device*: each `Engine.run` takes as long as its cycles take by the clock, and
what the host did later moves up; inside a run the host's time is shortened evenly. *As simulated*:
the wall clock, on which the steps of a run are stretched over the time that it was simulated for.
What the simulator does for itself between runs, such as writing the profile, takes no time on the
axis of the device. Times are nanoseconds since the trace began.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pva.analysis.columns import table
from pva.analysis.table import Columns, largest_first
from pva.array_types import Integers, Values
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.analysis.timeline.level_of_detail import Tracks
    from pva.report import Dataset, Report
    from pva.trace import Trace

Axis = Literal["device", "simulated"]
RunKey = tuple[str, int]  # kind and number of a run
AXES: tuple[Axis, ...] = ("device", "simulated")
RUN = "Engine::run"  # the label of a run of a program on the device
CALLBACK = "StreamCallback"  # what the labels of stream callbacks begin with
RUNS = ("run", "other_run")  # what its metadata count: rows of `runs` or of `other_runs`
_OF_BOTH = ("name", "cycles_from", "cycles", "trace_begin", "trace_end")
# What the simulator does for itself in and between runs: hidden on the axis of the device.
PHASES = ("run/values", "run/clocks", "write graph profile", "write execution profile")


@dataclass(frozen=True, slots=True)
class Alignment:
    """The runs in order, those outside the profile too, and how the two axes follow from them.

    run           row of `runs`, -1 for one of `other_runs`
    name          what it is called
    begin, end    of `Engine.run` on the host
    cycles_from   clock of the device at its begin
    cycles        that it took
    device        how long these are by the clock
    clock         cycles a second
    own           [span][begin, end] on the host: the simulator's own work between runs
    """

    run: Integers
    name: list[str]
    begin: Integers
    end: Integers
    cycles_from: Integers
    cycles: Integers
    device: Integers
    clock: float
    own: Integers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    @property
    def first(self) -> int:
        """Return the place of the model's first run, 0 where all are outside the profile."""
        return int((self.run >= 0).argmax())

    def host(self, times: Integers, axis: Axis) -> Integers:
        """Return where moments of the host trace lie on an axis."""
        if axis == "simulated" or not len(self.run):
            return times
        spans = np.concatenate((np.column_stack((self.begin, self.end)), self.own))
        order = np.argsort(spans[:, 0], kind="stable")
        edges = spans[order].ravel()
        lengths = np.append(np.diff(edges), 0)
        lengths[0::2] = np.append(self.device, np.zeros(len(self.own), dtype=np.int64))[order]
        places = edges[0] + np.append(0, np.cumsum(lengths)[:-1])
        moved = np.interp(times, edges, places)
        moved = np.where(times < edges[0], times, moved)
        moved = np.where(times > edges[-1], times - edges[-1] + places[-1], moved)
        positions: Integers = np.rint(moved).astype(np.int64)
        return positions

    def on_device(self, cycles: Integers, axis: Axis) -> Integers:
        """Return where moments of the device's clock lie on an axis."""
        if not len(self.run):
            return np.zeros(len(cycles), dtype=np.int64)
        place = self._run_at(cycles)
        # The last cycle of a run is the first of the next: it belongs to the one that it ends.
        share = (cycles - self.cycles_from[place]) / np.maximum(self.cycles[place], 1)
        begin, end = self.host(self.begin, axis)[place], self.host(self.end, axis)[place]
        positions: Integers = np.rint(begin + np.clip(share, 0, 1) * (end - begin)).astype(np.int64)
        return positions

    def _run_at(self, cycles: Integers) -> Integers:
        """Return the run in which moments of the device's clock lie, the first before it."""
        place: Integers = np.searchsorted(self.cycles_from, cycles, side="right") - 1
        return np.maximum(place, 0)

    def spans(self, begin: Integers, end: Integers, axis: Axis) -> tuple[Integers, Integers]:
        """Return where spans of the device's clock, each within a run, lie on an axis."""
        first = self.on_device(begin, axis)
        inside = np.maximum(end - 1, begin)  # so that the end is looked for in the same run
        last = self.on_device(inside, axis)
        place = self._run_at(begin)
        scale = (self.host(self.end, axis) - self.host(self.begin, axis)) / np.maximum(
            self.cycles, 1
        )
        return first, np.where(end > begin, np.rint(last + scale[place]).astype(np.int64), first)


def align(report: Report, trace: Trace) -> Alignment:
    """Match the runs of a report to a host trace; raises NotRecordedError when none is in it.

    An event `Engine::run` tells in its metadata which run of which report it is. Runs of which none
    does are placed by the clock that the report tells, and, when it tells none, in order, if there
    are as many.
    """
    whole_report, whole_rows = report.whole  # events tell the rows of runs in the whole report
    data = whole_report.dataset
    runs = _all_runs(data)
    number = np.full(data.length("runs") + 1, -1)
    number[whole_rows] = np.arange(len(whole_rows))
    named_runs, unnamed = run_events(trace, _name(report))
    begin, end = _by_clock(runs, trace)
    in_trace = (begin >= 0) & (end >= begin) & (end <= trace.duration_ns)
    if not in_trace.any() and not named_runs and len(unnamed) == len(begin):
        begin, end = unnamed.T.copy()
        in_trace = np.ones(len(begin), dtype=np.bool_)
    rows = {key: row for row, key in enumerate(zip(runs["kind"], runs["row"], strict=True))}
    for run in named_runs.keys() & rows.keys():
        row = rows[run]
        (begin[row], end[row]), in_trace[row] = named_runs[run], True
    in_order = np.flatnonzero(in_trace & (runs["cycles"] >= 0))
    if not len(in_order):
        raise NotRecordedError(
            report.path.name, f"no run in the trace {trace.path.name}",
            "trace the run that makes the report: set PVTI_OPTIONS and run again",
        )  # fmt: skip
    in_order = in_order[np.argsort(begin[in_order], kind="stable")]
    clock = float(data.value("target", "clock_frequency")) or np.inf
    cycles = runs["cycles"][in_order]
    begins = begin[in_order]
    begins[1:] = np.maximum(begins[1:], np.maximum.accumulate(end[in_order])[:-1])
    ends = np.maximum(end[in_order], begins)
    return Alignment(
        run=np.where(runs["kind"] == RUNS[0], number[np.minimum(runs["row"], len(number) - 1)], -1)[
            in_order
        ],
        name=runs["name"][in_order].tolist(),
        begin=begins,
        end=ends,
        cycles_from=runs["cycles_from"][in_order],
        cycles=cycles,
        device=np.rint(cycles / clock * 1e9).astype(np.int64),
        clock=clock,
        own=_own_work(trace, begins, ends),
    )


def _own_work(trace: Trace, begins: Integers, ends: Integers) -> Integers:
    """Return the simulator's own work outside runs, as spans that do not overlap."""
    labels = np.flatnonzero(np.isin(np.array(trace.labels, dtype=object), PHASES))
    parts = [np.zeros((0, 2), dtype=np.int64)]
    for thread in trace.threads if len(labels) else ():
        columns = thread.read()
        rows = np.flatnonzero(np.isin(columns.label, labels))
        parts.append(np.column_stack((columns.begin_ns[rows], columns.end_ns[rows])))
    spans = np.concatenate(parts)
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    after = np.searchsorted(begins, spans[:, 0], side="right")  # the run that comes next
    spans[:, 0] = np.maximum(spans[:, 0], np.append(0, ends)[after])
    spans[:, 1] = np.minimum(spans[:, 1], np.append(begins, np.iinfo(np.int64).max)[after])
    spans[1:, 0] = np.maximum(spans[1:, 0], np.maximum.accumulate(spans[:, 1])[:-1])
    return spans[spans[:, 1] > spans[:, 0]]


def _all_runs(data: Dataset) -> dict[str, Values]:
    """Return the runs of the model and the other ones in one table, in the order of the clock."""
    tables = [data.table("runs")]
    if data.has("other_runs"):
        tables.append(data.table("other_runs"))
    sizes = [len(table["name"]) for table in tables]
    joined = {name: np.concatenate([table[name] for table in tables]) for name in _OF_BOTH}
    joined["kind"] = np.repeat(RUNS[: len(tables)], sizes)
    joined["row"] = np.concatenate([np.arange(size) for size in sizes])
    order = np.argsort(joined["cycles_from"], kind="stable")
    return {name: values[order] for name, values in joined.items()}


def _by_clock(runs: Mapping[str, Any], trace: Trace) -> tuple[Integers, Integers]:
    """Return begin and end of runs as the report tells them, -1 where it does not."""
    recorded = runs["trace_begin"] >= 0
    begin, end = (
        np.where(recorded, runs[name] - trace.anchor.clock_ns, -1)
        for name in ("trace_begin", "trace_end")
    )
    return begin, end


def _name(report: Report) -> str:
    """Return the name of the directory of a report."""
    path = report.path.absolute()
    return path.name if path.is_dir() else path.parent.name


def run_events(trace: Trace, name: str) -> tuple[dict[RunKey, tuple[int, int]], Integers]:
    """Return begin and end of the events of runs that name this report.

    When no event names it, but all name one other, that report was renamed, and is meant. Also
    gives begin and end of the events that tell nothing, one a row, in order.
    """
    labels = np.flatnonzero([text == RUN for text in trace.labels])
    by_report: dict[str, dict[RunKey, tuple[int, int]]] = {}
    unnamed = [np.zeros((0, 2), np.int64)]
    for thread in trace.threads if len(labels) else ():
        columns = thread.read()
        rows = np.flatnonzero(np.isin(columns.label, labels))
        spans = np.column_stack((columns.begin_ns[rows], columns.end_ns[rows]))
        matched = np.isin(rows, columns.metadata.rows)
        unnamed.append(spans[~matched])
        for row, span in zip(rows[matched].tolist(), spans[matched].tolist(), strict=True):
            named = _run_of_event(columns.metadata.of(row))
            if named and row not in columns.open_rows:
                by_report.setdefault(named[0], {})[named[1]] = (span[0], span[1])
    only = next(iter(by_report)) if len(by_report) == 1 else name
    without = np.concatenate(unnamed)
    return by_report.get(only, {}), without[np.argsort(without[:, 0])]


def _run_of_event(metadata: str | None) -> tuple[str, RunKey] | None:
    """Read report, kind and number of a run."""
    try:
        fields = json.loads(metadata or "")
        kind = next(kind for kind in RUNS if kind in fields)
        key = kind, int(fields[kind])
        return (str(fields["report"]), key) if key[1] >= 0 else None
    except (ValueError, KeyError, TypeError, StopIteration):
        return None


@dataclass(frozen=True, slots=True)
class Waits:
    """Who waited for whom, on the axis of the device; nanoseconds.

    `total` goes from the model's first run to the last event of the host; of it the device ran for
    `device`, and the host was busy `between` runs and `after` the last. What came `before` the
    first run, such as building and compiling, is no part of it. `callbacks` stream callbacks
    took `callback_time` by themselves on the host, inside runs, and the stream copies of the
    recorded runs `stream_copies` on the device.
    """

    total: int
    device: int
    before: int
    between: int
    after: int
    callbacks: int
    callback_time: int
    stream_copies: int


def waits(report: Report, alignment: Alignment, tracks: Tracks, labels: Sequence[object]) -> Waits:
    """Return who waited for whom; `tracks` are the rows of the host trace, `labels` its texts."""
    data = report.dataset
    first, last = alignment.host(np.array(tracks.extent), "device").tolist()
    begin, end = (
        alignment.host(times[alignment.first :], "device")
        for times in (alignment.begin, alignment.end)
    )
    is_callback = np.array([str(text).startswith(CALLBACK) for text in labels], dtype=np.bool_)
    events = np.flatnonzero(is_callback[tracks.label])
    place = np.searchsorted(alignment.begin, tracks.begin[events], side="right") - 1
    events = events[(place >= 0) & (tracks.begin[events] < alignment.end[np.maximum(place, 0)])]
    copies = np.array([str(t).startswith("StreamCopy") for t in data.texts("steps", "type")], bool)
    cycles = int(data.column("steps", "cycles")[copies].clip(0).sum())
    return Waits(
        total=last - int(begin[0]),
        device=int(alignment.device[alignment.first :].sum()),
        before=int(begin[0]) - first,
        between=int((begin[1:] - end[:-1]).sum()),
        after=last - int(end[-1]),
        callbacks=len(events),
        callback_time=int((tracks.ends(events) - tracks.begin[events]).sum()),
        stream_copies=round(cycles / alignment.clock * 1e9),
    )


@table(
    "run name begin:ns length:ns wall_begin:ns wall_end:ns",
    run="number of the run after the gap",
    name="name of this run",
    begin="begin of the gap on the axis of the device",
    length="length of the gap on the axis of the device",
    wall_begin="begin of the gap on the host's own axis",
    wall_end="end of the gap on the host's own axis",
)
def gaps(alignment: Alignment) -> Columns:
    """List the gaps between runs, the longest first: the run after it, begin and length.

    The runs are those from the model's first on.

    Also `wall_begin` and `wall_end` on the host's own axis; nanoseconds, the others on the axis of
    the device.
    """
    first = alignment.first
    begin, end = (
        alignment.host(times[first:], "device") for times in (alignment.begin, alignment.end)
    )
    columns = {
        "run": alignment.run[first + 1 :],
        "name": alignment.name[first + 1 :],
        "begin": end[:-1],
        "length": begin[1:] - end[:-1],
        "wall_begin": alignment.end[first:-1],
        "wall_end": alignment.begin[first + 1 :],
    }
    return largest_first(columns, "length")
