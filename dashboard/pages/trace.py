"""What did the host do meanwhile?"""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import address, components
from dashboard.address import Address
from dashboard.components import Column, Element, facts, section
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.words import counted
from dashboard.store import Store, Trace
from dashboard.timeline.endpoint import host, host_trace, timeline
from pva import units
from pva.analysis import host as analysis
from pva.analysis.host_events import event_figures

PATH, TITLE = "/trace", "Host trace"

LABEL_COLUMNS = (
    Column("label", "Label", "name"),
    Column("channel", "Channel", "text", 150),
    Column("count", "Events", "number", 100),
    Column("total_ns", "Total", "nanoseconds", 110),
    Column("self_ns", "Self", "nanoseconds", 110),
    Column("mean_ns", "Mean", "nanoseconds", 110),
    Column("max_ns", "Longest", "nanoseconds", 110),
)


def available(store: Store, report: str) -> bool:
    """Tell whether the report has a host trace."""
    return store.trace(report) is not None


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    trace = host_trace(store, chosen.report)
    return html.Div(
        [
            components.title("What did the host do meanwhile?"),
            components.headline(trace_sentence(trace)),
            *(components.fault(problem) for problem in trace.problems),
            section(
                "Host timeline",
                channel_key(store, chosen),
                canvas("host", "Host timeline"),
                note="a lane a thread, coloured by channel",
            ),
            html.Div(id="trace-event"),
            section(
                "Labels by time",
                html.Div(id="trace-labels"),
                tools=components.filter_box("trace-filter", "Filter labels"),
            ),
        ]
    )


def trace_sentence(trace: Trace) -> str:
    """Say how long the trace is, what it holds, and what took the most time by itself."""
    labels = analysis.label_statistics(trace)
    events = int(labels["count"].sum())
    held = f"{counted(events, 'event')} on {counted(len(trace.threads), 'thread')}"
    sentence = f"{units.duration(trace.duration_ns / 1e9)} of the host, {held}."
    if not len(labels):
        return sentence
    most = labels.iloc[0]
    share = most["self_ns"] / max(int(labels["self_ns"].sum()), 1)
    took = f"{units.duration(most['self_ns'] / 1e9)} ({units.share(share)} of the time in events)"
    return f"{sentence} {most['label']} took the most by itself: {took}."


def channel_key(store: Store, chosen: Address) -> Element:
    """List the channels with their colours."""
    whole = timeline(store, "host", chosen.report)
    used = set(analysis.label_statistics(host_trace(store, chosen.report))["channel"])
    items = [
        html.Li(
            [html.Span(className="swatch", style={"background": f"var(--{token})"}), words],
        )
        for token, words in whole.colours
        if words in used
    ]
    return html.Ul(items, className="key", **{"aria-label": "Channels"})


def event_details(store: Store, chosen: Address) -> Element:
    """Show a selected event; raises SelectionError."""
    if chosen.event is None:
        hint = "Click one in the timeline, or press n for the next."
        return section("Selected event", components.message("No event is selected.", hint=hint))
    found = host(store, chosen.report)
    whole = found.timeline
    figures = event_figures(whole.tracks, chosen.event)
    place = next(n for n, lane in enumerate(whole.lanes) if lane.first <= figures.row < lane.stop)
    lane = whole.lanes[place]
    outermost = lane.first + lane.kinds.count("flag")
    if figures.row >= outermost:
        figures = event_figures(whole.tracks, chosen.event, (outermost, lane.stop))
    duration = figures.end - figures.begin
    metadata = found.metadata.get(chosen.event, "")
    still = ", not ended" if chosen.event in found.still_open else ""
    pairs = [
        ("Channel", whole.colours[int(whole.tracks.kind[figures.label])][1]),
        ("Thread", lane.name),
        ("Begin", f"{figures.begin / 1e6:,.3f} ms after the trace began"),
        ("Duration", (units.duration(duration / 1e9) if duration else "an instant") + still),
        ("Self", units.duration(figures.self_time / 1e9)),
        ("Events directly inside", units.count(figures.children)),
        *([("Metadata", metadata)] if metadata else []),
    ]
    subject = html.P(whole.labels[figures.label], className="subject")
    return section(f"Event {chosen.event:,}", subject, facts(pairs))


def label_table(trace: Trace, chosen: Address) -> Element:
    """List the labels by the time that their events took by themselves."""
    labels = analysis.label_statistics(trace)
    shown = components.filtered(labels, chosen.filter)
    grid = components.table("trace-label-table", shown, LABEL_COLUMNS)
    return html.Div([html.P(counted(len(shown), "label"), className="note"), grid])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""

    def detail(search: str) -> Any:
        chosen = address.parse(PATH, search)
        return event_details(store, chosen)

    def labels(search: str) -> Any:
        chosen = address.parse(PATH, search)
        return label_table(host_trace(store, chosen.report), chosen)

    for identifier, make in (("trace-event", detail), ("trace-labels", labels)):
        app.callback(Output(identifier, "children"), Input("address", "search"))(
            components.or_fault(make)
        )
    app.clientside_callback(
        ClientsideFunction("tilescope", "filterLabels"),
        components.entered("trace-filter"),
        prevent_initial_call=True,
    )
    components.show_filter(app, "trace-filter", "shownLabel")
    follow(app, "host")
