"""Which events cannot stand among the others of their thread, found one by one and by arrays."""

from __future__ import annotations

import numpy as np
import pytest

from pva.model.host_trace import nesting


def found(spans: list[tuple[int, int]]) -> list[bool]:
    begin, end = np.array(spans, np.int64).T
    parent = nesting.nest(begin, end, lambda _: None).parent
    told: list[bool] = nesting.lying_across(begin, end, parent).tolist()
    return told


def test_one_event_across_an_end_leaves_all_others_in_place() -> None:
    # A thread whose outermost event holds all: only what outlasts one that was open lies across.
    assert found([(0, 100), (1, 5), (4, 60), (6, 20), (30, 40)]) == [
        False,
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("seed", range(200))
def test_random_events_lie_across_as_counted_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    begin = random.integers(0, 60, 40)
    end = begin + random.integers(0, 30, 40)
    spans = sorted(zip(begin.tolist(), end.tolist(), strict=True), key=lambda s: (s[0], -s[1]))
    assert found(spans) == [
        any(first < other < last for _, other in spans[:row])
        for row, (first, last) in enumerate(spans)
    ]


def test_what_is_left_in_place_holds_each_other_at_any_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nesting, "ROUNDS", 0)
    random = np.random.default_rng(1)
    begin = np.sort(random.integers(0, 500, 300))
    spans = list(zip(begin.tolist(), (begin + random.integers(0, 12, 300)).tolist(), strict=True))
    spans.sort(key=lambda span: (span[0], -span[1]))
    left = [span for span, across in zip(spans, found(spans), strict=True) if not across]
    assert 0 < len(left) < 250
    for row, (first, last) in enumerate(left):
        assert not any(first < other < last for _, other in left[:row])
