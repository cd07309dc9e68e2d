"""The lower pane of the Memory page: what lies on the chosen tiles, or on all."""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import Dash, html

from dashboard import controls, downloads, tables, view
from dashboard.address import Address
from dashboard.details.object_rows import compute_set_objects, exchange_objects, variables_named
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame
from dashboard.store import Report, Store
from dashboard.tables import Row
from pva import units
from pva.analysis.memory import tile_series
from pva.analysis.memory.totals import category_label, memory_overview
from pva.analysis.whole_report import tile_contents
from pva.plot import floor
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH = "/memory"
DETAILS, COMPUTE_SETS, VERTICES, EXCHANGES, VARIABLES = (
    "details", "compute-sets", "vertices", "exchanges", "variables",
)  # fmt: skip
TABS = (
    (DETAILS, "Details"),
    (COMPUTE_SETS, "Compute sets"),
    (VERTICES, "Vertices"),
    (EXCHANGES, "Exchanges"),
    (VARIABLES, "Variables"),
)
KEYS = ("tab", "tile", "folded", "lies")
TABLE, BY_ADDRESS = "table", "address"
LIES = ((TABLE, "As a table"), (BY_ADDRESS, "By address"))

COLUMNS: dict[str, tuple[Column, ...]] = {
    COMPUTE_SETS: declared_columns(
        tile_contents.compute_sets_on_tiles,
        "name/name Compute set",
        "vertices@110 Vertices",
        "instances@110 Instances",
        "state@110 State",
        "code@120 Code, shared",
    ),
    VERTICES: declared_columns(
        tile_contents.vertices_on_tiles,
        "name/name Vertex type",
        "vertices@110 Vertices",
        "state@110 State",
        "code@110 Code",
        "total@110 Bytes",
    ),
    EXCHANGES: declared_columns(
        tile_contents.exchanges_on_tiles,
        "name/name Exchange",
        "kind/text Kind",
        "code_bytes@110 Code",
        "bytes_received@120 Received",
        "bytes_sent@120 Sent",
    ),
    VARIABLES: declared_columns(
        tile_contents.variables_on_tiles,
        "name/name Variable",
        "category/text@150 Category",
        "type/text@90 Type",
        "shape/text@120 Shape",
        "bytes@110 Bytes",
    ),
}
ADDRESS_COLUMNS = (
    *declared_columns(
        tile_series.address_map,
        "address/number@100 Address",
        "end/number@100 End",
        "bytes@100 Bytes",
    ),
    Column("words", "What", "name", note="The variable, or a gap"),
    *declared_columns(tile_series.address_map, "category/text@150 Category", "region/text Region"),
    Column("live", "Live at steps", "text", 140, "From the first to the last"),
    *declared_columns(tile_series.address_map, "shares@100 Overlaps"),
)
REGION_WORDS = {
    "nonInterleaved": "Non-interleaved",
    "interleaved": "Interleaved",
    "overflowed": "Overflowed",
}
ANALYSES: dict[str, Any] = {
    COMPUTE_SETS: tile_contents.compute_sets_on_tiles,
    VERTICES: tile_contents.vertices_on_tiles,
    EXCHANGES: tile_contents.exchanges_on_tiles,
    VARIABLES: tile_contents.variables_on_tiles,
}
COUNTED = ("vertices", "code", "code_bytes")  # what may not be known
PICKS = {VARIABLES: ("variable", "variable"), COMPUTE_SETS: (KEY, KEY), EXCHANGES: (KEY, KEY)}
MAIN = {COMPUTE_SETS: "state", VERTICES: "total", EXCHANGES: "code_bytes", VARIABLES: "bytes"}


NEEDS = {
    COMPUTE_SETS: "memory_by_compute_set_code",
    VERTICES: "memory_by_vertex_type_total",
    EXCHANGES: "exchange_bytes_received",
    VARIABLES: "variables",
}


