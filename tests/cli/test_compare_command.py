"""`tilescope compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope
from tests.builders import small_report, write_report


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(tilescope, ["compare", *map(str, arguments)])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("compared")
    variables = dict(small_report().table("variables"))
    variables["name"] = ["letter" if name == "message" else name for name in variables["name"]]
    changed = small_report(variables=variables)
    return write_report(folder / "a"), write_report(folder / "b", changed)


def test_what_changed_is_signed_and_the_rest_counted(pair: tuple[Path, Path]) -> None:
    lines = run(*pair, "--by", "variables").stdout.splitlines()
    assert lines[0] == "Variables: 320 bytes -> 320 bytes, 0"
    assert [line.split() for line in lines[2:4]] == [
        ["letter", "0", "40", "+40", "after"],
        ["message", "40", "0", "-40", "before"],
    ]
    assert lines[4] == "6 of 8 rows are the same in both"


def test_rows_left_out_are_added_up(pair: tuple[Path, Path]) -> None:
    lines = run(*pair, "--by", "variables", "--limit", "1").stdout.splitlines()
    assert lines[-2] == "... 1 more rows, -40 together; --by variables shows all"


def test_json_has_figures_totals_and_rows(pair: tuple[Path, Path]) -> None:
    found = json.loads(run(*pair, "--json").stdout)
    assert found["command"] == "compare" and found["of"] == [str(path) for path in pair]
    assert found["operations"]["total"] == {"before": 1024, "after": 1024, "change": 0}
    assert {row["figure"]: row["change"] for row in found["figures"]}["total_cycles"] == 0


def test_a_report_without_execution_is_compared_as_far_as_it_goes(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    graph = write_report(tmp_path / "graph", small_report().select("graph", "debug"))
    result = run(pair[0], graph)
    assert result.exit_code == 0
    assert "Memory by category" in result.stdout
    assert "Cycles by operation: " in result.stdout and "autoReport" in result.stdout
    assert run(pair[0], graph, "--by", "programs").exit_code == 2


def test_csv_is_of_one_table(pair: tuple[Path, Path]) -> None:
    result = run(*pair, "--format", "csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "add --by or use --json" in result.stderr
    assert run(*pair, "--by", "layers", "--format", "csv").stdout.startswith("layer,before,after")
