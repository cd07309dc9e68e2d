"""`tilescope show`: what there is, and rows chosen, ordered and written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope
from pva.analysis import CATALOGUE
from pva.frames import NAMES
from pva.report import openReport
from tests.builders import write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("show") / "run")


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(tilescope, ["show", *map(str, arguments)], input=given)


def rows(*arguments: str | Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run(*arguments, "--format", "json").stdout)
    return found


def test_show_alone_lists_every_analysis_and_table_with_columns_and_units() -> None:
    listed = {row["name"] for row in rows()}
    assert set(CATALOGUE) < listed
    assert {f"table.{name}" if name in CATALOGUE else name for name in NAMES} < listed
    assert "total (bytes)" in run().stdout and "cycles_from (cycles)" in run().stdout


def test_a_table_is_what_frames_gives(report: Path) -> None:
    found = pd.DataFrame(rows("table.steps", report))
    frame = openReport(report).frames.steps()
    assert found["cycles"].tolist() == frame["cycles"].tolist()
    assert list(found.columns) == ["row", *frame.columns]
    assert found["row"].tolist() == list(range(24))


def test_where_keeps_and_sort_orders(report: Path) -> None:
    shown = rows("table.steps", report, "--where", "type = OnTileExecute", "--sort", "cycles")
    cycles = [row["cycles"] for row in shown]
    assert cycles == sorted(cycles, reverse=True)
    steps = openReport(report).frames.steps()
    assert len(shown) == int((steps["type"] == "OnTileExecute").sum())
    turned = rows("table.steps", report, "--where", "type=OnTileExecute", "--sort", "-cycles")
    assert [row["cycles"] for row in turned] == sorted(cycles)


def test_text_is_sorted_from_a(report: Path) -> None:
    names = [row["name"] for row in rows("variables", report, "--sort", "name")]
    assert names == sorted(names)


def test_limit_counts_after_where(report: Path) -> None:
    shown = rows("memory_by_tile", report, "--where", "ipu = 1", "--limit", "2")
    assert [row["tile"] for row in shown] == [5, 6]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "byts > 3"), "byts: no such column; did you mean"),
        (("--where", "bytes"), "bytes: no filter; write a column"),
        (("--where", "bytes > many"), "'many' is no number"),
        (("--sort", "byts"), "byts: no such column; did you mean"),
    ],
)
def test_a_wrong_choice_is_one_line(report: Path, options: tuple[str, ...], message: str) -> None:
    result = run("fullest_tiles", report, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_json_object_has_columns_with_units_and_rows(report: Path) -> None:
    found = json.loads(run("fullest_tiles", report, "--json", "--limit", "1").stdout)
    assert list(found) == ["command", "of", "name", "columns", "count", "rows"]
    assert found["columns"][2] == {"name": "bytes", "unit": "bytes"}
    assert (found["count"], len(found["rows"])) == (10, 1)


def test_parquet_reads_back_equal(report: Path) -> None:
    pytest.importorskip("pyarrow")
    data = run("variables", report, "--format", "parquet").stdout_bytes
    back = pd.read_parquet(io.BytesIO(data)).drop(columns="row")
    pd.testing.assert_frame_equal(back, openReport(report).frames.variables())


def test_dash_reads_standard_input(report: Path) -> None:
    data = (report / "profile.pop").read_bytes()
    assert run("fullest_tiles", "-", given=data).stdout == run("fullest_tiles", report).stdout
    empty = run("fullest_tiles", "-", given=b"")
    assert (empty.exit_code, empty.stderr) == (
        2, "tilescope: standard input: empty; send a report to it\n",
    )  # fmt: skip


def test_a_dataclass_can_be_filtered_too(report: Path) -> None:
    shown = rows("memory_overview", report, "--where", "field ~ fullest")
    assert [row["field"] for row in shown][:2] == ["fullest_tile", "fullest_bytes"]


@pytest.mark.parametrize("name", ["table.steps", "steps", "variables", "table.variables"])
def test_units_go_with_the_columns_of_a_table(report: Path, name: str) -> None:
    found = json.loads(run(name, report, "--json", "--limit", "1").stdout)
    units = {column["name"]: column["unit"] for column in found["columns"]}
    assert list(units) == list(found["rows"][0])
    wanted = {"cycles": "cycles"} if "steps" in name else {"bytes": "bytes"}
    assert wanted.items() <= units.items()
    assert ("row" in units) == (name != "steps")


def test_fields_of_a_dataclass_have_their_units(report: Path) -> None:
    found = json.loads(run("memory_overview", report, "--json").stdout)["rows"]
    assert found[0] == {"field": "bytes_per_tile", "value": 2048, "unit": "bytes"}
    assert found[1] == {"field": "tiles", "value": 10, "unit": ""}
