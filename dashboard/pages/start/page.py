"""Which report do you want to see?"""

from __future__ import annotations

from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from dashboard import address, controls, downloads, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.demo import Demo
from dashboard.elements import components
from dashboard.elements.components import Column, Element, section
from dashboard.pages.headlines import counted
from dashboard.pages.start import run_list
from dashboard.pages.start.run_list import summary_link
from dashboard.store import Store
from pva.errors import NotFoundError
from pva.plot.theme import Theme

PATH, TITLE = "/", "Start"
QUESTION = "Which report do you want to see?"
COMPLETED_AFTER = 120  # milliseconds after the last letter of a path
MAX_NAMED = 4  # ways in which a path may go on, in a line
DEMO_WORDS = {
    "idle": "",
    "running": "Training a small network in the simulator; this takes about half a minute.",
    "failed": "The demo could not be made; run tilescope demo in a terminal to see why.",
}


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=10,
    letter="h",
    icon="M2.5 7.5 8 2.8l5.5 4.7M4 6.6v6.6h8V6.6",
    subject="anything",
    follows=True,
    controls={
        "find": ("Filter reports", "Shows only reports whose name contains this text"),
        "order": (
            "Order",
            "Sorts the runs: the newest, the fullest or the longest first, or by name",
        ),
        "kind": ("Kind of run", "Shows only runs that fit, that do not fit, or host traces"),
        "before": ("Before", "The first of the two reports that are compared"),
        "after": ("After", "The second of the two reports that are compared"),
    },
    tables=(
        ("Cards", tuple(Column("", title, note=note) for title, note in run_list.PARTS.items())),
    ),
    chapter="""\
**Which report do you want to see?** Every report below the paths that were given to `tilescope
serve` has a card: whether it fits, how long its recorded runs took, and three pictures. *Tiles*
is what each tile needs, below the dashed line of its memory; *Cycles* how compute, exchange, host
exchange and sync share the recorded runs; *Liveness* what is live at each program step. The
newest stands first. Click a card to open it.

A report is a directory with a `profile.pop`, the profile as JSON, CBOR or Parquet, or a host
trace (`.pvti`, or Chrome trace JSON). Only files below the given paths can be opened.

## Open, compare, try

*Open by path* takes a path below those given, and completes it. *Compare two* opens the page
Compare with two of the reports. *Opened last* is kept in this browser alone. The *demo report* is
a network that learns handwritten digits: the simulator runs it once, and it stays in the list.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether this page needs no report."""
    return True


def layout(store: Store, state: Address) -> Element:
    """Lay the page out."""
    store.scan()
    traces = len(host_traces(store))
    kinds = ((len(store.reports), "report"), (traces, "host trace"))
    counts = " and ".join(counted(number, kind) for number, kind in kinds if number) or "0 reports"
    detail = "" if store.keys else "Give a directory to tilescope serve, or make the demo report."
    return html.Div(
        [
            components.title(QUESTION),
            components.headline(f"{counts} under the paths given.", more=detail),
            section(
                "Reports",
                view.panel("start-reports", PATH, ("find", "order", "kind")),
                tools=controls.row(
                    [
                        controls.select("order", run_list.ORDERS, state, label="Order"),
                        controls.select("kind", run_list.KINDS_SHOWN, state, label="Kind of run"),
                        controls.box("find", "Filter reports", state),
                        controls.exports("start-reports"),
                    ]
                ),
            ),
            html.Div([_open_section(store), _compare_section(store, state)], className="columns"),
            html.Div([_recent_section(), _demo_section()], className="columns"),
        ]
    )


def host_traces(store: Store) -> list[str]:
    """Name the host traces that were given without a report."""
    reports = store.reports
    return [key for key in store.keys if key not in reports and store.parts(key) == (key,)]


def _open_section(store: Store) -> Element:
    words = "Path below those given at start"
    return section(
        "Open by path",
        html.Div(
            [
                dmc.Autocomplete(id="start-path", data=store.completions(""), placeholder=words,
                                 size="xs", className="grow", debounce=COMPLETED_AFTER,
                                 **{"aria-label": words}),
                html.Button("Open", id="start-open", className="button"),
            ],
            className="tools-row",
        ),
        html.Div(id="start-opened"),
    )  # fmt: skip


def _compare_section(store: Store, state: Address) -> Element:
    keys = store.reports
    if len(keys) < 2:
        hint = "Host trace lays several traces on one timeline." if host_traces(store) else ""
        words = components.message("Serve two reports to compare them.", hint=hint)
        return section("Compare two", words)
    pairs = [(key, key) for key in keys]
    return section(
        "Compare two",
        html.Div(
            [
                controls.select("before", pairs, state, label="Before", width=190),
                html.Span("with"),
                controls.select(
                    "after", [pairs[1], pairs[0], *pairs[2:]], state, label="After", width=190
                ),
                view.panel("start-compare", PATH, ("before", "after")),
            ],
            className="tools-row",
        ),
    )


def _recent_section() -> Element:
    return section("Opened last", html.Div(id="start-recent"), note="in this browser")


