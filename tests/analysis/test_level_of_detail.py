"""Windows of timelines against brute force over each event."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import kernels
from pva.analysis.spans import bridged, first_places, grouped, without_overlap
from pva.analysis.timeline import pyramid, stepped
from pva.analysis.timeline.growth import joined
from pva.analysis.timeline.level_of_detail import SMALL, Tracks
from pva.analysis.timeline.pyramid import build
from pva.analysis.timeline.viewport import Rectangles, viewport

Row = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]

WIDEST = 1 << 40


def row(gaps_and_lengths: list[tuple[int, int]]) -> Row:
    """Lay events one after another, (gap before, length), with five labels in turn."""
    pairs = np.array(gaps_and_lengths, dtype=np.int64).reshape(-1, 2)
    end = np.cumsum(pairs.sum(axis=1))
    return end - pairs[:, 1], end, np.arange(len(pairs)) % 5


def bursts(seed: int, size: int, skew: float) -> Row:
    """Lay `size` events with gaps and lengths over many orders of magnitude, many in bursts."""
    random = np.random.default_rng(seed)
    gap, length = (np.floor(10 ** (skew * random.normal(size=size))) for _ in range(2))
    gap = gap * random.choice([0, 1, 1000], size=size)
    length = length * (random.random(size) < 0.8)
    end = np.cumsum(gap + length).astype(np.int64)
    return end - length.astype(np.int64), end, random.integers(0, 7, size)


@pytest.fixture(autouse=True, scope="module", params=[stepped.LARGE, 1], ids=["plain", "stepped"])
def _columns(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let columns be arrays, or what each is above a base that seldom changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepped, "LARGE", request.param)
        yield


short_rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60).map(row)
long_rows = st.builds(
    bursts, st.integers(0, 10**6), st.integers(0, 3000), st.sampled_from((0.3, 1.0, 2.0))
)
timelines = st.lists(short_rows | long_rows, max_size=4)
windows = st.tuples(st.integers(-5, 3000), st.sampled_from((1, 7, 100, 5000, WIDEST)))
limits = st.sampled_from((8, 100, 3000))
seams = st.none() | st.integers(0, 3000)


def grown(many: list[Row], seam: int | None, kinds: Any = None) -> Tracks:
    """Build rows at once, or what ended by `seam` first and the rest, of one row more, later."""
    if seam is None:
        return build(many, kinds)
    kinds = kinds or (lambda: [0] * 7)  # of all labels, also of those in one part alone
    cuts = [int(((end <= seam) & (begin < seam)).sum()) for begin, end, _ in many]
    old = [tuple(column[:cut] for column in one) for one, cut in zip(many, cuts, strict=True)]
    new = [tuple(column[cut:] for column in one) for one, cut in zip(many, cuts, strict=True)]
    return joined(
        build(old[:-1], kinds), np.arange(len(many) - 1), build([*new[:-1], many[-1]], kinds)
    )


def touching(one: Row, begin: int, end: int) -> list[int]:
    """List the events of a row that touch a window, one by one."""
    pairs = zip(one[0].tolist(), one[1].tolist(), strict=True)
    return [
        place
        for place, (first, last) in enumerate(pairs)
        if first < end and (last > begin or first == last == begin)
    ]


def rows_of(found: Rectangles, number: int) -> list[tuple[int, int]]:
    """Return of each rectangle of a row its first event and the one behind its last."""
    here = found.row == number
    first = found.event[here]
    return list(zip(first.tolist(), (first + found.count[here]).tolist(), strict=True))


@settings(max_examples=120, deadline=None)
@given(timelines.filter(len), windows, st.integers(1, 3000), limits, seams)
def test_rectangles_stand_for_all_that_touches_the_window_and_nothing_twice(
    many: list[Row], window: tuple[int, int], pixels: int, limit: int, seam: int | None
) -> None:
    begin, end = window[0], sum(window)
    tracks = grown(many, seam)
    found = viewport(tracks, begin, end, pixels, limit=limit)
    assert len(found.row) <= limit
    for number, one in enumerate(many):
        spans = [
            (first - int(tracks.offset[number]), stop - int(tracks.offset[number]))
            for first, stop in rows_of(found, number)
        ]
        covered = [event for first, stop in spans for event in range(first, stop)]
        assert covered == sorted(set(covered))
        assert set(touching(one, begin, end)) <= set(covered)
        for first, stop in spans:
            assert set(range(first, stop)) & set(touching(one, begin, end))


@settings(max_examples=120, deadline=None)
@given(timelines.filter(len), windows, st.integers(1, 3000), limits, seams)
def test_time_label_and_share_of_a_rectangle_are_those_of_its_events(
    many: list[Row], window: tuple[int, int], pixels: int, limit: int, seam: int | None
) -> None:
    kinds = [0, 1, 2, 0, 1, 2, 0, 1]
    tracks = grown(many, seam, lambda: kinds)
    found = viewport(tracks, window[0], sum(window), pixels, limit=limit)
    columns = list(zip(*many, strict=True)) or [(), (), ()]
    begins, ends, labels = (np.concatenate([[], *column]) for column in columns)
    for place, first in enumerate(found.event.tolist()):
        events = range(first, first + int(found.count[place]))
        time: Counter[int] = Counter()
        for event in events:
            time[int(labels[event])] += int(ends[event] - begins[event])
        most = max(time.values())
        kind: Counter[int] = Counter()
        for label in time:
            kind[kinds[label]] += time[label]
        assert found.kind[place] == min(k for k in kind if kind[k] == max(kind.values()))
        assert found.begin[place] == begins[events[0]]
        assert found.end[place] == ends[events[-1]]
        assert found.time[place] == sum(time.values())
        assert found.label_time[place] == most
        assert found.label[place] == min(label for label in time if time[label] == most)


@settings(max_examples=60, deadline=None)
@given(short_rows | long_rows, windows, st.integers(1, 50))
def test_only_short_events_of_one_cell_stand_together(
    one: Row, window: tuple[int, int], pixels: int
) -> None:
    found = viewport(build([one]), window[0], sum(window), pixels)
    for first, count in zip(found.event.tolist(), found.count.tolist(), strict=True):
        if count == 1:
            continue
        begin, end, _ = (column[first : first + count].tolist() for column in one)
        level = (begin[0] ^ begin[-1]).bit_length()
        longest = max(last - at for at, last in zip(begin, end, strict=True))
        assert max(1 << level, longest + 1) <= 2 * max(window[1] // pixels, end[-1] - begin[0], 1)


@settings(max_examples=60, deadline=None)
@given(short_rows, st.integers(0, 1500), st.integers(1, 300))
def test_fine_pixels_give_each_event_that_lasts_by_itself(one: Row, begin: int, size: int) -> None:
    found = viewport(build([one]), begin, begin + size, pixels=size)
    alone = [event for event in touching(one, begin, begin + size) if one[0][event] < one[1][event]]
    singles = found.event[(found.count == 1) & (found.time > 0)]
    assert singles.tolist() == alone
    several = found.count > 1  # instants that are one and the same
    assert found.begin[several].tolist() == found.end[several].tolist()


@settings(max_examples=60, deadline=None)
@given(timelines.filter(len), windows, st.integers(1, 40), limits)
def test_busy_time_before_each_rectangle_is_what_events_cover(
    many: list[Row], window: tuple[int, int], pixels: int, limit: int
) -> None:
    found = viewport(build(many), window[0], sum(window), pixels, limit=limit)
    for number, (begin, end, _) in enumerate(many):
        here = found.row == number
        edges, time = found.begin[here], found.time[here]
        covered = [
            int(np.maximum(np.minimum(end, edge) - np.maximum(begin, edges[0]), 0).sum())
            for edge in edges
        ]
        assert (np.cumsum(time) - time).tolist() == covered


def test_an_event_of_a_cell_stands_alone_between_those_that_stand_together() -> None:
    one = row([(0, 1), (0, 1), (0, 22), (0, 1), (0, 1)])
    found = viewport(build([one]), 0, 26, pixels=3)  # a pixel is 8 wide, as is a cell
    assert found.count.tolist() == [2, 1, 2]
    assert list(zip(found.begin, found.end, strict=True)) == [(0, 2), (2, 24), (24, 26)]


@pytest.mark.parametrize("compiled", [None, *filter(None, [kernels.compiled])])
def test_levels_made_by_parts_of_the_rows_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, compiled: Any
) -> None:
    monkeypatch.setattr(kernels, "compiled", compiled)
    rows = [bursts(seed, size, 0.5) for seed, size in enumerate((900, 1, 40, 1500, 3))]
    whole = build(rows, lambda: np.arange(1000) % 5).levels
    monkeypatch.setattr(pyramid, "PART", 500)
    parts = build(rows, lambda: np.arange(1000) % 5).levels
    assert len(whole) == len(parts) and sum(len(level.first) for level in whole) > 100
    for one, other in zip(whole, parts, strict=True):
        for name in ("first", "covered", "label", "label_time", "kind"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()


in_c = pytest.mark.skipif(kernels.compiled is None, reason="not built")


@in_c
@settings(max_examples=60, deadline=None)
@given(
    timelines, st.lists(st.integers(0, 3), min_size=7, max_size=7), st.sampled_from((0, 1 << 33))
)
def test_levels_made_in_c_are_those_made_by_numpy(
    many: list[Row], kinds: list[int], early: int
) -> None:
    rows = [(begin - early, end + early * (end > 99), label) for begin, end, label in many]
    fast = build(rows, lambda: kinds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compiled", None)
        slow = build(rows, lambda: kinds)
    for one, other in itertools.zip_longest(fast.levels, slow.levels):
        for name in ("first", "covered", "label", "label_time", "kind"):
            column, expected = getattr(one, name), getattr(other, name)
            assert (column.tolist(), column.dtype) == (expected.tolist(), expected.dtype)
    alike = [[a is b for a, b in itertools.pairwise(all_.levels)] for all_ in (fast, slow)]
    assert alike[0] == alike[1]


@in_c
@pytest.mark.parametrize(
    ("place", "column"),
    [
        (0, np.arange(8)[::2]),
        (1, np.arange(4)),
        (2, np.full(4, 2, np.uint16)),
        (4, np.array([0, 3])),
        (4, np.array([0, 4, 3, 4])),
    ],
)
def test_columns_that_do_not_fit_are_not_taken_in_c(place: int, column: Any) -> None:
    columns: list[Any] = [np.arange(4), np.arange(5), np.zeros(4, np.uint16),
                          np.zeros(2, np.uint16), np.array([0, 4])]  # fmt: skip
    assert kernels.compiled.levels(*columns, SMALL) is not None
    columns[place] = column
    assert kernels.compiled.levels(*columns, SMALL) is None


def test_more_events_than_are_put_together_on_demand_are_one_rectangle() -> None:
    one = row([(0, 1)] * (4 * SMALL - 1))
    found = viewport(build([one]), 0, 64, pixels=1)
    assert (found.count.tolist(), found.time.tolist()) == ([63], [63])
    assert (found.label.tolist(), found.label_time.tolist()) == ([0], [13])


@pytest.mark.parametrize("rows", [[], [row([])], [row([]), row([])]])
def test_nothing_recorded_gives_no_rectangle(rows: list[Row]) -> None:
    tracks = build(rows)
    assert tracks.extent == (0, 1)
    assert viewport(tracks, 0, 10, 100).begin.tolist() == []


@pytest.mark.parametrize(("begin", "end"), [(5, 5), (9, 2), (-90, -80), (10**9, 10**10)])
def test_windows_that_hold_nothing_give_no_rectangle(begin: int, end: int) -> None:
    assert viewport(build([row([(0, 4), (0, 3)])]), begin, end, 100).begin.tolist() == []


def test_rows_are_answered_in_the_order_asked_for() -> None:
    tracks = build([row([(0, 4)]), row([]), row([(2, 4)])])
    assert viewport(tracks, 0, 10, 100, np.array([0, 2])).row.tolist() == [0, 2]
    assert viewport(tracks, 0, 10, 100, np.array([1])).row.tolist() == []


def spans_of(tracks: Tracks, begin: int, end: int) -> list[tuple[int, ...]]:
    """Return the cut events of the first row."""
    return list(zip(*(part.tolist() for part in tracks.spans(0, begin, end)), strict=True))


def test_events_are_cut_to_a_window() -> None:
    tracks = build([row([(0, 4), (1, 4), (0, 4)])])
    assert spans_of(tracks, 2, 10) == [(2, 4, 0), (5, 9, 1), (9, 10, 2)]
    assert spans_of(tracks, 4, 5) == []


def test_neighbours_of_one_code_become_one_span() -> None:
    begin, end = np.array([0, 2, 4, 6, 8]), np.array([2, 4, 6, 8, 9])
    spans = grouped(begin, end, np.array([7, 7, -1, 7, 3]))
    assert [part.tolist() for part in spans] == [[0, 6, 8], [4, 8, 9], [7, 7, 3]]


def test_open_places_are_bridged_between_equal_codes_only() -> None:
    codes = np.array([-1, 1, -1, 1, -1, 2, -1])
    assert bridged(codes, codes < 0).tolist() == [-1, 1, 1, 1, -1, 2, -1]
    assert bridged(codes, np.ones(7, dtype=bool)).tolist() == codes.tolist()


@in_c
@given(*[st.lists(st.integers(-9, 9) | st.sampled_from([-(1 << 63), (1 << 63) - 1]))] * 2)
def test_places_of_keys_that_ascend_are_those_of_a_search(some: list[int], keys: list[int]) -> None:
    ascending, searched = np.array(sorted(some), np.int64), np.array(sorted(keys), np.int64)
    places = first_places(ascending, searched)
    assert places.tolist() == np.searchsorted(ascending, searched).tolist()
    unsorted = np.array([*keys, 3, 2], np.int64)
    assert kernels.compiled.merge(ascending, unsorted, np.empty(len(unsorted), np.int64)) is None


def test_overlap_is_cut_from_the_later_event() -> None:
    begin, end = without_overlap(np.array([0, 3, 4, 20]), np.array([5, 4, 9, 21]))
    assert (begin.tolist(), end.tolist()) == ([0, 5, 5, 20], [5, 5, 9, 21])
