"""Two reports in one figure: memory by tile, and liveness by program step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import (
    byte_axis,
    cycle_axis,
    escaped,
    number_axis,
    point_ids,
    shortened,
    shown_places,
    widened,
)
from pva.plot.theme import Theme, plot_layout, token

HEADROOM = 1.12
SMALL = 0.05  # of a total: smaller changes are not seen on an axis from 0
MAX_POINTS = 1200  # of each line
LONGEST_REPORT, LONGEST_STEP = 40, 40  # letters of a name
# How the lines of the first and the second report are drawn: not by colour alone.
LINES = (("before", "dash"), ("after", "solid"))


class Curve(NamedTuple):
    """A line: the name of its report, its values, and words for each value."""

    name: str
    values: Values
    words: list[str] | None = None


def two_curves(
    curves: tuple[Curve, Curve], *, axis: str, theme: Theme, together: bool = True
) -> go.Figure:
    """Draw both curves as steps over whole numbers, in one plot, or one above the other.

    The first is dashed, the second is solid and filled. Values are bytes.
    """
    figure = go.Figure()
    for place, (curve, (colour, dash)) in enumerate(zip(curves, LINES, strict=True)):
        x, shown = widened(shown_places(curve.values, MAX_POINTS), len(curve.values))
        figure.add_scatter(
            x=x,
            y=curve.values[shown],
            name=escaped(shortened(curve.name, LONGEST_REPORT)),
            mode="lines",
            line={"shape": "hvh", "width": 1.6, "color": token(colour, theme), "dash": dash},
            fill="tozeroy" if place or not together else None,
            fillcolor=token(f"{colour}-fill", theme),
            customdata=_hover(curve, shown),
            hovertemplate="%{customdata}",
            meta=colour,
            yaxis="y" if together or not place else "y2",
        )
    top = max(float(curve.values.max(initial=1)) for curve in curves) * HEADROOM
    count = max(len(curve.values) for curve in curves)
    _axes(figure, axis, count, top, theme, together=together)
    return figure


def _hover(curve: Curve, shown: Values) -> list[str]:
    sizes = [units.size(value) for value in curve.values[shown].tolist()]
    if curve.words is None:
        return sizes
    return [
        f"{size}<br>{escaped(shortened(curve.words[place], LONGEST_STEP))}"
        for size, place in zip(sizes, shown.tolist(), strict=True)
    ]


def _axes(
    figure: go.Figure, axis: str, count: int, top: float, theme: Theme, *, together: bool
) -> None:
    layout: dict[str, Any] = plot_layout(theme)
    layout["yaxis"] = layout["yaxis"] | byte_axis(top)
    layout["xaxis"] = layout["xaxis"] | number_axis(axis, count)
    if not together:
        layout["yaxis2"] = layout["yaxis"] | {"domain": [0, 0.46]}
        layout["yaxis"] = layout["yaxis"] | {"domain": [0.54, 1]}
        layout["xaxis"] = layout["xaxis"] | {"anchor": "y2"}
    figure.update_layout(layout).update_layout(showlegend=True).update_xaxes(title_text=axis)


def _time_axis(top: float) -> dict[str, object]:
    """Make a vertical axis of times in nanoseconds, up to `top`."""
    ticks = [top / HEADROOM * part / 4 for part in range(5)]
    return {
        "range": [0, top],
        "tickvals": ticks,
        "ticktext": [units.duration(tick / 1e9) if tick else "0" for tick in ticks],
    }


def _seen(levels: list[float], write: Callable[[float], str]) -> dict[str, Any]:
    """Begin an axis above 0 where changes are too small a part of the totals to be seen."""
    low, high = float(min(levels)), float(max(levels))
    span = high - low
    if not 0 < span < SMALL * high:
        return {}
    ticks = [low + span * part / 4 for part in range(-2, 7, 2)]
    return {
        "range": [low - 0.6 * span, high + 0.5 * span],
        "tickvals": ticks,
        "ticktext": [write(tick) for tick in ticks],
        "title": {"text": "does not begin at 0"},
    }


# How values of a unit are written, and the axis that they stand on.
WRITTEN: dict[str, tuple[Callable[[float], str], Callable[[float], dict[str, Any]]]] = {
    "bytes": (units.size, byte_axis),
    "cycles": (units.cycles_or_time, cycle_axis),
    "nanoseconds": (lambda value: units.duration(value / 1e9), _time_axis),
}


def waterfall(
    frame: pd.DataFrame,
    *,
    total: tuple[int, int],
    unit: str,
    names: tuple[str, str],
    theme: Theme,
    objects: Sequence[str | None] = (),
) -> go.Figure:
    """Draw the way from the total before to the total after, a bar for each change.

    `frame` has name, change, begin and end, as `waterfall` of
    `pva.analysis.whole_report.comparison` returns them; `total` is before and after, in `unit`:
    bytes, cycles or nanoseconds. `objects` are the `ids` of
    the bars of changes.
    """
    begin, end, change = (frame[column].to_numpy() for column in ("begin", "end", "change"))
    write, axis = WRITTEN[unit]
    ends = [("before", 0, total[0], total[0]), ("after", 0, total[1], total[1])]
    rows = [ends[0], *zip(["grew" if c > 0 else "shrank" for c in change], np.minimum(begin, end),
                          np.abs(change), change, strict=True), ends[1]]  # fmt: skip
    words = [names[0], *(name or "all others" for name in frame["name"]), names[1]]
    signs = ["", *("+" if c > 0 else "−" for c in change), ""]
    texts = [sign + write(float(row[2])) for sign, row in zip(signs, rows, strict=True)]
    figure = go.Figure(
        go.Bar(
            x=list(range(len(rows))),
            base=[int(row[1]) for row in rows],
            y=[int(row[2]) for row in rows],
            marker={"color": [token(row[0], theme) for row in rows], "line": {"width": 0}},
            text=texts,
            textposition="outside",
            cliponaxis=False,
            customdata=[f"{escaped(shortened(word))}: {text}"
                        for word, text in zip(words, texts, strict=True)],
            hovertemplate="%{customdata}<extra></extra>",
            width=0.62,
            ids=point_ids(["", *objects, ""]) if objects else None,
        )
    )  # fmt: skip
    levels = [total[0], *end.tolist()]
    for place, level in enumerate(levels):
        figure.add_shape(type="line", x0=place + 0.31, x1=place + 0.69, y0=level, y1=level,
                         line={"color": token("quiet", theme), "width": 1})  # fmt: skip
    layout = plot_layout(theme)
    top = max(total[0], total[1], *begin.tolist(), *end.tolist(), 1) * HEADROOM
    layout["yaxis"] = layout["yaxis"] | axis(top) | _seen(levels, write)
    layout["xaxis"] = layout["xaxis"] | {
        "tickmode": "array",
        "tickvals": list(range(len(rows))),
        "ticktext": [escaped(shortened(word, LONGEST_STEP // 2)) for word in words],
        "fixedrange": True,
    }
    figure.update_layout(layout).update_layout(hovermode="closest", showlegend=False)
    return figure


def change_by_tile(frame: pd.DataFrame, *, theme: Theme) -> go.Figure:
    """Draw by how many bytes each tile grew or shrank: above the line, and below it.

    `frame` has the columns tile and change.
    """
    ordered = frame.sort_values("tile")
    tiles = ordered["tile"].to_numpy()
    change = np.zeros(int(tiles.max(initial=-1)) + 1, dtype=np.int64)
    change[tiles] = ordered["change"].to_numpy()
    places = np.union1d(
        shown_places(change, MAX_POINTS // 2), shown_places(-change, MAX_POINTS // 2)
    )
    x, shown = widened(places, len(change))
    figure = go.Figure()
    parts = (("Grew", "grew", np.maximum(change, 0)), ("Shrank", "shrank", np.minimum(change, 0)))
    for words, colour, values in parts:
        figure.add_scatter(
            x=x,
            y=values[shown],
            name=words,
            mode="lines",
            line={"shape": "hvh", "width": 1, "color": token(colour, theme)},
            fill="tozeroy",
            fillcolor=token(colour, theme),
            customdata=[units.size(abs(value)) for value in values[shown].tolist()],
            hovertemplate=f"{words} by %{{customdata}}<extra></extra>",
        )
    layout = plot_layout(theme)
    most = max(float(change.max(initial=0)), 1.0)
    least = min(float(change.min(initial=0)), 0.0)
    layout["yaxis"] = layout["yaxis"] | signed_axis(least * HEADROOM, most * HEADROOM)
    layout["xaxis"] = layout["xaxis"] | number_axis("Tile", len(change))
    return (
        figure.update_layout(layout).update_layout(showlegend=True).update_xaxes(title_text="Tile")
    )


def signed_axis(least: float, most: float) -> dict[str, Any]:
    """Make a vertical axis in bytes whose ticks have signs."""
    axis = byte_axis(max(most, -least))
    ticks = axis["tickvals"]
    return axis | {
        "range": [least, most],
        "tickvals": [*(-tick for tick in ticks[:0:-1]), *ticks],
        "ticktext": [
            *(f"−{text}" for text in axis["ticktext"][:0:-1]),
            axis["ticktext"][0],
            *(f"+{text}" for text in axis["ticktext"][1:]),
        ],
        "zeroline": True,
        "rangemode": "normal",
    }
