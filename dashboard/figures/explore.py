"""Points of an exploration on two axes: which fit, which no other is better than."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from pva.array_types import Texts, Truths
from pva.lazy import pandas as pd
from pva.plot.axes import byte_axis, escaped, shortened
from pva.plot.theme import SERIES, Theme, plot_layout, token

Floats = npt.NDArray[np.floating[Any]]
WIDE = 50  # times the least value: an axis of more is logarithmic
MAX_COLOURS = 12  # values of a lever; those of more share the last colour
EDGE = 0.04  # of an axis: where points without a value on it stand
LONGEST = 24  # letters of a value in the legend
FIT, MISS, FAILED = "circle", "x", "triangle-up-open"
NAMES = {FIT: "fits", MISS: "does not fit", FAILED: "no figures"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of the points on an axis: its words, whether it counts bytes, and is a lever."""

    field: str
    title: str
    is_bytes: bool = False
    is_lever: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """How the values of a column lie on an axis, and where those that it lacks stand."""

    places: Floats
    layout: dict[str, Any]


def points(
    frame: pd.DataFrame, axes: tuple[Axis, Axis], colour: str, limit: float, theme: Theme,
    selection: Sequence[str] = (),
) -> go.Figure:  # fmt: skip
    """Draw a mark for each point: a circle where it fits, a cross where it does not.

    `frame` has the columns of points.parquet, `words` (on hover) and `best` (which no other is
    better than, joined by a line). Points without a value on an axis stand at its edge. `colour`
    is a column, or empty; a `limit` above 0 is the memory of a tile. A click chooses a key; those
    of `selection` have a ring around them.
    """
    scales = [_scale(frame, axis, limit) for axis in axes]
    x, y = (scale.places for scale in scales)
    figure = go.Figure()
    best = frame["best"].to_numpy(bool)
    _front(figure, x[best], y[best], theme)
    groups = _groups(frame, colour)
    symbols = _symbols(frame)
    for number, (name, members) in enumerate(groups.items()):
        figure.add_scatter(
            x=x[members], y=y[members], mode="markers", name=escaped(shortened(name, LONGEST)),
            customdata=frame["key"].to_numpy(object)[members], meta="numbers",
            text=frame["words"].to_numpy(object)[members], hovertemplate="%{text}<extra></extra>",
            marker={
                "size": 11, "symbol": symbols[members], "opacity": 0.9,
                "color": SERIES[number] if colour else token("accent", theme),
                "line": {"width": np.where(best[members], 2.5, 0), "color": token("text", theme)},
            },
        )  # fmt: skip
    _ring(figure, x, y, frame["key"].isin(list(selection)).to_numpy(bool), theme)
    _explain(figure, symbols, theme)
    layout = plot_layout(theme)
    for name, axis, scale in zip(("xaxis", "yaxis"), axes, scales, strict=True):
        title = layout[name]["title"] | {"text": axis.title}
        layout[name] = layout[name] | {"title": title, "fixedrange": True} | scale.layout
        if axis.is_bytes and limit:
            _limit(figure, name, limit, theme)
    layout["margin"] = layout["margin"] | {"b": 76}
    figure.update_layout(layout)
    return figure.update_layout(hovermode="closest", showlegend=True, meta={"marks": False})


def _symbols(frame: pd.DataFrame) -> Texts:
    fits = frame["fits"].fillna(False).to_numpy(bool)
    failed = frame["error"].to_numpy(object) != ""
    return np.where(fits, FIT, np.where(failed, FAILED, MISS)).astype(object)


def _groups(frame: pd.DataFrame, colour: str) -> dict[str, Truths]:
    """Return which points have each value of a column, in its order."""
    if not colour:
        return {"points": np.ones(len(frame), dtype=bool)}
    column = frame[colour]
    values = sorted(column.dropna().unique().tolist())
    groups = {f"{colour} {_text(value)}": (column == value).to_numpy(bool)
              for value in values[:MAX_COLOURS]}  # fmt: skip
    if len(values) > MAX_COLOURS:
        groups[f"{len(values) - MAX_COLOURS} more"] = column.isin(values[MAX_COLOURS:]).to_numpy()
    if column.isna().any():
        groups[f"without {colour}"] = column.isna().to_numpy(bool)
    return groups


