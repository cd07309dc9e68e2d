"""The rules of speed one by one: what each says, and where its threshold lies.

Their words are in tests/golden/findings.txt: to write it again after a change that is meant,
`UPDATE_GOLDEN=1 pytest tests/analysis/test_speed_rules.py`.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pva.analysis.attribution import PHASES, SYNC
from pva.analysis.insight_rules import speed
from tests.analysis.samples import opened, small
from tests.analysis.test_insights import CASES, DATA, table
from tests.builders import COMPUTE_CYCLES, TILES

GOLDEN = Path(__file__).parents[1] / "golden" / "findings.txt"
SPEED = [rule for rule in CASES if hasattr(speed, rule)]
# Only multiply leaves threads idle: of each 6 cycles of a tile the others run a vertex in all.
ONE_IDLE = {
    "compute_set_active_cycles_by_tile": np.concatenate(
        [COMPUTE_CYCLES[:1] // 6, COMPUTE_CYCLES[1:]]
    )
}


def test_a_finding_about_time_says_what_where_and_what_to_try() -> None:
    cases = {f"{rule}:": (rule, small(**CASES[rule][0])) for rule in CASES if hasattr(speed, rule)}
    cases["one_thread_busy, of one compute set:"] = "one_thread_busy", small(**ONE_IDLE)
    cases["uneven_work, on a sample:"] = "uneven_work", opened("newton_pipeline_replicas")
    lines = []
    for title, (rule, report) in cases.items():
        (finding,) = getattr(speed, rule)(report)
        lines += [title, *(f"  {name}: {value}" for name, value in asdict(finding).items())]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", SPEED)
def test_rule_of_speed_says_nothing_where_there_is_nothing(rule: str) -> None:
    assert getattr(speed, rule)(small(**CASES[rule][-1])) == []


def test_program_without_a_name_is_called_by_its_type() -> None:
    names = DATA.column("programs", "name").copy()
    names[6] = ""
    (finding,) = speed.uneven_work(small(**table("programs", name=names)))
    assert "most in (OnTileExecute): 10 of 10" in finding.where


def test_uneven_work_counts_the_tiles_of_the_ipu_that_computes() -> None:
    cycles = np.zeros((3, TILES), dtype=np.int64)
    cycles[0, :5], cycles[0, 0] = 50, 100  # a mean of 60 on the first of two IPUs
    (finding,) = speed.uneven_work(small(compute_set_cycles_by_tile=cycles))
    assert "in multiply: 5 of 5 tiles work, the mean 60 cycles of" in finding.where
    assert finding.amount == 4 * (100 - 60)


@pytest.mark.parametrize(
    ("rule", "bound"), [("bound_by_sync", 150), ("bound_by_exchange", 300), ("bound_by_host", 100)]
)
def test_a_phase_is_a_finding_above_its_share_of_the_cycles_alone(
    rule: str, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "_cycles", lambda _: 1000)
    for spent in (bound, bound + 1):
        monkeypatch.setattr(speed, "_of_phase", lambda *_, spent=spent: spent)
        assert len(getattr(speed, rule)(small())) == (spent > bound)


def test_a_saving_is_never_more_than_the_cycles_of_the_runs_nor_below_zero() -> None:
    facts = {"what": "", "where": "", "amount": 0, "advice": "", "show": ""}
    assert [speed._finding(10, saving, **facts).saving for saving in (-1, 9, 11)] == [0, 9, 10]


@pytest.mark.parametrize(
    ("rule", "most"),
    [("uneven_work", 247 * 20), ("one_thread_busy", 11109), ("many_tiny_steps", 68 * 20),
     ("poor_use_of_matrix_units", 9115)],  # of 456 less 80 / 320; of 480 and 96 * 66 / 84
)  # fmt: skip
def test_a_saving_is_a_finding_above_a_twentieth_of_the_cycles_alone(
    rule: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for total in (most, most - 1):
        monkeypatch.setattr(speed, "_cycles", lambda _, total=total: total)
        assert len(getattr(speed, rule)(small(**CASES[rule][0]))) == (total < most)


def test_advice_on_the_host_depends_on_the_io_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "io_tiles_wanted", lambda _: 0)
    assert speed._advice_on_io(small()) == "Copy more at a time, or in fewer bits."
    monkeypatch.setattr(speed, "io_tiles_wanted", lambda _: 1200)
    assert speed._advice_on_io(small()).startswith(
        "With 1,200 I/O tiles (numIOTiles, simulate --io-tiles 1200) the host exchanges"
    )
    monkeypatch.setattr(speed, "has_io_tiles", lambda _: True)
    assert speed._advice_on_io(small()) == (
        "The I/O tiles exchange longer than the others compute: move less, as in fewer bits, or "
        "more batches in a step, as the first and the last are never hidden."
    )


def stand_in(
    monkeypatch: pytest.MonkeyPatch, name: str, columns: str, *rows: tuple[Any, ...]
) -> None:
    """Make an analysis answer these rows."""
    values = zip(*rows, strict=True)
    frame = pd.DataFrame(dict(zip(columns.split(), values, strict=True)))
    monkeypatch.setattr(speed, name, lambda _: SimpleNamespace(frame=lambda: frame))


def test_tiles_never_wait_more_than_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_cycles", lambda _: 100)  # and 247 cycles are lost
    (finding,) = speed.uneven_work(small())
    assert finding.what.startswith("Unbalanced: tiles wait 100.0 % of the time")
    assert finding.amount == 100


def test_the_stream_that_the_runs_wait_for_longest_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = {"name": ["a", "b", "c"], "exposed_cycles": [5, 900, 7]}
    monkeypatch.setattr(speed, "stream_bandwidth", lambda _: pd.DataFrame(streams))
    monkeypatch.setattr(speed, "_of_phase", lambda *_: 1000)
    (finding,) = speed.bound_by_host(small())
    assert (finding.name, finding.where) == ("b", "most in b, 900 cycles")


THREADS = "compute_set name executions vertices_per_tile thread_balance"


@pytest.mark.parametrize(
    ("balance", "vertices", "saving"),
    [(0.35, 1.0, 296), (0.36, 1.0, 0), (0.25, 5.9, 342), (0.25, 6.0, 0)],  # of 4 * 114 cycles
)
def test_threads_are_idle_up_to_two_of_six_and_below_six_vertices(
    balance: float, vertices: float, saving: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "thread_balance", THREADS, (0, "multiply", 4, vertices, balance))
    assert [each.saving for each in speed.one_thread_busy(small())] == [saving] * (saving > 0)


def test_idle_threads_are_a_finding_above_a_twentieth(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "thread_balance", THREADS, (0, "multiply", 4, 1.0, 0.25))
    for total, count in ((6840, 0), (6839, 1)):  # 342 of them
        monkeypatch.setattr(speed, "_cycles", lambda _, total=total: total)
        assert len(speed.one_thread_busy(small())) == count


PRODUCTS = "compute_set name executions cycles flops float_peak_share"


def use_of_matrix_units(
    monkeypatch: pytest.MonkeyPatch, peak: float, clock: float, *rows: tuple[Any, ...]
) -> list[Any]:
    """Return what the rule finds where all compute sets are products, of 1,000 cycles in all."""
    target = DATA.table("target") | {"clock_frequency": [clock]}
    monkeypatch.setattr(speed, "_cycles", lambda _: 1000)
    monkeypatch.setattr(speed, "_matrix_sets", lambda _: np.arange(3))
    monkeypatch.setattr(speed, "flop_utilisation", lambda _: SimpleNamespace(float_peak=peak))
    stand_in(monkeypatch, "flops_by_compute_set", PRODUCTS, *rows)
    return speed.poor_use_of_matrix_units(small(target=target))


@pytest.mark.parametrize(("flops", "saving"), [(0, None), (1, 498)])  # 500 cycles, where 2 would do
def test_a_product_without_operations_is_none(
    flops: int, saving: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = use_of_matrix_units(monkeypatch, 1.0, 1.0, (0, "dense", 2, 250, flops, 0.1))
    assert [each.saving for each in found] == ([] if saving is None else [saving])


@pytest.mark.parametrize(
    ("peak", "count"), [(100.0, 1), (99.0, 0)]
)  # an operation a cycle, or less
def test_matrix_units_are_judged_where_they_have_a_peak(
    peak: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = (0, "dense", 1, 500, 50, 0.1)
    assert len(use_of_matrix_units(monkeypatch, peak, 100.0, row)) == count


def test_a_product_at_a_quarter_of_the_peak_is_no_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = ((0, "slow", 1, 400, 80, 0.2), (1, "enough", 1, 400, 100, 0.25))
    (finding,) = use_of_matrix_units(monkeypatch, 100.0, 100.0, *rows)
    assert (finding.saving, finding.amount) == (320, 400)
    assert finding.what.startswith("Matrix products reach 20.0 % of")


def tiny_steps(monkeypatch: pytest.MonkeyPatch, phase: str, cycles: list[int]) -> list[Any]:
    """Return what the rule finds in a run of computes and syncs, one letter each."""
    kinds = {"c": PHASES.index("compute"), "s": PHASES.index(SYNC)}
    monkeypatch.setattr(speed, "phases", lambda _: np.array([kinds[letter] for letter in phase]))
    monkeypatch.setattr(speed, "elapsed", lambda _: np.array(cycles))
    report: Any = SimpleNamespace(
        dataset=SimpleNamespace(column=lambda *_: np.zeros(len(phase), dtype=np.int64))
    )
    return speed.many_tiny_steps(report)


def test_two_steps_that_are_merged_save_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = tiny_steps(monkeypatch, "csscssc", [1, 20, 20, 1, 20, 20, 1])
    assert finding.saving == 30  # of 3 tiny steps half a sync of 20 each; 80 lie between them
    (finding,) = tiny_steps(monkeypatch, "cscscs", [20, 30, 1, 20, 1, 10])
    assert finding.what.startswith("2 of 3 compute steps")  # 20 is the mean sync itself


def test_tiny_steps_are_a_finding_where_they_are_more_than_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tiny_steps(monkeypatch, "scscsc", [20, 1, 20, 1, 20, 50])  # two of three
    assert not tiny_steps(monkeypatch, "scscscsc", [20, 1, 20, 1, 20, 50, 20, 50])  # two of four
    assert not tiny_steps(monkeypatch, "scscsccc", [20, 1, 20, 1, 20, 50, 50, 50])  # two of five


def test_a_step_before_the_first_lies_between_none() -> None:
    report: Any = SimpleNamespace(
        dataset=SimpleNamespace(column=lambda *_: np.zeros(4, dtype=np.int64))
    )
    computes = np.array([False, True, False, True])
    assert speed._between(report, computes, computes)[[0, 2]].tolist() == [False, True]


def test_steps_between_tiny_ones_are_those_with_one_on_both_sides_in_their_run() -> None:
    runs = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    report: Any = SimpleNamespace(dataset=SimpleNamespace(column=lambda *_: runs))
    tiny, computes = (np.array([n in rows for n in range(8)]) for rows in ((0, 2, 6), (0, 2, 4, 6)))
    # Between 0 and 2; not 3 (4 is not tiny), nor 5 (of another run than 4), nor 7 (the last).
    assert np.flatnonzero(speed._between(report, tiny, computes) & ~computes).tolist() == [1]
    nothing = np.zeros(8, dtype=bool)
    assert not speed._between(report, nothing, nothing).any()
    every = speed._between(report, computes, computes)
    assert np.flatnonzero(every & ~computes).tolist() == [1, 3]
