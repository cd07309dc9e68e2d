"""Where the time of served requests goes, and which batching would have been better.

Asked of a trace that `tilescope serve-model live` recorded (PVTI_OPTIONS or --trace-file), or of a
trace of Triton. Times in nanoseconds of the host since the trace began; cycles are the device's, 0
where the trace has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.table import Arrays, Columns, columns_of, groups_of, rows_of
from pva.errors import InconsistentDataError, NotRecordedError
from pva.lazy import pandas as pd
from pva.queueing.replay import Arrivals, Device
from pva.queueing.rules import Rules
from pva.queueing.what_if import columns as columns_of_variants
from pva.queueing.what_if import nanoseconds, read_choices, replayed, variants

if TYPE_CHECKING:
    from pva.analysis.host.alignment import Alignment
    from pva.report import Report
    from pva.trace import Trace

ORDER = 410  # of its analyses in the catalogue
CHANNEL, REQUEST, MODEL = "Serving", "request", "model"
PARTS = ("queue_ns", "upload_ns", "execute_ns", "download_ns")
NUMBERS = ("rows", "batch", "instance", "padding", "cycles", *PARTS)
TEXTS = ("id", "model", "version", "error")
MAX_WINDOWS = 400
# What the requests of a batch have in common; each waited in queue by itself.
_OF_BATCH = ("padding", "queue_ns", "upload_ns", "execute_ns", "download_ns", "cycles", "instance")
PERCENTILES = {"p50_ns": 50, "p90_ns": 90, "p95_ns": 95, "p99_ns": 99, "max_ns": 100}


@analysis(
    "id model version how begin_ns:ns rows batch queue_ns:ns upload_ns:ns execute_ns:ns "
    "download_ns:ns other_ns:ns latency_ns:ns padding:rows cycles:cycles instance"
)
def requests(trace: Trace, *, model: str = "") -> Columns:
    """Return each served request in order of time: its batch, and where its time went.

    `queue_ns` is the wait for a batch, `upload_ns` to `download_ns` are those of the whole batch:
    inputs joined, program run, outputs cut. `other_ns` is what the server took beside. `how` is
    "answered" or why the request failed.
    """
    spans = _spans(trace, model)
    if not spans:
        remedy = "a trace of tilescope serve-model live, or of Triton"
        raise NotRecordedError(trace.path, f"no request{f' of {model!r}' if model else ''}", remedy)
    spans.sort(key=lambda span: span["begin_ns"])
    numbers = {name: _whole(trace, spans, name) for name in NUMBERS}
    columns: dict[str, Any] = {name: [_text(span.get(name)) for span in spans] for name in TEXTS}
    columns |= {**columns_of(spans, ("begin_ns", "latency_ns")), **numbers}
    columns["how"] = [error or "answered" for error in columns["error"]]
    measured = np.sum([columns[part] for part in PARTS], axis=0)
    columns["other_ns"] = np.maximum(columns["latency_ns"] - measured, 0)
    names = ("id", "model", "version", "how", "begin_ns", "rows", "batch", *PARTS, "other_ns",
             "latency_ns", "padding", "cycles", "instance")  # fmt: skip
    return {name: columns[name] for name in names}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _whole(trace: Trace, spans: list[dict[str, Any]], name: str) -> npt.NDArray[np.int64]:
    """Return a column of whole numbers, 0 where a request has none; raises for what is none."""
    values = [span.get(name) for span in spans]
    try:
        numbers = np.array([0 if value is None else value for value in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(())
    if numbers.ndim != 1:
        place = f"metadata of requests, {name}"
        raise InconsistentDataError(trace.path, "no number", "a number", place=place)
    return np.nan_to_num(np.clip(numbers, 0, 1 << 60)).astype(np.int64)


def _spans(trace: Trace, model: str) -> list[dict[str, Any]]:
    """Return the metadata of the spans of requests, with begin and length."""
    labels = _labels(trace, REQUEST)
    rows: list[dict[str, Any]] = []
    for columns in trace.read_threads() if labels else ():
        metadata = columns.metadata
        mine = np.isin(columns.label[metadata.rows], labels)
        places = metadata.rows[mine]
        begin = columns.begin_ns[places]
        length = columns.end_ns[places] - begin
        texts = [metadata.texts[place] for place in np.flatnonzero(mine).tolist()]
        objects = _objects(trace, texts)
        for one, start, took in zip(objects, begin.tolist(), length.tolist(), strict=True):
            if not model or one.get("model") == model:
                rows.append({**one, "begin_ns": start, "latency_ns": took})
    return rows


def _objects(trace: Trace, texts: list[str]) -> list[dict[str, object]]:
    try:
        objects = json.loads(f"[{','.join(texts)}]")
    except (ValueError, RecursionError):
        objects = None
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise InconsistentDataError(trace.path, "metadata of requests that is no object of JSON",
                                    "what the server writes")  # fmt: skip
    return objects


@analysis(
    "model version batch begin_ns:ns requests rows padding:rows queue_mean_ns:ns "
    "queue_longest_ns:ns upload_ns:ns execute_ns:ns download_ns:ns cycles:cycles instance "
    "fill:fraction",
    requests="requests that ran together",
    rows="rows of these requests",
    queue_mean_ns="what its requests waited on average",
    queue_longest_ns="what its first request waited",
    cycles="cycles of the device; 0 where the trace has none",
)
def batches(trace: Trace, *, model: str = "") -> Columns:
    """Return each batch in order of time: rows, fill, padding, how long its requests had waited.

    `padding` are rows of zeros that fill its last compiled batch up, `fill` is the share of others.
    A trace of Triton tells neither them nor cycles: there both are 0, and `fill` is no number.
    `instance` is which copy of the model ran it; a report has the device of the first, 0.
    """
    answered = _answered(trace, model)
    keys, group = groups_of({name: answered[name] for name in ("model", "version", "batch")})
    count = np.bincount(group, minlength=len(keys["batch"]))
    begin = np.full(len(count), np.iinfo(np.int64).max)
    np.minimum.at(begin, group, answered["begin_ns"] + answered["queue_ns"])
    rows = summed(group, np.maximum(answered["rows"], 1), len(count))
    most = {name: np.zeros(len(count), dtype=np.int64) for name in _OF_BATCH}
    for name, largest in most.items():
        np.maximum.at(largest, group, answered[name])
    fill = rows / np.maximum(rows + most["padding"], 1)
    columns = {
        **keys,
        "begin_ns": begin,
        "requests": count,
        "rows": rows,
        "padding": most["padding"],
        "queue_mean_ns": summed(group, answered["queue_ns"], len(count)) / count,
        "queue_longest_ns": most["queue_ns"],
        **{name: most[name] for name in ("upload_ns", "execute_ns", "download_ns", "cycles")},
        "instance": most["instance"],
        "fill": np.where(most["cycles"] > 0, fill, np.nan),
    }
    return rows_of(columns, np.lexsort((keys["batch"], begin)))


def batch_duration(rows: pd.DataFrame) -> pd.Series[int]:
    """Return how long each batch of `batches` took once it was sent, in nanoseconds."""
    return rows[list(PARTS[1:])].sum(axis=1)


def slowest_batches(rows: pd.DataFrame) -> pd.DataFrame:
    """Order batches by the time of their first request in queue and batch, the longest first."""
    took = rows["queue_longest_ns"] + batch_duration(rows)
    return rows.iloc[np.argsort(-took.to_numpy(), kind="stable")].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """How many batches there are, their mean rows, and the share of rows that are no padding.

    `fill` is None where no batch was padded, or the trace does not tell it.
    """

    batches: int
    mean_rows: float
    fill: float | None


def batch_totals(rows: pd.DataFrame) -> BatchTotals:
    """Sum batches up."""
    count, padding = int(rows["rows"].sum()), int(rows["padding"].sum())
    fill = count / (count + padding) if padding else None
    return BatchTotals(len(rows), count / max(len(rows), 1), fill)


def batch_cycles(report: Report, runs: Alignment, batch: pd.Series) -> tuple[int, int] | None:
    """Return the first and last cycle of a batch on the device, None if its steps are not there."""
    begin = int(batch["begin_ns"])
    end = begin + int(batch[list(PARTS[1:])].sum())
    places = batch_runs(runs, begin, end, int(batch["cycles"]))
    if places is None:
        return None
    first, last = (int(runs.run[place]) for place in places)
    column = report.dataset.column
    if min(first, last) < 0:
        return None
    if column("runs", "end_step")[last] <= column("runs", "first_step")[first]:
        return None
    end_cycles = int(runs.cycles_from[places[1]] + runs.cycles[places[1]])
    return int(runs.cycles_from[places[0]]), end_cycles


def batch_runs(runs: Alignment, begin_ns: int, end_ns: int, cycles: int) -> tuple[int, int] | None:
    """Return the first and last run of a report that a batch was, None where it is in none.

    Of the runs that lie in its time, which may be others' that it waited for, it is the last ones:
    those whose cycles are the batch's.
    """
    inside = np.flatnonzero((runs.begin >= begin_ns) & (runs.end <= end_ns))
    sums = np.cumsum(runs.cycles[inside][::-1])
    (exact,) = np.nonzero((sums == cycles) & (cycles > 0))
    if not len(exact):
        return None
    return int(inside[-1 - exact[0]]), int(inside[-1])


@analysis(
    "part mean_ns:ns share:fraction p50_ns:ns p90_ns:ns p95_ns:ns p99_ns:ns max_ns:ns",
    part="part of the time from a request's arrival to its answer",
    share="part of all latency",
    max_ns="duration of the slowest request",
)
def latency_percentiles(trace: Trace, *, model: str = "") -> Columns:
    """Return the percentiles of each part of the latency of answered requests.

    `share` is the part's share of all latency. A percentile lies between the two nearest values.
    """
    answered = _answered(trace, model)
    total = max(int(answered["latency_ns"].sum()), 1)
    names = (*PARTS, "other_ns", "latency_ns")
    rows = []
    for name in names:
        values = answered[name].astype(np.float64)
        points = np.percentile(values, list(PERCENTILES.values())) if len(values) else [np.nan] * 5
        mean = values.mean() if len(values) else np.nan
        rows.append((mean, values.sum() / total, *points))
    figures = dict(zip(("mean_ns", "share", *PERCENTILES), np.array(rows).T, strict=True))
    return {"part": [name.removesuffix("_ns") for name in names], **figures}


def _answered(trace: Trace, model: str) -> Arrays:
    """Return the requests that were answered."""
    columns = requests(trace, model=model).arrays
    return rows_of(columns, columns["how"] == "answered")


@analysis(
    "load:1/s windows requests queue_ns:ns upload_ns:ns execute_ns:ns download_ns:ns "
    "other_ns:ns latency_ns:ns"
)
def latency_by_load(trace: Trace, *, model: str = "", groups: int = 8) -> Columns:
    """Return how the parts of latency grow with the load: means, the least load first.

    The trace is cut into windows of equal length, at most 400 and of about 5 requests at least; a
    row joins windows of similar load. `load` is requests a second that arrived in them.
    """
    answered = _answered(trace, model)
    begin = answered["begin_ns"]
    span = max(int(begin.max() - begin.min()), 1) if len(begin) else 1
    count = int(np.clip(len(begin) // 5, 1, MAX_WINDOWS))
    window = np.minimum(
        (begin - begin.min(initial=begin.max(initial=0))) * count // span, count - 1
    )
    sizes = np.bincount(window, minlength=count)
    group_of = _alike(sizes, max(min(groups, count), 1))
    present, group = np.unique(group_of[window], return_inverse=True)
    arrived = np.bincount(group, minlength=len(present))
    windows = np.bincount(group_of[sizes > 0])[present]
    columns = {
        "load": arrived / (windows * (span / count / 1e9)),
        "windows": windows,
        "requests": arrived,
    }
    for name in (*PARTS, "other_ns", "latency_ns"):
        columns[name] = np.bincount(group, weights=answered[name]) / arrived
    return rows_of(columns, np.argsort(columns["load"], kind="stable"))


def _alike(sizes: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.int64]:
    """Group windows by how many requests they have, about as many windows in each group."""
    order = np.argsort(sizes, kind="stable")
    groups_of_order = np.arange(len(sizes)) * groups // len(sizes)
    # Windows of equal load belong together: each takes the group of the first of them.
    first = np.searchsorted(sizes[order], sizes[order])
    group = np.empty(len(sizes), np.int64)
    group[order] = groups_of_order[first]
    return group


@analysis(
    "delay_ns:ns preferred instances dynamic configured requests answered rejected refused rows "
    "batches rows_per_batch pieces fill:fraction padding_rows:rows device_ns:ns "
    "device_share:fraction span_ns:ns requests_per_second:1/s rows_per_second:1/s "
    "queue_mean_ns:ns queue_longest latency_mean_ns:ns latency_p50_ns:ns latency_p90_ns:ns "
    "latency_p95_ns:ns latency_p99_ns:ns latency_p99_9_ns:ns latency_max_ns:ns",
    device_share="part of the time in which devices run batches; near 1 they do not keep up",
)
def batch_what_if(
    trace: Trace,
    *,
    model: str = "",
    delay: str = "0,500us,5ms",
    preferred: str = "",
    instances: str = "1,2",
    max_batch: int = 0,
    compiled_batch: int = 0,
    batch_time: str = "",
) -> Columns:
    """Return what other delays, preferred sizes and numbers of instances do to a trace's arrivals.

    The first row is the model as the trace tells it is configured; what it does not tell (that of
    Triton) is `max_batch`, else the largest batch there was, `compiled_batch`, else the same, and
    `batch_time`, else cycles by the clock, else the median time of a batch of the host. Times of
    the server itself are not part of it.
    """
    served = requests(trace, model=model).arrays
    names = sorted(set(served["model"]))
    if len(names) > 1:
        problem = f"requests of {len(names)} models"
        raise NotRecordedError(trace.path, problem, f"choose one with model: {', '.join(names)}")
    configuration = _configuration(trace, names[0])
    past = batches(trace, model=model).arrays
    rules, device = _as_configured(past, configuration, max_batch, compiled_batch, batch_time)
    at = served["begin_ns"]
    rows = np.clip(served["rows"], 1, rules.most_rows)
    levers = {"delay": delay, "preferred": preferred, "instances": instances}
    choices = read_choices([f"{name}={values}" for name, values in levers.items() if values])
    candidates = list(variants(rules, device, choices))
    results, _ = replayed(Arrivals(at - at[0], rows), candidates)
    return columns_of_variants(candidates, results)


def _configuration(trace: Trace, model: str) -> Mapping[str, object]:
    """Return what the server wrote of a model when it was loaded last; nothing if it did not."""
    instants, fields = trace.instants, {}
    for row in np.flatnonzero(np.isin(instants.label, _labels(trace, MODEL))).tolist():
        text = instants.metadata[row]
        for one in _objects(trace, [text]) if text else ():
            if one.get("model") == model:
                fields = one
    return fields


def _labels(trace: Trace, text: str) -> list[int]:
    """Return the numbers of a label of the server's channel."""
    owners = [trace.channels[channel] for channel in trace.label_channels.tolist()]
    pairs = enumerate(zip(trace.labels, owners, strict=True))
    return [number for number, pair in pairs if pair == (text, CHANNEL)]


