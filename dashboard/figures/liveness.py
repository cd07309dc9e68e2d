"""Liveness: how much is live at each program step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from dashboard.figures.axes import (
    Numbers,
    byte_axis,
    escaped,
    number_axis,
    shortened,
    shown_places,
    widened,
)
from dashboard.theme import Theme, plot_layout, token
from pva import units

if TYPE_CHECKING:
    import pandas as pd

HEADROOM = 1.18
SERIES = (("always_live", "Always live", "always-live"),
          ("not_always_live", "Not always live", "not-always-live"))  # fmt: skip


def liveness_curve(
    frame: pd.DataFrame, *, step: int | None, theme: Theme, always: bool = True
) -> go.Figure:
    """Draw always-live and not-always-live bytes as stacked steps, with the peak marked.

    Without `always` only what comes and goes is drawn.

    `frame` has the columns step, type, name, always_live, not_always_live and total.
    """
    x, shown = widened(shown_places(frame["not_always_live"].to_numpy()), len(frame))
    part = frame.iloc[shown]
    figure = go.Figure()
    for column, words, colour in SERIES[0 if always else 1 :]:
        figure.add_scatter(
            x=x,
            y=part[column].to_numpy(),
            name=words,
            mode="lines",
            stackgroup="live",
            line={"shape": "hvh", "width": 1.2, "color": token(colour, theme)},
            fillcolor=token(f"{colour}-fill", theme),
            customdata=_hover_rows(part, column),
            hovertemplate=f"{words}: %{{customdata[1]}}<extra></extra>"
            if column == "always_live"
            else f"{words}: %{{customdata[1]}}<br>%{{customdata[0]}}<extra></extra>",
        )
    heights = frame["total" if always else "not_always_live"].to_numpy()
    _finish(figure, heights, step, theme)
    return figure


def _hover_rows(part: pd.DataFrame, column: str) -> list[tuple[str, str]]:
    names = [name or kind for name, kind in zip(part["name"], part["type"], strict=True)]
    return [
        (escaped(shortened(name)), units.size(value))
        for name, value in zip(names, part[column].tolist(), strict=True)
    ]


def _finish(figure: go.Figure, heights: Numbers, step: int | None, theme: Theme) -> None:
    """Add axes, the peak and the chosen step."""
    layout = plot_layout(theme)
    layout["yaxis"] = layout["yaxis"] | byte_axis(float(heights.max(initial=1)) * HEADROOM)
    layout["xaxis"] = layout["xaxis"] | number_axis("Program step", len(heights))
    figure.update_layout(layout).update_layout(showlegend=True).update_xaxes(
        title_text="Program step"
    )
    if step is not None:
        figure.add_vline(x=step, line={"color": token("accent", theme), "width": 2})
    if len(heights):
        figure.add_annotation(_peak_note(heights, theme))


def _peak_note(heights: Numbers, theme: Theme) -> dict[str, Any]:
    """Point at the highest step."""
    peak = int(heights.argmax())
    side = 1 if peak < len(heights) / 2 else -1
    return {
        "x": peak,
        "y": int(heights[peak]),
        "text": f"Peak {units.size(heights[peak])} at step {peak:,}",
        "ax": 36 * side,
        "ay": -16,
        "xanchor": "left" if side > 0 else "right",
        "arrowcolor": token("quiet", theme),
        "arrowwidth": 1,
        "arrowhead": 0,
        "font": {"color": token("text", theme), "size": 12},
    }
