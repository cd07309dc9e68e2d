"""Where does a request's time go, and which batching should I choose?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, view
from dashboard.address import Address, Range
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame, section
from dashboard.figures import serving as figures
from dashboard.pages.headlines import counted
from dashboard.store import Store
from dashboard.timeline.endpoint import alignment
from pva import units
from pva.analysis.serving import (
    CHANNEL,
    REQUEST,
    batch_cycles,
    batch_duration,
    batch_totals,
    batch_what_if,
    batches,
    latency_by_load,
    latency_percentiles,
    requests,
    slowest_batches,
)
from pva.analysis.table import Table
from pva.errors import NotRecordedError, PvaError
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH, TITLE = "/serving", "Serving"
QUESTION = "Where does a request's time go, and which batching should I choose?"
NS = 1e9
BATCH = "batch"  # the key of the address: the batch that is chosen
DELAYS, SIZES, INSTANCES = "0,500us,5ms", "none", "1,2"
LEVERS = ("delay", "preferred", "instances")
AROUND = 0.5  # of the time of a batch that is shown before it and behind it
PART_COLUMNS = declared_columns(
    latency_percentiles,
    "part/name Part", "mean_ns@110 Mean", "share@90 Share", "p50_ns@110 Median",
    "p90_ns@110 90 %", "p95_ns@110 95 %", "p99_ns@110 99 %", "max_ns@110 Longest",
)  # fmt: skip
BATCH_COLUMNS = (
    Column("name", "Batch", "name", note="Model, version and number of the batch", least=150),
    *declared_columns(
        batches,
        "requests@100 Requests", "rows@90 Rows", "fill@90 Full", "queue_mean_ns@110 Waited",
        "queue_longest_ns@120 Longest wait", "execute_ns@110 Execute", "cycles/number@120 Device",
    ),
)  # fmt: skip
CHOICE_COLUMNS = (
    Column("name", "Batching", "name", note="The delay, preferred sizes, and instances",
           least=250),
    Column("size", "Rows a batch", "figure", 120, "On average"),
    *declared_columns(
        batch_what_if,
        "fill@90 Full", "device_share@120 Device busy", "queue_mean_ns@110 Queue",
        "latency_p50_ns@110 Median", "latency_p99_ns@110 99 %", "device_ns@120 Device time",
    ),
)  # fmt: skip


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=160,
    letter="v",
    icon="M2.5 4h3.500v8H2.500zM8 8h5.500m-2.200-2.500L13.500 8l-2.200 2.500M8 4h1m-1 8h1",
    subject="served",
    controls={
        "model": ("Model", "Shows the requests of one model"),
        "delay": ("Delays", "Replays these delays of the batcher, as 0,500us,5ms"),
        "preferred": ("Preferred sizes", "Replays these preferred sizes, as none,8,8+32"),
        "instances": ("Instances", "Replays these numbers of instances, as 1,2"),
    },
    tables=(
        ("Columns: parts of latency", PART_COLUMNS),
        ("Columns: batchings", CHOICE_COLUMNS),
        ("Columns: batches", BATCH_COLUMNS),
    ),
    chapter="""\
**Where does a request's time go, and which batching should I choose?** The page is there for a
host trace with served requests: what `tilescope serve-model live` records (with `PVTI_OPTIONS`,
or `--trace-file`), what `serve-model replay --spans` writes, and traces of Triton.

## Latency by part

A bar is the mean latency at a load: the trace is cut into windows of equal length, and windows of
similar load stand together, from the least to the most requests a second.

| part | meaning |
| --- | --- |
| queue | the wait for a batch to be sent |
| upload | inputs of the batch joined |
| execute | the program, on the host's clock |
| download | outputs cut by request |
| other | what the server took beside: reading and writing of messages |

These are times of the host, in which the simulator runs. Cycles of the device stand in the table
of batches; the two are never added.

## Which batching

The arrivals of the trace are replayed by discrete events, with the rules of Triton's dynamic
batcher and the time of a compiled batch: its cycles by the device's clock, or, where a trace has
none, the median time on the host. The first row is the model as it was configured. Type other
delays, preferred sizes (`none`, `8`, `8+32` for two of them) and numbers of instances. Times of
the server itself are not part of it, so that these are the latencies of a device with a server
that costs nothing.

## Batches

