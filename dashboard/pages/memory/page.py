"""Where is the memory of the tiles?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from dash import Dash, html

from dashboard import controls, downloads, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.details.object_rows import object_tiles
from dashboard.details.objects import VARIABLE, object_of
from dashboard.elements import components
from dashboard.elements.components import Element, Frame
from dashboard.elements.overview import strip
from dashboard.pages.headlines import code_sentence, fit_sentence, fit_tone, most_of_memory
from dashboard.pages.memory import tabs
from dashboard.pages.provenance import badge
from dashboard.store import Report, Store
from pva.analysis.machine import tiles_per_ipu
from pva.analysis.memory import tile_series
from pva.analysis.memory import totals as analysis
from pva.analysis.memory.one_variable import variable_name
from pva.plot import floor
from pva.plot import memory as figures
from pva.plot.axes import Figure
from pva.plot.memory import Limit, Series
from pva.plot.theme import SERIES, Theme

PATH, TITLE = "/memory", "Memory"
QUESTION = "Where is the memory of the tiles?"

TOTAL, VARIABLES, MAP = "total", "variables", "map"
GRAPHS = ((TOTAL, "Total"), (VARIABLES, "Variables"), (MAP, "Tile map"))
# The file with the data of each; "memory-variables" is that of the tab of this name.
DATA = {TOTAL: "memory-total", VARIABLES: "memory-variables-by-tile", MAP: "memory-map"}
BREAKDOWNS = (
    ("category", "By category"),
    ("region", "By region"),
    ("liveness", "By liveness"),
    ("none", "No breakdown"),
)
KINDS = tuple(kind for kind, _ in BREAKDOWNS)
UNITS = (("tile", "Per tile"), ("ipu", "Per IPU"))
ORDERS = (("software", "Software order"), ("physical", "Physical order"))
SCALES = tuple((name, f"Colours: {name}") for name in floor.SCALES)
EVERYTHING = "all"
PLOT_KEYS = (
    "graph", "breakdown", "per", "order", "gaps", "limit", "variable", "category", "scale", "range",
    "object!",
)  # fmt: skip


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"tile": {"": "tile"}},
    order=40,
    letter="m",
    icon=(
        "M4.5 4.5h7v7h-7zM6.5 2v2.5m3-2.5v2.5m-3 7V14m3-2.5V14M2 6.5h2.5M2 9.5h2.5m7-3H14m-2.5 3H14"
    ),
    controls={
        "graph": (
            "Kind of graph",
            (
                "Draws all memory of each tile, chosen variables over them,"
                " or the tiles as they lie on the chip"
            ),
        ),
        "breakdown": ("Breakdown", "Splits what a tile has by region, category or liveness"),
        "per": ("Per tile or IPU", "Draws a value a tile, or the sum of each IPU"),
        "order": (
            "Order of tiles",
            "Puts tiles in the order of their numbers, or as they lie on the chip",
        ),
        "gaps": ("Gaps", "Counts what lies unused between variables, as the tile needs it too"),
        "limit": (
            "Maximum",
            "Draws the memory that a tile has as a line, or scales the map to it",
        ),
        "category": ("Category", "Colours the map by all memory, or by one category of data"),
        "scale": ("Colours", "Chooses the colours of the map"),
        "tile": ("Tiles", "Chooses tiles by number, as in 3, 17, 100-120: a column each below"),
        "filter": ("Filter by name", "Shows only rows whose name contains this text"),
        "lies": ("Table or addresses", "Lists variables by size, or lays one tile out by address"),
    },
    tables=(
        ("Columns: compute sets", tabs.COLUMNS[tabs.COMPUTE_SETS]),
        ("Columns: vertices", tabs.COLUMNS[tabs.VERTICES]),
        ("Columns: exchanges", tabs.COLUMNS[tabs.EXCHANGES]),
        ("Columns: variables", tabs.COLUMNS[tabs.VARIABLES]),
        ("Columns: variables by address", tabs.ADDRESS_COLUMNS),
    ),
    laws=(
        "target",
        "graph",
        "memory_",
        "variable",
        "vertex",
        "compute_set",
        "control_code",
        "exchange_",
        "external_",
        "always_live",
        "not_always_live",
        "physical_tile",
    ),
    chapter="""\
**Where is the memory of the tiles?** The plot has a value a tile, by category and without gaps; a
dotted line stands where another IPU begins. A tile is full when its memory *including gaps*
reaches the maximum; one that is over it is out of memory, and marked. *Gaps* adds them to the
plot.

Click a tile, click another with Shift, drag over a range, or type numbers: the tables below then
have a column a tile. Without a choice they are about all tiles.

## Tabs

| Tab | What it shows |
| --- | --- |
| Details | the bytes by region, by category and by liveness, as a tree |
| Compute sets | the state and the code of the vertices of each compute set |
| Vertices | the same by vertex type |
| Exchanges | the code of each exchange, and what it moves |
| Variables | each variable, or what lies at which address of a tile |

