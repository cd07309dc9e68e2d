"""Figures are pure functions of the results of analyses."""

from __future__ import annotations

import numpy as np
import pytest

from pva.plot import axes

KILOBYTE = 1024


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
