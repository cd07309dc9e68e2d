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
import pytest

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
