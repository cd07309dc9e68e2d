"""Where is the memory of the tiles?"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import address, components, downloads
from dashboard.address import Address
from dashboard.components import Column, Element, card, section
from dashboard.figures import memory as figures
from dashboard.figures.axes import Figure
from dashboard.pages.provenance import badge
from dashboard.pages.words import fit_sentence, fit_tone
from dashboard.store import Report, Store
from dashboard.theme import Theme
from pva import units
from pva.analysis import memory as analysis

PATH, TITLE = "/memory", "Memory"

GAPS, DATA, CATEGORY = "gaps", "data", "category"  # the option `show` of the address
CHOICES = ((GAPS, "With gaps"), (DATA, "Without gaps"), (CATEGORY, "By category"))
CATEGORY_COLUMNS = (
    Column("label", "Category", "name"),
    Column("total", "Bytes", "bytes", 120),
    Column("share", "Share", "share", 110),
    Column("not_overlapped", "Alone", "bytes", 120),
    Column("overlapped", "Sharing its place", "bytes", 160),
)


def available(store: Store, report: str) -> bool:
    """Tell whether the memory of tiles was recorded."""
    return store.report(report).dataset.has("memory_by_tile")


def layout(store: Store, chosen: Address) -> Element:
    """Lay the page out; raises PvaError."""
    report = store.report(chosen.report)
    memory = analysis.memory_overview(report)
    return html.Div(
        [
            components.title("Where is the memory of the tiles?"),
            components.headline(fit_sentence(memory), fit_tone(memory)),
            section(
                "Bytes by tile",
                components.plot("memory-plot", 400),
                note="click a tile for its categories",
                badge=badge(report, "memory_by_tile"),
                tools=_tools(chosen, memory.tiles),
            ),
            html.Div(id="memory-tile"),
        ]
    )


def _tools(chosen: Address, tiles: int) -> Element:
    return html.Div(
        [
            dmc.SegmentedControl(
                id="memory-show",
                data=[{"value": value, "label": label} for value, label in CHOICES],
                value=chosen.show or GAPS,
                size="xs",
            ),
            components.number_box("memory-tile-choice", "Tile", "Tile", tiles - 1),
        ],
        className="tools-row",
    )


def memory_figure(report: Report, chosen: Address, theme: Theme) -> Figure:
    """Draw the plot that the address asks for."""
    limit = analysis.memory_overview(report).bytes_per_tile
    if chosen.show == CATEGORY:
        return figures.memory_by_category(
            analysis.category_by_tile(report),
            label=analysis.category_label,
            limit=limit,
            tile=chosen.tile,
            theme=theme,
        )
    return figures.memory_by_tile(
        analysis.memory_by_tile(report),
        gaps=chosen.show != DATA,
        limit=limit,
        tile=chosen.tile,
        theme=theme,
    )


def tile_details(report: Report, tile: int | None) -> Element:
    """Show the categories of a tile, or of all tiles; raises SelectionError."""
    categories = analysis.memory_by_category(report, tile=tile)
    total = int(categories["total"].sum())
    categories = categories.assign(share=categories["total"] / max(total, 1))
    grid = components.table("memory-categories", categories, CATEGORY_COLUMNS)
    if tile is None:
        shared = total > analysis.memory_overview(report).total
        note = f"{units.size(total)}{', shared places counted for each' if shared else ''}"
        return section("Categories of all tiles", grid, note=note)
    note = f"of IPU {_row(report, tile)['ipu']}"
    close = html.Button("All tiles", id="memory-all", className="button")
    return section(
        f"Categories of tile {tile:,}", _cards(report, tile), grid, note=note, tools=close
    )


def _row(report: Report, tile: int) -> Any:
    return analysis.memory_by_tile(report).iloc[tile]


def _cards(report: Report, tile: int) -> Element:
    row = _row(report, tile)
    of_all = f"of {units.size(row['free'] + row['total_including_gaps'])}"
    return components.cards(
        card("With gaps", units.size(row["total_including_gaps"]), "what the tile needs"),
        card("Without gaps", units.size(row["total"]), "what it holds"),
        card("Free" if row["free"] >= 0 else "Too much", units.size(abs(row["free"])), of_all),
        card("Interleaved", units.size(row["interleaved"]), "of the data"),
        card("Non-interleaved", units.size(row["non_interleaved"]), "of the data"),
    )


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""

    def draw(search: str, theme: Theme) -> Any:
        chosen = address.parse(PATH, search)
        return memory_figure(store.report(chosen.report), chosen, theme)

    def detail(search: str) -> Element:
        chosen = address.parse(PATH, search)
        return tile_details(store.report(chosen.report), chosen.tile)

    downloads.offer(
        app, "memory-by-tile", lambda store, chosen: components.filtered(
            analysis.memory_by_tile(store.report(chosen.report)), chosen.filter
        ),
    )  # fmt: skip
    app.callback(
        Output("memory-plot", "figure"), Input("address", "search"), Input("theme", "data")
    )(components.or_nothing(draw))
    app.callback(Output("memory-tile", "children"), Input("address", "search"))(
        components.or_fault(detail)
    )
    for function, inputs in (
        ("pickTile", Input("memory-plot", "clickData")),
        ("typeTile", components.entered("memory-tile-choice")),
        ("leaveTile", Input("memory-all", "n_clicks")),
        ("choose", Input("memory-show", "value")),
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function), inputs, prevent_initial_call=True
        )
    app.clientside_callback(
        ClientsideFunction("tilescope", "shownTile"),
        Output("memory-tile-choice", "value"),
        Input("address", "search"),
    )
