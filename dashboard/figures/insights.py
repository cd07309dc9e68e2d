"""How full the tiles are: a histogram."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.lazy import pandas as pd
from pva.plot.axes import byte_axis, tile_axis
from pva.plot.theme import Theme, plot_layout, token

MAX_BARS = 64
LIMIT_IN_VIEW = 2.0  # the limit is drawn when it is at most so many times the fullest tile


def memory_histogram(frame: pd.DataFrame, *, limit: int, theme: Theme) -> go.Figure:
    """Draw how many tiles hold how much, in at most 64 bars, with the memory of a tile.

    `frame` has the columns low_kb, high_kb (of 1,024 bytes) and tiles; `limit` is in bytes.
    """
    low, high, tiles = (frame[name].to_numpy() for name in ("low_kb", "high_kb", "tiles"))
    together = -(-max(len(low), 1) // MAX_BARS)
    first = np.arange(0, len(low), together)
    last = np.minimum(first + together, len(low)) - 1
    begin, end = low[first] * units.KILOBYTE, high[last] * units.KILOBYTE
    counts = np.add.reduceat(tiles, first) if len(first) else tiles
    words = [
        f"{units.size(a)} to {units.size(b)}"
        for a, b in zip(begin.tolist(), end.tolist(), strict=True)
    ]
    figure = go.Figure(
        go.Bar(
            x=(begin + end) / 2,
            y=counts,
            width=(end - begin) * 0.92,
            marker={"color": token("memory", theme), "line": {"width": 0}},
            customdata=words,
            hovertemplate="%{customdata}: %{y:,d} tiles<extra></extra>",
        )
    )
    top = float(end.max(initial=1))
    in_view = limit <= LIMIT_IN_VIEW * top
    layout = plot_layout(theme)
    axis = byte_axis(max(top, limit if in_view else 0) * 1.04)
    layout["xaxis"] = layout["xaxis"] | axis
    most = float(counts.max(initial=1))
    layout["yaxis"] = layout["yaxis"] | tile_axis(most) | {"fixedrange": True}
    figure.update_layout(layout).update_layout(hovermode="closest", showlegend=False, bargap=0)
    figure.update_xaxes(title_text="Data on a tile, without gaps")
    if in_view:
        figure.add_vline(
            x=limit, line={"color": token("limit", theme), "width": 1.5, "dash": "dash"}
        )
    return figure
