"""Fleets: each report once, trends by hand, SQL, and maps on processes and on Dask that die."""

from __future__ import annotations

import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import pva
from cli.main import tilescope
from pva.dask_client import connected
from pva.errors import DamagedFileError, NotFoundError, PvaError, QueryError
from pva.many.executors import mapped
from pva.many.fleet import addReports
from tests.builders import small_report, write_report

pytest.importorskip("pyarrow")


def write_several(folder: Path, count: int) -> list[Path]:
    """Write reports that differ in when they were made."""
    paths = []
    for number in range(count):
        moment = f"2030-01-01T00:00:{number:02}Z"
        data = small_report(report={**small_report().table("report"), "created": [moment]})
        paths.append(write_report(folder / f"bs{number // 2}-r{number}", data))
    return paths


def tags_of(path: str) -> dict[str, str]:
    return {"batch": Path(path).name.partition("-")[0].removeprefix("bs")}


@pytest.fixture
def fleet(tmp_path: Path) -> Any:
    """Return a fleet of four reports, two of each batch, with their runs."""
    paths = write_several(tmp_path / "reports", 4)
    place = tmp_path / "fleet"
    assert addReports(place, paths, tables=["runs"], tags=tags_of, workers=1) == (4, [])
    return pva.openFleet(place)


def test_a_fleet_has_the_figures_of_each_report(fleet: Any) -> None:
    frame = fleet.frames.reports()
    alone = pva.openReport(frame["path"][0])
    overview = pva.analysis.execution_overview(alone)
    assert frame["total_cycles"].tolist() == [overview.cycles] * 4
    assert frame["largest_tile"][0] == pva.analysis.memory_overview(alone).fullest_bytes
    assert sorted(frame["tag_batch"]) == ["0", "0", "1", "1"]


def test_a_report_is_kept_once_by_its_content(fleet: Any, tmp_path: Path) -> None:
    copy = shutil.copytree(tmp_path / "reports" / "bs0-r0", tmp_path / "copy")
    new = write_report(tmp_path / "new", small_report(report={
        **small_report().table("report"), "created": ["2031-01-01T00:00:00Z"]}))  # fmt: skip
    assert addReports(fleet.path, [copy, new, new], workers=1) == (1, [])
    assert len(fleet.frames.reports()) == 5


def test_kept_tables_are_those_of_the_reports(fleet: Any) -> None:
    rows = fleet.frames.runs()
    alone = pva.openReport(fleet.frames.reports()["path"][0]).frames.runs()
    of_one = rows[rows["report"] == fleet.frames.reports()["report"][0]].drop(columns="report")
    pd.testing.assert_frame_equal(of_one.reset_index(drop=True), alone, check_dtype=False)


def test_sql_joins_figures_and_tables(fleet: Any) -> None:
    pytest.importorskip("duckdb")
    found = fleet.sql(
        "select tag_batch, sum(cycles) as c from runs join reports using (report)"
        " group by tag_batch order by tag_batch"
    )
    cycles = int(small_report().column("runs", "cycles").sum())
    assert found.to_dict("list") == {"tag_batch": ["0", "1"], "c": [2 * cycles] * 2}
    with pytest.raises(QueryError, match="no table steps; there are reports, runs"):
        fleet.sql("select * from steps")


def test_a_trend_has_least_median_most_and_change_of_each_value(tmp_path: Path) -> None:
    memory = {"2": (1000, 3000), "10": (2000, 4000, 6000)}  # by batch: bytes of a tile
    paths = []
    for batch, sizes in memory.items():
        for size in sizes:
            values = small_report().column("memory_by_tile", "total_including_gaps") * 0 + size
            table = {**small_report().table("memory_by_tile"), "total_including_gaps": values}
            data = small_report(memory_by_tile=table)
            paths.append(write_report(tmp_path / f"bs{batch}-{size}", data))
    addReports(tmp_path / "fleet", reversed(paths), tags=tags_of, workers=1)
    frame = pva.openFleet(tmp_path / "fleet").trend("largest_tile", by="batch")
    assert frame["batch"].tolist() == ["2", "10"]  # as numbers
    assert frame["reports"].tolist() == [2, 3]
    assert frame[["least", "median", "most"]].to_numpy().tolist() == [
        [1000, 2000, 3000], [2000, 4000, 6000]
    ]  # fmt: skip
    assert pd.isna(frame["change"][0]) and frame["change"][1] == 1.0


def test_what_a_trend_cannot_show_is_named(fleet: Any) -> None:
    with pytest.raises(PvaError, match="no figure total_cycle; did you mean total_cycles"):
        fleet.trend("total_cycle")
    with pytest.raises(PvaError, match="no tag sdk; there are batch"):
        fleet.trend("total_cycles", by="sdk")


