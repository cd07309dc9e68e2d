"""Figures are pure functions of the results of analyses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard.figures import axes, memory
from dashboard.theme import THEMES, Theme

KILOBYTE = 1024


def tiles(total: list[int], gaps: list[int]) -> pd.DataFrame:
    """Make the columns of memory_by_tile that the figure needs."""
    return pd.DataFrame({"tile": range(len(total)), "total": total, "total_including_gaps": gaps})


def by_tile(**options: Any) -> Any:
    frame = tiles([1000, 500, 600], [2048, 900, 700])
    given = {"gaps": True, "limit": 3000, "tile": None, "theme": "light"}
    return memory.memory_by_tile(frame, **(given | options))


def test_each_tile_is_a_step_of_its_bytes() -> None:
    trace = by_tile().data[0]
    assert trace.y.tolist() == [2048, 2048, 900, 700, 700]
    assert [round(float(x)) for x in trace.x] == [0, 0, 1, 2, 2]
    assert trace.customdata[1] == "2.0 kB"


def test_gaps_are_left_out_when_asked() -> None:
    assert by_tile(gaps=False).data[0].y.tolist() == [1000, 1000, 500, 600, 600]


def test_limit_in_reach_is_a_line_and_one_far_above_a_note() -> None:
    near, far = by_tile(limit=3000), by_tile(limit=638976)
    assert [shape.y0 for shape in near.layout.shapes] == [3000]
    assert near.layout.yaxis.range[1] > 3000
    assert not far.layout.shapes
    assert far.layout.annotations[0].text == "A tile has 624.0 kB, 312.0 times the fullest"


def test_chosen_tile_is_marked() -> None:
    assert [shape.x0 for shape in by_tile(limit=10**6, tile=2).layout.shapes] == [2]


def test_categories_are_stacked_in_the_order_given() -> None:
    frame = pd.DataFrame({"vertexCode": [300, 100], "stack": [90, 90]})
    figure = memory.memory_by_category(frame, label=str.upper, limit=1000, tile=None, theme="dark")
    assert [trace.name for trace in figure.data] == ["VERTEXCODE", "STACK"]
    assert {trace.stackgroup for trace in figure.data} == {"memory"}
    assert figure.data[0].y.tolist() == [300, 300, 100, 100]


@pytest.mark.parametrize("theme", THEMES)
def test_figure_is_plain_data_in_both_themes(theme: Theme) -> None:
    figure = by_tile(theme=theme)
    assert json.loads(figure.to_json())["layout"]["font"]["color"].startswith("#")


def test_long_lines_keep_their_peaks_in_few_points() -> None:
    values = np.zeros(100_000, dtype=np.int64)
    values[[17, 54_321, 99_998]] = 7
    shown = axes.shown_places(values)
    assert len(shown) <= axes.MAX_POINTS
    assert {0, 17, 54_321, 99_998, 99_999} <= set(shown.tolist())


def test_short_lines_keep_every_point() -> None:
    assert axes.shown_places(np.array([3, 1, 2])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("top", "ticks"),
    [
        (700, ["0 B", "200 B", "400 B", "600 B", "800 B"]),
        (4 * KILOBYTE, ["0 kB", "1 kB", "2 kB", "3 kB", "4 kB"]),
        (1.2 * KILOBYTE**2, ["0.00 MB", "0.25 MB", "0.50 MB", "0.75 MB", "1.00 MB", "1.25 MB"]),
    ],
)
def test_ticks_of_bytes_are_round_in_units_of_1024(top: float, ticks: list[str]) -> None:
    assert axes.byte_axis(top)["ticktext"] == ticks


def test_long_names_lose_their_middle() -> None:
    assert axes.shortened("abcdefgh", 5) == "ab…gh"
    assert axes.shortened("abcde", 5) == "abcde"
