from __future__ import annotations

import random

import numpy as np
import pytest

from pva.errors import PvaError
from pva.queueing.replay import DONE, Arrivals, Device, Outcome, queue_lengths, replay
from pva.queueing.rules import Policy, Rules
from tests.queueing.step_by_step import Case, simulate

US = 1000


def random_case(seed: int) -> Case:
    draw = random.Random(seed)
    most = draw.choice([1, 2, 4, 8])
    count = draw.randint(1, 14)
    levels = draw.choice([0, 0, 2])
    sizes = range(1, most + 1)
    return Case(
        most, draw.random() < 0.8, draw.sample(sizes, draw.randint(0, min(2, most))),
        draw.choice([0, 0, 3, 8]), levels, draw.choice([0, 0, 3]), draw.choice([0, 0, 5, 9]),
        draw.random() < 0.5, draw.random() < 0.3, draw.choice([1, 2, 3, 8]), draw.randint(1, 9),
        draw.randint(1, 3), draw.choice([0, 4]), draw.random() < 0.6, draw.choice([0, 0, 2]),
        sorted(draw.randint(0, 30) for _ in range(count)),
        [draw.randint(1, most) for _ in range(count)],
        [draw.randint(1, 2) for _ in range(count)],
    )  # fmt: skip


def replayed(case: Case) -> Outcome:
    level = np.array(case.level) if case.levels else None
    policy = Policy(case.limit, case.timeout * US, case.late)
    rules = Rules(case.most, case.dynamic, tuple(case.preferred), case.delay * US, case.levels, 1,
                  policy, in_order=case.in_order)  # fmt: skip
    device = Device(case.batch * US, case.compiled, case.instances, case.flush * US,
                    case.synchronous, (case.wait * US,) * case.instances)  # fmt: skip
    at = np.array(case.at, np.int64) * US
    return replay(Arrivals(at, np.array(case.rows, np.int64), level), rules, device)


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_requests_leave_as_in_a_simulation_of_each_microsecond(seed: int) -> None:
    for number in range(seed, seed + 20):
        case = random_case(number)
        outcome, expected = replayed(case), simulate(case)
        columns = (outcome.how, outcome.sent_ns // US, outcome.answered_ns // US)
        ways = dict(enumerate(zip(*(column.tolist() for column in columns), strict=True)))
        assert ways == expected, case


def poisson(count: int, load: float, service_ns: int) -> np.ndarray:
    gaps = np.random.default_rng(30).exponential(service_ns / load, count)
    return np.cumsum(np.rint(gaps).astype(np.int64))


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_mean_wait_of_single_requests_is_that_of_the_formula_for_m_d_1(load: float) -> None:
    at = poisson(100_000, load, 1_000_000)
    outcome = replay(Arrivals(at, np.ones_like(at)), Rules(), Device(1_000_000))
    wait = (outcome.sent_ns - at).mean() / 1e6
    assert wait == pytest.approx(load / (2 * (1 - load)), rel=0.03)  # Pollaczek and Khinchine


@pytest.mark.parametrize("synchronous", [True, False])
def test_every_request_leaves_once_and_every_row_runs_once(synchronous: bool) -> None:
    at = poisson(5_000, 9.0, 1_000_000)
    rows = np.random.default_rng(1).integers(1, 9, 5_000)
    rules = Rules(32, True, (8, 16), 2_000_000, policy=Policy(most_waiting=40))
    device = Device(1_000_000, 16, 2, 300_000, synchronous)
    outcome = replay(Arrivals(at, rows), rules, device)
    done = outcome.how == DONE
    assert 0 < done.sum() <= 5_000 - synchronous * 100  # an asynchronous one is always idle
    assert outcome.batch_requests.sum() == done.sum()
    assert np.bincount(outcome.batch[done]).tolist() == outcome.batch_requests.tolist()
    assert outcome.piece_rows.sum() == outcome.batch_rows.sum() == rows[done].sum()
    order = np.lexsort((outcome.piece_begin_ns, outcome.piece_instance))
    same = np.diff(outcome.piece_instance[order]) == 0
    assert (np.diff(outcome.piece_begin_ns[order])[same] >= device.batch_ns).all()
    assert queue_lengths(outcome)[1].max() <= 40 and queue_lengths(outcome)[1][-1] == 0


def test_plain_queues_leave_alike_from_batch_to_batch_and_from_event_to_event() -> None:
    at = poisson(3_000, 3.0, 1_000_000)
    rows = np.random.default_rng(2).integers(1, 5, 3_000)
    rules, device = Rules(16, True, (4, 12), 700_000), Device(1_000_000, 8, 2)
    plain = replay(Arrivals(at, rows), rules, device)
    stepped = replay(Arrivals(at, rows, timeout_ns=np.zeros_like(at)), rules, device)
    assert plain.answered_ns.tolist() == stepped.answered_ns.tolist()
    assert plain.batch.tolist() == stepped.batch.tolist()


def test_padding_of_a_request_that_is_far_smaller_than_the_compiled_batch_costs_a_whole_one() -> (
    None
):
    one = Arrivals(np.array([0]), np.array([3]))
    outcome = replay(one, Rules(256, True), Device(5_000, 256, flush_ns=2_000))
    assert outcome.answered_ns.tolist() == [7_000]
    assert outcome.piece_rows.tolist() == [3]


@pytest.mark.parametrize(
    ("at", "rows", "words"),
    [
        ([5, 4], [1, 1], "times that go back"),
        ([4, 5], [1, 0], "request 1: no rows"),
        ([4, 5], [1, 9], "request 1: 9 rows; at most max_batch_size, 8"),
    ],
)
def test_arrivals_that_no_server_takes_are_one_line(at: list, rows: list, words: str) -> None:
    with pytest.raises(PvaError, match=words):
        replay(Arrivals(np.array(at), np.array(rows)), Rules(8, True), Device(1))
