"""Budgets: read from TOML, held against a report."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pva.analysis.whole_report.budgets import BudgetError, check_budgets, no_worse, read_budgets
from pva.errors import NotRecordedError, PvaError
from pva.report import Report
from tests.analysis.samples import never_run, small
from tests.builders import small_report


def held(tmp_path: Path, text: str, report: Report | None = None) -> dict[str, tuple[float, bool]]:
    """Check the small report; give what was found and whether it is kept, by budget."""
    file = tmp_path / "budgets.toml"
    file.write_text(text)
    frame = check_budgets(report or small(), read_budgets(file))
    return {row.budget: (row.found, row.kept) for row in frame.itertuples()}


def test_figures_have_limits_at_most_and_at_least(tmp_path: Path) -> None:
    text = "largest_tile = 1039\ntotal_cycles = 1024\nrecorded_runs = {min = 3}"
    assert held(tmp_path, text) == {
        "largest_tile": (1040, False), "total_cycles": (1024, True), "recorded_runs": (2, False),
    }  # fmt: skip


def test_a_limit_may_have_a_unit(tmp_path: Path) -> None:
    assert held(tmp_path, 'largest_tile = "1.1 kB"')["largest_tile"] == (1040, True)


def test_any_number_of_the_catalogue_can_be_one(tmp_path: Path) -> None:
    text = """
    [[budget]]
    name = "second IPU"
    analysis = "fullest_tiles"
    where = ["ipu = 1", "tile > 5"]
    column = "bytes"
    max = 540
    [[budget]]
    analysis = "fullest_tiles"
    column = "bytes"
    options = {count = 2}
    take = "sum"
    max = 2079
    [[budget]]
    analysis = "execution_overview"
    column = "tile_cycles.compute"
    min = 1
    """
    found = held(tmp_path, text)
    assert found["second IPU"] == (540, True)
    assert found["fullest_tiles.bytes"] == (2080, False)
    assert found["execution_overview.tile_cycles.compute"][1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[budget]]\nanalysis = "live_variables"\ncolumn = "bytes"\nmax = 1',
         "needs the option 'step'; write options = { step = ... }"),
        ("largest_tile = nan", "largest_tile: nan is no limit"),
        ('[[budget]]\nanalysis = "steps"\ncolumn = "cycles"\nmax = 1\noptions = {run = "x"}',
         "steps.cycles: option run = 'x'; a whole number"),
        ('[[budget]]\nanalysis = "steps"\ncolumn = "cycles"\nmax = 1\noptions = {run = 7}',
         "steps.cycles: run 7: not there"),
        ('[[budget]]\nanalysis = "steps"\ncolumn = "cycles"\nmax = 1\noptions = 3',
         "budget 1: options = 3; { name = value }"),
        ('[[budget]]\nanalysis = "memory_overview"\ncolumn = "total"\nmax = 1\nwhere = "total = 5"',
         "memory_overview has no rows; leave out where and take"),
        ('[[budget]]\nanalysis = "label_statistics"\ncolumn = "count"\nmax = 1',
         "no analysis 'label_statistics' of a report; there are insights, "),
        ('largest_tile = "25 %"', "'25 %' is no limit; it is in bytes"),
        ('steps = "64 B"', "'64 B' is no limit; it is a count"),
        ("tile_balance = {min = 10}", "10 is no limit; it is a fraction of 1"),
        ("total_cycles = {min = 6, max = 5}", "max is less than min; no number keeps both"),
    ],
)  # fmt: skip
def test_what_cannot_be_held_against_a_report_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BudgetError, match=re.escape(told)):
        held(tmp_path, text)


def test_cycles_of_a_program_that_never_ran_keep_no_limit(tmp_path: Path) -> None:
    for limit in ("total_cycles = 5", 'tile_balance = "10 %"'):
        with pytest.raises(NotRecordedError, match="no run was recorded; run the program"):
            held(tmp_path, limit, never_run())
    assert held(tmp_path, "recorded_runs = {min = 1}", never_run())["recorded_runs"] == (0, False)


def test_file_of_windows_and_units_of_1024_are_read(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    file.write_bytes(b'\xef\xbb\xbflargest_tile = "1.1 KiB"\r\n')
    assert [budget.most for budget in read_budgets(file)] == [1.1 * 1024]


def test_budget_tells_of_how_many_rows_it_is(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    of = 'column = "bytes"\ntake = "sum"\nmax = 9999\nwhere'
    section = f'[[budget]]\nanalysis = "fullest_tiles"\n{of}'
    file.write_text(f'{section} = "ipu = 1"\n{section} = "ipu = 7"\n')
    frame = check_budgets(small(), read_budgets(file))
    assert frame["rows"].tolist() == [5, 0] and frame["kept"].all()


def test_rows_that_are_not_there_keep_no_limit_but_a_sum(tmp_path: Path) -> None:
    section = (
        '[[budget]]\nanalysis = "fullest_tiles"\nwhere = "ipu = 7"\ncolumn = "bytes"\nmax = 9\n'
    )
    assert not held(tmp_path, section)["fullest_tiles.bytes where ipu = 7"][1]
    kept = held(tmp_path, f'{section}take = "sum"')["fullest_tiles.bytes where ipu = 7"]
    assert kept == (0, True)


def test_a_figure_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    graph = Report.of(small_report().select("graph"))
    with pytest.raises(NotRecordedError):
        held(tmp_path, "total_cycles = 5", graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no budget; write one, such as largest_tile"),
        ("largest_tiles = 5", "no figure 'largest_tiles'; did you mean largest_tile"),
        ("largest_tile = 'much'", "largest_tile: 'much' is no limit; write a number"),
        ("largest_tile = {maximum = 3}", "no key 'maximum'; did you mean max"),
        ("largest_tile = {}", "no limit; give max or min"),
        ("largest_tile =", "not TOML"),
        ("budget = 5", "budget is no list of tables"),
        ("[[budget]]\nanalysis = 'cycles_by_layers'\ncolumn = 'x'", "did you mean cycles_by_layer"),
        ("[[budget]]\nanalysis = 'runs'\ncolumn = 'x'\ntake = 'most'", "take = 'most'; one of max"),
        ("[[budget]]\nanalysis = 'runs'\ncolumn = 'cycle'\nmax = 1", "did you mean cycles"),
        ("[[budget]]\nanalysis = 'runs'\ncolumn = 'name'\nmax = 1", "holds no numbers"),
        ("[[budget]]\nanalysis = 'memory_overview'\ncolumn = 'tile'\nmax = 1", "no field 'tile'"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PvaError) as raised:
        held(tmp_path, text)
    assert message in str(raised.value)


def test_no_file_and_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(PvaError, match="no such file; give a file of budgets"):
        read_budgets(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PvaError, match="not a text"):
        read_budgets(tmp_path / "x.toml")
    assert issubclass(BudgetError, PvaError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 3000, "nested too deeply; tables of 8 levels"),
        ("largest_tile" + ".max" * 900 + " = 1", "nested too deeply; tables of 8 levels"),
        ("a" + ".a" * 30_000 + " = 1", "a very long line; at most 4,000 bytes"),
        ("\n" * 100_000, "100000 bytes; a file of budgets has at most 65536"),
        ("total_cycles = " + "9" * 400, "a number of 1,329 bits; a number up to 9,223,"),
        ("total_cycles = 0x" + "f" * 3900, "a number of 15,600 bits; a number up to 9,223,"),
        ("total_cycles = " + "9" * 3900 + ".0", "inf is no limit"),
        ("total_cycles = '" + "9" * 400 + "'", "999' is no limit"),
        ("total_cycles = '" + "x" * 3000 + "'", "a text of 3,000 characters, 'xxxx"),
        ("x" * 3000 + " = 1", "a text of 3,000 characters, 'xxxx"),
        ("total_cycles = inf", "inf is no limit"),
        ("total_cycles = 9_223_372_036_854_775_808", "a number of 64 bits; a number up to 9,223,"),
    ],
)
def test_what_no_budget_is_gets_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(PvaError) as raised:
        read_budgets(tmp_path / "x.toml")
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_largest_number_and_longest_text_are_budgets(tmp_path: Path) -> None:
    text = "total_cycles = 9_223_372_036_854_775_807\n[[budget]]\nanalysis = 'runs'\nmax = 1\n"
    (tmp_path / "x.toml").write_text(f"{text}column = 'cycles'\nname = '{'x' * 1000}'")
    assert [len(budget.name) for budget in read_budgets(tmp_path / "x.toml")] == [12, 1000]


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(PvaError, match="no file; give a file of budgets|No such device"):
            read_budgets(path)
    with pytest.raises(PvaError, match="a directory; give a file of budgets"):
        read_budgets(tmp_path)
    with pytest.raises(PvaError, match="embedded null byte"):
        read_budgets("a\0b")


@pytest.mark.parametrize(("limit", "kept"), [("+2 %", True), ("+1.9 %", False), ("-1%", False)])
def test_a_tolerance_goes_by_the_baseline(tmp_path: Path, limit: str, kept: bool) -> None:
    runs = small_report().table("runs")
    old = small(runs=dict(runs) | {"cycles": [250, 750]})
    new = small(runs=dict(runs) | {"cycles": [270, 750]})
    file = tmp_path / "budgets.toml"
    file.write_text(f'run_cycles = "{limit}"')
    (row,) = check_budgets(new, read_budgets(file), old).itertuples()
    assert (row.found, row.baseline, row.kept) == (1020, 1000, kept)
    with pytest.raises(BudgetError, match="--baseline"):
        check_budgets(new, read_budgets(file))


def test_without_a_file_nothing_may_be_larger_or_slower() -> None:
    runs = small_report().table("runs")
    slower = small(runs=dict(runs) | {"cycles": [513, 512]})
    assert check_budgets(small(), no_worse(), small())["kept"].all()
    assert check_budgets(small(), no_worse(), slower)["kept"].all()
    frame = check_budgets(slower, no_worse(), small())
    assert frame.loc[~frame["kept"], "budget"].tolist() == ["run_cycles"]
