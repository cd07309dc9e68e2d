"""What is in a window of a thread: a small one by hand, made ones against a walk over each event.

0    10   20   30   40   50   60   70   80   90   100
|a                            |    |a                |     0 to 60, 70 to 100
  |b       |c      |               |b  |                   5 to 25, 25 to 40; 70 to 80
    |c  |                                                  8 to 16
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva.analysis.host.events import (
    CallTree,
    call_tree,
    callers,
    event_figures,
    events_in_window,
    label_figures,
)
from pva.analysis.selection import SelectionError
from pva.analysis.timeline.level_of_detail import Tracks
from pva.analysis.timeline.pyramid import build

A, B, C = 0, 1, 2


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def thread() -> Tracks:
    """Return the thread above: events 0 and 1 of depth 0, 2 to 4 of depth 1, 5 of depth 2."""
    return build(
        [
            (numbers(0, 70), numbers(60, 100), numbers(A, A)),
            (numbers(5, 25, 70), numbers(25, 40, 80), numbers(B, C, B)),
            (numbers(8), numbers(16), numbers(C)),
        ],
        lambda: [0, 0, 0],
    )


def nodes(tree: CallTree) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """Return count, total and self time by path."""
    paths: list[tuple[int, ...]] = []
    for parent, label in zip(tree.parent.tolist(), tree.label.tolist(), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), label))
    columns = (tree.count.tolist(), tree.total.tolist(), tree.self_time.tolist())
    return dict(zip(paths, zip(*columns, strict=True), strict=True))


def test_an_event_is_described_with_what_it_lies_in() -> None:
    outer, inner = event_figures(thread(), 0, (0, 3)), event_figures(thread(), 5, (0, 3))
    assert (outer.begin, outer.end, outer.depth, outer.children) == (0, 60, 0, 2)
    assert outer.self_time == 60 - 20 - 15
    assert (inner.label, inner.depth, inner.self_time, inner.around) == (C, 2, 8, (0, 2))


def test_an_event_that_is_not_there_is_refused() -> None:
    with pytest.raises(SelectionError, match="event 6: not there; the report has events 0 to 5"):
        event_figures(thread(), 6)


def test_calls_are_summed_up_by_path() -> None:
    assert nodes(call_tree(thread(), [(0, 3)], 0, 100)) == {
        (A,): (2, 90, 45),
        (A, B): (2, 30, 22),
        (A, C): (1, 15, 15),
        (A, B, C): (1, 8, 8),
    }


def test_calls_of_a_window_count_what_is_inside_it() -> None:
    assert nodes(call_tree(thread(), [(0, 3)], 10, 30)) == {
        (A,): (1, 20, 0),
        (A, B): (1, 15, 9),
        (A, C): (1, 5, 5),
        (A, B, C): (1, 6, 6),
    }


def test_callers_stand_below_what_they_called() -> None:
    found = {
        path: total
        for path, (_, total, _) in nodes(callers(call_tree(thread(), [(0, 3)], 0, 100))).items()
    }
    assert found == {
        (A,): 45, (B,): 22, (B, A): 22, (C,): 23, (C, A): 15, (C, B): 8, (C, B, A): 8,
    }  # fmt: skip


def test_labels_have_percentiles_of_whole_events() -> None:
    frame = label_figures(thread(), [(0, 3)], 0, 100).set_index("label")
    assert frame.loc[A, ["count", "total", "self_time", "longest"]].tolist() == [2, 90, 45, 60]
    assert frame.loc[C, "mean"] == pytest.approx(11.5)
    assert frame.loc[A, "p50"] == pytest.approx(45)
    assert frame.loc[A, "p95"] == pytest.approx(58.5)


def test_what_a_row_leads_to_is_its_longest_event() -> None:
    # A: event 0 takes 60; B: event 2 takes 20; C: event 3 takes 15, and 5, inside 2, takes 8.
    frame = label_figures(thread(), [(0, 3)], 0, 100).set_index("label")
    assert frame["event"].to_dict() == {A: 0, B: 2, C: 3}
    tree = call_tree(thread(), [(0, 3)], 0, 100)
    assert dict(zip(nodes(tree), tree.event.tolist(), strict=True)) == {
        (A,): 0, (A, B): 2, (A, C): 3, (A, B, C): 5,
    }  # fmt: skip
    up = callers(tree)
    assert dict(zip(nodes(up), up.event.tolist(), strict=True))[C, B] == 2  # it called 5


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 400), st.integers(1, 300))
def test_self_times_of_a_tree_are_the_time_covered(seed: int, begin: int, size: int) -> None:
    random = np.random.default_rng(seed)
    rows, inside = [], [(0, 500)]
    for _ in range(4):
        spans = []
        for low, high in inside:
            edges = np.sort(random.integers(low, high + 1, 2 * random.integers(0, 4)))
            spans += [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if a < b]
        begins, ends = (np.array([span[n] for span in spans], dtype=np.int64) for n in (0, 1))
        rows.append((begins, ends, random.integers(0, 3, len(spans))))
        inside = spans
    tracks = build(rows, lambda: [0, 0, 0])
    tree = call_tree(tracks, [(0, 4)], begin, begin + size)
    outer, until = rows[0][0], rows[0][1]
    covered = np.clip(np.minimum(until, begin + size) - np.maximum(outer, begin), 0, None).sum()
    assert tree.self_time.sum() == covered
    assert (tree.self_time >= 0).all()
    assert callers(tree).self_time[callers(tree).parent < 0].sum() == covered


def test_nothing_in_a_window_gives_empty_tables() -> None:
    assert not len(call_tree(thread(), [(0, 3)], 1000, 2000).label)
    assert not len(callers(call_tree(thread(), [(0, 3)], 1000, 2000)).label)
    assert not len(label_figures(thread(), [(0, 3)], 1000, 2000))
    assert not len(events_in_window(thread(), np.arange(3), 62, 64))
    assert not len(call_tree(build([]), [], 0, 10).label)
