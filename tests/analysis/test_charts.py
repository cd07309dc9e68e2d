"""Points of lines and columns of heat maps, against all of them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from pva.analysis.host.charts import heat_columns, line_points


def test_few_points_are_given_as_they_are_with_the_one_before() -> None:
    times, values = np.array([0, 10, 20, 30]), np.array([1.0, np.nan, 3.0, 4.0])
    found = line_points(times, values, 15, 25, 100)
    assert [part.tolist() for part in found] == [[0, 20], [1.0, 3.0]]


def test_of_many_points_the_extremes_of_each_stretch_stay() -> None:
    random = np.random.default_rng(1)
    times, values = np.arange(100_000), random.normal(size=100_000)
    found, kept = line_points(times, values, 0, 100_000, 200)
    assert len(found) <= 202
    for low in range(0, 100_000, 1000):
        inside = (found >= low) & (found < low + 1000)
        assert kept[inside].min() == values[low : low + 1000].min()
        assert kept[inside].max() == values[low : low + 1000].max()


def test_columns_are_shares_as_powers_of_ten_until_the_next() -> None:
    counts = np.array([[99, 1, 0], [0, 0, 5]])
    begin, end, shares = heat_columns(np.array([10, 30]), counts, 0, 100, 50, until=100)
    assert (begin.tolist(), end.tolist()) == ([10, 30], [30, 100])
    assert shares[0, :2] == pytest.approx([np.log10(0.99), -2.0])
    assert np.isnan(shares[0, 2]) and shares[1, 2] == 0


def test_last_column_ends_with_its_file() -> None:
    counts = np.array([[1, 0], [0, 1]])
    columns = partial(heat_columns, np.array([10, 30]), counts)
    assert columns(0, 100, 50, until=45)[1].tolist() == [30, 45]
    assert columns(0, 100, 50, until=20)[1].tolist() == [30, 31]
    assert [len(part) for part in columns(50, 100, 50, until=45)] == [0, 0, 0]


def test_columns_of_one_stretch_are_added_up() -> None:
    begin, end, shares = heat_columns(
        np.arange(100), np.eye(100, 4, dtype=int) + 1, 0, 100, 1, until=100
    )
    assert (begin.tolist(), end.tolist()) == ([0], [100])
    assert shares[0] == pytest.approx([np.log10(101 / 404)] * 4)


@pytest.mark.parametrize("window", [(200, 300), (-50, -10)])
def test_windows_beside_the_points_are_calm(window: tuple[int, int]) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert not len(line_points(nothing, np.zeros(0), *window, 10)[0])
    assert not len(heat_columns(nothing, np.zeros((0, 3), dtype=int), *window, 10, until=0)[0])
    assert len(line_points(np.arange(5), np.ones(5), *window, 10)[0]) <= 1
