"""Which host functions the device waits for: between runs, and in the callbacks of its streams.

From the trace that lies beside the report, on the axis of the device: what the simulator does for
itself takes no time there (pva/analysis/host/alignment.py). Times are nanoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.host.alignment import CALLBACK, PHASES, RUN, Alignment, align
from pva.analysis.table import Columns, groups_of, largest_first, rows_of
from pva.array_types import Values
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report
    from pva.trace import ThreadColumns, Trace

ORDER = 405  # of its analyses in the catalogue
# What one label waited on one thread: where, label, events, wait, longest, place of that run.
Row = tuple[str, int, int, int, int, int]
BETWEEN, IN_CALLBACK = "between runs", "stream callback"


@analysis(
    "function channel where events wait_ns:ns longest_ns:ns run name step cycles:cycles "
    "share:fraction",
    name="name of the run",
    where="stream callback, or between runs",
)
def host_delays(report: Report) -> Columns:
    """Return which functions of the host the device waits for, the longest waits first.

    Of the host trace beside the report, from the model's first run to its last one. `where` is
    between runs, where `wait_ns` is what the function took by itself on threads that call
    Engine.run, or a stream callback, for which a run waits as long as it takes, unless it was
    called ahead. `longest_ns` is the longest of its `events`, before or in the `run` named `name`;
    `step` is the first that copies the stream (-1 for none). `cycles` are the device's meanwhile,
    `share` is of the time of its runs and all these waits. Raises NotRecordedError, PvaError.
    """
    trace, alignment = _traced(report)
    parts = [
        row
        for columns in trace.read_threads()
        for row in (*_between(trace, alignment, columns), *_callbacks(trace, alignment, columns))
    ]
    where = np.array([part[0] for part in parts], dtype=object)
    label, events, waited, longest, at = (
        np.array([part[1:] for part in parts], dtype=np.int64).reshape(-1, 5).T
    )
    keys, group = groups_of({"where": where, "label": label})
    count = len(keys["where"])
    first = np.lexsort((-longest, group))[np.searchsorted(np.sort(group), np.arange(count))]
    labels, at = keys["label"], at[first]
    wait_ns = summed(group, waited, count)
    texts, channels = (np.array(of, dtype=object) for of in (trace.labels, trace.channels))
    total = int(alignment.device[alignment.first :].sum()) + int(wait_ns.sum())
    names = texts[labels] if len(labels) else texts[:0]
    columns = {
        "function": names,
        "channel": channels[trace.label_channels[labels]] if len(labels) else names,
        "where": keys["where"],
        "events": summed(group, events, count),
        "wait_ns": wait_ns,
        "longest_ns": longest[first],
        "run": alignment.run[at],
        "name": [alignment.name[place] for place in at.tolist()],
        "step": _steps_of_streams(report, names),
        "cycles": np.rint(wait_ns * alignment.clock / 1e9).astype(np.int64),
        "share": wait_ns / max(total, 1),
    }
    by_name = rows_of(columns, np.argsort(names, kind="stable"))
    return largest_first(by_name, "wait_ns")


def _traced(report: Report) -> tuple[Trace, Alignment]:
    """Open the latest trace beside a report that has its runs; raises NotRecordedError."""
    from pva.trace import openTrace

    path = report.path.absolute()
    directory = path if path.is_dir() else path.parent
    traces = []
    for file in sorted(directory.glob("*.pvti")):
        trace = openTrace(file)
        try:
            traces.append((trace.anchor.wall_ns, file.name, trace, align(report, trace)))
        except NotRecordedError:
            continue
    if not traces:
        problem = "host trace of its runs not recorded"
        raise NotRecordedError(report.path, problem, "run the program with PVTI_OPTIONS set")
    _, _, trace, alignment = max(traces, key=lambda one: one[:2])
    if not np.isfinite(alignment.clock):
        raise NotRecordedError(report.path, "no clock frequency", "a target that tells its clock")
    return trace, alignment


def _between(trace: Trace, alignment: Alignment, columns: ThreadColumns) -> list[Row]:
    """Sum up by label what a thread that calls Engine.run did by itself between runs."""
    texts = np.array(trace.labels, dtype=object)
    runs, label = _are(texts, (RUN,))[columns.label], columns.label.astype(np.int64)
    if not runs.any() or len(alignment.run) - alignment.first < 2:
        return []
    inside = _waited(alignment, columns.end_ns) - _waited(alignment, columns.begin_ns)
    self_ns = inside.copy()
    nested = columns.parent >= 0
    np.subtract.at(self_ns, columns.parent[nested], inside[nested])
    self_ns = np.where(runs | _are(texts, PHASES)[label], 0, self_ns)
    rows = np.flatnonzero(self_ns > 0)
    at = np.searchsorted(alignment.begin, columns.begin_ns[rows], side="right")
    at = np.clip(at, alignment.first + 1, len(alignment.run) - 1)  # the run that comes next
    return _by_label(BETWEEN, label[rows], self_ns[rows], at)


def _callbacks(trace: Trace, alignment: Alignment, columns: ThreadColumns) -> list[Row]:
    """Sum up by label what the stream callbacks of a thread took inside runs."""
    is_callback = np.array([text.startswith(CALLBACK) for text in trace.labels], dtype=np.bool_)
    rows = np.flatnonzero(is_callback[columns.label])
    at = np.searchsorted(alignment.begin, columns.begin_ns[rows], side="right") - 1
    in_runs = (at >= alignment.first) & (columns.begin_ns[rows] < alignment.end[np.maximum(at, 0)])
    rows, at = rows[in_runs], at[in_runs]
    return _by_label(IN_CALLBACK, columns.label[rows], columns.duration_ns[rows], at)


def _waited(alignment: Alignment, times: Values) -> Values:
    """Return how long the device has waited for the host by some times, since its first run."""
    runs = np.column_stack((alignment.begin, alignment.end))[alignment.first :]
    spans = np.concatenate((runs, alignment.own))
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    spans = spans[(spans[:, 0] >= runs[0, 0]) & (spans[:, 1] <= runs[-1, 1])]
    lengths = np.append(0, np.diff(spans.ravel()))
    lengths[1::2] = 0  # in a run, or in the simulator's own work
    waited: Values = np.rint(np.interp(times, spans.ravel(), np.cumsum(lengths)))
    return waited.astype(np.int64)


def _by_label(where: str, label: Values, spent: Values, at: Values) -> list[Row]:
    """Sum up events by label: count, time, the longest, and the place of the run of that one."""
    order = np.lexsort((-spent, label))
    labels, first, count = np.unique(label[order], return_index=True, return_counts=True)
    longest = order[first]
    total = np.bincount(np.searchsorted(labels, label), spent, minlength=len(labels))
    columns = labels, count, total.astype(np.int64), spent[longest], at[longest]
    return [(where, *row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _are(texts: npt.NDArray[np.object_], names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return np.isin(texts, np.array(names, dtype=object))


def _steps_of_streams(report: Report, functions: npt.NDArray[np.object_]) -> Values:
    """Return the first step that copies the stream of each callback, -1 for what is none."""
    data = report.dataset
    types, names = data.texts("programs", "type"), data.column("programs", "name")
    copies = np.flatnonzero(types == "StreamCopy")
    programs = data.column("steps", "program")
    steps = []
    for function in functions.tolist():
        stream = function.removeprefix(CALLBACK).strip() if function.startswith(CALLBACK) else ""
        mine = copies[[bool(stream) and stream in names[copy].split("/") for copy in copies]]
        (steps_of_stream,) = np.nonzero(np.isin(programs, mine))
        steps.append(int(steps_of_stream[0]) if len(mine) and len(steps_of_stream) else -1)
    return np.array(steps, dtype=np.int64)