def _demo_section() -> Element:
    return section(
        "Demo report",
        html.P(
            "A transformer that learns handwritten digits, in a pipeline of two IPUs.",
            className="note",
        ),
        html.Button("Make the demo report", id="start-demo", className="button"),
        html.Div(id="start-demo-state", role="status"),
        dcc.Interval(id="start-demo-watch", interval=1000, disabled=True),
    )


def comparison(store: Store, state: Address, theme: Theme) -> Element:
    """Link to the comparison of the two picked."""
    del theme
    keys = store.reports
    before, after = state.text("before", keys[0]), state.text("after", keys[1])
    if before == after:
        return html.Span("Pick two that differ.", className="note")
    link = address.write(Address("/compare", before, after))
    return dcc.Link("Compare", href=link, className="button")


Opened = tuple[Element, Any, Any]


def opened(store: Store, text: str) -> Opened:
    """Open a report by its path: no message, and the page to go to; raises PvaError."""
    key = store.find(text)
    path, question, search = summary_link(key).partition("?")
    return None, path, question + search


def open_path(store: Store, clicks: int | None, submits: int | None, path: str | None) -> Opened:
    """Open what was typed, once it was asked for, or tell how it goes on; raises PvaError."""
    components.check_texts(path)
    if not (clicks or submits):
        raise PreventUpdate
    try:
        return opened(store, path or "")
    except NotFoundError:
        completions = store.completions(path or "")
        if not (path and completions):
            raise
        tail = ", …" if len(completions) > MAX_NAMED else ""
        return html.P(f"Go on: {', '.join(completions[:MAX_NAMED])}{tail}"), no_update, no_update


def go_on(store: Store, path: str | None) -> tuple[list[str], object]:
    """Return what a path that is being typed may become; what was said of it before is over."""
    components.check_texts(path)
    return store.completions(path or ""), None


def _not_opened(text: str) -> Opened:
    return components.fault(text), no_update, no_update


Opening = str | list[str]  # what was opened: a report, or two that were compared


def recent(store: Store, opened_last: list[Opening] | None) -> Element:
    """List the reports and comparisons that were opened last and are still there."""
    components.check_lists(opened_last)
    entries = [entry if isinstance(entry, list) else [entry] for entry in opened_last or []]
    components.check_texts(*(key for keys in entries for key in keys))
    rows = [
        _recent_row(place, keys)
        for place, keys in enumerate(entries)
        if 1 <= len(keys) <= 2 and set(keys) <= set(store.keys)
    ]
    if not rows:
        return components.message("Reports and comparisons that you open are listed here.")
    return html.Ul(rows, className="recent")


def _recent_row(place: int, keys: list[str]) -> Element:
    """Show one of them with what is done with it."""
    words = " and ".join(keys)
    pair = Address("/compare", keys[0], keys[-1])
    link = summary_link(keys[0]) if len(keys) == 1 else address.write(pair)
    acts = (("copy", "Copy link", link), ("forget", "Remove", str(place)))
    buttons = [
        html.Button(label, className="button small",
                    **{f"data-{act}": value, "aria-label": f"{label}: {words}"})
        for act, label, value in acts
    ]  # fmt: skip
    name = words if len(keys) == 1 else f"Compare {words}"
    return html.Li([dcc.Link(name, href=link), html.Span(buttons, className="tools-row")])


def _demo_links(demo: Demo) -> list[Element]:
    """Lead to the demo report, and to what it is compared with."""
    links: list[Element] = [dcc.Link("Open the demo report", href=summary_link(demo.key))]
    if demo.against:
        pair = address.write(Address("/compare", demo.key, demo.against))
        links += [". ", dcc.Link("Compare it with the work even on both IPUs", href=pair)]
    return links


def demo_state(demo: Demo, asked: bool) -> tuple[Element, bool]:
    """Return how far the demo is, and whether to stop asking."""
    if asked:
        demo.start()
    state = demo.state()
    if state == "done":
        return html.P(_demo_links(demo)), True
    return html.P(DEMO_WORDS[state], className="note"), state != "running"


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    demo = Demo(store)
    view.fill(app, store, "start-reports", run_list.cards, keep=False)
    view.fill(app, store, "start-compare", comparison, keep=False)
    downloads.offer(app, "start-reports", run_list.reports_frame)
    app.callback(
        Output("start-opened", "children"),
        Output("address", "pathname"),
        Output("address", "search"),
        Input("start-open", "n_clicks"),
        Input("start-path", "n_submit"),
        State("start-path", "value"),
        prevent_initial_call=True,
    )(components.or_else(partial(open_path, store), lambda result: result, _not_opened))
    app.callback(
        Output("start-path", "data"),
        Output("start-opened", "children", allow_duplicate=True),
        Input("start-path", "value"),
        prevent_initial_call=True,
    )(components.or_nothing(partial(go_on, store)))
    app.callback(Output("start-recent", "children"), Input("recent", "data"))(
        lambda keys: recent(store, keys)
    )
    app.callback(
        Output("start-demo-state", "children"),
        Output("start-demo-watch", "disabled"),
        Input("start-demo", "n_clicks"),
        Input("start-demo-watch", "n_intervals"),
    )(lambda clicks, _ticks: demo_state(demo, bool(clicks)))