def _as_configured(
    past: Arrays,
    configuration: Mapping[str, Any],
    max_batch: int,
    compiled: int,
    batch_time: str,
) -> tuple[Rules, Device]:
    largest = int(past["rows"].max(initial=1))
    most = max_batch or _number(configuration, "max_batch_size", largest)
    rows = compiled or _number(configuration, "compiled_rows", most)
    preferred = [
        size for size in configuration.get("preferred", ()) if type(size) is int and size <= most
    ]
    dynamic = bool(configuration.get("dynamic", largest > 1 or not configuration))
    rules = Rules(
        max(most, largest), dynamic, tuple(preferred), _number(configuration, "delay_ns", 0)
    )
    pieces = -(-past["rows"] // rows)
    clock = (
        float(configuration["clock"])
        if isinstance(configuration.get("clock"), int | float)
        else 0.0
    )
    if batch_time:
        time = float(nanoseconds(batch_time))
    elif clock > 0 and (past["cycles"] > 0).any():
        time = float(np.median(past["cycles"] / pieces) * 1e9 / clock)
    else:
        time = float(np.median(past["execute_ns"] / pieces)) if len(pieces) else 1.0
    device = Device(
        max(round(time), 1), rows, _number(configuration, "instances", 1),
        _number(configuration, "timeout_ns", 0), bool(configuration.get("synchronous", True)),
    )  # fmt: skip
    return rules, device


def _number(configuration: Mapping[str, object], name: str, otherwise: int) -> int:
    value = configuration.get(name)
    return value if type(value) is int and 0 <= value < 1 << 60 else otherwise
