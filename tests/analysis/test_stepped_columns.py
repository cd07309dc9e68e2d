"""Columns in few bytes have the numbers of the arrays that they were made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import kernels
from pva.analysis.timeline import stepped
from pva.analysis.timeline.stepped import Stepped, first_from, shortened

near = st.integers(-3, 3)
far = st.integers(-(1 << 62), 1 << 62)
numbers = st.lists(near | far, min_size=1, max_size=200).map(np.array)
KERNELS = [None, *filter(None, [kernels.compiled])]


@pytest.mark.parametrize("compiled", KERNELS)
@settings(max_examples=60, deadline=None)
@given(numbers, st.data())
def test_each_number_stands_at_its_place(compiled: Any, values: Any, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compiled", compiled)
        column = stepped.stepped(values, values.astype(np.uint32))
        places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20))
        wanted = np.array(places, np.int64)
        assert column[wanted].tolist() == values[wanted].tolist()
        first, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(values))] * 2)))
        assert column[first:stop].tolist() == values[first:stop].tolist()
        assert np.asarray(column).tolist() == values.tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 0, 5, 1 << 40]), st.integers(0, 9)), min_size=1))
def test_times_of_events_are_kept(gaps_and_lengths: list[tuple[int, int]]) -> None:
    gap, length = np.array(gaps_and_lengths).T
    begin, before = np.cumsum(gap + length) - length, np.append(0, np.cumsum(length))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepped, "LARGE", 1)
        columns = shortened(begin, before)
    assert all(isinstance(column, Stepped) for column in columns)
    for column, values in zip(columns, (begin, before), strict=True):
        assert len(column) == len(values) and column[:].tolist() == values.tolist()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "compiled", None)
            assert column[:].tolist() == values.tolist()


def test_events_without_gaps_take_little_more_than_their_begins() -> None:
    begin = 7 * np.arange(100_000)
    before = 7 * np.arange(100_001)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepped, "LARGE", 1)
        columns = shortened(begin, before)
    assert sum(column.nbytes for column in columns) < 5 * len(begin)


@pytest.mark.parametrize("compiled", KERNELS)
@pytest.mark.parametrize("is_stepped", [False, True])
@settings(deadline=None)
@given(st.lists(st.integers(0, 1 << 33), min_size=1).map(sorted), st.integers(-1, 1 << 34))
def test_a_number_is_found_between_two_places(
    is_stepped: bool, compiled: Any, ascending: list[int], number: int
) -> None:
    values = np.array(ascending)
    column = stepped.stepped(values, values.astype(np.uint32)) if is_stepped else values
    low, high = np.array([0, len(values) // 2]), np.array([len(values)] * 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compiled", compiled)
        places = first_from(column, low, high, np.array([[number, number]]))
    whole = np.searchsorted(values, number)
    assert places.tolist() == [[whole, max(whole, len(values) // 2)]]


@pytest.mark.skipif(not kernels.compiled, reason="not built")
@pytest.mark.parametrize("place", [-1, 64, 1 << 62])
def test_a_place_that_is_none_is_for_numpy(place: int) -> None:
    column = stepped.stepped(np.arange(3), np.arange(3, dtype=np.uint32))
    assert column._raised(np.array([0, place])) is None
    parts = column.above, column.base, column.changes, column.counted
    low, high, number = np.array([min(place, 0)]), np.array([4 * place]), np.array([1 << 40])
    assert kernels.compiled.sought(*parts, high, number, low) is None


@pytest.mark.skipif(not kernels.compiled, reason="not built")
@pytest.mark.parametrize("spoilt", [0, 1, 2, 3])
@pytest.mark.parametrize("first", [-1, 0, 63, 1 << 40])
def test_a_stretch_of_what_is_no_place_is_not_filled(spoilt: int, first: int) -> None:
    values = np.arange(70) // 7 << 40
    column = stepped.stepped(values, values.astype(np.uint32))
    parts = [column.above, column.base, column.changes, column.counted]
    empty = [part[:0] if place == spoilt else part for place, part in enumerate(parts)]
    filled = np.zeros(129, np.int64)
    assert kernels.compiled.stretched(*parts, first, filled) is None  # of 128 places
    assert kernels.compiled.stretched(*empty, first, filled[:1]) is None
