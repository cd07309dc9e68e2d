"""Every command that reads, on input that is cut, empty, not there or oddly named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import DECLARED, tilescope
from cli.shared.declared import Declaration
from pva.formats import registry
from tests.builders import small_report, write_report
from tests.cli.golden_calls import write_trace

# The calls that the commands declare: IN stands for the input, OUT for a place to write to.
NEED_STEPS = [call for declared in DECLARED for call in declared.steps]
OF_REPORTS = [call for declared in DECLARED for call in declared.reports] + NEED_STEPS
OF_TRACES = [call for declared in DECLARED for call in declared.traces]
KINDS = ("truncated", "empty", "directory", "missing", "text")


def run(call: str, source: Path, folder: Path) -> Result:
    names = {
        "IN": str(source), "OUT": str(folder / "öut put.json"), "OTHER": str(folder / "other"),
        "SELECT": "select count(*) as steps from steps",
    }  # fmt: skip
    return CliRunner().invoke(tilescope, [names.get(word, word) for word in call.split()])


def assert_refused(result: Result, name: str) -> None:
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tilescope: ") and result.stderr.count("\n") == 1
    assert name in result.stderr


def bad(kind: str, folder: Path, whole: bytes, suffix: str) -> Path:
    """Make input of a kind, of a file that is `whole`."""
    path = folder / f"{kind} ünput{suffix}"
    if kind == "directory":
        path.mkdir()
    elif kind != "missing":
        contents = {"truncated": whole[: len(whole) // 2], "empty": b"", "text": b"no such thing\n"}
        path.write_bytes(contents[kind])
    return path


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: declared.name)
def test_the_calls_of_a_command_are_of_that_command(declared: Declaration) -> None:
    reading = (*declared.reports, *declared.steps, *declared.traces)
    assert {call.split()[0] for call in (*reading, *declared.calls)} <= {declared.name}
    assert all("IN" in call.split() for call in reading)


def test_commands_that_open_a_report_or_a_trace_are_tried_with_bad_ones() -> None:
    tried = {call.split()[0] for call in (*OF_REPORTS, *OF_TRACES)}
    assert {"summary", "info", "show", "sql", "compare", "trace", "export", "check",
            "convert"} <= tried  # fmt: skip


@pytest.mark.parametrize("command", OF_REPORTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_report_is_one_line_that_names_it(command: str, kind: str, tmp_path: Path) -> None:
    other = write_report(tmp_path / "other")
    for suffix in (".pop", ".json", ".cbor"):
        file = tmp_path / f"whole{suffix}"
        registry.write(small_report(), file)
        path = bad(kind, tmp_path, file.read_bytes(), suffix)
        assert_refused(run(command, path, tmp_path), path.name)
    assert other.is_dir()


@pytest.mark.parametrize("command", OF_TRACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_trace_is_one_line_that_names_it(command: str, kind: str, tmp_path: Path) -> None:
    write_trace(tmp_path / "whole.pvti")
    whole = (tmp_path / "whole.pvti").read_bytes()
    path = bad(kind, tmp_path, whole, ".pvti")
    assert_refused(run(command, path, tmp_path), path.name)


@pytest.mark.parametrize("command", OF_REPORTS)
def test_a_report_without_execution_is_read_as_far_as_it_goes(command: str, tmp_path: Path) -> None:
    write_report(tmp_path / "other")
    graph = tmp_path / "nür graph.pop"
    registry.write(small_report().select("graph"), graph)
    result = run(command, graph, tmp_path)
    if command in NEED_STEPS:
        assert_refused(result, graph.name)
        assert "autoReport.outputExecutionProfile" in result.stderr
    else:
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("command", OF_REPORTS)
def test_a_path_may_have_spaces_and_any_letters(command: str, tmp_path: Path) -> None:
    write_report(tmp_path / "other")
    report = write_report(tmp_path / "mein Bericht ß 報告 'x'" / "rün 1")
    result = run(command, report, tmp_path)
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("command", OF_TRACES)
def test_a_trace_may_have_any_name(command: str, tmp_path: Path) -> None:
    write_trace(tmp_path / "Spür 報告 1.pvti")
    result = run(command, tmp_path / "Spür 報告 1.pvti", tmp_path)
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("kind", ["truncated", "empty", "directory", "text"])
def test_serve_says_what_it_cannot_show(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.serve.serve_paths", lambda *given: None)
    write_trace(tmp_path / "whole.pvti")
    registry.write(small_report(), tmp_path / "whole.pop")
    path = bad(kind, tmp_path, (tmp_path / "whole.pop").read_bytes(), ".pop")
    whole = [str(tmp_path / f"whole{suffix}") for suffix in (".pop", ".pvti")]
    result = CliRunner().invoke(tilescope, ["serve", *whole, str(path)])
    assert result.stderr.count("\n") == 1 and path.name in result.stderr


@pytest.mark.parametrize("kind", ["truncated", "empty", "directory", "text"])
def test_serve_refuses_what_it_cannot_show_alone(kind: str, tmp_path: Path) -> None:
    registry.write(small_report(), tmp_path / "whole.pop")
    path = bad(kind, tmp_path, (tmp_path / "whole.pop").read_bytes(), ".pop")
    assert_refused(CliRunner().invoke(tilescope, ["serve", str(path)]), path.name)


@pytest.mark.parametrize("command", ["info -", "compare - -", "info - --json"])
def test_no_copy_of_standard_input_is_named(command: str) -> None:
    data = registry.encoded(registry.value_of(small_report(), "graph"), "json")
    for given in (data, data[:100]):
        result = CliRunner().invoke(tilescope, command.split(), input=given)
        assert "standard input" in result.stdout + result.stderr
        assert "tilescope-stdin" not in result.stdout + result.stderr


def test_a_report_is_no_trace_and_a_trace_no_report(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.pvti")
    registry.write(small_report(), tmp_path / "r.pop")
    assert_refused(run("show memory_by_tile IN", tmp_path / "t.pvti", tmp_path), "t.pvti")
    assert_refused(run("trace show IN", tmp_path / "r.pop", tmp_path), "r.pop")
    sqlite3.connect(tmp_path / "other.db").execute("create table x (y)").connection.close()
    assert_refused(run("info IN", tmp_path / "other.db", tmp_path), "other.db")
