"""Rows of a timeline as a figure: what went on when, a line for each row of each lane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from pva import units
from pva.analysis.timeline.viewport import Rectangles, viewport
from pva.plot.axes import escaped, shortened, time_scale
from pva.plot.lanes import Lane, Timeline
from pva.plot.theme import Theme, colours, plot_layout, token

MAX_SPANS = 1500  # of a figure; more is not seen, and SVG grows slow
MAX_ROWS = 60
ROW_PIXELS, BAR_PIXELS = 20, 14
LONGEST_ROW = 36  # letters of the name of a row
PIXELS = 1200


def timeline_figure(timeline: Timeline, window: tuple[int, int], *, theme: Theme) -> go.Figure:
    """Draw what the first rows of a timeline hold in a window, neighbours together where many are.

    Each span is a line, grouped by its colour; the hover tells name, length and begin.
    """
    lanes = [(lane, row) for lane in timeline.lanes for row in range(lane.first, lane.stop)]
    shown = lanes[:MAX_ROWS]
    rows = np.array([row for _, row in shown], dtype=np.int64)
    rectangles = viewport(timeline.tracks, *window, PIXELS, rows, MAX_SPANS)
    scale, unit = _scale(timeline, window)
    place = np.zeros(timeline.tracks.rows, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    figure = go.Figure()
    named_colours = colours(theme)
    for kind in np.unique(rectangles.kind).tolist():
        name, words = timeline.colours[kind]
        of_kind = np.flatnonzero(rectangles.kind == kind)
        _add(figure, timeline, rectangles, of_kind, (place, scale), (words, named_colours[name]))
    layout = plot_layout(theme)
    layout["xaxis"] |= {"range": [edge / scale for edge in window], "title": {"text": unit}}
    layout["yaxis"] |= {
        "range": [len(rows) - 0.3, -0.7],
        "tickmode": "array",
        "tickvals": list(range(len(rows))),
        "ticktext": [_row_words(lane, row) for lane, row in shown],
        "fixedrange": True,
        "showgrid": False,
    }
    figure.update_layout(layout).update_layout(
        hovermode="closest", showlegend=True, height=ROW_PIXELS * len(rows) + 150
    )
    return _noted(figure, len(rows), len(lanes), theme)


def _scale(timeline: Timeline, window: tuple[int, int]) -> tuple[float, str]:
    """Return what to divide times by, and the name of the axis."""
    if timeline.unit == "cycles":
        return 1, "Cycles"
    step, unit = time_scale((window[1] - window[0]) / timeline.clock)
    return step * timeline.clock, f"Time in {unit}"


def _row_words(lane: Lane, row: int) -> str:
    name = lane.names[row - lane.first] if row - lane.first < len(lane.names) else ""
    words = f"{lane.name} {name}" if row == lane.first else name
    return escaped(shortened(words, LONGEST_ROW)) + " "


def _add(
    figure: go.Figure,
    timeline: Timeline,
    rectangles: Rectangles,
    places: npt.NDArray[np.int64],
    placed: tuple[npt.NDArray[np.int64], float],
    drawn: tuple[str, str],
) -> None:
    """Add the spans of one colour as lines, with a point for the hover at both ends and between."""
    place, scale = placed
    words, colour = drawn
    begin, end = rectangles.begin[places] / scale, rectangles.end[places] / scale
    gap = np.full(len(places), np.nan)
    x = np.column_stack([begin, (begin + end) / 2, end, gap]).ravel()
    y = np.repeat(place[rectangles.row[places]].astype(np.float64), 4)
    texts = [_hover(timeline, rectangles, number, words) for number in places.tolist()]
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        name=escaped(words),
        line={"width": BAR_PIXELS, "color": colour},
        customdata=np.repeat(np.array(texts, dtype=object), 4),
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(timeline: Timeline, rectangles: Rectangles, number: int, words: str) -> str:
    name = escaped(shortened(timeline.labels[rectangles.label[number]]))
    begin, length = (
        int(rectangles.begin[number]),
        int(rectangles.end[number] - rectangles.begin[number]),
    )
    when = f"begins at {_amount(timeline, begin)}"
    count = int(rectangles.count[number])
    if count == 1:
        return f"{name}<br>{words}: {_amount(timeline, length)}<br>{when}"
    return f"{count:,} together, most of them {name}<br>{_amount(timeline, length)}<br>{when}"


def _amount(timeline: Timeline, value: int) -> str:
    if timeline.unit == "cycles" and timeline.clock:
        return f"{value:,} cycles ({units.duration(value / timeline.clock)})"
    return units.duration(value / timeline.clock) if timeline.clock else f"{value:,} cycles"


def _noted(figure: go.Figure, shown: int, rows: int, theme: Theme) -> go.Figure:
    """Write how many rows there are where not all are drawn."""
    if shown < rows:
        figure.add_annotation(
            text=f"{shown} of {rows:,} rows", xref="paper", x=1, xanchor="right", yref="paper",
            y=1, yanchor="bottom", showarrow=False,
            font={"size": 12, "color": token("quiet", theme)},
        )  # fmt: skip
    return figure
