"""Instances of a run: what each does over time, how late each is, and how they are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import escaped, nice_step
from pva.plot.floor import colours
from pva.plot.theme import Theme, plot_layout, token

TICKS = 16
EDGE = 0.25  # of a row: texts so near its ends go inwards
NS = 1e9  # in a second
STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def time_unit(most: float) -> tuple[float, str]:
    """Return the unit in which seconds up to `most` are written, and how many seconds it has."""
    return next((step for step in STEPS if most >= step[0]), STEPS[-1])


def utilisation_map(
    frame: pd.DataFrame, kind: str, words: str, names: Sequence[str], theme: Theme
) -> go.Figure:
    """Draw a cell for each instance (down) and part of the time (across), coloured by its share.

    `frame` is that of `instance_utilisation`, `names` are those of its instances in order. A click
    chooses the instance of a cell.
    """
    parts = int(frame["part"].max()) + 1 if len(frame) else 0
    shape = (len(frame) // max(parts, 1), parts)
    share = frame[kind].to_numpy(np.float64).reshape(shape)
    begin, end = (frame[name].to_numpy(np.float64).reshape(shape) / NS for name in _TIMES)
    scale, unit = time_unit(float(end.max(initial=0)))
    hover = np.array(
        [f"{escaped(names[row])}<br>{units.duration(begin[row, part])} to "
         f"{units.duration(end[row, part])}<br>{units.share(share[row, part])} {words}"
         for row in range(shape[0]) for part in range(parts)], dtype=object,
    ).reshape(shape)  # fmt: skip
    numbers = frame["instance"].to_numpy().reshape(shape)
    figure = go.Figure(
        go.Heatmap(
            z=share.astype(np.float32), x=list(range(parts)), y=list(range(shape[0])),
            customdata=numbers, meta="numbers", text=hover, hovertemplate="%{text}<extra></extra>",
            colorscale=colours("blue", theme), zmin=0, zmax=1, xgap=0, ygap=1,
            colorbar={"thickness": 12, "tickformat": ".0%", "outlinewidth": 0, "len": 0.9},
        )
    )  # fmt: skip
    layout = plot_layout(theme)
    times, places = _round_times(begin[:1] / scale, end[:1] / scale)
    layout["xaxis"] = layout["xaxis"] | {
        "title": {"text": f"Time since the run began ({unit})"}, "tickmode": "array",
        "tickvals": places.tolist(), "ticktext": [f"{time:.4g}" for time in times],
        "range": [-0.5, max(parts, 1) - 0.5], "fixedrange": True, "showgrid": False,
    }  # fmt: skip
    layout["yaxis"] = layout["yaxis"] | _rows(names)
    figure.update_layout(layout)
    return figure.update_layout(hovermode="closest", showlegend=False)


_TIMES = ("begin_ns", "end_ns")


def _round_times(begin: Values, end: Values) -> tuple[Values, Values]:
    """Return round times between the first part's begin and the last one's end, and their places.

    A part is 1 wide, and the first one's middle is at 0.
    """
    if not begin.size:
        return np.array([]), np.array([])
    first, last = begin[0, 0], end[0, -1]
    step = nice_step(last - first)
    times = np.arange(np.ceil(first / step), np.floor(last / step) + 1) * step
    return times, np.interp(times, [first, last], [-0.5, begin.shape[1] - 0.5])


def _rows(names: Sequence[str]) -> dict[str, Any]:
    every = max(-(-len(names) // TICKS), 1)
    return {
        "tickmode": "array", "tickvals": list(range(0, len(names), every)),
        "ticktext": [escaped(name) for name in names[::every]],
        "range": [len(names) - 0.5, -0.5], "fixedrange": True, "showgrid": False,
    }  # fmt: skip


def pace(frame: pd.DataFrame, column: str, shown: dict[int, str], theme: Theme) -> go.Figure:
    """Draw a line for each instance over its steps: those `shown` by name, the others in grey.

    `frame` is that of `instance_pace`, `column` one of its times.
    """
    measured = frame[frame[column].notna()]
    seconds = measured[column].to_numpy(np.float64) / NS
    scale, unit = time_unit(float(seconds.max(initial=0)))
    table = measured.assign(y=seconds / scale).pivot(
        index="occurrence", columns="instance", values="y"
    )
    hidden = table.drop(columns=[one for one in shown if one in table])
    figure = go.Figure()
    if hidden.shape[1]:
        values = np.vstack([hidden.to_numpy(), np.full((1, hidden.shape[1]), np.nan)])
        steps = np.append(hidden.index.to_numpy(np.float64), np.nan)
        figure.add_scatter(
            x=np.tile(steps, hidden.shape[1]), y=values.T.ravel(), mode="lines",
            name="the others", hoverinfo="skip", line={"width": 1, "color": token("quiet", theme)},
            opacity=0.35,
        )  # fmt: skip
    for colour, (one, name) in zip(("bad", "accent", "good"), shown.items(), strict=False):
        if one in table:
            figure.add_scatter(
                x=table.index.to_numpy(), y=table[one].to_numpy(), mode="lines+markers",
                name=escaped(name), line={"width": 2, "color": token(colour, theme)},
                marker={"size": 5}, hovertemplate=f"%{{y:.3g}} {unit}",
            )  # fmt: skip
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | {"title": {"text": "Step (nth Engine::run)"}}
    layout["yaxis"] = layout["yaxis"] | {"title": {"text": unit}, "fixedrange": True}
    layout["margin"] = layout["margin"] | {"b": 64}
    return figure.update_layout(layout).update_layout(showlegend=True)


def _write(figure: go.Figure, x: float, y: float, text: str, theme: Theme) -> None:
    """Write a text at a place, so that it stays inside of the plot."""
    anchor = "left" if x < EDGE else "right" if x > 1 - EDGE else "center"
    font = {"size": 12, "color": token("text", theme)}
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, xanchor=anchor, font=font)


def _named(instance: object, seconds: float) -> str:
    return f"instance {instance}, {units.duration(float(seconds))}"


def spread(values: dict[str, pd.Series], theme: Theme) -> go.Figure:
    """Draw a row for each figure with a point for each instance; least, median and most are named.

    Values are seconds by instance; each row has its own scale, from its least to its most.
    """
    figure = go.Figure()
    for row, (_, series) in enumerate(values.items()):
        ordered = series.dropna().sort_values(kind="stable")
        if not len(ordered):
            continue
        low, high = float(ordered.iloc[0]), float(ordered.iloc[-1])
        place = (ordered.to_numpy() - low) / max(high - low, 1e-12)
        figure.add_scatter(
            x=place, y=np.full(len(ordered), row), mode="markers",
            customdata=[_named(one, value) for one, value in ordered.items()],
            hovertemplate="%{customdata}<extra></extra>",
            marker={"size": 9, "color": token("accent", theme), "opacity": 0.6},
        )  # fmt: skip
        if high <= low:
            text = (
                f"all: {units.duration(low)}" if len(ordered) > 1 else _named(ordered.index[0], low)
            )
            _write(figure, 0.0, row - 0.3, text, theme)
            continue
        middle = (len(ordered) - 1) // 2
        for word, at, side in (("least", 0, -1), ("median", middle, 1),
                               ("most", len(ordered) - 1, -1)):  # fmt: skip
            text = f"{word}: {_named(ordered.index[at], ordered.iloc[at])}"
            _write(figure, float(place[at]), row + 0.3 * side, text, theme)
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | {
        "showticklabels": False, "ticks": "", "range": [-0.03, 1.03], "fixedrange": True,
        "showgrid": False,
    }  # fmt: skip
    layout["yaxis"] = layout["yaxis"] | {
        "tickmode": "array", "tickvals": list(range(len(values))), "ticktext": list(values),
        "range": [len(values) - 0.4, -0.6], "fixedrange": True, "showgrid": False,
    }  # fmt: skip
    return figure.update_layout(layout).update_layout(hovermode="closest", showlegend=False)
