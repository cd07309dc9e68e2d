"""What costs most: horizontal bars, the longest on top."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from pva import units
from pva.lazy import pandas as pd
from pva.plot.axes import cycle_axis, escaped, shortened, time_scale
from pva.plot.theme import Theme, plot_layout, step_colour, token

MAX_BARS = 20
BAR_PIXELS = 24
LONGEST_LABEL = 44  # letters of a name at the left of a bar
# What the cycles of an operation went to: the column, its words, the step that has its colour.
PARTS = (
    ("compute", "Compute", "OnTileExecute"),
    ("exchange", "Exchange", "DoExchange"),
    ("host_exchange", "Host exchange", "StreamCopy"),
    ("sync", "Sync", "Sync"),
)


def operation_bars(frame: pd.DataFrame, *, theme: Theme) -> go.Figure:
    """Draw the operations with most cycles, each by what its cycles went to.

    `frame` is that of `operation_costs`.
    """
    top = frame[frame["cycles"] > 0].nlargest(MAX_BARS, "cycles")
    names, shares = top["operation"].tolist(), top["share"].tolist()
    figure = go.Figure()
    for column, words, kind in PARTS:
        values = top[column].to_numpy()
        texts = [
            f"{escaped(shortened(name))}<br>{words}: {units.cycles_in_words(value)}"
            f"<br>{units.share(share)} of the recorded runs in all"
            for name, value, share in zip(names, values.tolist(), shares, strict=True)
        ]
        _add(figure, values, texts, words, step_colour(kind, theme))
    most = float(top[[column for column, _, _ in PARTS]].sum(axis=1).max()) if len(top) else 0
    return _finished(figure, names, cycle_axis(most), theme)


def label_bars(frame: pd.DataFrame, *, theme: Theme) -> go.Figure:
    """Draw the labels of a host trace with most self time, beside what is inside their events.

    `frame` is that of `label_statistics`; times in nanoseconds.
    """
    top = frame.nlargest(MAX_BARS, "self_ns")
    names = top["label"].astype(str).tolist()
    self_time, inside = top["self_ns"].to_numpy(), (top["total_ns"] - top["self_ns"]).to_numpy()
    scale, unit = time_scale(float((self_time + inside).max(initial=1)) / 1e9)
    figure = go.Figure()
    counts = top["count"].tolist()
    for values, words, colour in (
        (self_time, "Self time", token("accent", theme)),
        (inside, "Inside its events", token("line", theme)),
    ):
        texts = [
            f"{escaped(shortened(name))}<br>{words}: {units.duration(value / 1e9)}"
            f"<br>{count:,} event{'s' * (count != 1)}"
            for name, value, count in zip(names, values.tolist(), counts, strict=True)
        ]
        _add(figure, values / 1e9 / scale, texts, words, colour)
    axis = {"title": {"text": f"Time in {unit}"}, "rangemode": "tozero"}
    return _finished(figure, names, axis, theme)


def _add(
    figure: go.Figure, values: npt.NDArray[np.float64], texts: list[str], words: str, colour: str
) -> None:
    figure.add_bar(
        x=values,
        y=np.arange(len(values)),
        orientation="h",
        name=words,
        marker={"color": colour, "line": {"width": 0}},
        customdata=np.array(texts, dtype=object),
        hovertemplate="%{customdata}<extra></extra>",
    )


def _finished(figure: go.Figure, names: list[str], axis: dict[str, Any], theme: Theme) -> go.Figure:
    """Add axes: a name beside each bar, the first on top."""
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | axis

    layout["yaxis"] = layout["yaxis"] | {
        "range": [len(names) - 0.4, -0.6],
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [escaped(shortened(name, LONGEST_LABEL)) + " " for name in names],
        "fixedrange": True,
        "showgrid": False,
    }
    figure.update_layout(layout)
    return figure.update_layout(
        barmode="stack", bargap=0.25, hovermode="closest", showlegend=True,
        height=BAR_PIXELS * len(names) + 120,
    )  # fmt: skip
