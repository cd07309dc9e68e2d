"""Memory by tile: what each tile needs, against its limit, or stacked by category."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from dashboard.figures.axes import byte_axis, escaped, number_axis, shown_places, widened
from dashboard.theme import Theme, category_colour, plot_layout, token
from pva import units

if TYPE_CHECKING:
    import pandas as pd

HEADROOM = 1.12  # how far the plot reaches above the fullest tile
LIMIT_IN_VIEW = 2.0  # the limit is drawn when it is at most so many times the fullest tile


def memory_by_tile(
    frame: pd.DataFrame, *, gaps: bool, limit: int, tile: int | None, theme: Theme
) -> go.Figure:
    """Draw the bytes of each tile as filled steps, with the limit of a tile.

    `frame` has the columns tile, total and total_including_gaps.
    """
    values = frame["total_including_gaps" if gaps else "total"].to_numpy()
    x, shown = widened(shown_places(values), len(values))
    name = "including gaps" if gaps else "excluding gaps"
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=values[shown],
            name=name,
            mode="lines",
            line={"shape": "hvh", "color": token("memory", theme), "width": 1.2},
            fill="tozeroy",
            fillcolor=token("memory-fill", theme),
            customdata=[units.size(value) for value in values[shown].tolist()],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    _finish(figure, float(values.max(initial=1)), len(frame), limit, tile, theme)
    return figure.update_layout(showlegend=False)


def memory_by_category(
    frame: pd.DataFrame,
    *,
    label: Callable[[str], str],
    limit: int,
    tile: int | None,
    theme: Theme,
) -> go.Figure:
    """Draw the bytes of each tile stacked by category; a column of `frame` is a category."""
    totals = frame.to_numpy().sum(axis=1)
    x, shown = widened(shown_places(totals), len(totals))
    figure = go.Figure()
    for category in frame.columns:
        values = frame[category].to_numpy()[shown]
        figure.add_scatter(
            x=x,
            y=values,
            name=label(category),
            mode="lines",
            stackgroup="memory",
            line={"shape": "hvh", "width": 0.5, "color": category_colour(category)},
            fillcolor=category_colour(category),
            customdata=[units.size(value) for value in values.tolist()],
            hovertemplate=f"{escaped(label(category))}: %{{customdata}}<extra></extra>",
        )
    _finish(figure, float(totals.max(initial=1)), len(frame), limit, tile, theme)
    return figure.update_layout(showlegend=True, legend={"traceorder": "normal"})


def _finish(
    figure: go.Figure, top: float, tiles: int, limit: int, tile: int | None, theme: Theme
) -> None:
    """Add axes, the limit and the chosen tile."""
    in_view = limit <= LIMIT_IN_VIEW * top
    layout = plot_layout(theme)
    height = max(top, limit if in_view else 0) * HEADROOM
    layout["yaxis"] = layout["yaxis"] | byte_axis(height)
    layout["xaxis"] = layout["xaxis"] | number_axis("Tile", tiles)
    figure.update_layout(layout).update_xaxes(title_text="Tile")
    figure.add_annotation(_limit_note(limit, top, theme, in_view=in_view))
    if in_view:
        figure.add_hline(
            y=limit, line={"color": token("limit", theme), "width": 1.5, "dash": "dash"}
        )
    if tile is not None:
        figure.add_vline(x=tile, line={"color": token("accent", theme), "width": 2})


def _limit_note(limit: int, top: float, theme: Theme, *, in_view: bool) -> dict[str, Any]:
    """Say where the limit is: on its line, or how far above the plot."""
    text = f"A tile has {units.size(limit)}"
    note = {
        "showarrow": False,
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "font": {"size": 12, "color": token("quiet", theme)},
    }
    if in_view:
        return note | {"text": text, "y": limit, "yanchor": "bottom"}
    more = f"{text}, {limit / max(top, 1):.1f} times the fullest"
    return note | {"text": more, "yref": "paper", "y": 1, "yanchor": "top"}
