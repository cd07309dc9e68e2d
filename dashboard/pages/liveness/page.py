"""What is live at the same time, and when most?

The steps that are chosen, or the peak, stand below the curve: one with its shares, several side by
side with the change from the first to the last.
"""

from __future__ import annotations

from functools import partial

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import ONE_IPU, Declaration
from dashboard.details.object_rows import object_steps, object_tiles
from dashboard.details.objects import KEY, VARIABLE, object_of
from dashboard.elements import components
from dashboard.elements.components import Element, Frame
from dashboard.elements.overview import strip
from dashboard.figures.live_map import live_map, mark_object
from dashboard.pages.headlines import liveness_sentence
from dashboard.pages.liveness import tabs
from dashboard.pages.liveness.tabs import curve_of, scope_words
from dashboard.pages.provenance import badge
from dashboard.store import Report, Store
from pva import units
from pva.analysis.machine import bytes_per_tile
from pva.analysis.memory import liveness as analysis
from pva.analysis.memory.live_map import liveness_map
from pva.plot import liveness as figures
from pva.plot.axes import Figure, whole
from pva.plot.theme import Theme

PATH, TITLE = "/liveness", "Liveness"
QUESTION = "What is live at the same time, and when most?"

MOVING = "moving"  # the option `show` of the address that leaves the always-live out
CHOICES = (("all", "All"), (MOVING, "Not always live"))
TILES = "tiles"  # the option `graph` of the address that draws tiles by steps
GRAPHS = (("curve", "Curve"), (TILES, "Tiles by steps"))
MAP_ROWS, MAP_COLUMNS = 92, 240
PLACE = ("ipu", "tile")  # the keys of the address that say where


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"step": {"": "program-step"}},
    order=50,
    letter="l",
    icon="M2.5 2.5v11h11M5 11l2-3 1.7 1 1.8-4.5 2.5 5",
    controls={
        "ipu": ONE_IPU,
        "graph": (
            "Kind of graph",
            (
                "Draws the bytes of all tiles at each step as a curve, or "
                "the bytes of each tile at each step as a heat map"
            ),
        ),
        "tile": ("One tile", "Shows one tile instead of all"),
        "show": ("What is drawn", "Draws all that is live, or leaves out what is always live"),
        "find": ("Filter steps", "Marks the program steps whose name contains this text"),
        "step": ("Steps", "Chooses program steps by number: several stand side by side below"),
        "filter": ("Filter variables", "Shows only rows whose name contains this text"),
    },
    tables=(
        ("Columns: always live", tabs.ALWAYS_COLUMNS),
        ("Columns: lifetimes", tabs.LIFETIME_COLUMNS),
        ("Columns: over tiles", tabs.TILE_COLUMNS),
        ("Columns: cycle estimates", tabs.CYCLE_COLUMNS),
        ("Columns: steps", tabs.STEP_COLUMNS),
    ),
    laws=("live", "always_live", "not_always_live", "variable", "programs"),
    chapter="""\
**What is live at the same time, and when most?** A variable is live from the program step that
writes it to the last that reads it. *Always live* is what is live at every step: weights, code,
constants. On top of it comes what is *not always live*; the step with the most is the peak, which
decides whether the program fits.

Click a step, click more with Shift, or drag over a range: several steps stand side by side below,
with the change from the first to the last. *Go to the peak* chooses the step with the most.

*Tiles by steps* draws a heat map: tiles from top to bottom, program steps from left to right, the
colour is what is live on the tile at the step. A cell that stands for several tiles shows the
fullest of them. Of several steps it shows the one at which most is live.

## Tabs

The tabs list what is not always live at the chosen steps, what is always live, lifetimes of
variables as bars, how evenly tiles share what is live, the vertices that the steps run, their
cycle estimates, and the steps themselves. A report of PyTorch has a tab *By module*: the tree of
its modules, each with all that is within. Variables of equal names are one row; a click on it
shows each below.

## The drawer

A click on a variable, operation, compute set, exchange, step, tile, layer or event, in a table or a
picture of any page, opens a drawer beside the page, below it on narrow windows: where it was
created, its bytes and tiles, when it is live, who writes and reads it, its cycles, the findings
about it, and the pages that show it. The link holds it (`object=variable:3`), the menu takes it
along to the other pages, which mark it, and `Escape` closes it.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether liveness was recorded."""
    return store.report(report).dataset.has("liveness_steps")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    if not report.dataset.length("liveness_steps"):
        live = analysis.liveness_overview(report)
        return html.Div([_question(), components.headline(liveness_sentence(live))])
    drawn = (*PLACE, "show", "find", "range", "graph", f"{KEY}!", VARIABLE)
    plot = view.plot("liveness-plot", PATH, drawn, height=0, picks="step", zooms=True)
    small = view.panel("liveness-overview", PATH, PLACE)
    above = [_head(report), _tools(report, state), small, plot]
    keys = (*PLACE, "step", "filter", "find", "tab", "open")
    below = [
        controls.tabs(tabs.choices(report), state),
        view.panel("liveness-details", PATH, keys, themed=True),
    ]
    return html.Div(
        [
            _question(),
            view.panel("liveness-answer", PATH, (*PLACE, "graph")),
            controls.split(above, html.Div(below), name="liveness"),
        ]
    )


def _question() -> Element:
    return components.title(QUESTION)


def _head(report: Report) -> Element:
    note = "click a step, Shift-click more to compare; drag to choose a range"
    parts = [
        html.H2("Live bytes by program step"),
        badge(report, "always_live_bytes"),
        html.Span(note, className="note"),
        html.Div(controls.exports("liveness", "liveness-plot"), className="tools"),
    ]
    return html.Div(parts, className="section-head")


