"""A part of the computation graph: layers from left to right, as the data flow.

Nodes are boxes: variables square, what reads and writes them rounded. The place of a node in its
layer follows the mean place of its neighbours, so that few edges cross (Sugiyama's method).
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import escaped, shortened
from pva.plot.theme import Theme, plot_layout, step_colour, step_words, token

VARIABLE = "variable"
HALF_WIDTH, HALF_HEIGHT = 0.38, 0.36  # of a box, where layers and places are 1 apart
ROUND = 0.09
SWEEPS = 6
BENDS = 14  # points of the line of an edge
TWO_LINES = 9  # places in a layer up to which a box has room for two lines of text
REACH = 90  # pixels from the middle of a box at which the pointer still means it


def neighbourhood(nodes: pd.DataFrame, edges: pd.DataFrame, *, theme: Theme) -> go.Figure:
    """Draw nodes and the edges between them.

    `nodes` has the columns key, kind, name, bytes, layer, opened and hidden (neighbours that are
    not drawn); `edges` source and target.
    """
    x, y = places(nodes, edges)
    figure = go.Figure()
    _draw_edges(figure, nodes, edges, x, y, theme)
    _draw_boxes(figure, nodes, x, y, theme)
    tallest = int(nodes["layer"].value_counts().max()) if len(nodes) else 1
    two = tallest <= TWO_LINES
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": 24, "opacity": 0},
        # assets/graph.js writes what the boxes have room for; Plotly makes no room for "".
        text=["…"] * len(nodes),
        textfont={"size": 12 if two else 11, "color": _ink(nodes, theme)},
        customdata=nodes["key"].tolist(),
        hovertext=_hover(nodes),
        hovertemplate="%{hovertext}<extra></extra>",
        meta="numbers",
    )
    figure.update_layout(_layout(x, y, theme, nodes["key"].tolist()))
    size = {"width": 2 * HALF_WIDTH, "height": 2 * HALF_HEIGHT}
    boxes = {"names": nodes["name"].tolist(), "rests": _rests(nodes, two_lines=two), **size}
    return figure.update_layout(meta=figure.layout.meta | {"boxes": boxes})


def places(nodes: pd.DataFrame, edges: pd.DataFrame) -> tuple[Values, Values]:
    """Assign each node its layer, and a place in it, 1 apart and around 0."""
    layer = nodes["layer"].to_numpy(dtype=np.int64)
    rows = {key: row for row, key in enumerate(nodes["key"].tolist())}
    pairs = zip(edges["source"].tolist(), edges["target"].tolist(), strict=True)
    ends = np.array([(rows[a], rows[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    place = _spread(np.arange(len(layer), dtype=float), layer)
    links = np.zeros((len(layer), len(layer)))
    links[ends[:, 0], ends[:, 1]] = links[ends[:, 1], ends[:, 0]] = 1.0
    count = links.sum(axis=1)
    inside = [np.flatnonzero(layer == number) for number in np.unique(layer)]
    for sweep in range(SWEEPS):
        # One layer after the other, there and back: all at once, two of them would swap forever.
        for members in inside[:: 1 if sweep % 2 else -1]:
            mean = np.where(count > 0, links @ place / np.maximum(count, 1), place)
            place[members] = _spread(mean[members], layer[members])
    return layer.astype(float), place


def _spread(targets: Values, layer: Values) -> Values:
    """Put the nodes of each layer 1 apart and around 0, in the order that is wanted."""
    place = np.zeros(len(layer))
    for number in np.unique(layer):
        nodes = np.flatnonzero(layer == number)
        order = nodes[np.argsort(targets[nodes], kind="stable")]
        place[order] = np.arange(len(nodes)) - (len(nodes) - 1) / 2
    return place


def _draw_edges(
    figure: go.Figure,
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    x: Values,
    y: Values,
    theme: Theme,
) -> None:
    """Draw edges as curves from the right of a box to the left of another, with arrows."""
    rows = {key: row for row, key in enumerate(nodes["key"].tolist())}
    source = np.array([rows[key] for key in edges["source"]], dtype=np.int64)
    target = np.array([rows[key] for key in edges["target"]], dtype=np.int64)
    begin, end = x[source] + HALF_WIDTH, x[target] - HALF_WIDTH
    # An edge against the flow swings out and passes below the boxes, so that it is seen to go back.
    back = end < begin
    reach = np.where(back, 0.3, np.maximum((end - begin) * 0.5, 0.12))
    below = np.where(back, 0.8, 0)
    t = np.linspace(0, 1, BENDS)[None, :]
    ways = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]
    across = (begin, begin + reach, end - reach, end)
    down = (y[source], y[source] + below, y[target] + below, y[target])
    lines = [
        sum(way * point[:, None] for way, point in zip(ways, points, strict=True))
        for points in (across, down)
    ]
    gap = np.full((len(source), 1), np.nan)
    xs, ys = (np.hstack([np.asarray(line), gap]).ravel() for line in lines)
    colour = token("quiet", theme)
    figure.add_scatter(
        x=xs, y=ys, mode="lines", line={"width": 1.3, "color": colour}, hoverinfo="skip"
    )
    figure.add_scatter(
        x=end - 0.012, y=y[target], mode="markers", hoverinfo="skip",
        marker={"symbol": "triangle-right", "size": 9, "color": colour},
    )  # fmt: skip


def _rests(nodes: pd.DataFrame, *, two_lines: bool) -> list[dict[str, str]]:
    """Write what stands below the name of each node or beside it: size, neighbours not drawn."""
    pairs = nodes[["bytes", "hidden"]].itertuples(index=False)
    if not two_lines:
        return [{"below": "", "beside": " +" if hidden else ""} for _, hidden in pairs]
    return [
        {"below": units.size(size) + (f" · {hidden:,} hidden" if hidden else ""), "beside": ""}
        for size, hidden in pairs
    ]


def _hover(nodes: pd.DataFrame) -> list[str]:
    columns = nodes[["kind", "name", "bytes", "neighbours", "hidden"]]
    return [
        f"{escaped(shortened(name, 80))}<br>{kind_words(kind)}, {units.size(size)}"
        f"<br>{all_of:,} neighbours{f', {hidden:,} not drawn' if hidden else ''}"
        for kind, name, size, all_of, hidden in columns.itertuples(index=False)
    ]


def kind_words(kind: str) -> str:
    """Return the words for a kind of node."""
    return "Variable" if kind == VARIABLE else step_words(kind)


def _ink(nodes: pd.DataFrame, theme: Theme) -> list[str]:
    """Return the colour of the text of each node."""
    return [token("text" if kind == VARIABLE else "on-colour", theme) for kind in nodes["kind"]]


def _draw_boxes(figure: go.Figure, nodes: pd.DataFrame, x: Values, y: Values, theme: Theme) -> None:
    """Draw the box of each node over the edges; those that are opened have a strong border."""
    alike = nodes.assign(place=np.arange(len(nodes))).groupby(["kind", "opened"], sort=False)
    for (kind, opened), group in alike["place"]:
        variable = kind == VARIABLE
        outlines = [_outline(x[row], y[row], rounded=not variable) for row in group.tolist()]
        line = token("accent" if opened else "not-always-live" if variable else "quiet", theme)
        figure.add_scatter(
            x=np.concatenate([outline[0] for outline in outlines]),
            y=np.concatenate([outline[1] for outline in outlines]),
            name=kind_words(str(kind)),
            mode="lines",
            fill="toself",
            fillcolor=token("surface", theme) if variable else step_colour(str(kind), theme),
            line={"color": line, "width": 3 if opened else 1.2, "simplify": False},
            hoverinfo="skip",
        )


def _outline(x: float, y: float, *, rounded: bool) -> tuple[Values, Values]:
    """Return the corners of a box around a point, those of a rounded one as arcs; then a gap."""
    turns = np.linspace(0, np.pi / 2, 6) if rounded else np.zeros(1)
    across, down = (ROUND * 0.4, ROUND) if rounded else (0.0, 0.0)
    xs, ys = [], []
    for corner, (side, end) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        angle = turns + corner * np.pi / 2
        xs.append(x + side * (HALF_WIDTH - across) + across * np.cos(angle))
        ys.append(y + end * (HALF_HEIGHT - down) + down * np.sin(angle))
    closed = (np.concatenate([*of, of[0][:1], [np.nan]]) for of in (xs, ys))
    first, second = closed
    return first, second


def _layout(x: Values, y: Values, theme: Theme, keys: list[str]) -> dict[str, object]:
    """Hide the axes, and show all boxes."""
    bare = {"visible": False, "showgrid": False, "zeroline": False}
    reach = max(float(np.abs(y).max(initial=0)) + 0.6, 1.6)
    middle = float(x.max(initial=0) + x.min(initial=0)) / 2
    wide = max(float(x.max(initial=0) - x.min(initial=0)) / 2 + 0.5, 1.0)
    seen = {"x": [middle - wide, middle + wide], "y": [reach, -reach]}
    return plot_layout(theme) | {
        "xaxis": bare | {"range": seen["x"]},
        "yaxis": bare | {"range": seen["y"]},
        "showlegend": False,
        "hovermode": "closest",
        "hoverdistance": REACH,
        "dragmode": "pan",
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
        # What the arrow keys go through; nothing is marked, as boxes show what is open; and what is
        # seen in whole, for the magnification.
        "meta": {"picks": keys, "marks": False, "whole": seen},
    }
