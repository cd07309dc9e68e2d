"""How two reports differ, drawn: the way from total to total, and the curves of both."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from dashboard import controls, downloads
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.components import ANY, PICKED_BY_KEYS, PLOT_CONFIG, Element, Frame
from dashboard.pages.compare import tables as known
from dashboard.pages.compare.tables import TABS, both, compared, tiles_of_both
from dashboard.pages.memory.page import ipu_tiles
from dashboard.store import Store
from pva.analysis.memory import liveness
from pva.analysis.whole_report.comparison import (
    AFTER,
    BEFORE,
    rows_of_waterfall,
    total_of,
    waterfall,
)
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd
from pva.plot import compare as figures
from pva.plot.axes import Figure
from pva.plot.compare import Curve
from pva.plot.memory import add_ipu_borders
from pva.plot.theme import Theme

PLOT_PIXELS, WAY_PIXELS = 320, 290
BOTH, CHANGE, SEPARATE = "together", "change", "separate"


def plot_of_tab(store: Store, state: Address, theme: Theme) -> Element:
    """Draw the curves of both, where the tab has some."""
    name = state.option("tab", list(TABS))
    if name not in PLOTS:
        return None
    words, draw = PLOTS[name]
    choices = [(BOTH, "In one plot"), (SEPARATE, "One above the other")]
    choices += [(CHANGE, "The change")] if name == "memory" else []
    tools = [
        *([controls.switch("gaps", "Gaps", state)] if name == "memory" else []),
        controls.choice("show", choices, state, label="How both are drawn"),
        controls.exports(f"compare-{name}-curves", "compare-curves"),
    ]
    head = [html.H2(words), html.Div(controls.row(tools), className="tools")]
    plot = dcc.Graph(
        id="compare-curves", figure=draw(store, state, theme), config=PLOT_CONFIG,
        responsive=True, className="plot-inner",
    )  # fmt: skip
    picks = {"data-picks": f"{OBJECTS[name]}:", "tabIndex": "0", **PICKED_BY_KEYS}
    place = html.Div(plot, className="plot", style={"height": f"{PLOT_PIXELS}px"}, **picks)
    return html.Div([html.Div(head, className="section-head"), place])


def way(store: Store, state: Address, theme: Theme) -> Element:
    """Draw how the changes of the chosen table lead from the total before to the total after."""
    if state.option("tab", list(TABS)) == "settings":
        return None
    table = known.table_of(state)
    try:
        frame = way_of(store, state)
    except NotRecordedError:
        return None  # the rows below say so
    if not len(frame):
        return None
    before, after, _ = total_of(compared(store, state, table.name))
    names = (f"before: {state.report or store.keys[0]}", f"after: {state.against}")
    figure = figures.waterfall(
        frame, total=(before, after), unit=table.unit, names=names, theme=theme,
        objects=_objects(store, state, frame),
    )  # fmt: skip
    head = [
        html.H2(f"From before to after, {table.words[:1].lower()}{table.words[1:]}"),
        html.Span(table.total, className="note"),
        html.Div(controls.exports("compare-way", "compare-way-plot"), className="tools"),
    ]
    return html.Div(
        [html.Div(head, className="section-head"),
         components.drawn(figure, "compare-way-plot", WAY_PIXELS, objects=ANY)]
    )  # fmt: skip


def _objects(store: Store, state: Address, steps: Frame) -> list[str | None]:
    """Return the objects that the changes of a waterfall are, none for all others together."""
    table = known.table_of(state)
    frame = compared(store, state, table.name)
    first = rows_of_waterfall(frame, steps)
    found = known.objects_of(store.report(state.report), table, first)
    return [*found, *[None] * (len(steps) - len(first))]


def way_of(store: Store, state: Address) -> Frame:
    """Return the changes of the chosen table, the largest first, from total to total."""
    table = known.table_of(state)
    frame = compared(store, state, table.name)
    return waterfall(known.named(frame, table)[["name", *frame.columns[len(table.keys) :]]]).frame()


def memory_figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the memory of the tiles of both, and where another IPU begins."""
    frame = tiles_of_both(store, state)
    if state.show == CHANGE:
        drawn = figures.change_by_tile(frame, theme=theme)
    else:
        first = Curve(f"before: {state.report or store.keys[0]}", _bytes(frame, BEFORE, AFTER))
        second = Curve(f"after: {state.against}", _bytes(frame, AFTER, BEFORE))
        together = state.show != SEPARATE
        drawn = figures.two_curves((first, second), axis="Tile", theme=theme, together=together)
    tiles = {ipu_tiles(report) for report in both(store, state)}
    add_ipu_borders(drawn, len(frame), tiles.pop() if len(tiles) == 1 else 0, theme)
    return drawn


def _bytes(frame: Frame, column: str, opposite: str) -> Any:
    """Return the bytes of the tiles that the report of `column` has."""
    return frame.loc[frame["in"] != opposite, column].to_numpy()


def liveness_figure(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw what is live at each program step of both."""
    names = (f"before: {state.report or store.keys[0]}", f"after: {state.against}")
    curves = []
    for name, report in zip(names, both(store, state), strict=True):
        frame = liveness.liveness_curve(report).frame()
        words = frame["name"].where(frame["name"] != "", frame["type"]).tolist()
        curves.append(Curve(name, frame["total"].to_numpy(), words))
    together = state.show != SEPARATE
    return figures.two_curves(
        (curves[0], curves[1]), axis="Program step", theme=theme, together=together
    )


OBJECTS = {"memory": "tile", "liveness": "program-step"}  # that numbers along x are
PLOTS = {
    "memory": ("Bytes by tile", memory_figure),
    "liveness": ("Live bytes by program step", liveness_figure),
}


def curves_frame(name: str) -> downloads.MakeFrame:
    def frame(store: Store, state: Address) -> Frame:
        if name == "memory":
            return tiles_of_both(store, state)
        parts = [liveness.liveness_curve(report).frame() for report in both(store, state)]
        return pd.concat(parts, keys=["before", "after"], names=["in", None]).reset_index(level=0)

    return frame
