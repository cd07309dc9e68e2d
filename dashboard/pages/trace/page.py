"""What did the host do meanwhile? The host timeline, and what a part of it holds."""

from __future__ import annotations

from urllib.parse import unquote

import numpy as np
from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.components import Element, section
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.headlines import counted
from dashboard.pages.trace.tables import (
    LABEL_COLUMNS,
    TABS,
    aligned,
    frame_of,
    label_frame,
    time_tables,
)
from dashboard.store import JOIN, Store, Trace
from dashboard.timeline.endpoint import host, host_trace, unmerged
from pva import units
from pva.analysis.host.profilers import longest_label
from pva.plot.lanes import Timeline
from pva.plot.theme import Theme

PATH, TITLE = "/trace", "Host trace"
QUESTION = "What did the host do meanwhile?"

LINES = (("line", "Lines"), ("area", "Areas"))
ALIGNS = (("wall", "By the clock"), ("start", "From their begin"))
FAR_APART = 20  # times what the files are long together
MAX_FILES = 40  # offered to be added
MAX_FLOW_NAMES = 8  # that are looked for among the events
WINDOW = ("range", "selection")


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"event": {"": "event"}},
    docked="event",
    order=130,
    letter="t",
    icon="M2.5 3h11v8h-11zM6 13.5h4M8 11v2.5M4.5 7.5h2l1-2 1.5 3 1-1h1.5",
    subject="trace",
    follows=True,
    controls={
        "merged": ("Merge threads", "Lays the events of all threads on one lane"),
        "arrows": (
            "Arrows of flows",
            "Draws arrows from events to those that they led to, such as a launch to its kernel: "
            "the longest in view; those of the chosen event always",
        ),
        "lines": ("Line graphs", "Draws series as lines, or as areas"),
        "align": (
            "Several files",
            "Puts traces where the wall clock of each says, or all at the same begin",
        ),
        "filter": ("Filter labels", "Shows only labels that contain this text"),
    },
    tables=(("Columns: by label", LABEL_COLUMNS),),
    chapter="""\
**What did the host do meanwhile?** A lane is a thread; an event lies below the one that it is
inside of. Colours are those of the channels; a click on one in the legend hides it. Series and
heatmaps have lanes of their own; a line graph of several series names them above it, with their
values at the pointer. A trace that is still being written is followed.

Click an event for its details, drag with Shift to choose a range. The tables below are about the
range that is chosen, or else in view: by label, as a tree of who calls whom, or bottom up.
*Files* shows several traces on one timeline.

**What launched this kernel?** In a trace of PyTorch's profiler, and in others of Chrome's format
that tell flows, arrows lead from an event to those that it led to. A chosen event says which led
to it, and to which it led; with a click that one is chosen.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the report has a host trace."""
    return store.trace(report) is not None


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    trace = host_trace(store, state.report, aligned(state))
    return html.Div(
        [
            components.title(QUESTION),
            view.panel("trace-answer", PATH, ("align",)),
            section(
                "Host timeline",
                *(html.P(problem, className="note") for problem in trace.problems),
                view.panel("trace-channels", PATH, ("hidden",)),
                canvas("host", "Host timeline"),
                note="a lane a thread, coloured by channel",
                tools=controls.row(_tools(store, trace, state)),
            ),
            html.Div(id="trace-event"),  # in an exported file, which has no drawer: what is chosen
            section(
                "Where the time goes",
                controls.tabs(TABS, state),
                view.panel("trace-tables", PATH, (*WINDOW, "tab", "filter", "folded", "align")),
                tools=controls.filter_box("label", "Filter labels", state),
            ),
        ]
    )


def _tools(store: Store, trace: Trace, state: Address) -> list[Element]:
    """Offer what this trace can be shown as."""
    tools: list[Element] = []
    if len(trace.threads) > 1:
        tools.append(controls.switch("merged", "Merge threads", state))
    if len(trace.flows):
        tools.append(controls.switch("arrows", "Arrows of flows", state, on=True))
    if trace.series:
        tools.append(controls.choice("lines", LINES, state, label="Line graphs"))
    if len(trace.paths) > 1:
        tools.append(controls.choice("align", ALIGNS, state, label="Several files"))
    return [*tools, *_files(store, state)]


