"""How the cycles of a step, or their time, are spread over the tiles: a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.plot.axes import cycle_axis, tile_axis
from pva.plot.theme import Theme, plot_layout, step_colour

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_BARS = 30


def tile_histogram(cycles: npt.NDArray[np.int64], kind: str, theme: Theme) -> go.Figure:
    """Draw how many tiles take how many cycles in a step of a type; `cycles` by tile."""
    most = int(cycles.max(initial=0))
    bars = min(MAX_BARS, max(most, 1))
    edges = np.linspace(0, most + 1, bars + 1)
    counts, _ = np.histogram(cycles, edges)
    write = units.cycles_or_time
    hovers = [
        f"{count:,} tile{' takes' if count == 1 else 's take'} {write(np.ceil(low))} to "
        f"{write(np.ceil(high) - 1)}"
        for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True)
    ]
    figure = go.Figure(
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=counts,
            width=np.diff(edges) * 0.92,
            marker={"color": step_colour(kind, theme)},
            customdata=np.array(hovers, dtype=object),
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    layout: dict[str, Any] = plot_layout(theme)
    figure.update_layout(layout)
    figure.update_layout(hovermode="closest", margin={"l": 8, "r": 12, "t": 8, "b": 8})
    figure.update_xaxes(cycle_axis(most + 1))
    figure.update_yaxes(tile_axis(float(counts.max(initial=1))))
    return figure
