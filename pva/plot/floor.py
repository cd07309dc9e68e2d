"""The tiles as they lie on the chip, and what lies at which address of one of them."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import byte_axis, escaped, point_ids, scale_of, shortened
from pva.plot.theme import THEMES, Theme, category_colour, plot_layout, token

SCALES = ("blue", "heat", "cividis", "viridis")
_ENDS = {  # from little to much: the colours of each scale in the light theme, and in the dark one
    "blue": (["#eef3fb", "#7ba3d8", "#12346b"], ["#222a38", "#3f74bd", "#b8d4ff"]),
    "heat": (["#fdf3e7", "#f0a04b", "#a3231b"], ["#2b2422", "#b5532c", "#ffd28a"]),
}
LONGEST_NAME = 40  # letters of the chosen object
NAME_HEIGHT = 0.045  # of the plot: a line of text
MAX_CELLS = 24_000  # of a map; more tiles share some
MAX_PIECES = 1500  # of an address map, the largest; the table has them all


def tile_map(frame: pd.DataFrame, *, words: str, scale: str, top: float, theme: Theme) -> go.Figure:
    """Draw a cell for each tile, IPU beside IPU, coloured by its bytes; `top` ends the colours.

    `frame` has tile, ipu, column, row, bytes and free. A cell's customdata is its tile. Of more
    than MAX_CELLS tiles some beside each other share a cell, which is that of the fullest.
    """
    side = _side(frame)
    frame = frame.iloc[np.argsort(frame["bytes"].to_numpy(), kind="stable")]  # the fullest on top
    x, y, across, pitch, high = _places(frame, side)
    shape = (int(y.max()) + 1, int(x.max()) + 1)
    unit, name = scale_of(top)
    figure = go.Figure(
        go.Heatmap(
            z=_grid(shape, x, y, frame["bytes"].to_numpy() / unit, np.nan).astype(np.float32),
            customdata=_grid(shape, x, y, frame["tile"].to_numpy(), -1).astype(np.int32),
            hovertemplate=f"Tile %{{customdata:,d}}: %{{z:,.3~f}} {name} {escaped(words)}"
            "<extra></extra>",
            hoverongaps=False,
            colorscale=colours(scale, theme),
            zmin=0,
            zmax=max(top, 1) / unit,
            xgap=_gap(shape[1], 200),
            ygap=_gap(shape[0], 60),
            meta="numbers",
            colorbar={"thickness": 12, "ticksuffix": f" {name}", "outlinewidth": 0, "len": 0.9},
        )
    )
    _mark_lacking(figure, frame, x, y, theme)
    layout = plot_layout(theme)
    hidden = {"visible": False, "fixedrange": False}
    layout["xaxis"] = hidden | {"range": [-1, shape[1]]}
    layout["yaxis"] = hidden | {"range": [shape[0], high - pitch[1] + 0.4]}
    texts = [*_names(int(frame["ipu"].max()) + 1, across, pitch), *_shared(side)]
    quiet = {"showarrow": False, "font": {"size": 12, "color": token("quiet", theme)}}
    figure.update_layout(layout | {"annotations": [quiet | text for text in texts]})
    return figure.update_layout(
        hovermode="closest", clickmode="event", dragmode="pan", showlegend=False
    )


def mark_tiles(
    figure: go.Figure, frame: pd.DataFrame, tiles: Values, name: str, theme: Theme
) -> None:
    """Frame the tiles of the chosen object on a map; those beside each other have one frame."""
    x, y, *_ = _places(frame, _side(frame))
    mine = np.isin(frame["tile"].to_numpy(), tiles)
    y, x = np.unique(np.stack((y[mine], x[mine])), axis=1)
    begins = np.ones(len(x), dtype=bool)
    begins[1:] = (y[1:] != y[:-1]) | (x[1:] != x[:-1] + 1)
    ends = np.append(begins[1:], True)[: len(x)]
    left, right, row = x[begins] - 0.5, x[ends] + 0.5, y[begins]
    top, bottom, gap = row - 0.5, row + 0.5, np.full(len(row), np.nan)
    figure.add_scatter(
        x=np.column_stack([left, right, right, left, left, gap]).ravel(),
        y=np.column_stack([top, top, bottom, bottom, top, gap]).ravel(),
        mode="lines",
        name=escaped(shortened(name, LONGEST_NAME)),
        line={"width": 1.2, "color": token("before", theme)},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=True,
    )
    figure.update_layout(showlegend=True)


def _side(frame: pd.DataFrame) -> int:
    """Count the tiles along each side of a cell."""
    return max(int(np.ceil(np.sqrt(len(frame) / MAX_CELLS))), 1)


def _places(frame: pd.DataFrame, side: int) -> tuple[Values, Values, int, tuple[int, int], int]:
    """Return where the cell of each tile lies on a map, its x and y, and how IPUs lie.

    That is how many are beside each other, from where to where the next one is, and how high one.
    """
    row, column = (frame[name].to_numpy() // side for name in ("row", "column"))
    wide, high = int(row.max()) + 1, int(column.max()) + 1
    ipus = int(frame["ipu"].max()) + 1
    across = _across(ipus)
    pitch = wide + 2, high + _room_for_names(-(-ipus // across), high)
    place = frame["ipu"].to_numpy()
    x, y = (place % across) * pitch[0] + row, (place // across) * pitch[1] + column
    return x, y, across, pitch, high


def _across(ipus: int) -> int:
    """Return how many IPUs lie beside each other."""
    return 1 if ipus == 1 else max(2, int(2 ** round(np.log2(ipus) / 2)))


def _room_for_names(bands: int, high: int) -> int:
    """Return the rows above each band of IPUs in which their names stand, of all bands alike."""
    share = min(NAME_HEIGHT * bands, 0.5)
    return max(2, ceil(high * share / (1 - share)))


def _gap(cells: int, limit: int) -> float:
    """Return the pixels between cells, the fewer the more cells share the plot."""
    return next((pixels for most, pixels in ((limit, 1), (2 * limit, 0.5)) if cells < most), 0)


def colours(scale: str, theme: Theme) -> Any:
    """Return a scale that begins near the ground of the page; the named ones are plotly's."""
    end_colours = _ENDS.get(scale)
    if end_colours is None:
        return scale.capitalize()
    colours = end_colours[THEMES.index(theme)]
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


