"""What changed between two host traces: the time of each label, by itself."""

from __future__ import annotations

from dataclasses import replace

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame, section
from dashboard.pages.compare.tables import WHERE, percents
from dashboard.store import Store
from dashboard.timeline.endpoint import host_trace
from pva import units
from pva.analysis.whole_report.comparison import compare_labels, total_of, waterfall
from pva.errors import NotFoundError
from pva.plot import compare as figures
from pva.plot.theme import Theme

PATH = "/compare"
QUESTION = "What changed from one host trace to the other?"
PLOT_PIXELS, MAX_ROWS = 290, 14
COLUMNS = (
    Column("name", "Label", "name", note="What the events are called"),
    *declared_columns(compare_labels, "before@100 Before", "after@100 After", "change@125 Change"),
    Column("percent", "Relative", "figure", 95, "The change as a part of what was before"),
    *declared_columns(
        compare_labels, "events_before@120 Events before", "events_after@110 Events after"
    ),
    Column("where", "In", "text", 105, "Which of the traces has it"),
)


def traces_of(store: Store) -> list[str]:
    """Name the sources that are host traces and no reports, each by itself."""
    return [key for key in store.keys if key not in store.reports and len(store.parts(key)) == 1]


def layout(store: Store, state: Address) -> Element:
    """Lay the page out for two host traces; raises PvaError."""
    key = state.report or store.keys[0]
    choices = [(name, name) for name in traces_of(store) if name != key]
    parts: list[Element] = [
        html.Span(["Before ", html.Strong(key)], className="compare-name before"),
        html.Span("After", className="compare-name after"),
        controls.select("against", [("", "Choose a trace"), *choices], state,
                        label="Trace to compare with", width=290),
    ]  # fmt: skip
    head = [components.title(QUESTION)]
    if not state.against:
        nothing = components.message("Choose the trace to compare with.")
        return html.Div([*head, html.Div(parts, className="tools-row compare-choice"), nothing])
    swapped = replace(state, path=PATH, report=state.against, against=key)
    parts.append(dcc.Link("Swap", href=address.write(swapped), className="button"))
    tools = controls.row(
        [controls.filter_box("name", "Filter by label", state), controls.exports("compare-labels")]
    )
    return html.Div(
        [
            *head,
            view.panel("compare-labels-answer", PATH, ()),
            html.Div(parts, className="tools-row compare-choice"),
            section(
                "From before to after",
                view.panel("compare-labels-way", PATH, (), themed=True),
                note="time inside events, each without the events inside it",
                tools=controls.exports("compare-labels-path", "compare-labels-plot"),
            ),
            section("By label", view.panel("compare-labels-rows", PATH, ("filter",)), tools=tools),
        ]
    )


def compared(store: Store, state: Address) -> Frame:
    """Return what each label takes in both traces, worked out once while neither changes."""
    if not state.against:
        raise NotFoundError("compare", "one trace", "choose the one to compare it with")
    before, after = (host_trace(store, key) for key in (state.report, state.against))
    name = f"labels with {state.against} {store.stamp(state.against)}"
    return store.derived(state.report, name, lambda: compare_labels(before, after).frame())


def rows_of(store: Store, state: Address) -> Frame:
    """Return the rows that differ, the largest change first, filtered by label."""
    frame = compared(store, state)
    frame = frame.assign(
        name=frame["label"].where(frame["label"] != "", "(without a name)"),
        percent=percents(frame),
        where=[WHERE[word] for word in frame["in"]],
    )
    return components.filtered(frame[frame["change"] != 0], state.filter)


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Head the page with the whole change, and with the label that changed most."""
    frame = compared(store, state)
    before, after, change = total_of(frame)
    if not frame["change"].any():
        return components.headline(f"{state.against} takes the same time in every label.")
    direction, sign = ("more", "+") if change > 0 else ("less", "−")
    part = f" ({sign}{units.share(abs(change) / before)})" if before else ""
    sentence = f"{state.against} spends {_time(abs(change))} {direction} in events{part}"
    first = frame.iloc[0]
    moved = components.changed(first["change"], _time)
    events = f"{first['events_before']:,} events before, {first['events_after']:,} after"
    return components.headline(
        f"{sentence}; {first['label']} changed most, {moved}.",
        more=f"{_time(before)} before, {_time(after)} after; of {first['label']} {events}.",
    )


def _time(nanoseconds: float) -> str:
    return units.duration(nanoseconds / 1e9)


def way(store: Store, state: Address, theme: Theme) -> Element:
    """Draw how the changes of labels lead from the time before to the time after."""
    frame = compared(store, state)
    before, after, _ = total_of(frame)
    names = (f"before: {state.report or store.keys[0]}", f"after: {state.against}")
    figure = figures.waterfall(
        way_of(store, state), total=(before, after), unit="nanoseconds", names=names, theme=theme
    )
    return components.drawn(figure, "compare-labels-plot", PLOT_PIXELS)


def way_of(store: Store, state: Address) -> Frame:
    """Return the changes of labels, the largest first, from total to total."""
    return waterfall(compared(store, state)).frame()


def rows(store: Store, state: Address, _theme: Theme) -> Element:
    """Show the labels that differ, and that they add up."""
    before, after, change = total_of(compared(store, state))
    shown = rows_of(store, state)
    text = (
        f"{_time(before)} before, {_time(after)} after, {components.changed(change, _time)}. "
        "The rows add up to it."
    )
    note = html.P(components.unbroken(text), className="note")
    if not len(shown):
        words = "No row fits the filter." if state.filter else "Every row is the same in both."
        return html.Div([note, components.message(words)])
    grid = tables.paged("compare-labels", COLUMNS, rows=min(len(shown), MAX_ROWS))
    return html.Div([note, grid])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    for identifier, make in (
        ("compare-labels-answer", answer),
        ("compare-labels-way", way),
        ("compare-labels-rows", rows),
    ):
        view.fill(app, store, identifier, make)
    tables.serve(app, store, PATH, "compare-labels", COLUMNS, rows_of)
    downloads.offer(app, "compare-labels", rows_of)
    downloads.offer(app, "compare-labels-path", way_of)
