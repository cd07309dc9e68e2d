"""Memory over the tiles: what each needs against its limit, broken down, or by variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import (
    Window,
    escaped,
    number_axis,
    picking,
    scale_of,
    scaled_axis,
    shortened,
    shown_places,
    whole,
)
from pva.plot.theme import Theme, category_colour, plot_layout, token

MANY_TIMES = 100  # from which on a multiple is told without decimals
HEADROOM = 1.12  # how far the plot reaches above the fullest tile
MAX_NAMED = 16  # IPUs whose names have room
TEXTED = 4  # series that have a text of their own at every point
PART_WORDS = {
    "non_interleaved": "Non-interleaved",
    "interleaved": "Interleaved",
    "overflowed": "Overflowed",
    "always_live": "Always live",
    "not_always_live": "Not always live, at its peak",
    "gaps": "Gaps",
}
POINTS, FEWER_POINTS = 1500, 800  # of each series: what is seen, and what 26 series can carry


@dataclass(frozen=True, slots=True)
class Series:
    """A column of the frame as it is drawn: its name in words and its colours."""

    column: str
    words: str
    line: str
    fill: str


@dataclass(frozen=True, slots=True)
class Limit:
    """What a tile, or an IPU, has; `shown` draws its line even far above the plot."""

    bytes: int
    words: str
    shown: bool = False
    noted: bool = True  # say where it is when it is not in view
    fullest: str = "the fullest"  # what it is then compared with


def series_of(column: str, label: Callable[[str], str], theme: Theme) -> Series:
    """Return how a column of `memory_series` is drawn; `label` writes a category of memory."""
    if column == "total":
        return Series(column, "Memory", token("memory", theme), token("memory-fill", theme))
    if column in ("always_live", "not_always_live"):
        name = column.replace("_", "-")
        return Series(column, PART_WORDS[column], token(name, theme),
                      token(f"{name}-fill", theme))  # fmt: skip
    if column in PART_WORDS:
        colour = token(f"region-{column.replace('_', '-')}", theme)
        return Series(column, PART_WORDS[column], colour, colour)
    colour = category_colour(column)
    return Series(column, label(column), colour, colour)


def over_tiles(
    frame: pd.DataFrame,
    series: Sequence[Series],
    *,
    axis: str,
    limit: Limit,
    theme: Theme,
    window: Window | None = None,
    numbers: list[Any] | None = None,
    stacked: bool = True,
    lacking: Values | None = None,
    ipus: int = 0,
) -> go.Figure:
    """Draw columns of bytes over tiles or IPUs, as filled steps, stacked or one before the other.

    Row i of `frame` is drawn at x = i; `numbers` are what is chosen there. `lacking` are the places
    that are out of memory. `ipus` is the number of tiles after which another IPU begins, if any.
    """
    values = {one.column: frame[one.column].to_numpy() for one in series}
    heights = _heights(list(values.values()), len(frame), stacked=stacked)
    begin, end = whole(len(frame), window)
    places = begin + shown_places(
        heights[begin:end], POINTS if len(series) <= TEXTED else FEWER_POINTS
    )
    top = float(heights[begin:end].max(initial=1))
    height = (max(top, limit.bytes) if _in_view(limit, top) else top) * HEADROOM
    figure = go.Figure()
    for one in series:
        _add(figure, one, values[one.column], places, height, stacked=stacked,
             texted=len(series) <= TEXTED)  # fmt: skip
    layout = plot_layout(theme)
    layout["yaxis"] = layout["yaxis"] | scaled_axis(height)
    layout["xaxis"] = layout["xaxis"] | number_axis(axis, len(frame), window)
    figure.update_layout(layout).update_xaxes(title_text=axis)
    _add_limit(figure, limit, top, height, theme)
    _add_lacking(figure, lacking, height, theme)
    add_ipu_borders(figure, len(frame), ipus, theme)
    figure.update_layout(showlegend=len(figure.data) > 1, legend={"traceorder": "normal"})
    return picking(figure, numbers)


def _heights(columns: list[Values], count: int, *, stacked: bool) -> Values:
    if not columns:
        return np.zeros(count)
    together: Values = np.sum(columns, axis=0) if stacked else np.max(columns, axis=0)
    return together


def _add(
    figure: go.Figure,
    one: Series,
    values: Values,
    places: Values,
    height: float,
    *,
    stacked: bool,
    texted: bool,
) -> None:
    """Add one column; few have exact texts, many the number on the axis."""
    scale, unit = scale_of(height)
    shown = np.concatenate([places[:1], places, places[-1:]])
    x = np.concatenate([places[:1] - 0.49, places, places[-1:] + 0.49])  # both ends drawn whole
    texts = [units.size(value) for value in values[shown].tolist()] if texted else None
    words = escaped(shortened(one.words))
    figure.add_scatter(
        x=x.astype(np.float32),
        y=(values[shown] / scale).astype(np.float32),
        name=words,
        mode="lines",
        line={"shape": "hvh", "color": one.line, "width": 1.2 if texted else 0.5},
        fillcolor=one.fill,
        customdata=texts,
        hovertemplate=f"{words}: "
        + ("%{customdata}" if texted else f"%{{y:,.3~f}} {unit}")
        + "<extra></extra>",
        **({"stackgroup": "memory"} if stacked else {"fill": "tozeroy"}),
    )


def _in_view(limit: Limit, top: float) -> bool:
    return limit.shown or limit.bytes <= top * 1.5


def _add_limit(figure: go.Figure, limit: Limit, top: float, height: float, theme: Theme) -> None:
    """Draw the limit, or say how far above the plot it is."""
    note = {"showarrow": False, "xref": "paper", "x": 1, "xanchor": "right",
            "font": {"size": 12, "color": token("quiet", theme)}}  # fmt: skip
    text = f"{limit.words} has {units.size(limit.bytes)}"
    if not _in_view(limit, top):
        if not limit.noted:
            return
        times = limit.bytes / max(top, 1)
        note_text = f"{text}, {times:,.{0 if times >= MANY_TIMES else 1}f} times {limit.fullest}"
        figure.add_annotation(
            note | {"text": note_text, "yref": "paper", "y": 1, "yanchor": "bottom"}
        )
        return
    y = limit.bytes / scale_of(height)[0]
    figure.add_hline(y=y, line={"color": token("limit", theme), "width": 1.5, "dash": "dash"})
    ground = {"bgcolor": token("surface", theme), "opacity": 0.9}  # bars may go on above the line
    figure.add_annotation(note | ground | {"text": text, "y": y, "yanchor": "bottom"})


def add_ipu_borders(figure: go.Figure, tiles: int, tiles_per_ipu: int, theme: Theme) -> None:
    """Draw a line between each two IPUs of `tiles_per_ipu` tiles, and name them; 0: one IPU."""
    firsts = range(0, tiles if tiles_per_ipu else 0, max(tiles_per_ipu, 1))
    line = {"color": token("quiet", theme), "width": 1, "dash": "dot"}
    place = {"type": "line", "xref": "x", "yref": "y domain", "y0": 0, "y1": 1, "line": line}
    borders = [place | {"x0": first - 0.5, "x1": first - 0.5} for first in firsts[1:]]
    text = {"xanchor": "left", "yref": "paper", "y": 1, "yanchor": "top", "showarrow": False,
            "font": {"size": 11, "color": token("quiet", theme)}}  # fmt: skip
    named = firsts if len(firsts) <= MAX_NAMED else ()
    names = [text | {"text": f"IPU {ipu}", "x": first - 0.5} for ipu, first in enumerate(named)]
    # At once: Plotly looks at all there are for each that is added.
    figure.update_layout(
        shapes=[*figure.layout.shapes, *borders],
        annotations=[*figure.layout.annotations, *names],
    )


def _add_lacking(figure: go.Figure, lacking: Values | None, height: float, theme: Theme) -> None:
    """Mark the places that are out of memory, above the plot."""
    if lacking is None or not len(lacking):
        return
    y = height / scale_of(height)[0] * 0.985
    figure.add_scatter(
        x=lacking[:POINTS].astype(np.float32),
        y=np.full(min(len(lacking), POINTS), y, dtype=np.float32),
        mode="markers",
        name="Out of memory",
        marker={"symbol": "triangle-down", "size": 8, "color": token("bad", theme)},
        hovertemplate="Out of memory<extra></extra>",
    )


def mark_tiles(figure: go.Figure, tiles: Values, name: str, theme: Theme) -> None:
    """Mark tiles below a plot by tile as those of the chosen object, some of many."""
    shown = tiles[:: max(len(tiles) // POINTS, 1)]
    figure.add_scatter(
        x=shown.astype(np.float32),
        y=np.zeros(len(shown), dtype=np.float32),
        mode="markers",
        name=escaped(shortened(name, 40)),
        marker={"symbol": "triangle-up", "size": 8, "color": token("accent", theme)},
        cliponaxis=False,
        hovertemplate="%{x:,}<extra></extra>",
    )
