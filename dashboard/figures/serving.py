"""Served requests: the parts of their latency against load, and how full batches are."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.lazy import pandas as pd
from pva.plot.axes import time_scale
from pva.plot.theme import SERIES, Theme, plot_layout, token

PARTS = {"queue_ns": "queue", "upload_ns": "upload", "execute_ns": "execute",
         "download_ns": "download", "other_ns": "other"}  # fmt: skip
MAX_SIZES = 400  # bars of sizes; more of them are joined


def latency_by_load(frame: pd.DataFrame, theme: Theme) -> go.Figure:
    """Draw a bar for each load, from the least to the most, of the mean parts of latency."""
    figure = go.Figure()
    most = float(frame["latency_ns"].max()) / 1e9 if len(frame) else 1.0
    scale, unit = time_scale(most)
    places = [f"{load:,.0f}" for load in frame["load"]]
    for number, (column, name) in enumerate(PARTS.items()):
        seconds = frame[column].to_numpy(float) / 1e9
        if not seconds.any():
            continue
        figure.add_bar(
            x=np.arange(len(places)), y=seconds / scale, name=name,
            marker={"color": SERIES[number], "line": {"width": 0}},
            customdata=[units.duration(value) for value in seconds],
            hovertemplate="%{customdata}",
        )  # fmt: skip
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | {
        "title": layout["xaxis"]["title"] | {"text": "Requests a second"}, "fixedrange": True,
        "tickmode": "array", "tickvals": list(range(len(places))), "ticktext": places,
    }  # fmt: skip
    layout["yaxis"] = layout["yaxis"] | {
        "title": layout["yaxis"]["title"] | {"text": f"Mean latency ({unit})"}, "fixedrange": True,
    }  # fmt: skip
    layout["margin"] = layout["margin"] | {"b": 64}
    return figure.update_layout(layout).update_layout(barmode="stack", showlegend=True)


def batch_sizes(frame: pd.DataFrame, theme: Theme) -> go.Figure:
    """Draw how many batches have how many rows; those of rows of padding are named on hover."""
    rows = frame["rows"].to_numpy(np.int64)
    width = -(-int(rows.max(initial=1)) // MAX_SIZES)
    sizes, place, counts = np.unique((rows - 1) // width, return_inverse=True, return_counts=True)
    padding = np.bincount(place, weights=frame["padding"].to_numpy(float), minlength=len(sizes))
    first = sizes * width + 1
    names = [f"{low:,}" if width == 1 else f"{low:,} to {low + width - 1:,}" for low in first]
    words = [
        f"{count:,} batches of {name} rows, {pad:,.0f} rows of padding"
        for count, name, pad in zip(counts.tolist(), names, padding.tolist(), strict=True)
    ]
    figure = go.Figure(
        go.Bar(x=first + (width - 1) / 2, y=counts, width=0.8 * width, customdata=words,
               marker={"color": token("accent", theme)},
               hovertemplate="%{customdata}<extra></extra>")
    )  # fmt: skip
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | {
        "title": layout["xaxis"]["title"] | {"text": "Rows of a batch"}, "fixedrange": True,
        "tickformat": ",d", "dtick": 1 if int(rows.max(initial=1)) <= 20 else None,
    }  # fmt: skip
    layout["yaxis"] = layout["yaxis"] | {
        "title": layout["yaxis"]["title"] | {"text": "Batches"}, "fixedrange": True,
        "tickformat": ",~f",
    }  # fmt: skip
    layout["margin"] = layout["margin"] | {"b": 64}
    return figure.update_layout(layout).update_layout(hovermode="closest", showlegend=False)
