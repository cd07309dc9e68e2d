from __future__ import annotations

import math

import numpy as np
import pytest

from pva.errors import PvaError
from pva.queueing.figures import figures
from pva.queueing.replay import Arrivals, Device, replay
from pva.queueing.rules import Rules
from pva.queueing.what_if import read_choices, replayed, table, variants

DEVICE = Device(1_000, 4)


def test_figures_of_three_requests_are_those_worked_out_by_hand() -> None:
    # Sent at 0, 1000 and 2000 ns, each alone on 4 rows: waits of 0, 900 and 1500 ns.
    arrivals = Arrivals(np.array([0, 100, 500]), np.array([1, 4, 2]))
    found = figures(replay(arrivals, Rules(4), DEVICE))
    assert (found.batches, found.pieces, found.rows, found.padding_rows) == (3, 3, 7, 5)
    assert found.fill == pytest.approx(7 / 12)
    assert (found.queue_mean_ns, found.latency_p50_ns, found.latency_max_ns) == (800, 1_900, 2_500)
    assert (found.span_ns, found.device_share, found.queue_longest) == (3_000, 1.0, 2)
    assert found.requests_per_second == pytest.approx(3 / 3e-6)


def test_figures_of_requests_that_were_all_refused_are_no_numbers() -> None:
    found = figures(replay(Arrivals(np.array([], int), np.array([], int)), Rules(), DEVICE))
    assert found.requests == 0 and math.isnan(found.latency_p99_ns)


def test_each_combination_is_a_row_behind_the_configured_one_and_none_stands_twice() -> None:
    choices = read_choices(["delay=0,2us", "instances=1,2", "preferred=none,2+4"])
    rules = Rules(4, True, (), 2_000)
    chosen = list(variants(rules, DEVICE, choices))
    rows = [(one.rules.delay_ns, one.device.instances, one.preferred) for one in chosen]
    assert rows[0] == (2_000, 1, "") and chosen[0].configured
    assert len(rows) == len(set(rows)) == 8
    results, _ = replayed(Arrivals(np.array([0, 1_500]), np.array([1, 1])), chosen)
    frame = table(chosen, results)
    assert frame["batches"].tolist() == [1 if delay else 2 for delay, _, _ in rows]


def test_a_delay_turns_dynamic_batching_on() -> None:
    _, changed = variants(Rules(4), DEVICE, {"delay": [0]})
    assert changed.rules.dynamic and not changed.configured


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delays=0", "no lever 'delays'; did you mean delay"),
        ("delay", "no values; times"),
        ("delay=5", "cannot be read; times"),
        ("delay=1s,-1us", "cannot be read"),
        ("preferred=0", "cannot be read; sizes"),
        ("instances=1.5", "cannot be read; numbers"),
    ],
)
def test_a_choice_that_cannot_be_read_is_one_line(text: str, words: str) -> None:
    with pytest.raises(PvaError, match=words):
        read_choices([text])


def test_a_preferred_size_beyond_the_largest_batch_is_one_line() -> None:
    with pytest.raises(PvaError, match="preferred size 8; sizes from 1 to max_batch_size, 4"):
        list(variants(Rules(4, True), DEVICE, {"preferred": [(8,)]}))
