"""The small picture of all that a plot covers, with the window that the plot shows, to drag.

    layout:    view.panel("memory-overview", PATH, keys)          # the keys of the plot but `range`
    register:  view.fill(app, store, "memory-overview", overview) # strip(heights, "memory-plot")

The window is the `range` of the address; assets/overview.js draws, drags and keys it. Beside the
strip stands the magnification, to be typed; a plot without a strip can have it, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from dash import html

from dashboard.elements.components import Element
from dashboard.elements.static_elements import Node, StaticElements

POINTS, HEIGHT = 400, 100  # what a strip is drawn with: stretches, each with its highest, and units
ACTS = (
    ("out", "−", "Smaller"),
    ("in", "+", "Larger"),
    ("left", "←", "To the left"),
    ("right", "→", "To the right"),
    ("all", "All", "Show all"),
)
HINT = (
    "Drag a part to show it, its ends to change it; double-click for all. "
    "Keys: arrows move it, + and - change it, as does the wheel, 0 is all."
)


def strip(heights: npt.NDArray[np.number], plot: str, subject: str) -> Element:
    """Draw the heights of all places of a plot in a strip, with the window on it."""
    count = len(heights)
    if count < 2:
        return None
    box = {"viewBox": f"0 0 {count} {HEIGHT}", "preserveAspectRatio": "none", "aria-hidden": "true"}
    picture = StaticElements([["svg", box, ["path", {"d": outline(heights)}]]])
    window = html.Div(
        className="overview-window", tabIndex="0", role="group", title=HINT,
        **{"aria-label": f"What the plot shows of {subject}"},
    )  # fmt: skip
    data = {"data-overview": plot, "data-count": str(count)}
    small = html.Div([picture, window], className="overview", **data)
    return html.Div([magnifier(plot), small], className="overview-row")


def magnifier(plot: str) -> Element:
    """Return how large a plot is shown, take another magnification, move what is seen.

    It is open or closed as the browser keeps it.
    """
    acts = [_act(*action) for action in ACTS]
    typed = {"className": "magnification", "inputMode": "decimal", "autoComplete": "off",
             "spellCheck": "false", "aria-label": "Magnification in percent"}  # fmt: skip
    words: Node = ["span", {"className": "note"}, "Magnification"]
    group = {"className": "magnifier-panel", "role": "group", "aria-label": "Magnification"}
    panel: Node = ["div", group, words, acts[0], ["input", typed], *acts[1:]]
    fold = {"className": "magnifier-fold", "data-magnifier": "fold", "aria-expanded": "false",
            "title": "Magnification (z)"}  # fmt: skip
    attributes = {"className": "magnifier", "data-magnifies": plot}
    return StaticElements([["div", attributes, ["button", fold, "100 %"], panel]])


def _act(name: str, words: str, hint: str) -> Node:
    data = {"data-magnifier": name, "title": hint, "aria-label": hint}
    return ["button", {"className": "button small", **data}, words]


def outline(heights: npt.NDArray[np.number]) -> str:
    """Return the outline of bars, one for each place or stretch of places, as an SVG path."""
    count = len(heights)
    edges = np.unique(np.linspace(0, count, min(count, POINTS) + 1).astype(np.int64))
    highest = np.maximum.reduceat(heights, edges[:-1])
    top = max(float(highest.max()), 1.0)
    y = np.round(HEIGHT - HEIGHT * 0.92 * highest / top).astype(np.int64).tolist()
    steps = (f"V{at}H{end}" for at, end in zip(y, edges[1:].tolist(), strict=True))
    return f"M0 {HEIGHT}{''.join(steps)}V{HEIGHT}Z"
