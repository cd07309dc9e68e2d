"""What something costs each tile: one line, or several stacked, over the tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.lazy import pandas as pd
from pva.plot.axes import byte_axis, cycle_axis, number_axis, shown_places, widened
from pva.plot.theme import SERIES, Theme, plot_layout, step_colour

HEADROOM = 1.08
MAX_POINTS = 1500  # in the lower half of a page, beside a table
Unit = Literal["cycles", "bytes"]

# column: (words, type of step whose colour it takes, or number of a colour of SERIES)
PARTS: dict[str, tuple[str, str | int]] = {
    "cycles": ("Cycles", "OnTileExecute"),
    "active_cycles": ("Running a vertex", 0),
    "bytes_received": ("Received", 0),
    "bytes_sent": ("Sent", 1),
    "compute": ("Compute", "OnTileExecute"),
    "exchange": ("Exchange", "DoExchange"),
    "host_exchange": ("Exchange with the host", "StreamCopy"),
    "control_code": ("Control code", 2),
    "exchange_code": ("Exchange code", 0),
    "vertex_state": ("State of vertices", 3),
}


def by_tile(
    frame: pd.DataFrame, columns: Sequence[str], *, unit: Unit, stacked: bool, theme: Theme
) -> go.Figure:
    """Draw columns of a frame over its tiles; `stacked` adds them up, otherwise they lie over."""
    values = {column: frame[column].to_numpy() for column in columns}
    total = frame[list(columns)].to_numpy().sum(axis=1) if stacked else values[columns[0]]
    x, places = widened(shown_places(total, MAX_POINTS), len(frame))
    write = units.size if unit == "bytes" else units.cycles_or_time
    traces = []
    for column in columns:
        words, colour = PARTS[column]
        hue = SERIES[colour] if isinstance(colour, int) else step_colour(colour, theme)
        shown = values[column][places]
        filled = {"stackgroup": "all", "fillcolor": hue} if stacked else {}
        trace = go.Scatter(
            x=x,
            y=shown,
            name=words,
            mode="lines",
            line={"shape": "hvh", "width": 0.5 if stacked else 1.4, "color": hue},
            # As an array: a list is looked through value by value.
            customdata=np.array([write(value) for value in shown.tolist()], dtype=object),
            hovertemplate=f"{words}: %{{customdata}}<extra></extra>",
            **filled,
        )
        traces.append(trace)
    top = max(float(series.max(initial=0)) for series in ([total] if stacked else values.values()))
    return go.Figure(traces, _layout(top * HEADROOM, len(frame), unit, len(columns) > 1, theme))


def _layout(top: float, tiles: int, unit: Unit, legend: bool, theme: Theme) -> dict[str, object]:
    layout = plot_layout(theme)
    layout["yaxis"] = layout["yaxis"] | (byte_axis(top) if unit == "bytes" else cycle_axis(top))
    title = layout["xaxis"]["title"] | {"text": "Tile"}
    layout["xaxis"] = layout["xaxis"] | number_axis("Tile", tiles) | {"title": title}
    return layout | {"showlegend": legend}
