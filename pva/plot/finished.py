"""What a figure needs to stand by itself, outside of a page: a title, a ground, a height."""

from __future__ import annotations

import plotly.graph_objects as go

from pva.plot.axes import escaped, shortened
from pva.plot.theme import Theme, token

HEIGHT = 420
LONGEST_REPORT = 60  # letters of the name of a report
HEAD = 64  # pixels of the title


def finished(figure: go.Figure, title: str, name: str, *, theme: Theme) -> go.Figure:
    """Return the figure with a title over the name of its report, on the ground of the theme."""
    small = f"font-size:12px;color:{token('quiet', theme)}"
    below = f"<br><span style='{small}'>{escaped(shortened(name, LONGEST_REPORT))}</span>"
    ground = token("surface", theme)
    figure.update_layout(
        title={"text": escaped(title) + below, "x": 0, "xref": "paper", "xanchor": "left",
               "yref": "container", "y": 1, "yanchor": "top", "pad": {"t": 16},
               "font": {"size": 16}},
        paper_bgcolor=ground,
        plot_bgcolor=ground,
        margin={"l": 8, "r": 16, "t": HEAD + 8, "b": 48},
        height=figure.layout.height or HEIGHT,
        dragmode="zoom",
    )  # fmt: skip
    return figure
