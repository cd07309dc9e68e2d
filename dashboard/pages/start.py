"""Which report do you want to see?"""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import partial
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from dashboard import address, components, controls, downloads, view
from dashboard.address import Address
from dashboard.components import Element, Frame, section
from dashboard.demo import Demo
from dashboard.pages.targets import ARCHITECTURES, KINDS
from dashboard.pages.words import counted
from dashboard.store import Store
from dashboard.theme import Theme
from pva import units
from pva.analysis.overview import ReportOverview, recorded_parts, report_overview
from pva.errors import NotFoundError, PvaError

PATH, TITLE = "/", "Start"
HEADINGS = {
    "Report": "Its place below the paths given",
    "Target": "What it was compiled for",
    "Compiled": "When, in universal time",
    "Files": "Bytes of all its files",
    "Fullest tile": "What the tile with the most needs with gaps, and what part of a tile that is",
    "Recorded runs": "The cycles of the runs that were recorded in full",
    "Recorded": "Parts that a page can show",
}
FIELDS = tuple(field.name for field in fields(ReportOverview))
COMPLETED_AFTER = 120  # milliseconds after the last letter of a path
MOST_NAMED = 4  # ways in which a path may go on, in a line
MOST_LISTED = 100  # reports that are opened to say what is in them
ALWAYS_RECORDED = ("programs", "code")  # parts that are not worth a word of their own
DEMO_WORDS = {
    "idle": "",
    "running": "Training a small network in the simulator; this takes about half a minute.",
    "failed": "The demo could not be made; run tilescope demo in a terminal to see why.",
}