## Words

* *Interleaved* and *non-interleaved* are the two regions of a tile's memory; *overflowed* is what
  does not fit.
* *Gaps* are bytes between variables that hold nothing, as what uses them constrains where they
  begin.
* *Overlapped* variables share their place, as they are not live at the same time.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the memory of tiles was recorded."""
    return store.report(report).dataset.has("memory_by_tile")


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(state.report)
    memory = analysis.memory_overview(report)
    detail = f"{most_of_memory(memory)} {code_sentence(counted=memory.code_counted)}".strip()
    above = [
        view.panel("memory-tools", PATH, ("graph", "breakdown", "per"), name="pane-tools"),
        view.panel("memory-overview", PATH, PLOT_KEYS[:-1]),
        view.plot("memory-plot", PATH, PLOT_KEYS, height=0, picks="tile", zooms=True),
    ]
    below = [
        controls.tabs(tabs.tab_choices(report), state),
        view.panel("memory-details", PATH, tabs.KEYS, themed=True),
    ]
    return html.Div(
        [
            components.title(QUESTION),
            components.headline(fit_sentence(memory), fit_tone(memory), more=detail),
            controls.split(above, below, name="memory"),
        ]
    )


def tools(store: Store, state: Address, theme: Theme) -> Element:
    """Show the controls that fit the kind of graph."""
    del theme
    report = store.report(state.report)
    graph = state.option("graph", [value for value, _ in GRAPHS])
    tiles = "Tiles, e.g. 3, 17, 100-120"
    return controls.row(
        [
            controls.choice("graph", GRAPHS, state, label="Kind of graph"),
            *_TOOLS[graph](report, state),
            badge(report, "memory_by_tile"),
            html.Div(
                [controls.box("tile", tiles, state),
                 controls.exports(DATA[graph], "memory-plot")],
                className="tools tools-row",
            ),
        ]
    )  # fmt: skip


def _limit_switch(state: Address) -> Element:
    return controls.switch("limit", "Maximum", state)


def _total_tools(report: Report, state: Address) -> list[Element]:
    gaps = state.option("breakdown", KINDS) != "liveness"
    per_tile = state.option("per", tile_series.UNITS) == "tile"
    lacking = analysis.memory_overview(report).tiles_out_of_memory > 0
    multi_ipu = int(report.dataset.of_replica("num_ipus")) > 1
    return [
        controls.select("breakdown", BREAKDOWNS, state, label="Breakdown"),
        *([controls.select("per", UNITS, state, label="Per tile or IPU", width=100)]
          if multi_ipu else []),
        *([controls.select("order", ORDERS, state, label="Order of tiles")] if per_tile else []),
        *([controls.switch("gaps", "Gaps", state)] if gaps else []),
        *([] if lacking else [_limit_switch(state)]),  # its line is drawn anyhow
    ]  # fmt: skip


def _variable_tools(report: Report, state: Address) -> list[Element]:
    del report
    return [html.Span("Choose variables in the tab Variables.", className="note"),
            _limit_switch(state)]  # fmt: skip


def _map_tools(report: Report, state: Address) -> list[Element]:
    used = analysis.memory_by_category(report).frame()
    pairs = zip(used["category"], used["label"], strict=True)
    categories = ((EVERYTHING, "All memory"), *pairs)
    return [
        controls.select("category", categories, state, label="Category", width=210),
        controls.select("scale", SCALES, state, label="Colours"),
        _limit_switch(state),
    ]


_TOOLS = {TOTAL: _total_tools, VARIABLES: _variable_tools, MAP: _map_tools}


def frame_of(store: Store, state: Address) -> Frame:
    """Return the frame that the plot shows; raises PvaError."""
    report = store.report(state.report)
    graph = state.option("graph", [value for value, _ in GRAPHS])
    if graph == MAP:
        return tile_series.floor_plan(report, category=chosen_category(report, state)).frame()
    if graph == VARIABLES:
        return tile_series.variables_by_tile(report, variables=chosen_variables(state)).frame()
    return tile_series.memory_series(
        report,
        breakdown=state.option("breakdown", KINDS),
        per=state.option("per", tile_series.UNITS),
        order=state.option("order", tile_series.ORDERS),
        gaps="included" if state.option("gaps", ("off", "on")) == "on" else "excluded",
    ).frame()


def _named_frame(store: Store, state: Address) -> Frame:
    """Return the same for a file, with the names of variables as the key of the plot has them."""
    frame = frame_of(store, state)
    report = store.report(state.report)
    names = {
        f"variable_{row}": _variable_words(report, row)
        for row in chosen_variables(state)
        if f"variable_{row}" in frame
    }
    return frame.rename(columns=names)


def _variable_words(report: Report, row: int) -> str:
    return f"{variable_name(report, row)} ({row:,})"


def chosen_category(report: Report, state: Address) -> str:
    """Return the category that the map shows, empty for all; raises AddressError."""
    categories = (EVERYTHING, *analysis.memory_by_category(report).frame()["category"])
    category = state.option("category", categories)
    return "" if category == EVERYTHING else category


def chosen_variables(state: Address) -> tuple[int, ...]:
    """Return the rows of the variables to plot; raises AddressError."""
    return state.numbers("variable")


def figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the plot that the address asks for."""
    report, frame = store.report(state.report), frame_of(store, state)
    graph = state.option("graph", [value for value, _ in GRAPHS])
    memory = analysis.memory_overview(report)
    bounded = state.option("limit", ("off", "on")) == "on"
    bounded |= graph == TOTAL and memory.tiles_out_of_memory > 0
    if graph == MAP:
        category = chosen_category(report, state)
        words = analysis.category_label(category) if category else ""
        top = memory.bytes_per_tile if bounded else float(frame["bytes"].max())
        scale = state.option("scale", floor.SCALES)
        drawn = floor.tile_map(frame, words=words, scale=scale, top=top, theme=theme)
        selection, name = object_tiles(report, object_of(state))
        if len(selection) and object_of(state).startswith(VARIABLE):  # tiles the browser frames
            floor.mark_tiles(drawn, frame, selection, name, theme)
        return drawn
    per_tile = frame.columns[0] == "tile"
    tiles = 1 if per_tile else tiles_per_ipu(report)
    counts_gaps = state.text("gaps") == "on" or state.text("breakdown") == "liveness"
    limit = Limit(memory.bytes_per_tile * tiles, "A tile" if per_tile else "An IPU", bounded,
                  noted=graph == TOTAL,
                  fullest="the fullest" if counts_gaps else "the fullest without gaps")  # fmt: skip
    drawn = figures.over_tiles(
        frame,
        _series(report, graph, list(frame.columns[1:]), theme),
        axis=_axis(state, per_tile=per_tile),
        limit=limit,
        theme=theme,
        window=(state.range.begin, state.range.end) if state.range else None,
        numbers=_numbers(state, frame, tiles, per_tile=per_tile),
        stacked=graph == TOTAL,
        lacking=_lacking(report, frame) if per_tile and memory.tiles_out_of_memory else None,
        ipus=ipu_tiles(report) if per_tile and state.text("order") != "physical" else 0,
    )
    selection, name = object_tiles(report, object_of(state))
    if len(selection) and per_tile and state.text("order") != "physical":
        figures.mark_tiles(drawn, selection, name, theme)
    return drawn