def _files(store: Store, state: Address) -> list[Element]:
    """Link to this timeline with one more file, or with one less."""
    parts = store.parts(state.report)
    fewer = [
        (f"Without {one}", tuple(part for part in parts if part != one))
        for one in (parts if len(parts) > 1 else ())
    ]
    additions = [(f"Add {one}", (*parts, one)) for one in store.traces(state.report)[:MAX_FILES]]
    links = [
        dcc.Link(words, href=address.write(Address(PATH, JOIN.join(keys))))
        for words, keys in [*additions, *fewer]
    ]
    if not links:
        return []
    title = "Show the traces of several files on one timeline"
    summary = html.Summary("Files", title=title)
    return [html.Details([summary, html.Div(links, className="menu")], className="preferences")]


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Answer the question of the page, which needs all events: the page does not wait for it."""
    host_events = host(store, state.report, aligned(state))
    trace = host_trace(store, state.report, aligned(state))
    writing = "" if trace.is_finished else "Still being written, or ended early; the view follows."
    detail = _apart(host_events.timeline) if len(trace.paths) > 1 else writing
    return components.headline(trace_sentence(store, state), more=detail)


def _apart(timeline: Timeline) -> str:
    """Write that files lie so far from each other that little is seen of each."""
    tracks = timeline.tracks
    spans: dict[str, list[int]] = {}
    for lane in timeline.lanes:
        for row in range(lane.first, lane.stop) if "derived" not in lane.kinds else ():
            first, stop = tracks.offset[row : row + 2].tolist()
            ends = tracks.ends(np.arange(stop - 1, stop) if stop > first else np.zeros(0, int))
            spans.setdefault(lane.path[0], []).extend((*tracks.begin[first:stop][:1], *ends))
    long = sum(int(max(moments) - min(moments)) for moments in spans.values() if moments)
    if len(spans) < 2 or timeline.extent[1] - timeline.extent[0] < FAR_APART * long:
        return ""
    return "The files lie far apart by their clocks; align them from their begin to compare them."


def trace_sentence(store: Store, state: Address) -> str:
    """Return how long the trace is, what it holds, and what took the most time by itself."""
    host_events = host(store, state.report, aligned(state))
    timeline, trace = host_events.timeline, host_trace(store, state.report, aligned(state))
    contents = (
        f"{counted(host_events.events, 'event')} on {counted(len(timeline.threads), 'thread')}"
    )
    sentence = f"{units.duration(trace.duration_ns / 1e9)} of the host, {contents}."
    longest = longest_label(trace, host_events.self_time)
    if longest is None:
        return sentence
    without = f", without {' and '.join(longest.without)}" if longest.without else ""
    spent = units.duration(longest.self_ns / 1e9)
    took = f"{spent} ({units.share(longest.share)} of the time in events"
    return f"{sentence} {timeline.labels[longest.label]} took the most by itself: {took}{without})."


def _used_channels(trace: Trace, whole: Timeline) -> set[int]:
    """Return the channels of events; the names of flows are labels, too, and have no colour."""
    kinds = whole.tracks.kind[: len(whole.labels)].copy()
    of_flows = np.unique(trace.flows.label)[:MAX_FLOW_NAMES]
    absent = [label for label in of_flows.tolist() if not (whole.tracks.label == label).any()]
    return {int(kind) for kind in np.delete(kinds, absent).tolist()}


def channel_key(store: Store, state: Address, _theme: Theme) -> Element:
    """List the channels with their colours; a click hides one, another shows it again."""
    timeline = unmerged(store, state.report, aligned(state))
    used = _used_channels(host_trace(store, state.report, aligned(state)), timeline)
    hidden = {unquote(text) for text in state.text("hidden").split(",") if text}
    items = [
        html.Li(
            html.Button(
                [html.Span(className="swatch", style={"background": f"var(--{token})"}), words],
                className="channel off" if words in hidden else "channel",
                title="Show" if words in hidden else "Hide",
                **{"data-toggles": "hidden", "data-name": words,
                   "aria-pressed": str(words not in hidden).lower()},
            )
        )
        for number, (token, words) in enumerate(timeline.colours)
        if number in used
    ]  # fmt: skip
    return html.Ul(items, className="key", **{"aria-label": "Channels"})


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "trace-answer", answer)
    view.fill(app, store, "trace-channels", channel_key)
    view.fill(app, store, "trace-tables", time_tables)
    tables.serve(app, store, PATH, "trace-label-table", LABEL_COLUMNS, label_frame)
    for tab, _ in TABS:
        downloads.offer(app, f"trace-{tab}", frame_of)
    follow(app, "host")
