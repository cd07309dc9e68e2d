"""Arithmetic on intervals gives what counting numbers one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.graph.geometry.intervals import (
    ascending,
    distinct,
    first_of_each,
    kinds,
    overlap,
    present,
)

NUMBERS = {"near": [5, 3, 5, 0, 3], "far apart": [1 << 40, 7, 1 << 40], "none": []}


@pytest.mark.parametrize("given", NUMBERS.values(), ids=NUMBERS.keys())
def test_kinds_are_the_different_numbers_and_which_each_is(given: list[int]) -> None:
    found, which = kinds(np.array(given, dtype=np.int64))
    assert found.tolist() == sorted(set(given)) == present(np.array(given, dtype=int)).tolist()
    assert found[which].tolist() == given
    firsts = [given.index(number) for number in sorted(set(given))]
    assert first_of_each(which).tolist() == firsts


def test_intervals_overlap_when_a_number_is_in_two() -> None:
    rng = np.random.default_rng(1)
    outcomes = set()
    for _ in range(60):
        begins, lengths = rng.integers(0, 60, 6), rng.integers(1, 8, 6)
        numbers = [n for b, c in zip(begins, lengths, strict=True) for n in range(b, b + c)]
        outcomes.add(len(set(numbers)) < len(numbers))
        assert overlap(begins, lengths) == (len(set(numbers)) < len(numbers))
    assert outcomes == {False, True}


@pytest.mark.parametrize("most", [3, 1 << 20, 1 << 62])
def test_ascending_is_a_stable_sort(most: int) -> None:
    numbers = np.random.default_rng(2).integers(0, most, 500)
    np.testing.assert_array_equal(ascending(numbers), np.argsort(numbers, kind="stable"))


@pytest.mark.parametrize("sizes", [1, 4])  # of one size, the first two columns tell all
def test_distinct_rows_and_how_many_there_are_of_each(sizes: int) -> None:
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 5, 90), rng.integers(0, 3, 90), 7 + rng.integers(0, sizes, 90)
    index, times = distinct(*columns)
    wanted, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    np.testing.assert_array_equal(np.stack(columns)[:, index], wanted)
    np.testing.assert_array_equal(times, counts)
