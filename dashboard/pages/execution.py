"""Where do the cycles go?"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import address, components
from dashboard.address import Address, Range
from dashboard.components import Column, Element, facts, section
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.provenance import badge
from dashboard.pages.words import counted, execution_sentence
from dashboard.store import Report, Store
from dashboard.theme import step_words
from dashboard.timeline.endpoint import FLAT, timeline
from dashboard.timeline.lanes import Timeline
from pva import units
from pva.analysis import execution as analysis
from pva.analysis.selection import chosen as existing

PATH, TITLE = "/execution", "Execution"

PROGRAM_COLUMNS = (
    Column("name", "Program", "name"),
    Column("type", "Type", "text", 140),
    Column("executions", "Executed", "number", 100),
    Column("cycles", "Cycles", "cycles", 110),
    Column("share", "Share", "share", 90),
    Column("mean_tile_balance", "Tile balance", "share", 120),
)
VERTEX_COLUMNS = (
    Column("vertex_type", "Vertex type", "name"),
    Column("instances", "Vertices", "number", 110),
    Column("cycles", "Active cycles", "cycles", 140),
)
LAYERS = (("layers", "Layers"), (FLAT, "Steps only"))


def available(store: Store, report: str) -> bool:
    """Tell whether executed steps were recorded."""
    return store.report(report).dataset.has("steps")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    overview = analysis.execution_overview(report)
    question, answer = components.title("Where do the cycles go?"), execution_sentence(overview)
    if not overview.steps:
        data = report.dataset
        absent = "" if data.has("steps") else f"No steps: {data.why_absent('steps')}."
        return html.Div([question, components.headline(answer, more=absent)])
    view = dmc.SegmentedControl(
        id="execution-show",
        data=[{"value": value, "label": label} for value, label in LAYERS],
        value=chosen.show or LAYERS[0][0],
        size="xs",
    )
    note = f"{overview.recorded_runs:,} of {overview.runs:,} runs recorded in full"
    return html.Div(
        [
            question,
            components.headline(answer),
            section(
                "Device timeline",
                canvas("device", "Device timeline"),
                note=note,
                badge=badge(report, "steps"),
                tools=view,
            ),
            html.Div(
                [html.Div(id="execution-range"), html.Div(id="execution-step")],
                className="columns",
            ),
            section(
                "Programs by cycles",
                html.Div(id="execution-programs"),
                tools=components.filter_box("execution-filter", "Filter programs"),
            ),
        ]
    )


def range_details(store: Store, chosen: Address) -> Element:
    """Say what the tiles did in the visible part of the timeline."""
    whole = timeline(store, "device", chosen.report)
    window = chosen.range or Range(*whole.extent)
    cycles = window.end - window.begin
    parts = [
        _proportions(lane.name, whole.spent(lane.overview, window.begin, window.end), whole, cycles)
        for lane in whole.lanes
    ]
    text = f"{units.count(cycles)} cycles ({units.duration(cycles / whole.clock)})"
    return section("In view", *parts, note=f"{text}, by the step that was being run")


def _proportions(lane: str, by_colour: Any, whole: Timeline, cycles: int) -> Element:
    """Draw the shares of one lane as a bar with its key."""
    rest = cycles - int(by_colour.sum())
    shares = [
        (token, words, int(amount))
        for (token, words), amount in zip(whole.colours, by_colour.tolist(), strict=True)
        if amount
    ]
    shares = sorted(shares, key=lambda part: -part[2]) + (
        [("idle", "Idle", rest)] if rest > 0 else []
    )
    bar = [
        html.Span(
            className="bar-part",
            style={"width": f"{100 * amount / cycles:.4f}%", "background": f"var(--{token})"},
        )
        for token, _, amount in shares
    ]
    key = [
        html.Li([html.Span(className="swatch", style={"background": f"var(--{token})"}), words,
                 html.Span(units.share(amount / cycles), className="key-value")])
        for token, words, amount in shares
    ]  # fmt: skip
    return html.Div([html.H3(lane), html.Div(bar, className="bar"), html.Ul(key, className="key")])


def step_details(report: Report, step: int | None) -> Element:
    """Show an executed step; raises SelectionError."""
    if step is None:
        hint = "Click one in the timeline, or press n for the next."
        return section("Selected step", components.message("No step is selected.", hint=hint))
    frame = analysis.steps(report)
    row = frame.iloc[existing("step", step, len(frame))]
    clock = float(report.dataset.value("target", "clock_frequency"))
    name = row["name"] or step_words(row["type"])
    pairs = [
        ("Type", step_words(row["type"])),
        ("Cycles", units.cycles(row["cycles"], clock)),
        ("Clock", f"{row['cycles_from']:,} to {row['cycles_to']:,}"),
        ("Run", f"{row['run']:,}"),
        *_known("Hidden behind earlier steps", row["cycles_overlapped"], units.count),
        *_known("Active tiles", row["active_tiles"], units.count),
        *_known("Tile balance", row["tile_balance"], units.share),
        *_known("Balance of active tiles", row["active_tile_balance"], units.share),
        *_known("Thread balance", row["thread_balance"], units.share),
        *_known("Data", row["total_data"], units.size),
        *_known("Data balance", row["data_balance"], units.share),
    ]
    vertices = analysis.vertices_of_step(report, step=step)
    parts = [html.P(name, className="subject"), facts(pairs)]
    if len(vertices):
        parts.append(components.table("execution-vertices", vertices, VERTEX_COLUMNS))
    return section(f"Step {step:,}", *parts)


def _known(name: str, value: float, write: Any) -> list[tuple[str, str]]:
    """Give a fact unless it was not recorded (-1 or not a number)."""
    return [(name, write(value))] if value == value and value >= 0 else []


def program_table(report: Report, chosen: Address) -> Element:
    """List the programs by the cycles that they cost."""
    programs = analysis.cycles_by_program(report)
    unnamed = programs["name"] == ""
    programs = programs.assign(
        name=programs["name"].where(~unnamed, programs["type"].map(step_words))
    )
    shown = components.filtered(programs, chosen.filter)
    grid = components.table("execution-program-table", shown, PROGRAM_COLUMNS)
    return html.Div([html.P(counted(len(shown), "program"), className="note"), grid])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""

    def in_view(search: str) -> Element:
        return range_details(store, address.parse(PATH, search))

    def detail(search: str) -> Element:
        chosen = address.parse(PATH, search)
        return step_details(store.report(chosen.report), chosen.step)

    def programs(search: str) -> Element:
        chosen = address.parse(PATH, search)
        return program_table(store.report(chosen.report), chosen)

    for identifier, make in (
        ("execution-range", in_view),
        ("execution-step", detail),
        ("execution-programs", programs),
    ):
        app.callback(Output(identifier, "children"), Input("address", "search"))(
            components.or_fault(make)
        )
    for function, inputs in (
        ("choose", Input("execution-show", "value")),
        ("filterNames", components.entered("execution-filter")),
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function), inputs, prevent_initial_call=True
        )
    components.show_filter(app, "execution-filter", "shownName")
    follow(app, "device")
