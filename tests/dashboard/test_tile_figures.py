"""What something costs each tile, as drawn, against the frame that went in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dashboard.figures.tiles import MAX_POINTS, by_tile
from pva.plot.theme import THEMES, Theme

FRAME = pd.DataFrame(
    {"tile": range(4), "compute": [5, 0, 7, 1], "exchange": [1, 2, 3, 4],
     "bytes_sent": [0, 9, 0, 2048]}
)  # fmt: skip


@pytest.mark.parametrize("theme", THEMES)
def test_stacked_columns_are_those_of_the_frame(theme: Theme) -> None:
    figure = by_tile(FRAME, ("compute", "exchange"), unit="cycles", stacked=True, theme=theme)
    # The outer points are drawn half a tile further.
    assert [trace.y[1:-1].tolist() for trace in figure.data] == [[5, 0, 7, 1], [1, 2, 3, 4]]
    assert [trace.name for trace in figure.data] == ["Compute", "Exchange"]
    assert figure.layout.yaxis.range[1] > 10  # the highest sum
    assert figure.layout.showlegend


def test_one_column_has_no_legend_and_bytes_have_units() -> None:
    figure = by_tile(FRAME, ("bytes_sent",), unit="bytes", stacked=False, theme="light")
    assert figure.data[0].customdata.tolist()[1:-1] == ["0 B", "9 B", "0 B", "2.0 kB"]
    assert not figure.layout.showlegend
    assert figure.layout.yaxis.ticktext[0] == "0.0 kB"


def test_of_many_tiles_the_highest_are_drawn() -> None:
    cycles = np.arange(10_000) % 977
    cycles[4321] = 5000
    frame = pd.DataFrame({"tile": np.arange(10_000), "cycles": cycles})
    figure = by_tile(frame, ("cycles",), unit="cycles", stacked=False, theme="light")
    assert len(figure.data[0].y) <= MAX_POINTS + 3
    assert figure.data[0].y.max() == 5000


def test_no_tiles_are_an_empty_plot() -> None:
    figure = by_tile(FRAME.head(0), ("compute",), unit="cycles", stacked=True, theme="light")
    assert figure.layout.yaxis.range == (0, 1)
