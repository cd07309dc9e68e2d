"""Liveness: how much is live at each program step, and when chosen variables are."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import (
    Window,
    byte_axis,
    escaped,
    number_axis,
    picking,
    point_ids,
    shortened,
    shown_places,
    whole,
    widened,
)
from pva.plot.theme import Theme, plot_layout, token

HEADROOM = 1.18
MAX_STEPS, MAX_FOUND = 1800, 700  # points of the curve, and of the steps that a filter finds
SERIES = (("always_live", "Always live", "always-live"),
          ("not_always_live", "Not always live", "not-always-live"))  # fmt: skip
BAR_PIXELS = 26  # of a lifetime with what is around it
LONGEST_HOVER = 40  # letters of the name of a step
LONGEST_LABEL = 44  # letters of a name at the left of a bar


def liveness_curve(
    frame: pd.DataFrame,
    *,
    theme: Theme,
    always: bool = True,
    matches: Values | None = None,
    window: Window | None = None,
) -> go.Figure:
    """Draw always-live and not-always-live bytes as stacked steps, with the peak marked.

    Without `always` only the not-always-live bytes are drawn. Where `matches` (a truth a step) is
    true the step is filled, for a filter. Of a `window` of steps more points are drawn.

    `frame` has the columns step, type, name, always_live, not_always_live and total.
    """
    moving = frame["not_always_live"].to_numpy()
    heights = frame["total" if always else "not_always_live"].to_numpy()
    begin, end = whole(len(frame), window)
    steps = begin + shown_places(moving[begin:end], MAX_STEPS)
    if matches is not None:
        # What the filter found must be seen, also where it is not the highest of its stretch.
        matched = np.where(matches, heights, 0)[begin:end]
        steps = np.union1d(steps, begin + shown_places(matched, MAX_FOUND))
    x, shown = widened(steps, len(frame))
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
            customdata=None if column == "always_live" else _hover_rows(part, column),
            hovertemplate=f"{words}: {_first_size(part, column)}<extra></extra>"
            if column == "always_live"
            else f"{words}: %{{customdata}}<extra></extra>",
        )
    if matches is not None:
        _show_matches(figure, x, np.where(matches, heights, 0)[shown], theme)
    _finish(figure, heights, theme, window)
    return picking(figure)


def _show_matches(figure: go.Figure, x: Values, heights: Values, theme: Theme) -> None:
    """Fill the steps that a filter lets through."""
    figure.add_scatter(
        x=x,
        y=heights,
        name="Found by the filter",
        mode="lines",
        fill="tozeroy",
        line={"shape": "hvh", "width": 0, "color": token("accent", theme)},
        fillcolor=token("accent", theme),
        opacity=0.5,
        hoverinfo="skip",
    )


def _first_size(part: pd.DataFrame, column: str) -> str:
    """Write what is the same at each step."""
    return units.size(part[column].iloc[0]) if len(part) else ""


def _hover_rows(part: pd.DataFrame, column: str) -> list[str]:
    """Write size and name of each step in one text: thousands of them are sent."""
    names = [name or kind for name, kind in zip(part["name"], part["type"], strict=True)]
    return [
        f"{units.size(value)}<br>{escaped(shortened(name, LONGEST_HOVER))}"
        for name, value in zip(names, part[column].tolist(), strict=True)
    ]


def _finish(figure: go.Figure, heights: Values, theme: Theme, window: Window | None = None) -> None:
    """Add axes and the peak."""
    layout = plot_layout(theme)
    layout["yaxis"] = layout["yaxis"] | byte_axis(float(heights.max(initial=1)) * HEADROOM)
    layout["xaxis"] = layout["xaxis"] | number_axis("Program step", len(heights), window)
    figure.update_layout(layout).update_layout(showlegend=True).update_xaxes(
        title_text="Program step"
    )
    if len(heights):
        figure.add_annotation(_peak_note(heights, theme))


def _peak_note(heights: Values, theme: Theme) -> dict[str, object]:
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


def lifetimes(intervals: pd.DataFrame, *, steps: int, peak: int, theme: Theme) -> go.Figure:
    """Draw a bar for each interval in which a variable is live, a row for each variable.

    `intervals` has the columns variable, name, bytes, begin and end (the step after the last one);
    `peak` is the step that is marked, -1 for none.
    """
    variables = list(dict.fromkeys(intervals["variable"].tolist()))
    rows = {variable: row for row, variable in enumerate(variables)}
    labels = dict(zip(intervals["variable"], intervals["name"], strict=True))
    x, y, words, ids = [], [], [], []
    for variable, name, size, begin, end in intervals[
        ["variable", "name", "bytes", "begin", "end"]
    ].itertuples(index=False):
        text = f"{escaped(shortened(name))}<br>{units.size(size)}, steps {begin:,} to {end - 1:,}"
        x += [begin - 0.5, (begin + end) / 2 - 0.5, end - 0.5, None]
        y += [rows[variable]] * 3 + [None]
        words += [text] * 4
        ids += [f"variable:{variable}"] * 4
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=y,
            mode="lines",
            line={"width": 12, "color": token("not-always-live", theme)},
            customdata=words,
            ids=point_ids(ids),
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | number_axis("Program step", steps)
    layout["yaxis"] = layout["yaxis"] | {
        "range": [len(variables) - 0.4, -0.6],
        "tickmode": "array",
        "tickvals": list(range(len(variables))),
        "ticktext": [escaped(shortened(labels[v], LONGEST_LABEL)) + " " for v in variables],
        "fixedrange": True,
    }
    figure.update_layout(layout).update_layout(
        showlegend=False, hovermode="closest", hoverdistance=20
    )
    figure.update_layout(height=BAR_PIXELS * len(variables) + 80)
    if peak >= 0:
        figure.add_vline(x=peak, line={"color": token("quiet", theme), "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=peak, y=1, yref="paper", yanchor="bottom", text="peak", showarrow=False,
            font={"size": 12, "color": token("quiet", theme)},
        )  # fmt: skip
    return figure


def mark_steps(figure: go.Figure, first: int, last: int, name: str, *, theme: Theme) -> None:
    """Mark the steps from `first` to `last` in a curve as those of the chosen object."""
    figure.add_vrect(
        x0=first - 0.5,
        x1=last + 0.5,
        fillcolor=token("accent", theme),
        opacity=0.16,
        line={"width": 1, "color": token("accent", theme)},
    )
    figure.add_annotation(
        text=escaped(shortened(name, 40)), x=first, xanchor="left", yref="paper", y=1,
        yanchor="bottom", showarrow=False, font={"size": 11, "color": token("accent", theme)},
    )  # fmt: skip
