"""Faults of runs: a line for each instance that cannot be read, and the others are shown."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

import pva
from cli.main import tilescope
from pva.analysis import instances, stragglers
from tests.many.planted import HOUR, Plan, write_planted
from tests.many.runs import write_instances


def instance_json(run: Path, index: int, **changes: object) -> None:
    file = run / f"instance_{index:04d}" / "instance.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_a_killed_instance_has_its_steps_and_no_end(tmp_path: Path) -> None:
    write_planted(tmp_path, Plan(instances=3, culprit=1))
    instance_json(tmp_path, 2, end=None, exit_code=None)
    run = pva.openRun(tmp_path)
    assert run.problems == ()
    assert instances(run)["seconds"].isna().tolist() == [False, False, True]
    assert stragglers(run)["instance"][0] == 1 and len(stragglers(run)) == 3


@pytest.mark.parametrize("what", ["report", "instance"])
def test_what_a_newer_version_wrote_is_named_and_the_others_are_shown(
    tmp_path: Path, what: str
) -> None:
    write_instances(tmp_path, 3)
    if what == "report":
        with sqlite3.connect(tmp_path / "instance_0001" / "profile.pop") as file:
            file.execute("pragma user_version = 999")
        file.close()
    else:
        instance_json(tmp_path, 1, format=9)
    run = pva.openRun(tmp_path)
    (line,) = run.problems
    assert line.startswith("instance 1: ") and ("999" in line or "format 9" in line)
    assert {0, 2} <= set(run.frames.runs()["instance"])


def test_a_truncated_trace_costs_the_trace_alone(tmp_path: Path) -> None:
    write_planted(tmp_path, Plan(instances=3))
    (trace,) = (tmp_path / "instance_0001").glob("*.pvti")
    trace.write_bytes(trace.read_bytes()[:3000])
    run = pva.openRun(tmp_path)
    assert [line.partition(":")[0] for line in run.problems] == ["instance 1"]
    assert stragglers(run)["instance"].sort_values().tolist() == [0, 2]
    assert set(run.frames.runs()["instance"]) == {0, 1, 2}


def test_clocks_hours_apart_without_collectives_end_in_a_sentence(tmp_path: Path) -> None:
    write_planted(tmp_path, Plan(instances=2, hosts=2, apart=5 * HOUR, collectives=False))
    done = CliRunner().invoke(
        tilescope, ["show", "clock_residual", str(tmp_path), "--format", "csv"]
    )
    assert done.exit_code == 0
    assert "so its times are not compared" in done.stdout


def test_directory_names_of_others_are_data(tmp_path: Path) -> None:
    for name in ("<script>alert(1)<", "b' or 1=1 --"):
        write_instances(tmp_path / name, 1)
    script, quoted = tmp_path / "<script>alert(1)<", tmp_path / "b' or 1=1 --"
    back = quoted / ".." / quoted.name / "instance_0000"
    run = pva.openRun([script / "instance_0000", back])
    assert len(run.reports) == 2 and run.problems == ()
    pytest.importorskip("duckdb")
    assert run.sql("select count(*) as n from report")["n"][0] == 2
