"""Windows of tracks against brute force over each rectangle."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pva.analysis.level_of_detail import (
    Track,
    bridged,
    grouped,
    spent,
    viewport,
    without_overlap,
)


def track(gaps_and_lengths: list[tuple[int, int]]) -> Track:
    """Lay rectangles one after another: (gap before, length)."""
    pairs = np.array(gaps_and_lengths, dtype=np.int64).reshape(-1, 2)
    end = np.cumsum(pairs.sum(axis=1))
    places = np.arange(len(pairs))
    return Track(end - pairs[:, 1], end, places % 3, places % 5, places)


tracks = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=60).map(track)
windows = st.tuples(st.integers(0, 1500), st.integers(1, 1500))


def touching(one: Track, begin: int, end: int) -> list[int]:
    """List the rectangles of a track that touch a window, one by one."""
    pairs = zip(one.begin.tolist(), one.end.tolist(), strict=True)
    return [place for place, (first, last) in enumerate(pairs) if last > begin and first < end]


@settings(max_examples=60, deadline=None)
@given(tracks, windows)
def test_fine_pixels_give_each_rectangle_as_it_is(one: Track, window: tuple[int, int]) -> None:
    begin, end = window[0], sum(window)
    found = viewport([one], begin, end, pixels=4 * (end - begin))
    assert found.item.tolist() == touching(one, begin, end)
    assert found.begin.tolist() == one.begin[found.item].tolist()
    assert found.end.tolist() == one.end[found.item].tolist()
    assert found.count.tolist() == [1] * len(found.item)


@settings(max_examples=60, deadline=None)
@given(st.lists(tracks, max_size=4), windows, st.integers(1, 60))
def test_merged_rectangles_count_and_cover_all_that_touch(
    many: list[Track], window: tuple[int, int], pixels: int
) -> None:
    begin, end = window[0], sum(window)
    found = viewport(many, begin, end, pixels)
    for row, one in enumerate(many):
        here = found.row == row
        first = np.append(0, np.cumsum(found.count[here]))
        touched = touching(one, begin, end)
        assert found.count[here].sum() == len(touched)
        for place, stop in enumerate(first[1:].tolist()):
            group = touched[first[place] : stop]
            assert found.begin[here][place] == one.begin[group[0]]
            assert found.end[here][place] == one.end[group[-1]]
            assert found.item[here][place] in group
            lengths = (one.end - one.begin)[group]
            speaker = int(found.item[here][place])
            assert (one.end - one.begin)[speaker] == lengths.max()


@settings(max_examples=40, deadline=None)
@given(st.lists(tracks, max_size=4), windows, st.integers(1, 2000), st.integers(4, 30))
def test_no_answer_is_longer_than_its_limit(
    many: list[Track], window: tuple[int, int], pixels: int, limit: int
) -> None:
    found = viewport(many, window[0], sum(window), pixels, limit)
    assert len(found.begin) <= limit


def test_rectangle_of_a_pixel_stands_alone_between_merged_ones() -> None:
    one = track([(0, 1), (0, 1), (0, 20), (0, 1), (0, 1)])
    found = viewport([one], 0, 24, pixels=3)  # a pixel is 8 wide
    assert found.count.tolist() == [2, 1, 2]
    assert list(zip(found.begin, found.end, strict=True)) == [(0, 2), (2, 22), (22, 24)]


def test_no_track_gives_no_rectangle() -> None:
    assert viewport([], 0, 10, 100).begin.tolist() == []


@settings(max_examples=60, deadline=None)
@given(tracks, windows)
def test_time_by_colour_is_what_lies_inside_the_window(one: Track, window: tuple[int, int]) -> None:
    begin, end = window[0], sum(window)
    expected = [0, 0, 0]
    for first, last, colour in zip(one.begin, one.end, one.colour, strict=True):
        expected[colour] += max(0, min(int(last), end) - max(int(first), begin))
    assert spent(one, begin, end, 3).tolist() == expected


def test_neighbours_of_one_code_become_one_span() -> None:
    begin, end = np.array([0, 2, 4, 6, 8]), np.array([2, 4, 6, 8, 9])
    spans = grouped(begin, end, np.array([7, 7, -1, 7, 3]))
    assert [part.tolist() for part in spans] == [[0, 6, 8], [4, 8, 9], [7, 7, 3]]


def test_open_places_are_bridged_between_equal_codes_only() -> None:
    codes = np.array([-1, 1, -1, 1, -1, 2, -1])
    assert bridged(codes, codes < 0).tolist() == [-1, 1, 1, 1, -1, 2, -1]
    assert bridged(codes, np.ones(7, dtype=bool)).tolist() == codes.tolist()


def test_overlap_is_cut_from_the_later_rectangle() -> None:
    begin, end = without_overlap(np.array([0, 3, 4, 20]), np.array([5, 4, 9, 21]))
    assert (begin.tolist(), end.tolist()) == ([0, 5, 5, 20], [5, 5, 9, 21])
