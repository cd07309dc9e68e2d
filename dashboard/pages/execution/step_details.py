"""One executed step: what it took, on which tiles, how often, and where else it can be seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Element, Facts, Frame, facts, recorded_fact
from dashboard.figures.steps import tile_histogram
from dashboard.pages.memory import page as memory
from dashboard.store import Report, Store
from pva import units
from pva.analysis.execution import ranges
from pva.analysis.execution import totals as execution
from pva.analysis.execution.stream_tensors import stream_ends, stream_variables
from pva.analysis.execution.tile_activity import SYNCS
from pva.analysis.machine import clock_frequency
from pva.analysis.selection import chosen as existing
from pva.analysis.waiting.segments import are_internal
from pva.analysis.waiting.sync_arrivals import arrivals
from pva.errors import NotRecordedError
from pva.plot.theme import Theme

SLOWEST = 5
MAX_OUTLIERS = 8
VERTEX_COLUMNS = declared_columns(
    execution.vertices_of_step,
    "vertex_type/name Vertex type",
    "instances@110 Vertices",
    "cycles@140 Active cycles",
)
ARRIVAL_COLUMNS = declared_columns(
    arrivals,
    "ipu@48 IPU",
    "tile@80 Last tile",
    "waits@74 It waits",
    "mean_wait@80 Mean tile",
)
END_COLUMNS = declared_columns(
    stream_ends,
    "ipu@56 IPU",
    "way/text@104 Way",
    "tiles@64 Tiles",
    "bytes@84 Bytes",
)


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show what the chosen step took when it was executed; raises SelectionError."""
    if state.step is None:
        return html.Div()
    report, step = store.report(state.report), state.step
    data = report.dataset
    existing("step", step, data.length("steps"))
    row = {name: values[step] for name, values in data.table("steps").items()}
    kind = str(data.texts("steps", "type")[step])
    parts: list[Element] = [
        html.H3("This execution"),
        facts(_figures(report, row)),
        *_last(report, state, kind),
        *_ends(report, state, kind),
        *_tiles(report, state, kind, theme),
        *_executions(report, state, step),
    ]
    vertices = execution.vertices_of_step(report, step=step).frame()
    if len(vertices):
        parts += [
            html.H3("Vertices"),
            components.table("execution-vertices", vertices, VERTEX_COLUMNS),
        ]
    return html.Div(parts)


def _figures(report: Report, row: dict[str, Any]) -> Facts:
    clock = clock_frequency(report)
    has_clock = row["cycles_from"] >= 0
    clocks = f"{row['cycles_from']:,} before, {row['cycles_to']:,} after"
    return [
        *recorded_fact(
            "Cycles of its longest tile", row["cycles"], lambda n: units.cycles(n, clock)
        ),
        *([("Latest clock of any tile", clocks)] if has_clock else []),
        ("Run", f"{row['run']:,}"),
        *recorded_fact(
            "Hidden behind earlier steps", row["cycles_overlapped"], units.cycles_or_time
        ),
        *recorded_fact("Active tiles", row["active_tiles"], units.count),
        *recorded_fact("Tile balance", row["tile_balance"], units.share),
        *recorded_fact("Balance of active tiles", row["active_tile_balance"], units.share),
        *recorded_fact("Thread balance", row["thread_balance"], units.share),
        *recorded_fact("Data", row["total_data"], units.size),
        *recorded_fact("Data balance", row["data_balance"], units.share),
    ]


