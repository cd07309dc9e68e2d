"""Every command on the hand-made report, and what it says about input that is bad."""

from __future__ import annotations

import csv
import json
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import COMMANDS, tilescope
from cli.shared.faults import Command
from cli.shared.output import FORMATS
from cli.summary import _print_profile_summary
from pva.analysis import CATALOGUE
from pva.check import LAWS
from pva.formats import registry
from pva.report import openReport
from pva.summary import profile_summary
from tests.builders import small_report, write_report
from tests.cli.golden_calls import write_trace


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("réport with spaces") / "run")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(tilescope, [str(argument) for argument in arguments])


def refusal(*arguments: str | Path) -> str:
    """Run a command that must fail with one line on stderr, nothing on stdout and code 2."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tilescope: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_one_sentence_of_help_and_examples(command: object) -> None:
    text = run(command.name, "--help").stdout  # type: ignore[attr-defined]
    assert "Examples:" in text and f"tilescope {command.name}" in text  # type: ignore[attr-defined]
    listed = [line for line in run("--help").stdout.splitlines() if "..." in line]
    assert [line for line in listed if "Usage:" not in line] == []


def test_summary_prints_what_the_library_writes(report: Path) -> None:
    result = run("summary", report, "--liveness", "--steps", "--no-colours")
    expected = profile_summary(openReport(report), show_var_storage=True, show_execution_steps=True)
    assert (result.exit_code, result.stdout) == (0, expected)


def test_print_profile_summary_takes_the_options_of_the_guide(report: Path) -> None:
    options = ["--showVarStorage", "--showExecutionSteps"]
    result = CliRunner().invoke(_print_profile_summary, [str(report), *options])
    assert result.stdout == run("summary", report, "--liveness", "--steps").stdout


def test_colours_are_forced_by_the_environment(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert "\x1b[" in run("summary", report, "--no-colours").stdout


def test_info_tells_machine_memory_and_cycles(report: Path) -> None:
    lines = run("info", report).stdout.splitlines()
    assert lines[0] == f"report      {report}: a report directory"
    names = [file.split()[0] for file in lines[1].removeprefix("files").split(",")]
    assert names == ["profile.pop", "debug.cbor", "framework.json", "app.json"]
    assert lines[3] == "machine     IPU_MODEL tiny: 2 IPUs x 5 tiles x 2.0 kB at 1,000.0 MHz"
    assert lines[5].startswith("memory      fits: tile 0 needs 1.0 kB (50.8 %)")
    assert lines[7] == "run         2 runs, 1,024 cycles (1.0 µs)"
    assert lines[8] == "items       7,812,500 items/s, 8 items in 2 runs"
    assert lines[9] == "latency     476 cycles (476 ns) from the input of an item to its output"
    assert lines[10].startswith("execution   1,024 cycles (1.0 µs): 62.7 % compute")


def test_info_says_what_a_report_lacks_and_who_records_it(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    registry.write(small_report(), file)
    assert "execution   no execution, runs in" in run("info", file).stdout
    rows = json.loads(run("info", file, "--tables", "--format", "json").stdout)
    steps = next(row for row in rows if row["name"] == "steps")
    assert (steps["size"], steps["recorded_by"]) == (
        "not recorded", "autoReport.outputExecutionProfile",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["memory_by_tile", "waits", "critical_path", "steps"])
def test_the_columns_of_a_question_fit_into_80_columns(name: str) -> None:
    lines = run("show", name, "--help").stdout.partition("Columns:")[2].splitlines()
    assert lines
    assert max(map(len, lines)) <= 80


def test_show_lists_every_analysis_with_a_whole_sentence() -> None:
    text = run("show", "--help").stdout
    assert [name for name in CATALOGUE if f"  {name} " not in text] == []
    assert "..." not in text.replace("[ARGS]...", "")


def test_an_unknown_format_lists_the_names_to_choose_from(report: Path, tmp_path: Path) -> None:
    text = refusal("convert", report, tmp_path / "new", "--format", "xml")
    assert text.endswith("new: no format 'xml'; there are pop, json, cbor, plain, debug, parquet\n")


def test_the_version_is_that_of_the_installed_package() -> None:
    assert run("--version").stdout == f"tilescope {metadata.version('tilescope')}\n"


def test_info_tells_the_cycles_of_runs_that_were_not_recorded_in_full(tmp_path: Path) -> None:
    gone = dict.fromkeys(("tile_cycles", "steps", "steps_by_ipu"))
    execution = {"execution": {"profiler_mode": [0], "cycles": [-1]}}
    directory = write_report(tmp_path / "runs", small_report(**gone, **execution))
    assert "execution   1,024 cycles in 2 runs; no steps in" in run("info", directory).stdout


def test_info_names_what_is_missing_and_the_option_that_records_it(tmp_path: Path) -> None:
    lacking = small_report(variables=None, variable_pieces=None).select("graph", "execution")
    (tmp_path / "run").mkdir()
    registry.write(lacking, tmp_path / "run" / "profile.pop")
    lines = run("info", tmp_path / "run").stdout.splitlines()
    assert lines[-2] == (
        "recorded    graph profile in part, execution profile, blocks, measured compute cycles,"
        " measured exchange cycles"
    )
    assert lines[-1] == (
        "missing     variables (autoReport.outputGraphProfile);"
        " places of variables (autoReport.outputLoweredVars);"
        " debug information (autoReport.outputDebugInfo)"
    )
    found = json.loads(run("info", tmp_path / "run", "--json").stdout)
    assert found["missing"]["autoReport.outputDebugInfo"] == ["debug_contexts"]
    assert found["files"][0]["bytes"] == (tmp_path / "run" / "profile.pop").stat().st_size


def test_info_tells_a_host_trace_from_a_report(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny" / "host.pvti"
    copy = tmp_path / "no suffix"
    copy.write_bytes(sample.read_bytes())
    assert ": 337 events on 1 thread in " in run("info", copy).stdout
    copy.rename(tmp_path / "alone.pvti")
    assert "channels    Drivers, Poplar, Framework, mlp_digits" in run("info", tmp_path).stdout
    assert json.loads(run("info", tmp_path, "--json").stdout)["events"] == 337


def test_info_counts_the_rows_of_tables(report: Path) -> None:
    rows = json.loads(run("info", report, "--tables", "--format", "json").stdout)
    assert next(row["size"] for row in rows if row["name"] == "target") == "1 row"


def test_show_writes_rows_as_json_and_csv(report: Path) -> None:
    rows = json.loads(run("show", "memory_by_tile", report, "--format", "json").stdout)
    lines = run("show", "memory_by_tile", report, "--format", "csv").stdout.splitlines()
    assert [row["total"] for row in rows] == [int(row["total"]) for row in csv.DictReader(lines)]
    assert rows[0]["total"] == 474


def test_show_passes_options_to_the_analysis(report: Path) -> None:
    text = run("show", "live_variables", report, "--step", "12", "--tile", "5").stdout
    assert text.splitlines()[1].split() == ["4", "partials", "rearrangement", "16"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("summry", "x"), "no command 'summry'; did you mean summary?"),
        (("show", "memory_by_tiles", "x"), "no table or analysis 'memory_by_tiles'; did you"),
        (("summary",), "Missing argument 'REPORT'; see tilescope summary --help"),
        (("show", "live_variables", "x"), "Missing option '--step'"),
        (("summary", "x", "--livenes"), "No such option"),
        (("show", "runs", "x", "--json", "--limit", "9" * 22), "is not in the range"),
        (("trace", "show", "x", "--format", "csv"), "add --only threads or labels"),
        (("trace", "convert", "x", "-o", "x.txt"), "no form has this suffix; add --to"),
        (("trace", "convert", "x", "-o", "-", "--to", "chrom"), "did you mean chrome?"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in refusal(*arguments)


def test_a_step_or_tile_that_is_not_there_is_one_line(report: Path) -> None:
    assert "steps 0 to 13" in refusal("show", "live_variables", report, "--step", "99")
    assert "tiles 0 to 9" in refusal("show", "memory_by_category", report, "--tile", "10")


def test_control_characters_of_a_path_are_spelt_out() -> None:
    assert r"no\x1b[31mthing" in refusal("summary", "no\x1b[31mthing")


READERS = (
    ("summary",), ("info",), ("show", "memory_by_tile"), ("check",), ("convert",), ("sql",),
)  # fmt: skip


def bad_files(folder: Path) -> dict[str, Path]:
    """Make a path to nothing, a foreign file, an empty one, a cut one and an empty directory."""
    foreign, empty, cut = (folder / name for name in ("x.pop", "empty.pop", "cut.pop"))
    foreign.write_bytes(b"\x89PNG\r\n" * 100)
    empty.touch()
    registry.write(small_report(), folder / "whole.pop")
    cut.write_bytes((folder / "whole.pop").read_bytes()[:9_000])
    (folder / "directory").mkdir()
    return {
        "missing": folder / "nothing.pop", "foreign": foreign, "empty": empty, "cut": cut,
        "directory": folder / "directory",
    }  # fmt: skip


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
@pytest.mark.parametrize("kind", ["missing", "foreign", "empty", "cut", "directory"])
def test_bad_input_is_one_line_that_names_the_file(
    command: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    file = bad_files(tmp_path)[kind]
    more = {"convert": tmp_path / "out.json", "sql": "select * from runs"}.get(command[0])
    assert file.name in refusal(*command, file, *([more] if more else []))


def test_a_report_of_a_newer_version_names_both_versions(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "newer.pop"
    registry.write(small_report(), file)
    with sqlite3.connect(file) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    assert "99" in refusal("summary", file)


def test_convert_writes_what_reads_back_equal(report: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert run("convert", report, file).exit_code == 0
    assert registry.read(file).table("steps").keys() == small_report().table("steps").keys()
    assert run("summary", file).stdout == run("summary", report).stdout


def test_convert_writes_a_directory_of_tables(report: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    result = run("convert", report, tmp_path / "tables.parquet")
    files = len(list((tmp_path / "tables.parquet").iterdir()))
    assert result.stderr.endswith(f"kB in {files} files\n")
    assert run("summary", tmp_path / "tables.parquet").stdout == run("summary", report).stdout


def test_sql_answers_a_query_from_the_command_line_or_from_stdin(report: Path) -> None:
    query = "select name, bytes from variables where always_live order by bytes desc"
    expected = '[{"name": "w", "bytes": 80}\n,{"name": "step", "bytes": 4}\n]\n'
    assert run("sql", report, query, "--format", "json").stdout == expected
    arguments = ["sql", str(report), "-", "--format", "json"]
    assert CliRunner().invoke(tilescope, arguments, input=f"{query};\n").stdout == expected


def test_sql_writes_null_in_every_form(report: Path) -> None:
    query = "select nullif(bytes, 4) as bytes from variables order by variables.bytes limit 3"
    lines = {form: run("sql", report, query, "--format", form).stdout for form in FORMATS}
    assert [row["bytes"] for row in json.loads(lines["json"])] == [None, None, 32]
    assert lines["csv"].split() == ["bytes", '""', '""', "32"]
    assert lines["table"].splitlines() == ["bytes", "", "", "   32"]


def test_sql_tells_what_is_wrong_in_one_line(report: Path) -> None:
    assert "no table step; did you mean steps" in refusal("sql", report, "select * from step")


def test_convert_does_not_replace_a_file_unless_told(report: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("precious")
    assert "already there" in refusal("convert", report, file)
    assert file.read_text() == "precious"
    assert run("convert", report, file, "--force").exit_code == 0


def test_serve_refuses_a_path_that_leads_to_nothing(tmp_path: Path) -> None:
    assert "nothing" in refusal("serve", tmp_path / "nothing")


def test_serve_without_a_path_takes_what_is_in_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[object] = []
    monkeypatch.setattr("cli.serve.serve_paths", lambda paths, *more: served.append(list(paths)))
    monkeypatch.chdir(tmp_path)
    assert "no report here or in a directory below" in refusal("serve")
    for name in ("b", "a"):
        write_report(tmp_path / name)
    (tmp_path / "other").mkdir()
    assert run("serve").exit_code == 0
    monkeypatch.chdir(tmp_path / "b")
    assert run("serve").exit_code == 0
    assert served == [[Path("a"), Path("b")], [Path()]]


def test_serve_shows_a_directory_of_several_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[object] = []
    monkeypatch.setattr("cli.serve.serve_paths", lambda paths, *more: served.append(list(paths)))
    for name in ("a.pvti", "b.pvti"):
        write_trace(tmp_path / name)
    assert run("serve", tmp_path).stderr == ""
    assert served == [[tmp_path]]


def test_a_run_leaves_a_directory_of_other_things_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    for command in (("demo", "--no-serve"), ("simulate", "matmul_chain")):
        assert "holds something else" in refusal(*command, "--out", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["graph.json", "old.pvti", "app.json", "profile.pop", "a.pop"])
def test_a_run_keeps_files_that_are_named_as_those_of_a_report(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    for command in (("demo", "--no-serve"), ("simulate", "matmul_chain")):
        assert f"holds something else: {name}" in refusal(*command, "--out", tmp_path)
    out = tmp_path / "report"
    command = ("simulate", "matmul_chain", "4x3", "3x2", "--target", "tiny", "--out", out)
    assert run(*command).exit_code == 0
    shutil.move(tmp_path / name, out / name)
    assert f"{out / name}: " in refusal(*command)
    assert (out / name).read_text() == "mine"


def test_a_document_converted_into_a_report_goes_with_it(tmp_path: Path) -> None:
    out = tmp_path / "report"
    command = ("simulate", "matmul_chain", "4x3", "3x2", "--target", "tiny", "--out", out)
    assert run(*command).exit_code == 0
    assert run("convert", out, out / "graph.json").exit_code == 0
    assert run(*command).exit_code == 0
    assert not (out / "graph.json").exists()
    assert run("convert", out, out / "graph.json").exit_code == 0
    (out / "graph.json").write_text("mine")
    assert "graph.json: changed since it was written" in refusal(*command)


def test_check_of_a_report_that_adds_up_says_so(report: Path) -> None:
    result = run("check", report)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{report}: keeps all ")


def test_check_of_a_report_that_does_not_add_up_names_the_law(tmp_path: Path) -> None:
    total = small_report().column("memory_by_tile", "total").copy()
    total[3] += 1
    changed = dict(small_report().table("memory_by_tile")) | {"total": total}
    file = tmp_path / "wrong.pop"
    registry.write(small_report(memory_by_tile=changed), file)
    result = run("check", file, "--format", "json")
    assert result.exit_code == 1
    broken = json.loads(result.stdout)
    assert "regions_sum_to_the_total" in {row["law"] for row in broken}
    assert "tile 3" in broken[0]["place"]
    found = json.loads(run("check", file, "--json").stdout)
    names = {row["law"] for row in found["broken"]}
    assert found["laws"]["broken"] == len(names) > 0
    assert sum(found["laws"].values()) == len(LAWS)


def test_check_holds_a_report_against_budgets(report: Path, tmp_path: Path) -> None:
    file = tmp_path / "my budgets.toml"
    file.write_text("largest_tile = 1040\ntotal_cycles = 1000")
    result = run("check", report, "--budget", file)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == [
        "budget  total_cycles  1,024  at most 1,000, by 2.4 %       1"
    ]
    found = json.loads(run("check", report, "--budget", file, "--json").stdout)
    assert (found["ok"], [row["kept"] for row in found["budgets"]]) == (False, [True, False])
    file.write_text("largest_tile = 1040")
    result = run("check", report, "--budget", file)
    assert result.exit_code == 0
    assert result.stdout.endswith("keeps 1 budget; nearest its limit is largest_tile, at 100.0 %\n")


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("total_cycles = 1023.9", "1,024  at most 1,023.9, by 0.1"),
        ("total_cycles = 100", "1,024  at most 100, by 924.0 %"),
        ("total_cycles = 3", "1,024  at most 3, by 1,021"),
        ("total_cycles = -5", "1,024  at most -5, by 1,029"),
        ("largest_tile = {min = 1_040.1}", "1,040  at least 1,040.1, by 0.1"),
    ],
)
def test_budget_that_is_not_kept_tells_by_how_much(
    report: Path, tmp_path: Path, limit: str, words: str
) -> None:
    file = tmp_path / "budgets.toml"
    file.write_text(limit)
    assert words in run("check", report, "--budget", file).stdout


def test_budget_of_no_row_is_told(report: Path, tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    section = '[[budget]]\nname = "far"\nanalysis = "fullest_tiles"\ncolumn = "bytes"\nmax = 1\n'
    file.write_text(f'{section}where = "ipu = 7"\n')
    result = run("check", report, "--budget", file)
    assert result.exit_code == 1 and "far    no row  a row" in result.stdout
    file.write_text(f'{section}where = "ipu = 7"\ntake = "sum"\n')
    result = run("check", report, "--budget", file)
    assert result.exit_code == 0
    assert result.stdout.endswith("no row is let through by the filter of far\n")


@pytest.mark.parametrize("form", ["json", "cbor", "pop"])
def test_convert_writes_to_standard_output_and_reads_from_standard_input(
    report: Path, form: str
) -> None:
    data = run("convert", report, "-o", "-", "--to", form).stdout_bytes
    arguments = ["summary", "-", "--no-colours"]
    piped = CliRunner().invoke(tilescope, arguments, input=data)
    assert piped.stdout == run("summary", report, "--no-colours").stdout
    assert (piped.exit_code, piped.stderr) == (0, "")


@pytest.mark.parametrize(
    "call",
    [("info", "-"), ("check", "-"), ("sql", "-", "select 1"), ("compare", "-", "REPORT")],
)
def test_dash_is_standard_input(report: Path, call: tuple[str, ...]) -> None:
    arguments = [str(report) if word == "REPORT" else word for word in call]
    data = (report / "profile.pop").read_bytes()
    result = CliRunner().invoke(tilescope, arguments, input=data)
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(("said", "text"), [("", "it is full"), ("no 3 GiB", "no 3 GiB")])
def test_full_memory_is_one_line(capsys: pytest.CaptureFixture[str], said: str, text: str) -> None:
    def fill() -> None:
        raise MemoryError(said)

    with pytest.raises(SystemExit) as ended:
        Command("fill", callback=fill).main([], prog_name="tilescope")
    assert ended.value.code == 2
    wanted = f"tilescope: the memory of this machine is not enough: {text}\n"
    assert capsys.readouterr().err == wanted