def available(store: Store, report: str) -> bool:
    """Tell that this page needs no report."""
    return True


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out."""
    store.scan()
    traces = len(host_traces(store))
    kinds = ((len(store.reports), "report"), (traces, "host trace"))
    found = " and ".join(counted(number, kind) for number, kind in kinds if number) or "0 reports"
    more = "" if store.keys else "Give a directory to tilescope serve, or make the demo report."
    return html.Div(
        [
            components.title("Which report do you want to see?"),
            components.headline(f"{found} under the paths given.", more=more),
            section(
                "Reports",
                view.panel("start-reports", PATH, ("find",)),
                tools=controls.row(
                    [
                        controls.box("find", "Filter reports", chosen),
                        controls.exports("start-reports"),
                    ]
                ),
            ),
            html.Div([_open_section(store), _compare_section(store, chosen)], className="columns"),
            html.Div([_recent_section(), _demo_section()], className="columns"),
        ]
    )


def summary_link(key: str) -> str:
    """Give the link to the first page of a report."""
    return address.write(Address("/summary", key))


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


def _compare_section(store: Store, chosen: Address) -> Element:
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
                controls.select("before", pairs, chosen, label="Before", width=190),
                html.Span("with"),
                controls.select(
                    "after", [pairs[1], pairs[0], *pairs[2:]], chosen, label="After", width=190
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


def wanted(store: Store, chosen: Address) -> list[str]:
    """Name the reports that the filter lets through."""
    text = chosen.text("find").lower()
    return [key for key in store.keys if text in key.lower()]


def reports_frame(store: Store, chosen: Address) -> Frame:
    """Give a row for each report of the list, empty where something was not recorded."""
    import pandas as pd

    rows = [_of_report(store, key) for key in wanted(store, chosen)]
    frame = pd.DataFrame(rows, columns=["report", "files", *FIELDS, "recorded", "problem"])
    return frame.replace(-1, None).convert_dtypes()


def _of_report(store: Store, key: str) -> dict[str, Any]:
    try:
        row: dict[str, Any] = {"report": key, "files": store.size(key)}
        if not store.has_report(key):
            return row | {"recorded": "host trace"}
        found, names = _at_a_glance(store, key)
        return row | asdict(found) | {"recorded": ", ".join(names)}
    except PvaError as problem:
        return {"report": key, "problem": str(problem)}


def reports(store: Store, chosen: Address, theme: Theme) -> Element:
    """List the reports with what is worth knowing before one is opened."""
    del theme
    keys = wanted(store, chosen)
    if not keys:
        some = chosen.text("find")
        return components.message("No report fits the filter." if some else "No report found.")
    head = html.Tr([html.Th(words, scope="col", title=note) for words, note in HEADINGS.items()])
    rows = [_row(store, key) for key in keys[:MOST_LISTED]]
    note = html.P(f"{len(keys) - MOST_LISTED:,} more; filter to see them.", className="note")
    grid = html.Table([html.Thead(head), html.Tbody(rows)], className="reports")
    return html.Div([grid, *([note] if len(keys) > MOST_LISTED else [])])


def _row(store: Store, key: str) -> Element:
    link = html.Th(dcc.Link(key, href=summary_link(key)), scope="row")
    try:
        size = components.unbroken(units.size(store.size(key)))
        if not store.has_report(key):
            return html.Tr([link, *map(html.Td, ("", "", size, "", "", "host trace"))])
        found, names = _at_a_glance(store, key)
        cells = _cells(found)
        cells[2] = size
        return html.Tr([link, *map(html.Td, [*cells, ", ".join(names)])])
    except PvaError as problem:
        return html.Tr([link, html.Td(str(problem), colSpan=len(HEADINGS) - 1, className="bad")])


def _at_a_glance(store: Store, key: str) -> tuple[ReportOverview, list[str]]:
    return store.answer(("at a glance", key, store.stamp(key)), lambda: _glance(store, key))


def _glance(store: Store, key: str) -> tuple[ReportOverview, list[str]]:
    """Look into a report without keeping it open: the other reports stay as they are."""
    report = store.report_anew(key)
    parts = recorded_parts(report)
    names = parts["part"][parts["recorded"] & ~parts["part"].isin(ALWAYS_RECORDED)].tolist()
    return report_overview(report), names + (["host trace"] if store.has_trace(key) else [])


def _cells(found: ReportOverview) -> list[Element]:
    """Write a report at a glance: target, date, files (filled in later), fullest tile, runs."""
    tiles = counted(found.tiles, "tile") if found.tiles >= 0 else ""
    kind = KINDS.get(found.type, found.type)
    name = ARCHITECTURES.get(found.architecture, found.architecture)
    target = components.prose(", ".join(part for part in (kind, name, tiles) if part))
    return [target, found.created.replace("T", " ").replace("Z", ""), "", _fit(found), _runs(found)]


def _fit(found: ReportOverview) -> Element:
    if found.fullest_bytes < 0:
        return "not recorded"
    share = found.fullest_bytes / max(found.bytes_per_tile, 1)
    words = components.unbroken(f"{units.size(found.fullest_bytes)} ({units.share(share)})")
    words += "" if found.code_counted else ", without code"
    if not found.tiles_out_of_memory:
        return words
    return html.Span(f"{words}, does not fit", className="bad")


def _runs(found: ReportOverview) -> str:
    if found.runs < 0:
        return "not recorded"
    words = f"{units.count(found.cycles)} cycles ({units.duration(found.seconds)})"
    return components.unbroken(words)


def comparison(store: Store, chosen: Address, theme: Theme) -> Element:
    """Link to the comparison of the two picked."""
    del theme
    keys = store.reports
    before, after = chosen.text("before", keys[0]), chosen.text("after", keys[1])
    if before == after:
        return html.Span("Pick two that differ.", className="note")
    link = address.write(Address("/compare", before, after))
    return dcc.Link("Compare", href=link, className="button")


Opened = tuple[Element, Any, Any]


def opened(store: Store, text: str) -> Opened:
    """Find a report by its path: nothing to say, and the page to go to; raises PvaError."""
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
        rest = store.completions(path or "")
        if not (path and rest):
            raise
        more = ", …" if len(rest) > MOST_NAMED else ""
        return html.P(f"Go on: {', '.join(rest[:MOST_NAMED])}{more}"), no_update, no_update


def go_on(store: Store, path: str | None) -> tuple[list[str], Any]:
    """Tell what a path that is being typed may become; what was said of it before is over."""
    components.check_texts(path)
    return store.completions(path or ""), None


def _not_opened(text: str) -> Opened:
    return components.fault(text), no_update, no_update


Opening = str | list[str]  # what was opened: a report, or two that were compared


def recent(store: Store, opened_last: list[Opening] | None) -> Element:
    """List the reports and comparisons that were opened last and are still there."""
    entries = [[each] if isinstance(each, str) else each for each in opened_last or []]
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
        html.Button(what, className="button small",
                    **{f"data-{act}": value, "aria-label": f"{what}: {words}"})
        for act, what, value in acts
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
    """Say how far the demo is, and whether to stop asking."""
    if asked:
        demo.start()
    state = demo.state()
    if state == "done":
        return html.P(_demo_links(demo)), True
    return html.P(DEMO_WORDS[state], className="note"), state != "running"


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    demo = Demo(store)
    view.fill(app, store, "start-reports", reports, keep=False)
    view.fill(app, store, "start-compare", comparison, keep=False)
    downloads.offer(app, "start-reports", reports_frame)
    app.callback(
        Output("start-opened", "children"),
        Output("address", "pathname"),
        Output("address", "search"),
        Input("start-open", "n_clicks"),
        Input("start-path", "n_submit"),
        State("start-path", "value"),
        prevent_initial_call=True,
    )(components.or_else(partial(open_path, store), lambda found: found, _not_opened))
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
