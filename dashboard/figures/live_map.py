"""What is live on each tile at each program step, as colours."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd
from pva.plot.axes import escaped, picking, scale_of, shortened
from pva.plot.floor import colours
from pva.plot.liveness import mark_steps
from pva.plot.theme import Theme, plot_layout, token

LONGEST_HOVER = 40  # letters of the name of a step
TICKS = 12


def live_map(frame: pd.DataFrame, *, always: bool, capacity: int, theme: Theme) -> go.Figure:
    """Draw a cell for each group of tiles (down) and program step (across), coloured by bytes.

    `frame` is that of `liveness_map`; without `always` the always-live bytes are taken away.
    `capacity` is the memory of a tile in bytes: the colours end there where a group has more.
    """
    steps, tiles = (np.unique(frame[name].to_numpy()) for name in ("step", "tile"))
    shape = len(steps), len(tiles)
    values = frame["live"].to_numpy() - (0 if always else frame["always_live"].to_numpy())
    top = float(values.max(initial=1))
    unit, name = scale_of(top)
    figure = go.Figure(
        go.Heatmap(
            z=(values / unit).reshape(shape).T.astype(np.float32),
            customdata=_hover(frame, values).reshape(shape).T,
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=colours("blue", theme),
            zmin=0,
            zmax=max(min(top, max(capacity, 1)), 1) / unit,
            colorbar={"thickness": 12, "ticksuffix": f" {name}", "outlinewidth": 0, "len": 0.9},
        )
    )
    layout = plot_layout(theme)
    layout["xaxis"] = layout["xaxis"] | _axis("Program step", [f"{step:,}" for step in steps])
    layout["yaxis"] = layout["yaxis"] | _axis("Tile", [f"{tile:,}" for tile in tiles])
    layout["yaxis"] |= {"range": [len(tiles) - 0.5, -0.5]}
    figure.update_layout(layout).update_layout(hovermode="closest", showlegend=False)
    _add_borders(figure, frame, tiles, theme)
    return picking(figure, steps.tolist())


def mark_object(
    figure: go.Figure,
    frame: pd.DataFrame,
    tiles: Values,
    life: tuple[int, int, str] | None,
    *,
    theme: Theme,
) -> None:
    """Mark the rows of tiles, and the columns of steps, that belong to the chosen object.

    Rows one below the other have one frame.
    """
    begins, steps = (np.unique(frame[name].to_numpy()) for name in ("tile", "step"))
    rows = np.unique(np.searchsorted(begins, tiles, side="right") - 1)
    top = rows[np.diff(rows, prepend=-2) > 1] - 0.5
    bottom = rows[np.diff(rows, append=len(begins) + 1) > 1] + 0.5
    left, right, gap = (np.full(len(top), at) for at in (-0.5, len(steps) - 0.5, np.nan))
    figure.add_scatter(
        x=np.column_stack([left, right, right, left, left, gap]).ravel(),
        y=np.column_stack([top, top, bottom, bottom, top, gap]).ravel(),
        mode="lines", line={"width": 1, "color": token("before", theme)},
        cliponaxis=False, hoverinfo="skip",
    )  # fmt: skip
    if life is not None and life[1] >= steps[0]:
        first, last = (np.searchsorted(steps, life[:2], side="right") - 1).tolist()
        mark_steps(figure, max(first, 0), last, life[2], theme=theme)


def _hover(frame: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    """Write step, size and tile of each cell."""
    named = frame["name"].where(frame["name"] != "", frame["type"]).tolist()
    places = {text: escaped(shortened(text, LONGEST_HOVER)) for text in set(named)}
    columns = (frame[name].tolist() for name in ("step", "tile", "last_tile", "fullest_tile"))
    return np.array(
        [
            f"Step {step:,}: {places[text]}<br>Tile {fullest:,}: {units.size(size)}"
            + (f"<br>the fullest of tiles {first:,} to {last:,}" if last > first else "")
            for text, size, step, first, last, fullest in zip(
                named, values.tolist(), *columns, strict=True
            )
        ],
        dtype=object,
    )


def _axis(title: str, words: list[str]) -> dict[str, object]:
    """Make an axis over places 0, 1, ... some of which are named."""
    every = max(-(-len(words) // TICKS), 1)
    return {
        "title": {"text": title},
        "tickmode": "array",
        "tickvals": list(range(0, len(words), every)),
        "ticktext": words[::every],
        "range": [-0.5, len(words) - 0.5],
        "maxallowed": len(words) - 0.5,
        "fixedrange": True,
        "showgrid": False,
    }


def _add_borders(figure: go.Figure, frame: pd.DataFrame, tiles: np.ndarray, theme: Theme) -> None:
    """Draw a line where another IPU begins, and name the IPUs."""
    ipus = frame.drop_duplicates("tile").set_index("tile")["ipu"].loc[tiles].to_numpy()
    starts = np.flatnonzero(np.diff(ipus, prepend=ipus[:1] - 1)) if len(ipus) else ipus
    for place in starts.tolist() if len(starts) > 1 else ():
        if place:
            figure.add_hline(y=place - 0.5, line={"color": token("limit", theme), "width": 1})
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=place - 0.5, yanchor="top", showarrow=False,
            text=f"IPU {ipus[place]}", font={"size": 12, "color": token("text", theme)},
            bgcolor=token("surface", theme), opacity=0.85, borderpad=1,
        )  # fmt: skip