def _text(value: object) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def _scale(frame: pd.DataFrame, axis: Axis, limit: float) -> Scale:
    """Return where the points lie along an axis, and the axis."""
    column = frame[axis.field]
    if column.dtype.kind not in "iufb":
        values = sorted(column.dropna().unique().tolist())
        order = {value: place for place, value in enumerate(values)}
        places = column.map(order).astype(float).fillna(-1).to_numpy()
        ticks = [escaped(shortened(str(value), LONGEST)) for value in values]
        labels = ["none", *ticks] if (places < 0).any() else ticks
        first = len(ticks) - len(labels)
        ends = [first - 0.5, len(ticks) - 0.5]
        return Scale(places, {"tickmode": "array", "ticktext": labels, "range": ends,
                              "tickvals": list(range(first, len(ticks)))})  # fmt: skip
    places = column.to_numpy(np.float64, na_value=np.nan)
    reached = places[~np.isnan(places)]
    if not len(reached):
        return Scale(np.zeros(len(places)), {"range": [0, 1], "showticklabels": False})
    low, high = float(reached.min()), float(reached.max())
    if low > 0 and high > WIDE * low:
        margin = EDGE * np.log10(high / low)
        ends = [np.log10(low) - 2 * margin, np.log10(high) + margin]
        edge, layout = 10 ** (ends[0] + margin / 2), {"type": "log", "dtick": 1}
    else:
        top = max(high, limit if axis.is_bytes else 0) * 1.05 or 1
        ends, edge = [-EDGE * top, top], -EDGE * top / 2
        layout = dict(byte_axis(top)) if axis.is_bytes else {"tickformat": ",~f"}
    if axis.is_lever and len(np.unique(reached)) <= MAX_COLOURS:
        layout = layout | {"tickmode": "array", "tickvals": np.unique(reached).tolist()}
    return Scale(np.where(np.isnan(places), edge, places), layout | {"range": ends})


def _front(figure: go.Figure, x: Floats, y: Floats, theme: Theme) -> None:
    """Join the points that no other is better than."""
    if len(x) > 1:
        order = np.lexsort((y, x))
        line = {"color": token("quiet", theme), "width": 1.5, "dash": "dot"}
        figure.add_scatter(x=x[order], y=y[order], mode="lines", name="no other is better",
                           line=line, hoverinfo="skip")  # fmt: skip


def _ring(figure: go.Figure, x: Floats, y: Floats, mask: Truths, theme: Theme) -> None:
    """Draw a ring around the points that are chosen, larger than those of the best."""
    if mask.any():
        ring = {"symbol": "circle-open", "size": 22, "color": token("accent", theme),
                "line": {"width": 3}}  # fmt: skip
        figure.add_scatter(x=x[mask], y=y[mask], mode="markers", name="chosen", marker=ring,
                           hoverinfo="skip")  # fmt: skip


def _explain(figure: go.Figure, symbols: Texts, theme: Theme) -> None:
    """Add to the legend the meaning of the marks that are drawn."""
    for symbol in (FIT, MISS, FAILED):
        if (symbols == symbol).any():
            mark = {"symbol": symbol, "size": 10, "color": token("quiet", theme)}
            figure.add_scatter(x=[None], y=[None], mode="markers", name=NAMES[symbol], marker=mark)


def _limit(figure: go.Figure, name: str, limit: float, theme: Theme) -> None:
    line = {"color": token("limit", theme), "width": 1, "dash": "dash"}
    words = {"annotation_text": "memory of a tile", "annotation_font_size": 11}
    if name == "xaxis":
        figure.add_vline(limit, line=line, annotation_position="top left", **words)
    else:
        figure.add_hline(limit, line=line, annotation_position="bottom right", **words)