def _tools(report: Report, state: Address) -> Element:
    ipus = int(report.dataset.of_replica("num_ipus"))
    of_ipu = [("", "All tiles"), *((str(ipu), f"IPU {ipu}") for ipu in range(ipus))]
    where = [controls.select("ipu", of_ipu, state, label="IPU", width=110)] if ipus > 1 else []
    has_pieces = report.dataset.has("variable_pieces")
    graph = [controls.choice("graph", GRAPHS, state, label="Kind of graph")] if has_pieces else []
    return controls.row(
        [
            *graph,
            *where,
            controls.box("tile", "One tile, e.g. 3", state, width=150),
            controls.choice("show", CHOICES, state, label="What is drawn"),
            controls.box("find", "Filter steps", state, width=170),
            controls.box("step", "Steps, e.g. 3, 12", state, width=150),
            controls.filter_box("name", "Filter variables", state, width=180),
            view.panel("liveness-peak", PATH, (*PLACE, "tab", "filter", "find", "show")),
        ]
    )


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Return how much is live at most, in the whole program, on an IPU or on a tile."""
    report = store.report(state.report)
    live = analysis.liveness_overview(report)
    if state.text("graph") == TILES:
        return components.headline(liveness_sentence(live), more=fullest_sentence(store, state))
    if state.tile is None and state.ipu is None:
        return components.headline(liveness_sentence(live))
    curve = curve_of(store, state)
    peak = curve.iloc[int(curve["total"].argmax())]
    sentence = (
        f"{scope_words(state)}: at most {units.size(peak['total'])} are live at once, at "
        f"step {peak['step']:,} ({peak['name'] or peak['type']}); "
        f"{units.size(peak['always_live'])} of it always."
    )
    detail = f"In the whole program {units.size(live.max_live)}, at step {live.peak_step:,}."
    return components.headline(sentence, more=detail)


def fullest_sentence(store: Store, state: Address) -> str:
    """Return which tile holds most, when, and how much less another one holds then."""
    frame = map_of(store, state)
    top = frame.iloc[int(frame["live"].argmax())]
    least = frame[frame["step"] == top["step"]]["live"].min()
    return (
        f"Tile {top['fullest_tile']:,} holds most: {units.size(top['live'])} at step "
        f"{top['step']:,} ({top['name'] or top['type']}); of other tiles then as little as "
        f"{units.size(least)}."
    )


def map_of(store: Store, state: Address) -> Frame:
    """Return what is live by tile and step, of the steps and the IPU in view."""
    report = store.report(state.report)
    steps = report.dataset.length("liveness_steps")
    begin, end = whole(steps, (state.range.begin, state.range.end) if state.range else None)
    frame = store.derived(
        state.report,
        f"liveness map {begin} {end}",
        lambda: liveness_map(
            report, rows=MAP_ROWS, columns=MAP_COLUMNS, first_step=begin, last_step=end - 1
        ).frame(),
    )
    return frame if state.ipu is None else frame[frame["ipu"] == state.ipu]


def peak_link(store: Store, state: Address, _theme: Theme) -> Element:
    """Lead to the step at which the most is live."""
    curve = curve_of(store, state)
    step = int(curve["total"].argmax())
    link = address.write(tabs.at_steps(state, PATH, (step,)))
    return dcc.Link("Go to the peak", href=link, className="button", title=f"Step {step:,}")


def liveness_figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the curve of the program, of an IPU or of a tile; or all tiles by steps."""
    if state.text("graph") == TILES:
        capacity = bytes_per_tile(store.report(state.report))
        frame, always = map_of(store, state), state.show != MOVING
        figure = live_map(frame, always=always, capacity=capacity, theme=theme)
        report, subject = store.report(state.report), object_of(state)
        tiles, life = object_tiles(report, subject)[0], object_steps(report, subject)
        mark_object(figure, frame, tiles, life, theme=theme)
        return figure
    curve = curve_of(store, state)
    matches = tabs.matches(curve, state)
    window = (state.range.begin, state.range.end) if state.range else None
    figure = figures.liveness_curve(
        curve, always=state.show != MOVING, matches=matches, theme=theme, window=window
    )
    steps = object_steps(store.report(state.report), object_of(state))
    if steps:
        figures.mark_steps(figure, *steps, theme=theme)
    return figure


def plotted(store: Store, state: Address) -> Frame:
    """Return the data of the plot."""
    return map_of(store, state) if state.text("graph") == TILES else curve_of(store, state)


def overview(store: Store, state: Address, _theme: Theme) -> Element:
    """Draw all steps in a strip; what is live anyhow would leave nothing to see."""
    heights = curve_of(store, state)["not_always_live"].to_numpy()
    return strip(heights, "liveness-plot", "the steps")


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Fill the panel below the curve with the chosen tab."""
    report = store.report(state.report)
    names = [value for value, *_ in tabs.choices(report)]
    return tabs.TABS[state.option("tab", names)](store, state, theme)


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
    of_modules = partial(tabs.module_columns, store)
    tables.serve(app, store, PATH, "liveness-modules", of_modules, tabs.modules_frame)
    downloads.offer(app, "liveness-modules", tabs.modules_frame)
    downloads.offer(app, "liveness", plotted)
    downloads.offer(app, "liveness-steps-side-by-side", tabs.steps_frame)
    downloads.offer(app, "liveness-tiles", tabs.tiles_frame)
    downloads.offer(app, "liveness-vertices", tabs.vertices_frame)
    downloads.offer(app, "liveness-cycles", tabs.cycles_frame)
