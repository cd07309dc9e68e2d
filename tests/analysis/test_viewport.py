"""The rectangles of a window on events laid by hand, rule by rule."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.timeline import viewport as module
from pva.analysis.timeline.growth import joined
from pva.analysis.timeline.level_of_detail import Tracks
from pva.analysis.timeline.pyramid import build
from pva.analysis.timeline.viewport import Rectangles, ranges, viewport

Event = tuple[int, int]  # begin and end


def tracks_of(*rows: list[Event], labels: list[int] | None = None) -> Tracks:
    """Lay rows of events, label 0 without `labels`, which are those of the first row."""
    columns = []
    for events in rows:
        begin, end = np.array(events, dtype=np.int64).reshape(-1, 2).T
        columns.append((begin, end, np.array(labels or [0] * len(events), dtype=np.int64)))
    return build(columns, lambda: [1, 0, 2])


def dense(count: int, at: int = 0) -> list[Event]:
    """Lay events of one unit, one after another."""
    return [(begin, begin + 1) for begin in range(at, at + count)]


def apart(count: int) -> list[Event]:
    """Lay events of one unit, each a unit after the one before."""
    return [(begin, begin + 1) for begin in range(0, 2 * count, 2)]


def drawn(found: Rectangles) -> list[tuple[int, int, int, int]]:
    """Return of each rectangle row, begin, end and count."""
    columns = (found.row, found.begin, found.end, found.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("width", "level"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (7, 2), (8, 3), (9, 3)]
)
def test_a_cell_is_the_largest_power_of_two_that_is_no_wider(width: int, level: int) -> None:
    assert module._level_of(width) == level


def test_ranges_lie_one_behind_the_other_and_empty_ones_have_nothing() -> None:
    assert ranges(np.array([3, 7, 7]), np.array([5, 7, 9])).tolist() == [3, 4, 7, 8]
    assert ranges(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("counts", "most", "ceiling"),
    [([5, 1, 9], 10, 4), ([5, 1, 9], 11, 5), ([5, 1, 9], 14, 8), ([5, 1, 9], 15, 15),
     ([3, 3], 6, 6), ([3, 3], 5, 2), ([3, 3], 4, 2), ([9], 0, 1), ([], 7, 7), ([2, 8], 0, 1)],
)  # fmt: skip
def test_the_ceiling_is_the_largest_under_which_counts_sum_to_no_more(
    counts: list[int], most: int, ceiling: int
) -> None:
    assert module._ceiling(np.array(counts, dtype=np.int64), most) == ceiling


def test_bits_are_those_of_the_number_and_one_more_where_it_rounds_up() -> None:
    values = np.array([0, 1, 2, 3, 4, 255, 256, 2**53 - 1, 2**53, 2**54 - 1])
    assert module._bits(values).tolist() == [0, 1, 2, 2, 3, 8, 9, 53, 54, 55]


@pytest.mark.parametrize(
    ("pixels", "counts"), [(16, [1] * 16), (15, [1] * 16), (8, [2] * 8), (5, [2] * 8), (4, [4] * 4),
                           (1, [16]), (0, [16]), (99, [1] * 16)],
)  # fmt: skip
def test_a_cell_is_at_most_a_pixel(pixels: int, counts: list[int]) -> None:
    assert viewport(tracks_of(dense(16)), 0, 16, pixels).count.tolist() == counts


def test_cells_wider_than_all_events_are_those_of_the_coarsest_level() -> None:
    assert drawn(viewport(tracks_of(dense(40)), -(1 << 50), 1 << 50, 1)) == [(0, 0, 40, 40)]


def test_a_row_with_too_many_rectangles_gets_wider_cells() -> None:
    found = drawn(viewport(tracks_of(apart(16)), 0, 32, 32, limit=8))
    assert found == [(0, begin, begin + 3, 2) for begin in range(0, 32, 4)]
    assert len(viewport(tracks_of(apart(16)), 0, 32, 32, limit=16).row) == 16


def test_wider_cells_are_made_of_rectangles_worked_out_before() -> None:
    # Three rectangles of 32 events are looked at, and two are the limit.
    found = viewport(tracks_of(dense(96)), 0, 96, 96, limit=2)
    assert drawn(found) == [(0, 0, 64, 64), (0, 64, 96, 32)]
    assert (found.time.tolist(), found.label_time.tolist()) == ([64, 32], [64, 32])
    found = drawn(viewport(tracks_of(dense(96)), 0, 96, 96, limit=3))
    assert found == [(0, 0, 32, 32), (0, 32, 64, 32), (0, 64, 96, 32)]


@pytest.mark.parametrize(("limit", "rows"), [(8, [4, 4]), (11, [4, 4]), (12, [8, 4]), (15, [8, 4]),
                                             (16, [8, 8]), (7, [1, 1])])  # fmt: skip
def test_the_first_rows_that_have_room_for_it_get_narrower_cells(
    limit: int, rows: list[int]
) -> None:
    found = viewport(tracks_of(dense(8), dense(8)), 0, 8, 8, limit=limit)
    assert np.bincount(found.row, minlength=2).tolist() == rows
    assert found.count.tolist() == [8 // rows[row] for row in found.row.tolist()]


@pytest.mark.parametrize(
    ("limit", "finest", "levels"),
    [(192, 0, [0, 0]), (191, 0, [5, 5]), (6, 0, [5, 5]), (5, 0, [6, 6]), (4, 0, [6, 6]),
     (3, 0, [7, 7]), (6, 2, [5, 5]), (6, 6, [6, 6])],
)  # fmt: skip
def test_rows_are_looked_at_where_all_together_have_few_items(
    limit: int, finest: int, levels: list[int]
) -> None:
    tracks = tracks_of(dense(96), dense(96))  # of level 5 each is 3 rectangles, of 6 it is 2
    rows, first = np.array([0, 1]), np.array([0, 96])
    window = module._Window(tracks, rows, first, first + 96)
    assert module._lookable(window, finest, limit).tolist() == levels


def test_cells_are_no_narrower_than_a_pixel_where_fewer_rectangles_would_do() -> None:
    assert drawn(viewport(tracks_of(dense(96)), 0, 96, 1, limit=3)) == [
        (0, 0, 64, 64),
        (0, 64, 96, 32),
    ]


def test_few_events_behind_a_rectangle_leave_those_of_the_next_row_alone() -> None:
    assert drawn(viewport(tracks_of(dense(36), dense(64)), 0, 96, 3)) == [
        (0, 0, 32, 32), (0, 32, 36, 4), (1, 0, 32, 32), (1, 32, 64, 32),
    ]  # fmt: skip


def test_a_row_that_has_no_narrower_cells_takes_no_room_from_the_others() -> None:
    found = viewport(tracks_of(dense(1), dense(8), dense(8)), 0, 8, 8, limit=13)
    assert np.bincount(found.row).tolist() == [1, 8, 4]


def test_each_row_has_the_rectangles_worked_out_for_its_own_level() -> None:
    found = viewport(tracks_of(dense(96), dense(96)), 0, 96, 96, limit=5)
    assert drawn(found) == [
        (0, 0, 32, 32), (0, 32, 64, 32), (0, 64, 96, 32), (1, 0, 64, 64), (1, 64, 96, 32),
    ]  # fmt: skip


@pytest.mark.parametrize(("pixels", "step", "last"), [(8, 1, 1), (4, 2, 6)])
def test_a_row_of_the_finest_levels_stands_beside_one_of_wider_cells(
    pixels: int, step: int, last: int
) -> None:
    times = range(0, last + 1, step)
    many = [(time, time) for time in times for _ in range(20)]
    found = viewport(tracks_of([(0, 0)] * 20, many), 0, 8, pixels, limit=2)
    assert drawn(found) == [(0, 0, 0, 20), (1, 0, last, 20 * len(times))]


def test_rows_stay_in_order_whatever_their_cells() -> None:
    found = viewport(tracks_of(dense(96), dense(3), dense(96)), 0, 96, 96, limit=9)
    assert drawn(found) == [
        *((0, begin, begin + 32, 32) for begin in (0, 32, 64)),
        *((1, begin, begin + 1, 1) for begin in range(3)),
        *((2, begin, begin + 32, 32) for begin in (0, 32, 64)),
    ]
    assert found.event.tolist() == [0, 32, 64, 96, 97, 98, 99, 131, 163]


@pytest.mark.parametrize(
    ("begin", "end", "begins"),
    [(32, 64, [32]), (31, 65, [0, 32, 64]), (40, 72, [32, 64]), (0, 32, [0]), (64, 99, [64]),
     (63, 95, [32, 64]), (-9, 32, [0])],
)  # fmt: skip
def test_rectangles_that_a_window_touches_are_drawn_whole(
    begin: int, end: int, begins: list[int]
) -> None:
    for rows in ([0], [0, 1]):
        found = viewport(tracks_of(dense(96), dense(96)), begin, end, 1, np.array(rows))
        assert drawn(found) == [(row, at, at + 32, 32) for row in rows for at in begins]


@pytest.mark.parametrize(
    ("begin", "end", "pixels", "rectangles"),
    [
        (3, 5, 1, [(2, 2), (4, 2)]),
        (2, 4, 1, [(2, 2)]),
        (0, 1, 1, [(0, 1)]),
        (-3, 1, 1, [(0, 4)]),
        (7, 11, 1, [(4, 4), (8, 4)]),
        (15, 31, 1, [(0, 16)]),
        (-16, 1, 1, [(0, 16)]),
        (7, 23, 1, [(0, 16)]),
    ],
)
def test_a_few_events_of_a_cell_are_drawn_whole_and_stay_in_their_row(
    begin: int, end: int, pixels: int, rectangles: list[Event]
) -> None:
    found = viewport(tracks_of(dense(16), dense(16), dense(16)), begin, end, pixels)
    shown = list(zip(found.event.tolist(), found.count.tolist(), strict=True))
    assert shown == [(16 * row + event, count) for row in range(3) for event, count in rectangles]


def test_an_event_as_long_as_a_cell_stands_alone_at_the_edge_of_a_window() -> None:
    before = [(16, 17), (17, 18), (18, 26), (26, 27)]  # a cell of 8, and one that lasts as long
    found = viewport(tracks_of(before), 20, 28, 1)
    assert drawn(found) == [(0, 18, 26, 1), (0, 26, 27, 1)]
    shorter = [(16, 17), (17, 18), (18, 25), (26, 27)]
    assert drawn(viewport(tracks_of(shorter), 20, 28, 1)) == [(0, 16, 25, 3), (0, 26, 27, 1)]


def test_what_begins_at_one_time_in_two_rows_stays_apart() -> None:
    instants = [(5, 5), (5, 5)]
    found = viewport(tracks_of(instants, [(5, 5)], [(5, 5)]), 0, 10, 10)
    assert drawn(found) == [(0, 5, 5, 2), (1, 5, 5, 1), (2, 5, 5, 1)]
    assert len(viewport(tracks_of(dense(4), dense(4)), 0, 1 << 40, 1).row) == 2


def test_rows_beyond_the_limit_and_beyond_the_most_rows_are_left_out() -> None:
    tracks = tracks_of(*[dense(1)] * 402)
    assert viewport(tracks, 0, 1, 1).row.tolist() == list(range(400))
    assert viewport(tracks, 0, 1, 1, limit=3).row.tolist() == [0, 1, 2]
    assert viewport(tracks, 0, 1, 1, np.array([9, 4]), limit=1).row.tolist() == [9]


def test_the_label_and_the_kind_with_the_most_time_are_shown_the_lower_of_two_alike() -> None:
    # Label 0 of kind 1 takes 3, label 1 of kind 0 takes 3, label 2 of kind 2 takes 1.
    events, labels = [(0, 3), (3, 4), (4, 6), (6, 7)], [0, 1, 1, 2]
    found = viewport(tracks_of(events, labels=labels), 0, 8, 1)
    figures = (found.time, found.label, found.label_time, found.kind)
    assert [column.tolist() for column in figures] == [[7], [0], [3], [0]]
    alone = viewport(tracks_of(events, labels=labels), 0, 8, 8)
    assert (alone.label.tolist(), alone.kind.tolist()) == (labels, [1, 0, 0, 2])
    assert alone.label_time.tolist() == alone.time.tolist() == [3, 1, 2, 1]


def test_labels_of_rectangles_worked_out_before_stand_beside_those_of_few_events() -> None:
    labels = [1] * 20 + [2] * 12 + [0] * 4
    found = viewport(tracks_of(dense(36), labels=labels), 0, 36, 1, limit=8)
    assert drawn(found) == [(0, 0, 32, 32), (0, 32, 36, 4)]
    figures = (found.label, found.time, found.label_time, found.kind)
    assert [column.tolist() for column in figures] == [[1, 0], [32, 4], [20, 4], [0, 1]]
    assert {column.dtype for column in figures} == {np.dtype(np.int64)}


def seamed(*rows: tuple[list[Event], list[Event]]) -> Tracks:
    """Lay rows of events and, since their levels were worked out, more events."""
    old, new = (tracks_of(*part) for part in zip(*rows, strict=True))
    return joined(old, np.arange(len(rows)), new)


def test_no_rectangle_has_events_of_both_sides_of_a_seam() -> None:
    tracks = seamed((dense(3), dense(5, at=3)), (dense(8), dense(0)), (dense(20), dense(20, at=20)))
    found = viewport(tracks, 0, 64, 1)
    assert drawn(found) == [
        (0, 0, 3, 3), (0, 3, 8, 5), (1, 0, 8, 8), (2, 0, 20, 20), (2, 20, 40, 20),
    ]  # fmt: skip
    # Of a window that touches one side, that side alone is drawn, and whole.
    assert drawn(viewport(tracks, 6, 14, 1, np.array([0]))) == [(0, 3, 8, 5)]
    assert drawn(viewport(tracks, -7, 1, 1, np.array([0]))) == [(0, 0, 3, 3)]
    assert drawn(viewport(tracks, -5, 3, 1, np.array([0]))) == [(0, 0, 3, 3)]


def test_where_seams_leave_more_rectangles_than_the_limit_the_first_are_drawn() -> None:
    tracks = seamed(*[(dense(3), dense(5, at=3))] * 3)
    assert drawn(viewport(tracks, 0, 8, 1, limit=4)) == [
        (0, 0, 3, 3), (0, 3, 8, 5), (1, 0, 3, 3), (1, 3, 8, 5),
    ]  # fmt: skip
