"""`tilescope compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope
from tests.browser.reports import hostile
from tests.builders import report_without_code, small_report, write_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
TRACES = Path(__file__).parents[1] / "traces"


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
    assert lines[-2] == "... 1 more row, -40 together; --by variables --limit 0 shows all"


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


def test_shares_change_by_points_and_runs_that_differ_in_number_are_told(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    runs = dict(small_report().table("runs"))
    spent = dict(small_report().table("tile_cycles"))
    # of 10 tiles in 1,024 cycles 1,024 tile cycles more: 10 %
    spent["compute"] = spent["compute"] + 1024
    one = small_report(runs=runs | {"end_step": [12, 12]}, tile_cycles=spent)
    lines = run(pair[0], write_report(tmp_path / "one", one)).stdout.splitlines()
    figures = {line[:13].strip(): line.split() for line in lines[4:13]}
    assert figures["tile balance"][-3:] == ["+10.0", "percentage", "points"]
    assert (
        "cycles and steps of A are those of 2 recorded runs, of B those of 1 recorded run" in lines
    )


def test_settings_that_differ_are_told(pair: tuple[Path, Path], tmp_path: Path) -> None:
    target = dict(small_report().table("target")) | {"bytes_per_tile": [4096]}
    other = write_report(tmp_path / "more", small_report(target=target))
    rows = ["about   name            before  after", "target  bytes per tile  2,048   4,096"]
    assert run(pair[0], other, "--by", "settings").stdout.splitlines()[1:] == rows
    assert run(pair[0], other).stdout.splitlines()[-2:] == rows
    text = run(pair[0], other, "--by", "settings", "--format", "csv").stdout
    assert text == 'about,name,before,after\r\ntarget,bytes per tile,"2,048","4,096"\r\n'.replace(
        "\r", ""
    )
    found = json.loads(run(pair[0], other, "--json").stdout)["settings"]
    assert [row["name"] for row in found if row["differs"]] == ["bytes per tile"]


def test_name_of_a_report_is_one_line(pair: tuple[Path, Path], tmp_path: Path) -> None:
    odd = write_report(tmp_path / "new\nline")
    assert run(odd, pair[1]).stdout.splitlines()[0] == f"A: {tmp_path}/new\\nline"


def test_csv_is_of_one_table(pair: tuple[Path, Path]) -> None:
    result = run(*pair, "--format", "csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "add --by or use --json" in result.stderr
    assert run(*pair, "--by", "layers", "--format", "csv").stdout.startswith("layer,before,after")


def test_the_report_without_code_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    without = write_report(tmp_path / "without", report_without_code())
    lines = run(without, pair[0]).stdout.splitlines()
    assert lines[2] == "A is without code, B has it: memory differs by it, too."
    assert run(pair[0], without).stdout.splitlines()[2].startswith("B is without code, A has it")
    assert run(*pair).stdout.splitlines()[2] == ""


def markdown(*arguments: str | Path) -> list[str]:
    result = run(*arguments, "--format", "markdown")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_pull_request_reads_the_verdict_first(tmp_path: Path) -> None:
    runs = dict(small_report().table("runs"))
    slower = small_report(runs=runs | {"cycles": 2 * runs["cycles"]})
    before, after = write_report(tmp_path / "a"), write_report(tmp_path / "b", slower)
    assert markdown(before, after)[0].startswith("### 100.0 % slower: ")
    assert markdown(after, before)[0].startswith("### 50.0 % faster: ")
    assert markdown(before, before)[0].startswith("### As fast as before: ")


def test_runs_of_another_number_of_items_are_compared_by_items_a_second(tmp_path: Path) -> None:
    runs = dict(small_report().table("runs"))
    twice = {name: 2 * np.asarray(runs[name]) for name in ("cycles", "items")}
    before = write_report(tmp_path / "a")
    same = write_report(tmp_path / "b", small_report(runs=runs | twice))
    half = twice | {"items": np.asarray(runs["items"]) // 2}
    less = write_report(tmp_path / "c", small_report(runs=runs | half))
    assert markdown(before, same)[0].startswith("### As fast as before: ")
    assert markdown(before, less)[0].startswith("### 75.0 % slower: ")
    assert "items/s of runs that differ in items or clock" in markdown(before, less)[0]


def test_it_says_whether_it_still_fits(tmp_path: Path) -> None:
    target = dict(small_report().table("target")) | {"bytes_per_tile": [600]}
    fits, full = (
        write_report(tmp_path / "a"),
        write_report(tmp_path / "b", small_report(target=target)),
    )
    assert markdown(fits, full)[0].startswith("### Does not fit any more: ")
    assert markdown(full, fits)[0].startswith("### Fits now; ")


def test_shares_of_the_causes_add_up_to_the_change() -> None:
    lines = markdown(SAMPLES / "matmul_chain_tiny", SAMPLES / "mlp_digits_tiny")
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    begin = next(n for n, row in enumerate(rows) if row[0] == " all ")
    *causes, whole = rows[2 : begin + 1]
    assert len(causes) == 4  # three, and all others
    changes = [int(row[1].replace(",", "")) for row in (*causes, whole)]
    assert sum(changes[:-1]) == changes[-1] == 2_362_387
    shares = [float(row[2].strip(" %")) for row in causes]
    assert abs(sum(shares) - 100) < 0.3 and whole[2].strip() == "+100.0 %"


def test_names_are_no_markdown(tmp_path: Path) -> None:
    text = "|`<b>*\n"
    before, after = write_report(tmp_path / "a"), write_report(tmp_path / "b", hostile(text))
    rows = [line for line in markdown(before, after) if line.startswith("| ")]
    assert any("<b>" in row for row in rows)
    assert {row.count("|") for row in rows} == {4}
    assert all(row.split("|")[1].count("`") in (0, 2) for row in rows)


def test_limits_of_a_pull_request_go_by_the_first_report(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    runs = dict(small_report().table("runs"))
    slower = write_report(tmp_path / "b", small_report(runs=runs | {"cycles": 2 * runs["cycles"]}))
    budgets = tmp_path / "budgets.toml"
    for limit, line in (
        ("+99 %", "**Budgets: 1 of 1 broken**"),
        ("+100 %", "Budgets: 1 budget kept."),
    ):
        budgets.write_text(f'run_cycles = "{limit}"')
        assert line in markdown(pair[0], slower, "--budget", budgets)


def test_budgets_that_the_second_report_breaks_are_listed(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    budgets = tmp_path / "budgets.toml"
    budgets.write_text("steps = 1\nlargest_tile = 10_000\n")
    lines = markdown(*pair, "--budget", budgets, "--dashboard", "http://host:80/")
    assert "**Budgets: 1 of 2 broken**" in lines
    assert any(line.startswith("* `steps`: ") and "at most 1" in line for line in lines)
    assert "[compare](http://host:80/compare?report=b&against=a)" in lines[-3]
    assert run(*pair, "--budget", budgets).exit_code == 2


def test_two_host_traces_are_compared_label_by_label() -> None:
    paths = [TRACES / f"step_{word}.json.gz" for word in ("before", "after")]
    told = run(*paths).stdout
    assert "Time by label: 224,882,000 ns -> 225,029,000 ns, +147,000" in told
    rows = run(*paths, "--format", "csv").stdout.splitlines()
    assert rows[0].startswith("label,before,after,change") and len(rows) == 7
    assert "host traces are compared by label" in run(*paths, "--by", "tiles").stderr


def test_check_names_the_causes_of_what_got_worse() -> None:
    samples = [str(SAMPLES / name) for name in ("mlp_digits_tiny", "matmul_chain_tiny")]
    result = CliRunner().invoke(
        tilescope, ["check", samples[0], "--baseline", samples[1], "--json"]
    )
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and not found["ok"]
    causes = [row for row in found["causes"] if row["budget"] == "run_cycles"]
    assert [row["cause"] for row in causes] == [
        "Layer1/Fwd/Conv_1", "Layer3/Fwd/Conv_1", "Layer1/Wu/Conv_1", "all others",
    ]  # fmt: skip
    assert sum(row["change"] for row in causes) == 2_362_387
    again = CliRunner().invoke(tilescope, ["check", samples[0], "--baseline", samples[0]])
    assert again.exit_code == 0 and "keeps 4 budgets" in again.stdout
