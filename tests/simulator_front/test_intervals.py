"""Arithmetic on intervals gives what counting numbers one by one does."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.graph.intervals import kinds, overlap, present

NUMBERS = {"near": [5, 3, 5, 0, 3], "far apart": [1 << 40, 7, 1 << 40], "none": []}


@pytest.mark.parametrize("given", NUMBERS.values(), ids=NUMBERS.keys())
def test_kinds_are_the_different_numbers_and_which_each_is(given: list[int]) -> None:
    found, which = kinds(np.array(given, dtype=np.int64))
    assert found.tolist() == sorted(set(given)) == present(np.array(given, dtype=int)).tolist()
    assert found[which].tolist() == given


def test_intervals_overlap_when_a_number_is_in_two() -> None:
    rng = np.random.default_rng(1)
    outcomes = set()
    for _ in range(60):
        begins, lengths = rng.integers(0, 60, 6), rng.integers(1, 8, 6)
        numbers = [n for b, c in zip(begins, lengths, strict=True) for n in range(b, b + c)]
        outcomes.add(len(set(numbers)) < len(numbers))
        assert overlap(begins, lengths) == (len(set(numbers)) < len(numbers))
    assert outcomes == {False, True}