How many batches had how many rows, and each batch: how full it was, and how long its requests had
waited. Click a batch for its time on the host trace. Where the server wrote a report beside the
trace (`tilescope serve-model live models/ --report run/`, then `tilescope serve run/`), it leads
to the batch's steps on the device, too: those of the first 100 runs.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the host trace has served requests."""
    trace = store.trace(report)
    return trace is not None and REQUEST in trace.labels and CHANNEL in trace.channels


def _asked(store: Store, state: Address, analysis: Callable[..., Table], **options: str) -> Frame:
    """Return the answer of an analysis on the trace, made once for each choice; raises PvaError."""
    trace = store.trace(state.report)
    if trace is None:
        name = store.path(state.report).name
        raise NotRecordedError(name, "no host trace", "a trace of tilescope serve-model live")
    model = _model(store, state) if analysis is not requests else ""
    name = f"served: {analysis.__name__} {model} {sorted(options.items())}"
    return store.derived(
        state.report, name, lambda: analysis(trace, model=model, **options).frame()
    )


def _models(store: Store, state: Address) -> list[str]:
    frame = _asked(store, state, requests)
    return list(frame["model"].value_counts().index)


def _model(store: Store, state: Address) -> str:
    """Return the model that is chosen, else the one with the most requests."""
    return state.option("model", _models(store, state))


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    models = [(name, name) for name in _models(store, state)]
    selects = [controls.select("model", models, state, label="Model")] if len(models) > 1 else []
    return html.Div(
        [
            components.title(QUESTION),
            controls.row(selects),
            view.panel("serving-answer", PATH, ("model", *LEVERS)),
            section(
                "Latency by part",
                view.plot("serving-load", PATH, ("model",), height=300),
                view.panel("serving-parts", PATH, ("model",)),
                note="times of the host; windows of similar load together",
                tools=controls.exports("serving-requests", "serving-load"),
            ),
            section(
                "Which batching",
                view.panel("serving-choices", PATH, ("model", *LEVERS)),
                note="arrivals of this trace, replayed with the time of a batch; times of the "
                "server itself are not part of it",
                tools=controls.row(
                    [controls.box("delay", "Delays, as 0,500us", state, width=190),
                     controls.box("preferred", "Preferred, as none,8+32", state, width=230),
                     controls.box("instances", "Instances, as 1,2", state, width=170),
                     controls.exports("serving-choices")]
                ),
            ),
            section(
                "Batches",
                view.plot("serving-sizes", PATH, ("model",), height=240),
                view.panel("serving-batches", PATH, ("model",)),
                view.panel("serving-chosen", PATH, ("model", BATCH)),
                note="click a batch to open its time",
                tools=controls.exports("serving-batches", "serving-sizes"),
            ),
        ]
    )  # fmt: skip


def _typed(state: Address) -> dict[str, str]:
    """Return the levers as typed, else the usual ones."""
    usual = dict(zip(LEVERS, (DELAYS, SIZES, INSTANCES), strict=True))
    return {name: state.text(name).replace(" ", "") or usual[name] for name in LEVERS}


def choices(store: Store, state: Address) -> Frame:
    """Return the batchings that are replayed, the configured one first, each with its name."""
    frame = _asked(store, state, batch_what_if, **_typed(state))
    names = []
    for row in frame.to_dict("records"):
        delay = units.duration(row["delay_ns"] / NS) if row["delay_ns"] else "no"
        preferred = f", preferred {row['preferred']}" if row["preferred"] else ""
        name = f"{delay} delay{preferred}, {counted(row['instances'], 'instance')}"
        names.append(f"as configured: {name}" if row["configured"] else name)
    return frame.assign(name=names, size=[f"{rows:.3g}" for rows in frame["rows_per_batch"]])


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Name the part that takes most of a request, how full batches are, and a better batching."""
    parts = _asked(store, state, latency_percentiles).set_index("part")
    shares = parts["share"].drop("latency")
    largest = str(shares.idxmax())
    mean, p99 = (float(parts[name]["latency"]) / NS for name in ("mean_ns", "p99_ns"))
    words = (
        f"A request takes {units.duration(mean)} on average, "
        f"{units.share(float(shares.max()))} of it {largest}; "
        f"99 of 100 take at most {units.duration(p99)}."
    )
    return components.headline(words, more=f"{_fullness(store, state)} {_better(store, state)}")


def _fullness(store: Store, state: Address) -> str:
    totals = batch_totals(_asked(store, state, batches))
    size = f"{totals.batches:,} batches of {totals.mean_rows:.3g} rows"
    full = "" if totals.fill is None else f", {units.share(totals.fill)} full"
    return f"{size} on average{full}."


def _better(store: Store, state: Address) -> str:
    frame = choices(store, state)
    first, best = frame.iloc[0], frame.iloc[int(frame["latency_p99_ns"].argmin())]
    if best["latency_p99_ns"] >= first["latency_p99_ns"]:
        return "Of these batchings the configured one has the lowest 99th percentile."
    lower, before = (units.duration(one["latency_p99_ns"] / NS) for one in (best, first))
    return (
        f"On the device alone, {best['name']} lowers the 99th percentile from {before} to {lower}."
    )


def load(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the parts of latency against load."""
    return figures.latency_by_load(_asked(store, state, latency_by_load), theme)


