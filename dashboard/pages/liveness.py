"""What is live at the same time, and when most?

The steps that are chosen, or the peak, stand below the curve: one with its shares, several side by
side with the change from the first to the last.
"""

from __future__ import annotations

from dash import Dash, dcc, html

from dashboard import address, components, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.components import Element
from dashboard.figures import liveness as figures
from dashboard.figures.axes import Figure
from dashboard.overview import strip
from dashboard.pages import liveness_tabs as tabs
from dashboard.pages.liveness_tabs import curve_of, scope_words
from dashboard.pages.provenance import badge
from dashboard.pages.words import liveness_sentence
from dashboard.store import Report, Store
from dashboard.theme import Theme
from pva import units
from pva.analysis import liveness as analysis

PATH, TITLE = "/liveness", "Liveness"

MOVING = "moving"  # the option `show` of the address that leaves the always-live out
CHOICES = (("all", "All"), (MOVING, "Not always live"))
PLACE = ("ipu", "tile")  # the keys of the address that say where


def available(store: Store, report: str) -> bool:
    """Tell whether liveness was recorded."""
    return store.report(report).dataset.has("liveness_steps")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    if not report.dataset.length("liveness_steps"):
        live = analysis.liveness_overview(report)
        return html.Div([_question(), components.headline(liveness_sentence(live))])
    drawn = (*PLACE, "show", "find", "range")
    plot = view.plot("liveness-plot", PATH, drawn, height=0, picks="step", zooms=True)
    small = view.panel("liveness-overview", PATH, PLACE)
    above = [_head(report), _tools(report, chosen), small, plot]
    keys = (*PLACE, "step", "filter", "find", "tab")
    below = [
        controls.tabs(tabs.choices(report), chosen),
        view.panel("liveness-details", PATH, keys, themed=True),
    ]
    return html.Div(
        [
            _question(),
            view.panel("liveness-answer", PATH, PLACE),
            controls.split(above, html.Div(below), name="liveness"),
        ]
    )


def _question() -> Element:
    return components.title("What is live at the same time, and when most?")


def _head(report: Report) -> Element:
    note = "click a step, Shift-click more to compare; drag to choose a range"
    parts = [
        html.H2("Live bytes by program step"),
        badge(report, "always_live_bytes"),
        html.Span(note, className="note"),
        html.Div(controls.exports("liveness", "liveness-plot"), className="tools"),
    ]
    return html.Div(parts, className="section-head")


def _tools(report: Report, chosen: Address) -> Element:
    ipus = int(report.dataset.of_replica("num_ipus"))
    of_ipu = [("", "All tiles"), *((str(ipu), f"IPU {ipu}") for ipu in range(ipus))]
    where = [controls.select("ipu", of_ipu, chosen, label="IPU", width=110)] if ipus > 1 else []
    return controls.row(
        [
            *where,
            controls.box("tile", "One tile, e.g. 3", chosen, width=150),
            controls.choice("show", CHOICES, chosen, label="What is drawn"),
            controls.box("find", "Filter steps", chosen, width=170),
            controls.box("step", "Steps, e.g. 3, 12", chosen, width=150),
            controls.filter_box("name", "Filter variables", chosen, width=180),
            view.panel("liveness-peak", PATH, (*PLACE, "tab", "filter", "find", "show")),
        ]
    )


def answer(store: Store, chosen: Address, _theme: Theme) -> Element:
    """Say how much is live at most, in the whole program, on an IPU or on a tile."""
    report = store.report(chosen.report)
    live = analysis.liveness_overview(report)
    if chosen.tile is None and chosen.ipu is None:
        return components.headline(liveness_sentence(live))
    curve = curve_of(store, chosen)
    peak = curve.iloc[int(curve["total"].argmax())]
    sentence = (
        f"{scope_words(chosen)}: at most {units.size(peak['total'])} are live at once, at "
        f"step {peak['step']:,} ({peak['name'] or peak['type']}); "
        f"{units.size(peak['always_live'])} of it always."
    )
    whole = f"In the whole program {units.size(live.max_live)}, at step {live.peak_step:,}."
    return components.headline(sentence, more=whole)


def peak_link(store: Store, chosen: Address, _theme: Theme) -> Element:
    """Lead to the step at which the most is live."""
    curve = curve_of(store, chosen)
    step = int(curve["total"].argmax())
    link = address.write(tabs.at_steps(chosen, PATH, (step,)))
    return dcc.Link("Go to the peak", href=link, className="button", title=f"Step {step:,}")


def liveness_figure(store: Store, chosen: Address, theme: Theme) -> Figure:
    """Draw the curve of the program, of an IPU or of a tile."""
    curve = curve_of(store, chosen)
    found = tabs.matches(curve, chosen)
    window = (chosen.range.begin, chosen.range.end) if chosen.range else None
    return figures.liveness_curve(
        curve, always=chosen.show != MOVING, matches=found, theme=theme, window=window
    )


def overview(store: Store, chosen: Address, _theme: Theme) -> Element:
    """Draw all steps in a strip; what is live anyhow would leave nothing to see."""
    heights = curve_of(store, chosen)["not_always_live"].to_numpy()
    return strip(heights, "liveness-plot", "the steps")


def details(store: Store, chosen: Address, theme: Theme) -> Element:
    """Fill the panel below the curve with the chosen tab."""
    report = store.report(chosen.report)
    known = [value for value, *_ in tabs.choices(report)]
    return tabs.TABS[chosen.option("tab", known)](store, chosen, theme)


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.draw(app, store, "liveness-plot", liveness_figure)
    for identifier, make in (
        ("liveness-answer", answer),
        ("liveness-overview", overview),
        ("liveness-peak", peak_link),
        ("liveness-details", details),
        ("liveness-bars", tabs.bars),
    ):
        view.fill(app, store, identifier, make)
    for identifier, (columns, frame) in tabs.PAGED.items():
        tables.serve(app, store, PATH, identifier, columns, frame)
        downloads.offer(app, identifier, frame)
    tables.pick_rows(app, "liveness-variables")
    downloads.offer(app, "liveness", curve_of)
    downloads.offer(app, "liveness-steps-side-by-side", tabs.steps_frame)
    downloads.offer(app, "liveness-tiles", tabs.tiles_frame)
    downloads.offer(app, "liveness-vertices", tabs.vertices_frame)
    downloads.offer(app, "liveness-cycles", tabs.cycles_frame)
