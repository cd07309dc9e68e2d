"""What the plots over tiles and steps share: axes in bytes, steps drawn as steps, few points."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pva import units
from pva.array_types import Values
from pva.lazy import pandas as pd

Figure = go.Figure

TICKS = 24  # of an axis over tiles or steps
LONGEST_NAME = 60  # letters of a name beside the pointer; tables have it in full
MAX_POINTS = 3000  # of a line: more is not seen, and SVG grows slow


def warm() -> None:
    """Load what the first figure needs, before several threads ask for it at once.

    Plotly looks at pandas while it writes JSON, and fails while another thread imports it.
    """
    go.Figure(go.Scatter(x=pd.Series([0]), y=[0])).to_json()


def nice_step(extent: float, ticks: int = 5) -> float:
    """Return 1, 2, 2.5 or 5 times a power of ten, such that `extent` has few of them."""
    if extent <= 0:
        return 1.0
    rough = extent / ticks
    power = 10.0 ** floor(log10(rough))
    return float(next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * 0.999))


def tile_axis(most: float) -> dict[str, Any]:
    """Make a vertical axis for up to `most` tiles, of which there are no halves."""
    return {"title": {"text": "Tiles"}, "dtick": max(nice_step(most), 1), "tickformat": ",d"}


def byte_axis(top: float) -> dict[str, Any]:
    """Make a vertical axis from 0 to `top` bytes whose ticks are round in their unit."""
    return _axis_in(units.byte_steps(), top)


def cycle_axis(top: float) -> dict[str, Any]:
    """Make a vertical axis from 0 to `top` cycles, or of their time if cycles are written so."""
    clock = units.manner().clock
    if clock:
        return _axis_in([(clock * seconds, unit) for seconds, unit in units.TIME_STEPS], top)
    return {
        "range": [0, max(top, 1)], "tickformat": ",d", "fixedrange": True,
        "title": {"text": "Cycles"},
    }  # fmt: skip


def _axis_in(steps: Sequence[tuple[float, str]], top: float) -> dict[str, object]:
    """Make a vertical axis whose ticks are round in the largest of these units that fits."""
    scale, unit = next((pair for pair in steps if top >= pair[0]), steps[-1])
    step = max(nice_step(top / scale), 1 if unit == "B" else 0)
    marks = [step * number for number in range(ceil(top / scale / step) + 1)]
    digits = 0 if all(mark == round(mark) for mark in marks) else 1
    digits = 2 if any(abs(mark * 10 - round(mark * 10)) > 1e-9 for mark in marks) else digits
    return {
        "range": [0, max(top, 1)],
        "tickmode": "array",
        "tickvals": [mark * scale for mark in marks],
        "ticktext": [f"{mark:,.{digits}f} {unit}" for mark in marks],
        "fixedrange": True,
    }


Window = tuple[int, int]  # of whole numbers on the horizontal axis, the end not included


def whole(count: int, window: Window | None) -> Window:
    """Return the part of 0 to `count` - 1 that is in view: the window where it meets it, or all."""
    begin, end = window or (0, count)
    begin, end = min(max(begin, 0), count), min(end, count)
    return (begin, end) if begin < end else (0, count)


def number_axis(title: str, count: int, window: Window | None = None) -> dict[str, Any]:
    """Make a horizontal axis over whole numbers 0 to `count` - 1; the hover is headed alike."""
    begin, end = whole(count, window)
    return {
        "unifiedhovertitle": {"text": f"{title} %{{x:,d}}"},
        "range": [begin - 0.5, max(end, 1) - 0.5],
        "tickformat": ",d",
        **(
            {"dtick": 1}
            if end - begin <= TICKS
            else {"nticks": TICKS if end < 10_000 else TICKS // 2}
        ),
        "minallowed": -0.5,
        "maxallowed": max(count, 1) - 0.5,
    }


# What ends each character that has the text behind it read in a direction.
ENDS = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c") | dict.fromkeys(
    "\u2066\u2067\u2068", "\u2069"
)


def shown_places(values: Values, most: int = MAX_POINTS) -> Values:
    """Choose at most `most` places to draw: of each stretch the highest, and first and last."""
    size = len(values)
    if size <= most:
        return np.arange(size)
    edges = np.linspace(0, size, most - 1).astype(np.int64)
    stretch = np.searchsorted(edges, np.arange(size), side="right")
    order = np.lexsort((-values, stretch))
    _, first = np.unique(stretch[order], return_index=True)
    return np.union1d(order[first], [0, size - 1])


def widened(places: Values, count: int) -> tuple[Values, Values]:
    """Return x and places with both ends drawn half a step further, so that each step is whole.

    The outer points still round to the first and the last step.
    """
    x = np.concatenate([[-0.49], places, [count - 0.51]])
    return x, np.concatenate([places[:1], places, places[-1:]])


def escaped(text: str) -> str:
    """Keep plotly from reading markup in a text that is data, and its direction inside of it."""
    ends = "".join(ENDS[letter] for letter in reversed(text) if letter in ENDS)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + ends


def shortened(text: str, most: int = LONGEST_NAME) -> str:
    """Cut the middle out of a long text."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def point_ids(objects: Sequence[str | None]) -> list[str]:
    """Return the `ids` of points that are these objects: place and object, apart by a space.

    Plotly draws points of one id as one, so that points without an object need ids of their own.
    """
    return [f"{place} {name or ''}" for place, name in enumerate(objects)]


def scale_of(top: float) -> tuple[int, str]:
    """Return the unit in which numbers of bytes up to `top` are drawn, and its name."""
    steps = units.byte_steps()
    return next((pair for pair in steps if top >= pair[0]), steps[-1])


def time_scale(seconds: float) -> tuple[float, str]:
    """Return the largest unit of time that such a time has at least one of, and its name."""
    steps = units.TIME_STEPS
    return next((pair for pair in steps if seconds >= pair[0]), steps[-1])


def scaled_axis(top: float) -> dict[str, object]:
    """Make a vertical axis for bytes that were divided by the unit of `scale_of(top)`."""
    scale, unit = scale_of(top)
    step = max(nice_step(top / scale), 1 if unit == "B" else 0)
    return {
        "range": [0, max(top / scale, 1)],
        "dtick": step,
        "tickformat": ",~f",
        "ticksuffix": f" {unit}",
        "fixedrange": True,
    }


def picking(figure: go.Figure, numbers: list[object] | None = None) -> go.Figure:
    """Make dragging choose a range of x; `numbers` are those chosen at x = 0, 1, ... if not x."""
    figure.update_layout(dragmode="select", selectdirection="h", clickmode="event")
    return figure if numbers is None else figure.update_layout(meta={"picks": numbers})