def sizes(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw how full batches are."""
    return figures.batch_sizes(_asked(store, state, batches), theme)


def parts_table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the parts of latency with their percentiles."""
    frame = _asked(store, state, latency_percentiles)
    return components.table("serving-parts-rows", frame, PART_COLUMNS)


def choices_table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the batchings side by side."""
    return components.table("serving-choices-rows", choices(store, state), CHOICE_COLUMNS)


def slowest(store: Store, state: Address) -> Frame:
    """Return the batches, the one whose requests waited and ran longest first."""
    frame = slowest_batches(_asked(store, state, batches))
    names = frame["model"] + " " + frame["version"] + ", batch " + frame["batch"].astype(str)
    return frame.assign(name=names)


def batches_table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the batches."""
    frame = slowest(store, state)
    return components.table("serving-batches-rows", frame, BATCH_COLUMNS, picks=(BATCH, BATCH))


def chosen(store: Store, state: Address, _theme: Theme) -> Element:
    """Lead from the chosen batch to its time on the host and on the device."""
    numbers = state.numbers(BATCH)
    if not numbers:
        return None
    frame = _asked(store, state, batches)
    mine = frame[frame["batch"] == numbers[-1]]
    if not len(mine):
        return components.message(f"There is no batch {numbers[-1]}.")
    row = mine.iloc[0]
    took, begin = int(batch_duration(mine).iloc[0]), int(row["begin_ns"])
    around = Range(max(0, begin - int(AROUND * took)), begin + took + max(int(AROUND * took), 1))
    pages = [("Host trace", Address("/trace", state.report, range=around))]
    steps, problem = _on_device(store, state, row)
    if store.has_report(state.report):
        pages.append(("Host and device", Address("/together", state.report, range=around)))
    if steps is not None:
        pages.append(("Its steps on the device", Address("/execution", state.report, range=steps)))
    links = [dcc.Link(words, href=address.write(to), className="button") for words, to in pages]
    note = components.message(problem) if problem else None
    return html.Div(
        [html.P([html.Strong(f"Batch {numbers[-1]}: "), *links], className="tools-row"), note]
    )


def _on_device(store: Store, state: Address, batch: Any) -> tuple[Range | None, str]:
    """Return the cycles of a batch on the device, or why there are none."""
    if not store.has_report(state.report):
        return None, "What the device did: start the server with serve-model live --report run/."
    if batch["instance"]:
        return None, f"Instance {batch['instance']} ran it; the report is of instance 0."
    try:
        runs = alignment(store, state.report)
    except PvaError:
        return None, "The report beside this trace is of another program."
    cycles = batch_cycles(store.report(state.report), runs, batch)
    if cycles is not None:
        return Range(*cycles), ""
    return (
        None,
        "No steps of it: the report has its first runs in full, and this view those counted.",
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.draw(app, store, "serving-load", load)
    view.draw(app, store, "serving-sizes", sizes)
    for identifier, make in (
        ("serving-answer", answer), ("serving-parts", parts_table),
        ("serving-choices", choices_table), ("serving-batches", batches_table),
        ("serving-chosen", chosen),
    ):  # fmt: skip
        view.fill(app, store, identifier, make)
    for name, analysis in (("serving-requests", requests), ("serving-batches", batches)):
        downloads.offer(app, name, partial(_asked, analysis=analysis))
    downloads.offer(app, "serving-choices", choices)
