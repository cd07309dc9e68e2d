"""What is live at the same time, and when most?"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import address, components
from dashboard.address import Address
from dashboard.components import Column, Element, section
from dashboard.figures import liveness as figures
from dashboard.figures.axes import Figure
from dashboard.pages.provenance import badge
from dashboard.pages.words import counted, liveness_sentence
from dashboard.store import Report, Store
from dashboard.theme import Theme
from pva import units
from pva.analysis import liveness as analysis
from pva.analysis.memory import category_label

PATH, TITLE = "/liveness", "Liveness"

MOVING = "moving"  # the option `show` of the address that leaves the always-live out
CHOICES = (("all", "All"), (MOVING, "Not always live"))
VARIABLE_COLUMNS = (
    Column("name", "Variable", "name"),
    Column("category", "Category", "text", 200),
    Column("bytes", "Bytes", "bytes", 100),
    Column("share", "Of the peak", "share", 120),
)
ALWAYS_COLUMNS = (
    Column("name", "Variable or category", "name"),
    Column("bytes", "Bytes", "bytes", 120),
    Column("share", "Share", "share", 100),
)


def available(store: Store, report: str) -> bool:
    """Tell whether liveness was recorded."""
    return store.report(report).dataset.has("liveness_steps")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    live = analysis.liveness_overview(report)
    return html.Div(
        [
            components.title("What is live at the same time, and when most?"),
            components.headline(liveness_sentence(live)),
            section(
                "Live bytes by program step",
                components.plot("liveness-plot", 340),
                note="all tiles; click a step for its variables",
                badge=badge(report, "always_live_bytes"),
                tools=_tools(chosen, report.dataset.length("liveness_steps")),
            ),
            html.Div(
                [html.Div(id="liveness-step"), html.Div(id="liveness-always")],
                className="columns wide-left",
            ),
        ]
    )


def _tools(chosen: Address, steps: int) -> Element:
    return html.Div(
        [
            dmc.SegmentedControl(
                id="liveness-show",
                data=[{"value": value, "label": label} for value, label in CHOICES],
                value=chosen.show or CHOICES[0][0],
                size="xs",
            ),
            components.filter_box("liveness-filter", "Filter variables"),
            components.number_box(
                "liveness-step-choice", "Step", "Program step", max(steps - 1, 0)
            ),
        ],
        className="tools-row",
    )


def liveness_figure(report: Report, chosen: Address, theme: Theme) -> Figure:
    """Draw the curve of the whole program."""
    curve = analysis.liveness_curve(report)
    return figures.liveness_curve(
        curve, always=chosen.show != MOVING, step=chosen.step, theme=theme
    )


def step_details(report: Report, chosen: Address) -> Element:
    """Show the variables of a step, of the peak when none is chosen; raises SelectionError."""
    live = analysis.liveness_overview(report)
    step = live.peak_step if chosen.step is None else chosen.step
    if step < 0:
        return section("Variables", components.message("The report has no program steps."))
    variables = analysis.live_variables(report, step=step)
    curve = analysis.liveness_curve(report).iloc[step]
    name = curve["name"] or curve["type"]
    variables = variables.assign(
        share=variables["bytes"] / max(live.peak_bytes, 1),
        category=variables["category"].map(category_label),
    )
    shown = components.filtered(variables, chosen.filter)
    moving = units.size(curve["not_always_live"])
    facts = f"{moving} in {counted(len(variables), 'variable')} that come and go"
    heading = f"Live at step {step:,}" + (" (the peak)" if step == live.peak_step else "")
    if not len(shown):
        text = "Nothing but the always-live is live at this step."
        body = components.message("No variable fits the filter." if len(variables) else text)
    else:
        body = components.table("liveness-variables", shown, VARIABLE_COLUMNS)
    return section(heading, html.P(name, className="subject"), body, note=facts)


def always_details(report: Report, chosen: Address) -> Element:
    """Show what is never dead."""
    always = analysis.always_live_variables(report)
    total = int(always["bytes"].sum())
    always = always.assign(share=always["bytes"] / max(total, 1))
    shown = components.filtered(always, chosen.filter)
    return section(
        "Always live",
        components.table("liveness-always-table", shown, ALWAYS_COLUMNS),
        note=units.size(total),
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""

    def draw(search: str, theme: Theme) -> Any:
        chosen = address.parse(PATH, search)
        return liveness_figure(store.report(chosen.report), chosen, theme)

    def detail(search: str) -> Element:
        chosen = address.parse(PATH, search)
        return step_details(store.report(chosen.report), chosen)

    def always(search: str) -> Element:
        chosen = address.parse(PATH, search)
        return always_details(store.report(chosen.report), chosen)

    app.callback(
        Output("liveness-plot", "figure"), Input("address", "search"), Input("theme", "data")
    )(components.or_nothing(draw))
    for identifier, make in (("liveness-step", detail), ("liveness-always", always)):
        app.callback(Output(identifier, "children"), Input("address", "search"))(
            components.or_fault(make)
        )
    for function, inputs in (
        ("choose", Input("liveness-show", "value")),
        ("pickStep", Input("liveness-plot", "clickData")),
        ("typeStep", components.entered("liveness-step-choice")),
        ("filterNames", components.entered("liveness-filter")),
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function), inputs, prevent_initial_call=True
        )
    app.clientside_callback(
        ClientsideFunction("tilescope", "shownStep"),
        Output("liveness-step-choice", "value"),
        Input("address", "search"),
    )
    components.show_filter(app, "liveness-filter", "shownName")