def _last(report: Report, state: Address, kind: str) -> list[Element]:
    """Return which tile arrives at a sync last, and how long the IPUs wait for it."""
    if kind not in SYNCS:
        return []
    try:
        frame = arrivals(report, step=state.steps[0]).frame()
    except NotRecordedError:
        return []
    if not len(frame):
        return []
    apart = len(frame) > 1 and bool(are_internal(report, np.array(state.steps[:1]))[0])
    last = frame.iloc[int(frame["mean_wait"].to_numpy().argmax()) if apart else 0]
    to = Address(path=memory.PATH, report=state.report, tiles=(int(last["tile"]),))
    tile = dcc.Link(f"tile {last['tile']:,} (IPU {last['ipu']})", href=address.write(to))
    after = [" after ", html.Strong(components.prose(last["name"]))] if last["name"] else []
    begin = "Each IPU waits for its own last tile, longest for " if apart else "Last is "
    text = [begin, tile, *after, "."]
    return [
        html.H3("Who arrives last"),
        html.P(text, className="note"),
        components.table("execution-arrivals", frame, ARRIVAL_COLUMNS),
    ]


def _ends(report: Report, state: Address, kind: str) -> list[Element]:
    """Return where a stream copy takes its data to, or from."""
    if not kind.startswith("StreamCopy"):
        return []
    try:
        frame = stream_ends(report, step=state.steps[0]).frame()
        variables = stream_variables(report, step=state.steps[0]).frame()
    except NotRecordedError:
        return []
    if not len(frame):
        return []
    to = Address(path=state.path, report=state.report, steps=state.steps)
    named: list[Element] = []
    for number, name in zip(variables["variable"], variables["name"], strict=True):
        link = address.write(replace(to, options=(("variable", str(number)),)))
        named += [", " if named else "Variables: ", dcc.Link(components.prose(name), href=link)]
    return [
        html.H3("Where its data goes"),
        components.table("execution-ends", frame, END_COLUMNS),
        *([html.P([*named, "."], className="note")] if named else []),
    ]


def _slowest(frame: Frame, count: int) -> list[tuple[int, int, int]]:
    """Return tile, IPU and cycles of the tiles that take longest."""
    rows = ranges.busy_tiles(frame, count)
    columns = (rows[name].tolist() for name in ("tile", "ipu", "cycles"))
    return list(zip(*columns, strict=True))


def _tiles(report: Report, state: Address, kind: str, theme: Theme) -> list[Element]:
    """Draw the cycles of the tiles as a histogram, and name the slowest."""
    frame = ranges.tile_cycles_of_step(report, step=state.steps[0]).frame()
    slowest = _slowest(frame, SLOWEST)
    if not slowest:
        return []
    multi_ipu = report.dataset.of_replica("num_ipus") > 1
    base = Address(path=memory.PATH, report=state.report)
    named: list[Element] = []
    for tile, ipu, cycles in slowest:
        words = f"tile {tile:,}" + (f" (IPU {ipu})" if multi_ipu else "")
        link = dcc.Link(words, href=address.write(replace(base, tiles=(tile,))))
        named += [", " if named else "", link, f": {units.cycles_or_time(cycles)}"]
    figure = tile_histogram(frame["cycles"].to_numpy(), kind, theme)
    return [
        html.H3("Time of its tiles" if units.manner().clock else "Cycles of its tiles"),
        components.drawn(figure, "execution-step-tiles", 170),
        html.P(["Slowest: ", *named, "."], className="note"),
    ]


def _executions(report: Report, state: Address, step: int) -> list[Element]:
    """Return how the executions of the step's program compare."""
    executions = ranges.step_executions(report, step=step)
    if executions.count < 2:
        return []
    write = units.cycles_or_time
    pairs = [
        ("Executions", f"{executions.count:,}"),
        ("Mean", write(executions.mean)),
        ("Half take at most", write(executions.p50)),
        ("95 % take at most", write(executions.p95)),
        ("Least and most", f"{write(executions.least)} and {write(executions.most)}"),
    ]
    shown = executions.outliers[:MAX_OUTLIERS]
    links: list[Element] = []
    for sibling in shown:
        to = replace(state, steps=(sibling,))
        links += [", " if links else "", dcc.Link(f"{sibling:,}", href=address.write(to))]
    remainder = len(executions.outliers) - len(shown)
    tail = f" and {remainder:,} more." if remainder else "."
    text = ["Outliers: step ", *links, tail] if links else "No outliers."
    return [html.H3("Its executions"), facts(pairs), html.P(text, className="note")]
