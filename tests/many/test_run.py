"""`pva.openRun`: instances, their tables as one, what is left out and why."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import pva
from cli.main import tilescope
from pva.data.dataset import Dataset
from pva.errors import NotFoundError, PvaError, QueryError
from pva.formats.run_file import write_instance
from pva.many.query import named_columns
from tests.builders import write_report
from tests.cli.golden_calls import write_trace
from tests.many.runs import instance_file, write_instances


def test_a_frame_is_that_of_every_report_with_its_instance_and_host(tmp_path: Path) -> None:
    run = pva.openRun(write_instances(tmp_path, 3))
    frame = run.frames.compute_sets()
    alone = pva.openReport(tmp_path / "instance_0001").frames.compute_sets()
    assert list(frame.columns) == ["instance", "host", *alone.columns]
    assert frame["instance"].tolist() == [0] * len(alone) + [1] * len(alone) + [2] * len(alone)
    of_one = frame[frame["instance"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_one.drop(columns=["instance", "host"]), alone)
    assert set(of_one["host"]) == {"h1"}


def test_an_array_is_in_long_form_by_instance(tmp_path: Path) -> None:
    run = pva.openRun(write_instances(tmp_path, 2))
    frame = run.frames.always_live_bytes()
    alone = run.reports[0].frames.always_live_bytes()
    assert len(frame) == 2 * len(alone)
    assert frame["bytes"].sum() == 2 * alone["bytes"].sum()


def test_sql_asks_all_reports_at_once(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    run = pva.openRun(write_instances(tmp_path, 2))
    cycles = int(run.reports[0].frames.runs()["cycles"].sum())
    found = run.sql(
        "select instance, host, sum(cycles) as cycles, count(*) as runs from runs"
        " group by instance, host order by instance"
    )
    runs = len(run.reports[0].frames.runs())
    assert found.to_dict("list") == {
        "instance": [0, 1], "host": ["h0", "h1"], "cycles": [cycles] * 2, "runs": [runs] * 2,
    }  # fmt: skip


def test_rows_count_within_a_report_so_that_tables_join(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    run = pva.openRun(write_instances(tmp_path, 2))
    query = "select count(*) as n from steps s join programs p on s.program = p.row"
    joined = run.sql(f"{query} and s.instance = p.instance")["n"][0]
    assert joined == 2 * run.reports[0].sql(query)["n"][0]


def test_sql_reads_the_columns_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    run = pva.openRun(write_instances(tmp_path, 2))
    read: set[str] = set()
    column = Dataset.column

    def noted(data: Dataset, table: str, name: str) -> object:
        read.add(f"{table}.{name}")
        return column(data, table, name)

    monkeypatch.setattr(Dataset, "column", noted)
    run.sql("select max(cycles) from runs where instance = 1")
    assert read == {"runs.cycles"}


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select count(*) from steps", {"select", "from", "steps"}),
        ("from steps", None),
        ("select * from steps", None),
        ("select a.name from a natural join b", None),
        ("select columns('x') from a where 1", None),
    ],
)
def test_columns_without_a_name_are_all_of_them(query: str, columns: set[str] | None) -> None:
    assert named_columns(query) == columns


def test_a_whole_row_has_all_columns(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    run = pva.openRun(write_instances(tmp_path, 1))
    (row,) = run.sql("select r from runs r limit 1")["r"]
    assert set(run.frames.runs().columns) < set(row)


def test_an_unknown_table_is_named(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with pytest.raises(QueryError, match="no table stepz"):
        pva.openRun(write_instances(tmp_path, 1)).sql("select 1 from stepz")


def test_what_cannot_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    write_instances(tmp_path, 4)
    profile = tmp_path / "instance_0001" / "profile.pop"
    profile.write_bytes(profile.read_bytes()[:5000])
    shutil.rmtree(tmp_path / "instance_0002")
    write_instance(tmp_path / "instance_0003", instance_file(3, 1, run="another"))
    run = pva.openRun(tmp_path)
    assert set(run.frames.runs()["instance"]) == {0}
    cut, absent, another = run.problems
    assert cut.startswith(f"instance 1: {profile}: cut short")
    assert absent == f"instance 2: {tmp_path / 'instance_0002'}: nothing: it never wrote"
    assert another.endswith("instance_0003: left by another run; it is not shown")


def test_a_table_that_one_report_lacks_is_that_of_the_others(tmp_path: Path) -> None:
    run = pva.openRun(write_instances(tmp_path, 2))
    assert run.problems == ()
    data = run.reports[1].dataset
    run.reports[1].dataset = data.select("execution")
    assert set(run.frames.compute_sets()["instance"]) == {0}
    assert run.problems[0].startswith("instance 1: ")


def test_reports_come_by_pattern_or_by_list(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report(tmp_path / name)
    by_pattern = pva.openRun(tmp_path / "*")
    by_list = pva.openRun([tmp_path / "b", tmp_path / "a"])
    assert [one.path.name for one in by_pattern.instances] == ["a", "b"]
    assert [one.path.name for one in by_list.instances] == ["b", "a"]


def test_directories_of_instances_need_no_run_file(tmp_path: Path) -> None:
    write_instances(tmp_path, 2)
    (tmp_path / "run.json").unlink()
    assert [one.index for one in pva.openRun(tmp_path).instances] == [0, 1]


def test_the_trace_is_that_of_the_instance_process(tmp_path: Path) -> None:
    write_instances(tmp_path, 1)
    for pid in (100, 7):
        write_trace(tmp_path / "instance_0000" / f"Thu_Aug_27_{pid}.pvti")
    (trace,) = pva.openRun(tmp_path).traces
    assert [path.name for path in trace.paths] == ["Thu_Aug_27_100.pvti"]


def test_a_run_is_pickled_as_its_path(tmp_path: Path) -> None:
    run = pickle.loads(pickle.dumps(pva.openRun(write_instances(tmp_path, 2))))
    assert len(run.reports) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "truncated"), ("[]", "array"), ('{"format": 9}', "format 9"), ("{}", "required")],
)
def test_a_bad_run_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(PvaError, match=said) as fault:
        pva.openRun(tmp_path)
    assert "run.json" in str(fault.value)


def test_no_instance_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no run.json and no instance_0000"):
        pva.openRun(tmp_path)
    with pytest.raises(NotFoundError, match="no instance can be read: instance 0"):
        pva.openRun([tmp_path / "x"])


def test_info_says_what_a_run_was(tmp_path: Path) -> None:
    shutil.rmtree(write_instances(tmp_path, 3) / "instance_0001")
    done = CliRunner().invoke(tilescope, ["info", str(tmp_path), "--json"])
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["kind"]) == (0, "a run")
    assert answer["facts"]["seconds"] == (
        "least 1.0 s (instance 0), median 2.0 s (instance 1), most 3.0 s (instance 2)"
    )
    assert answer["facts"]["graphs"] == "equal in all 2"
    assert [one["host"] for one in answer["instances"]] == ["h0", "h1", "h2"]
    assert answer["problems"] == [
        f"instance 1: {tmp_path / 'instance_0001'}: nothing: it never wrote"
    ]
