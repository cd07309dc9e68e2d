"""Who sends how much to whom: a matrix."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.lazy import pandas as pd
from pva.plot.axes import scale_of
from pva.plot.floor import colours
from pva.plot.theme import Theme, plot_layout, token

MAX_WORDS = 12  # groups each way whose cells have room for their bytes
TICKS = 16


def exchange_matrix(frame: pd.DataFrame, *, names: list[str], theme: Theme) -> go.Figure:
    """Draw a cell for each pair of groups: from the group at the left to the group at the top.

    `frame` is that of `exchange_flows`, with the columns `source` and `target`, the places of the
    groups among their `names`.
    """
    shape = len(names), len(names)
    cells, words = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    source, target = frame["source"].to_numpy(), frame["target"].to_numpy()
    amounts = frame["bytes"].to_numpy()
    unit, name = scale_of(float(amounts.max(initial=1)))
    cells[source, target] = amounts / unit
    rows = frame[["bytes", "bytes_at_least", "bytes_at_most", "exact"]].itertuples(index=False)
    words[source, target] = [
        units.size(amount) if exact
        else f"about {units.size(amount)}, from {units.size(low)} to {units.size(high)}"
        for amount, low, high, exact in rows
    ]  # fmt: skip
    figure = go.Figure(
        go.Heatmap(
            z=cells, x=list(range(shape[1])), y=list(range(shape[0])),
            customdata=_hover(words, names),
            hovertemplate="%{customdata}<extra></extra>", hoverongaps=False, zmin=0,
            colorscale=colours("blue", theme), xgap=1, ygap=1,
            colorbar={"thickness": 12, "ticksuffix": f" {name}", "outlinewidth": 0, "len": 0.9},
        )
    )  # fmt: skip
    if len(names) <= MAX_WORDS:
        _write_cells(figure, cells, unit, theme)
    layout = plot_layout(theme)
    every = max(-(-len(names) // TICKS), 1)
    ticks = {
        "tickmode": "array", "tickvals": list(range(0, len(names), every)),
        "ticktext": names[::every], "fixedrange": True, "showgrid": False,
    }  # fmt: skip
    layout["xaxis"] = layout["xaxis"] | ticks | {"side": "top", "title": {"text": "To"}}
    layout["yaxis"] = layout["yaxis"] | ticks | {
        "title": {"text": "From"}, "range": [len(names) - 0.5, -0.5],
    }  # fmt: skip
    layout["margin"] = {"l": 8, "r": 12, "t": 50, "b": 8}
    figure.update_layout(layout)
    return figure.update_layout(hovermode="closest", showlegend=False)


def _hover(words: np.ndarray, names: list[str]) -> np.ndarray:
    """Write the pair above the bytes of each cell."""
    pairs = np.array([[f"{source} → {target}" for target in names] for source in names], object)
    hover: np.ndarray = pairs + "<br>" + words
    return hover


def _write_cells(figure: go.Figure, cells: np.ndarray, unit: int, theme: Theme) -> None:
    """Write bytes into the cells, in the colour that is read on the ground of each."""
    top = np.nanmax(cells) if np.isfinite(cells).any() else 1.0
    for row, column in np.argwhere(np.isfinite(cells)).tolist():
        much = bool(cells[row, column] > top * 0.55)  # dark in the light theme, light in the dark
        font = {"size": 12, "color": token("surface" if much else "text", theme)}
        size = units.size(cells[row, column] * unit)
        figure.add_annotation(x=column, y=row, text=size, showarrow=False, font=font)