def ipu_tiles(report: Report) -> int:
    """Return the tiles of an IPU where there are several, else 0."""
    multi_ipu = int(report.dataset.of_replica("num_ipus")) > 1
    return tiles_per_ipu(report) if multi_ipu else 0


def overview(store: Store, state: Address, theme: Theme) -> Element:
    """Draw all that the plot covers in a strip; a map shows all of it at once."""
    del theme
    if state.option("graph", [value for value, _ in GRAPHS]) == MAP:
        return None
    heights = tile_series.stacked_heights(frame_of(store, state))
    return strip(heights, "memory-plot", "the tiles")


def _axis(state: Address, *, per_tile: bool) -> str:
    physical = per_tile and state.text("order") == "physical"
    return "Tile, in physical order" if physical else "Tile" if per_tile else "IPU"


def _numbers(state: Address, frame: Frame, tiles: int, *, per_tile: bool) -> list[Any] | None:
    """Return what a click at x = 0, 1, ... chooses, when that is not the tile x."""
    if not per_tile:
        return [f"{ipu * tiles}-{(ipu + 1) * tiles - 1}" for ipu in frame["ipu"].tolist()]
    numbers: list[Any] = frame["tile"].tolist()
    return numbers if state.text("order") == "physical" else None


def _lacking(report: Report, frame: Frame) -> npt.NDArray[np.int64]:
    """Return the places of the plot whose tile is out of memory."""
    free = analysis.memory_by_tile(report).frame()["free"].to_numpy()
    places: npt.NDArray[np.int64] = (free[frame["tile"].to_numpy()] < 0).nonzero()[0]
    return places


def _series(report: Report, graph: str, columns: list[str], theme: Theme) -> list[Series]:
    if graph == VARIABLES:
        rows = [int(column.removeprefix("variable_")) for column in columns]
        return [
            Series(column, _variable_words(report, row), SERIES[place], "rgba(0,0,0,0)")
            for place, (column, row) in enumerate(zip(columns, rows, strict=True))
        ]
    return [figures.series_of(column, analysis.category_label, theme) for column in columns]


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "memory-tools", tools)
    view.fill(app, store, "memory-overview", overview)
    view.draw(app, store, "memory-plot", figure)
    for name in DATA.values():
        downloads.offer(app, name, _named_frame)
    tabs.register(app, store, PATH)