def tab_choices(report: Report) -> list[controls.Tab]:
    """List the tabs, those grey for which the report has nothing."""
    missing = {tab: "The report does not hold it." for tab, part in NEEDS.items()
               if not report.dataset.has(part)}  # fmt: skip
    return [(tab, words, missing.get(tab, "")) for tab, words in TABS]


def subject(state: Address) -> str:
    """Return which tiles the lower pane is about."""
    if not state.tiles:
        return "All tiles"
    if len(state.tiles) == 1:
        return f"Tile {state.tiles[0]:,}"
    return f"{len(state.tiles):,} tiles"


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show the tab that the address asks for; raises PvaError."""
    tab = state.option("tab", [value for value, _ in TABS])
    report = store.report(state.report)
    if tab == DETAILS:
        return details_tree(report, state)
    if tab == VARIABLES:
        return variables_tab(report, state, theme)
    return html.Div(
        [_head(state, tab, controls.filter_box("name", "Filter by name", state)), _table(state,
                                                                                          tab)]
    )  # fmt: skip


def _head(state: Address, tab: str, *items: Element) -> Element:
    clear = [html.Button("All tiles", className="button", **{"data-clear": "tile"})]
    return html.Div(
        [
            html.H2(subject(state)),
            *(clear if state.tiles else []),
            html.Div([*items, controls.exports(f"memory-{tab}")], className="tools tools-row"),
        ],
        className="section-head",
    )


def columns_of(state: Address) -> tuple[Column, ...]:
    """Return the columns of the table of a tab: those of all, and one for each chosen tile."""
    tab = state.option("tab", [value for value, _ in TABS])
    shown = [
        f"{name}@105 {name.replace('_', ' ').capitalize()}"
        for name in tile_contents.own_columns(state.tiles)
    ]
    return (*COLUMNS.get(tab, ()), *(declared_columns(ANALYSES[tab], *shown) if shown else ()))


def _table(state: Address, tab: str) -> Element:
    picks = PICKS.get(tab)
    many = tab == VARIABLES
    return tables.paged("memory-rows", columns_of(state), picks=picks, many=many, follows="filter")


def rows(store: Store, state: Address) -> Frame:
    """Return the rows of the table of a tab; raises PvaError."""
    tab = state.option("tab", [value for value, _ in TABS])
    report = store.report(state.report)
    if tab == DETAILS:
        return tile_contents.tile_details(report, tiles=state.tiles).frame()
    if tab == VARIABLES and state.option("lies", [value for value, _ in LIES]) == BY_ADDRESS:
        return tile_series.address_map(report, tile=_one_tile(report, state)).frame()
    if state.tiles:
        return components.filtered(_on_tiles(report, tab, state.tiles), state.filter)
    every = store.derived(state.report, f"rows of {tab}", lambda: _on_tiles(report, tab))
    return components.filtered(every, state.filter)


def _on_tiles(report: Report, tab: str, tiles: tuple[int, ...] = ()) -> Frame:
    """Return all rows of the table of a tab, unknown figures as missing; raises PvaError."""
    columns = tile_contents.own_columns(tiles)
    frame: Frame = ANALYSES[tab](report, tiles=tiles)
    if tab == VARIABLES:
        labels = {name: category_label(name) for name in frame["category"].unique()}
        frame = frame.assign(category=frame["category"].map(labels))
    if tab == COMPUTE_SETS:
        sets = frame["compute_set"].to_numpy()
        frame = frame.assign(**{KEY: np.array(compute_set_objects(report, sets), dtype=object)})
    if tab == EXCHANGES:
        frame = frame.assign(**{KEY: np.array(exchange_objects(report, frame), dtype=object)})
    figures = [name for name in frame if name in COUNTED or tab == EXCHANGES and name in columns]
    return frame.assign(**{name: frame[name].where(frame[name] >= 0) for name in figures})


def details_tree(report: Report, state: Address) -> Element:
    """Show the memory of each chosen tile, or of all, as a tree; raises SelectionError."""
    columns = tile_contents.tile_details(report, tiles=state.tiles).arrays
    names = list(columns)[2:]
    headings = ["Memory", *(name.replace("_", " ").capitalize() for name in names)]
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    entries = [
        Row(path, label, tuple(units.size(value).replace("-", "−") for value in cells))
        for path, label, *cells in values
    ]
    entries.insert(0, Row("physical", "Physical tile", _physical(report, state, len(names))))
    grid = tables.tree(headings, entries, state)
    return html.Div([_head(state, DETAILS), grid])


def _physical(report: Report, state: Address, columns: int) -> tuple[str, ...]:
    if not 0 < len(state.tiles) == columns:
        return ("–",) * columns
    plan = tile_series.floor_plan(report).arrays
    places = list(state.tiles)
    pairs = zip(plan["physical_tile"][places], plan["ipu"][places], strict=True)
    return tuple(f"{physical:,} of IPU {ipu}" for physical, ipu in pairs)


def variables_tab(report: Report, state: Address, theme: Theme) -> Element:
    """Show the variables on the chosen tiles as a table, or those of one tile by address."""
    choice = controls.choice("lies", LIES, state, label="Table or addresses")
    by_address = state.option("lies", [value for value, _ in LIES]) == BY_ADDRESS
    if not by_address:
        hint = "Click variables to plot them over the tiles (graph Variables)."
        box = controls.filter_box("name", "Filter variables", state)
        head = _head(state, VARIABLES, choice, box)
        return html.Div([head, html.P(hint, className="note"), _table(state, VARIABLES)])
    one = Address(tiles=(_one_tile(report, state),))
    fullest = "" if state.tiles else "This is the tile that needs the most; choose another above. "
    note = (
        f"{fullest}Code and vertex state have no addresses in the report: they fill gaps. What "
        "lies above each other overlaps and is never live together."
    )
    return html.Div(
        [
            _head(one, VARIABLES, choice),
            html.P(note, className="note"),
            view.plot("memory-address", PATH, (), height=320, inside=(state, theme), objects=True),
            tables.paged("memory-addresses", ADDRESS_COLUMNS, rows=8),
        ]
    )


def _one_tile(report: Report, state: Address) -> int:
    if state.tile is not None:
        return state.tile
    return memory_overview(report).fullest_tile


def address_figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw what lies at which address of a tile, and when."""
    report = store.report(state.report)
    frame = tile_series.address_map(report, tile=_one_tile(report, state)).frame()
    frame[KEY] = variables_named(report, frame["name"].tolist())
    return floor.address_map(frame, steps=report.dataset.length("liveness_steps"), theme=theme,
                             label=category_label)  # fmt: skip


def address_rows(store: Store, state: Address) -> Frame:
    """Return what lies on a tile by address, in words."""
    report = store.report(state.report)
    frame = tile_series.address_map(report, tile=_one_tile(report, state)).frame()
    gap = frame["kind"] == "gap"
    frame[KEY] = variables_named(report, frame["name"].tolist())
    steps = frame["first_step"].astype(str) + " to " + frame["last_step"].astype(str)
    return frame.assign(
        words=frame["name"].where(~gap, "(gap)"),
        region=frame["region"].map(REGION_WORDS).fillna(frame["region"]),
        category=frame["category"].map(lambda name: category_label(name) if name else ""),
        live=steps.where(frame["first_step"] >= 0, "always").where(~gap, ""),
    )


def register(app: Dash, store: Store, path: str) -> None:
    """Add the callbacks of the lower pane."""
    view.fill(app, store, "memory-details", details)
    view.draw(app, store, "memory-address", address_figure)
    tables.serve(app, store, path, "memory-rows", columns_of, rows)
    tables.serve(app, store, path, "memory-addresses", ADDRESS_COLUMNS, address_rows)
    for tab, _ in TABS:
        downloads.offer(app, f"memory-{tab}", rows)