def _grid(shape: tuple[int, int], x: Values, y: Values, values: Values, empty: float) -> Values:
    grid = np.full(shape, empty, dtype=np.float64)
    grid[y, x] = values
    return grid


def _mark_lacking(
    figure: go.Figure, frame: pd.DataFrame, x: Values, y: Values, theme: Theme
) -> None:
    lacking = frame["free"].to_numpy() < 0
    if lacking.any():
        figure.add_scatter(
            x=x[lacking],
            y=y[lacking],
            mode="markers",
            name="Out of memory",
            marker={"symbol": "x-thin", "size": 7,
                    "line": {"width": 2, "color": token("bad", theme)}},
            hoverinfo="skip",
        )  # fmt: skip


def _names(ipus: int, across: int, pitch: tuple[int, int]) -> list[dict[str, object]]:
    """Name IPUs above them, where there are several."""
    of_all = {"xanchor": "left", "yanchor": "bottom", "borderpad": 0}
    return [
        of_all | {
            "x": (ipu % across) * pitch[0] - 0.5, "y": (ipu // across) * pitch[1] - 0.5,
            "text": f"IPU {ipu}",
        }
        for ipu in range(ipus if ipus > 1 else 0)
    ]  # fmt: skip


def _shared(side: int) -> list[dict[str, object]]:
    """Return the note on cells that several tiles share; none where each has its own."""
    if side == 1:
        return []
    text = f"A cell is the fullest of {side} × {side} tiles"
    above = {"xref": "paper", "yref": "paper", "x": 1, "y": 1}
    return [above | {"xanchor": "right", "yanchor": "bottom", "text": text}]


def address_map(
    frame: pd.DataFrame, *, steps: int, theme: Theme, label: Callable[[str], str]
) -> go.Figure:
    """Draw what lies at which address (across) while it is live (upward, in program steps).

    `frame` is that of the analysis `address_map`. Gaps are hatched; pieces that share an address
    lie above each other, as they are not live together. A column `object` tells what a piece is to
    whoever clicks on it.
    """
    pieces = frame[frame["kind"] == "piece"].nlargest(MAX_PIECES, "bytes", keep="first")
    gaps = frame[frame["kind"] == "gap"]
    figure = go.Figure()
    last = max(steps, 1)
    if len(gaps):
        _add_boxes(figure, gaps, "Gap", token("line", theme), (0, last), hatched=True)
    for category, part in pieces.groupby("category", sort=True):
        words, colour = label(str(category)), category_colour(str(category))
        _add_boxes(figure, part, words, colour, (0, last))
    top = float(frame["end"].max()) if len(frame) else 1.0
    layout = plot_layout(theme)
    bytes_axis = byte_axis(top)
    bytes_axis["fixedrange"] = False
    bytes_axis["title"] = {"text": "Address"}
    layout["xaxis"] = layout["xaxis"] | bytes_axis
    layout["yaxis"] = layout["yaxis"] | {
        "range": [0, last], "tickformat": ",d", "title": {"text": "Live at program step"},
    }  # fmt: skip
    return figure.update_layout(layout).update_layout(
        hovermode="closest", hoverdistance=20, dragmode="zoom"
    )


def _add_boxes(
    figure: go.Figure,
    part: pd.DataFrame,
    words: str,
    colour: str,
    extent: tuple[int, int],
    *,
    hatched: bool = False,
) -> None:
    """Add the boxes of one colour as one trace, and a point in the middle of each for the hover."""
    always = part["first_step"].to_numpy() < 0
    left, right = part["address"].to_numpy(), part["end"].to_numpy()
    low = np.where(always, extent[0], part["first_step"].to_numpy())
    high = np.where(always, extent[1], part["last_step"].to_numpy() + 1)
    nothing = np.full(len(part), np.nan)
    x = np.column_stack([left, left, right, right, left, nothing]).ravel()
    y = np.column_stack([low, high, high, low, low, nothing]).ravel()
    figure.add_scatter(
        x=x, y=y, mode="lines", fill="toself", name=escaped(words), legendgroup=words,
        line={"width": 0.8, "color": colour}, fillcolor=colour, hoverinfo="skip",
        opacity=0.85,
        fillpattern={"shape": "/", "size": 5, "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)",
                     "fillmode": "replace"} if hatched else None,
    )  # fmt: skip
    figure.add_scatter(
        x=(left + right) / 2, y=(low + high) / 2, mode="markers", legendgroup=words,
        marker={"size": 14, "opacity": 0}, showlegend=False, text=_hover(part, words),
        ids=point_ids(part["object"].fillna("").tolist()) if "object" in part else None,
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _hover(part: pd.DataFrame, words: str) -> list[str]:
    columns: Any = ("name", "address", "end", "bytes", "first_step", "last_step", "shares")
    return [
        f"{escaped(shortened(str(name))) or words}<br>{begin:,} to {end:,}: {units.size(size)}"
        + (f"<br>live at steps {first:,} to {last:,}" if first >= 0 else "")
        + (f"<br>overlaps {shares:,} other{'s' * (shares != 1)}" if shares else "")
        for name, begin, end, size, first, last, shares in zip(
            *(part[column].tolist() for column in columns), strict=True
        )
    ]
