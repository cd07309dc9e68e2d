"""Stragglers: the culprit that is planted is named, and where there is none nobody is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cli.main import tilescope
from pva.analysis import stragglers
from pva.analysis.distributed.stragglers import CAUSES, _median_of_others
from tests.many.planted import PHASES, Plan, planted, write_planted
from tests.many.runs import write_instances

SEEDS = range(50)


def plan_of(seed: int) -> Plan:
    """Draw a plan: which instance, which phase, how late, in how many of how many steps."""
    draw = np.random.default_rng([seed, 1])
    collectives = bool(draw.integers(2))
    phase = PHASES[draw.integers(3 if collectives else 2)]
    return Plan(steps=int(draw.integers(8, 60)), culprit=int(draw.integers(16)), phase=phase,
                late=float(draw.uniform(0.3, 2)), share=float(draw.uniform(0.5, 1)),
                collectives=collectives)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_the_planted_culprit_and_its_cause_are_named(seed: int) -> None:
    plan = plan_of(seed)
    frame = stragglers(planted(plan, seed))
    assert frame[frame["straggler"]]["instance"].tolist() == [plan.culprit]
    assert frame["cause"][0] == CAUSES[plan.phase]
    assert frame["explained"][0] >= 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_culprit_nobody_is_named(seed: int) -> None:
    plan = replace(plan_of(seed), culprit=-1, noise=float(seed % 5) / 5)
    frame = stragglers(planted(plan, seed))
    assert frame[frame["straggler"]]["instance"].tolist() == []
    assert set(frame["cause"]) == {""}


@pytest.mark.parametrize(("late", "guilty"), [(0.03, False), (0.1, True)])
def test_a_wait_counts_from_a_twentieth_of_the_time(late: float, guilty: bool) -> None:
    plan = Plan(culprit=3, late=late, noise=0.001)
    frame = stragglers(planted(plan, 0))
    assert frame["instance"][0] == 3
    assert bool(frame["straggler"][0]) is guilty
    assert frame["wait_share"][0] == pytest.approx(late / (0.95 + late), rel=0.02)


@pytest.mark.parametrize(("split", "cause"), [(0.75, ""), (0.85, "stream callbacks")])
def test_a_cause_below_four_fifths_of_the_wait_is_not_named(split: float, cause: str) -> None:
    run = planted(Plan(culprit=5, phase="callback", late=split, noise=0.0), 1)
    rest = planted(Plan(culprit=5, phase="callback", late=1.0, noise=0.0), 1)
    # What is outside of callbacks, runs and what is between them: the run is late all the same.
    for one, other in zip(run.instances, rest.instances, strict=True):
        one.trace = other.trace
    thread = next(run.instances[5].trace.read_threads())
    calls = thread.label == 1
    thread.end_ns[calls] -= round((1 - split) * 10_000_000)
    frame = stragglers(run)
    assert (frame["instance"][0], bool(frame["straggler"][0])) == (5, True)
    assert frame["cause"][0] == cause


def test_the_worst_step_is_the_one_with_the_longest_wait() -> None:
    run = planted(Plan(culprit=2, late=0.5, noise=0.0), 0)
    thread = next(run.instances[2].trace.read_threads())
    arrival = np.flatnonzero(thread.label == 2)[7]
    thread.begin_ns[arrival] += 400_000
    row = stragglers(run).iloc[0]
    assert (row["instance"], row["worst_step"]) == (2, 7)
    assert row["worst_wait_ns"] == pytest.approx(5_400_000, abs=2)


def test_one_instance_waits_for_nobody() -> None:
    assert stragglers(planted(Plan(instances=1), 0)).empty


def test_of_two_instances_the_later_one_is_named() -> None:
    frame = stragglers(planted(Plan(instances=2, culprit=1), 0))
    assert frame[frame["straggler"]]["instance"].tolist() == [1]


def test_a_killed_instance_hides_nobody() -> None:
    run = planted(Plan(culprit=4), 0)
    thread = next(run.instances[9].trace.read_threads())
    few = type(thread)(thread.begin_ns[:9], thread.end_ns[:9], thread.label[:9])
    run.instances[9].trace.read_threads = lambda: iter([few])
    frame = stragglers(run)
    assert frame[frame["straggler"]]["instance"].tolist() == [4]
    assert frame.set_index("instance")["steps"][9] == 2


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_the_median_of_the_others_leaves_each_out(rows: int) -> None:
    times = np.random.default_rng(rows).random((rows, 9))
    expected = np.array([np.median(np.delete(times, i, 0), axis=0) for i in range(rows)])
    if rows > 2:
        times[0, 3] = expected[0, 3] = np.nan
        expected[1:, 3] = [np.nanmedian(np.delete(times[:, 3], i)) for i in range(1, rows)]
    np.testing.assert_allclose(_median_of_others(times), expected)


def test_the_command_names_the_culprit_and_what_was_left_out(tmp_path: Path) -> None:
    write_planted(tmp_path, Plan(instances=4, culprit=2))
    (tmp_path / "instance_0003" / "profile.pop").write_bytes(b"SQLite format 3")
    done = CliRunner().invoke(tilescope, ["show", "stragglers", str(tmp_path), "--format", "json"])
    rows = json.loads(done.stdout)
    assert [row["instance"] for row in rows if row["straggler"]] == [2]
    assert rows[0]["cause"] == "late start at Engine::run"
    assert done.stderr.startswith("tilescope: left out: instance 3: ")


def test_the_tables_of_a_run_are_shown_and_asked(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    write_instances(tmp_path, 2)
    shown = CliRunner().invoke(tilescope, ["show", "table.runs", str(tmp_path), "--format", "json"])
    asked = CliRunner().invoke(
        tilescope, ["sql", str(tmp_path), "select instance from runs", "--format", "json"]
    )
    instances = [row["instance"] for row in json.loads(shown.stdout)]
    assert set(instances) == {0, 1}
    assert [row["instance"] for row in json.loads(asked.stdout)] == instances