def test_a_map_is_the_analysis_of_each_report(fleet: Any) -> None:
    frame = fleet.map("insights", workers=1)
    path, known = fleet.frames.reports().loc[0, ["path", "report"]]
    alone = pva.analysis.insights(pva.openReport(path))
    assert frame[frame["report"] == known]["rule"].tolist() == alone["rule"].tolist()
    assert frame["report"].nunique() == 4 and fleet.problems == ()


def test_a_map_goes_on_where_it_was(fleet: Any) -> None:
    fleet.map("fullest_tiles", workers=1, count=2)
    (folder,) = (fleet.path / "maps").iterdir()
    files = sorted(folder.iterdir())
    before = [file.stat().st_mtime_ns for file in files]
    files[0].unlink()
    done: list[int] = []
    frame = fleet.map("fullest_tiles", workers=1, count=2, progress=lambda n, _: done.append(n))
    assert done == [4] and len(frame) == 8
    assert [file.stat().st_mtime_ns for file in files[1:]] == before[1:]


def test_what_has_no_answer_is_named_and_the_others_are_there(fleet: Any) -> None:
    paths = fleet.frames.reports()["path"].tolist()
    shutil.rmtree(paths[0])
    profile = Path(paths[1]) / "profile.pop"
    profile.write_bytes(profile.read_bytes()[:5000])
    frame = fleet.map("fullest_tiles", workers=1)
    assert frame["report"].nunique() == 2
    assert [line.partition(":")[0] for line in fleet.problems] == [paths[0], str(profile)]


def test_a_part_that_was_not_finished_is_not_read(fleet: Any, tmp_path: Path) -> None:
    (part,) = (fleet.path / "runs").iterdir()
    shutil.copy(part, part.with_name("part-killed.parquet"))
    assert len(fleet.frames.runs()) == 4 * len(small_report().column("runs", "cycles"))


def die_once(item: int, flag: str) -> int:
    """Kill this process at item 3, the first time."""
    if item == 3 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def test_work_of_a_killed_process_goes_to_another(tmp_path: Path) -> None:
    work = partial(die_once, flag=str(tmp_path / "flag"))
    found = list(mapped(work, range(8), workers=2))
    assert sorted(found) == [(n, n * n) for n in range(8)]
    assert (tmp_path / "flag").exists()


def die(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_work_that_kills_its_workers_each_time_is_given_up_in_one_line() -> None:
    with pytest.raises(PvaError, match="workers were lost again and again"):
        list(mapped(die, [1, 2], workers=2))


@pytest.mark.filterwarnings("ignore")  # of Dask's own parts
def test_a_dask_worker_that_is_killed_costs_no_report(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    paths = write_several(tmp_path / "reports", 48)
    addReports(tmp_path / "fleet", paths, workers=1)
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = sorted(client.run(os.getpid).values())
        assert len(set(pids)) == 2

        def kill(done: int, count: int) -> None:
            if not killed and done < count:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        fleet = pva.openFleet(tmp_path / "fleet", client=client)
        frame = fleet.map("fullest_tiles", progress=kill, count=1)
    assert killed == pids[:1]
    assert sorted(frame["report"]) == sorted(fleet.frames.reports()["report"])
    assert fleet.problems == () and len(frame) == 48


def test_a_scheduler_that_is_not_there_is_one_line() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(PvaError, match="start one: dask scheduler"):
        connected("nonsense://127.0.0.1:1")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 9, "tables": []}', '{"format": 1}'])
def test_a_damaged_fleet_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "fleet.json").write_text(text)
    with pytest.raises(DamagedFileError):
        pva.openFleet(tmp_path)


def test_no_fleet_and_a_directory_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no fleet.json; make it with tilescope fleet add"):
        pva.openFleet(tmp_path)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(PvaError, match="a directory with other files"):
        addReports(tmp_path, [])


def test_the_commands_add_ask_and_show(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    paths = [str(path) for path in write_several(tmp_path / "<script>", 2)]
    place = str(tmp_path / "fleet")

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(tilescope, ["fleet", *arguments])

    added = run("add", place, *paths, str(tmp_path / "../none"), "--tag", "nightly",
                "--tags", r"-r(?P<run>\d)", "--workers", "1")  # fmt: skip
    assert added.stdout == f"{place}: 2 reports added\n"
    assert added.stderr.startswith("tilescope: left out: ") and "no such file" in added.stderr
    rows = json.loads(
        run("sql", place, "select tag, tag_run from reports order by 2", "--format", "json").stdout
    )
    assert rows == [{"tag": "nightly", "tag_run": "0"}, {"tag": "nightly", "tag_run": "1"}]
    trend = json.loads(run("show", "trend", "total_cycles", place, "--format", "json").stdout)
    assert [(row["tag"], row["reports"]) for row in trend] == [("nightly", 2)]
    answers = run("map", "fullest_tiles", place, "--workers", "1", "--format", "json")
    assert {row["report"] for row in json.loads(answers.stdout)} == set(
        pva.openFleet(place).frames.reports()["report"]
    )
