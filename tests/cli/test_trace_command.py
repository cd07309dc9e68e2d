"""`tilescope trace` takes every format, several files, and streams."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope
from pva.trace import openTrace
from tests.fuzz.seeds import write_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write one trace as `.pvti`, as packed JSON, and another as JSON."""
    write_trace(tmp_path / "host.pvti")
    event = {"ph": "X", "pid": 9, "tid": 1, "ts": 5, "dur": 2, "name": "step", "cat": "python"}
    (tmp_path / "other.json").write_text(json.dumps([event]))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(json.dumps([event]).encode()))
    return tmp_path


def run(*arguments: object, data: bytes | None = None) -> Result:
    result = CliRunner().invoke(tilescope, ["trace", *map(str, arguments)], input=data)
    assert result.exit_code == 0, result.output
    return result


def test_several_files_of_any_format_are_one_trace(folder: Path) -> None:
    files = [folder / name for name in ("host.pvti", "other.json", "packed.gz")]
    facts = json.loads(run("info", *files, "--json").stdout)
    assert [process["pid"] for process in facts["processes"]] == [42, 9, 9]
    assert facts["events"] == 7 + 1 + 1
    assert facts["of"] == [str(file) for file in files]
    assert facts["problems"][0] == "other.json: tells no wall clock, and begins with the others"


@pytest.mark.parametrize("name", ["host.pvti", "other.json", "packed.gz"])
def test_a_trace_comes_from_stdin_in_any_format(folder: Path, name: str) -> None:
    shown = run(
        "show", "-", "--only", "labels", "--format", "csv", data=(folder / name).read_bytes()
    )
    assert "step" in shown.stdout


def test_trace_of_stdin_is_called_so(folder: Path) -> None:
    data = (folder / "host.pvti").read_bytes()
    assert run("show", "-", data=data).stdout.startswith("standard input: 7 events on ")
    assert json.loads(run("info", "-", "--json", data=data).stdout)["path"] == "standard input"


@pytest.mark.parametrize(
    "table", ["processes", "channels", "events", "instants", "flows", "series", "heatmaps"]
)
def test_every_table_is_shown(folder: Path, table: str) -> None:
    rows = json.loads(run("show", folder / "host.pvti", "--only", table, "--format", "json").stdout)
    assert len(rows) == len(getattr(openTrace(folder / "host.pvti").frames, table)())


def test_several_files_are_converted_into_one(folder: Path) -> None:
    out = folder / "all.json"
    told = run(
        "convert", folder / "host.pvti", folder / "other.json", "-o", out, "--align", "start"
    )
    assert len(openTrace(out).frames.events()) == 8
    assert "1 end without a begin was left out" in told.stderr
    assert not list(folder.glob("*.part"))


def test_what_ends_in_gz_is_packed(folder: Path) -> None:
    run("convert", folder / "host.pvti", "-o", folder / "out.json")
    run("convert", folder / "host.pvti", "-o", folder / "out.JSON.gz")
    assert (
        gzip.decompress((folder / "out.JSON.gz").read_bytes()) == (folder / "out.json").read_bytes()
    )


def test_a_conversion_that_fails_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = folder / "there.json"
    out.write_text("before")
    monkeypatch.setattr("pva.formats.traces.chrome_trace._counters", lambda *_: 1 / 0)
    arguments = ["trace", "convert", str(folder / "host.pvti"), "-o", str(out), "--force"]
    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(tilescope, arguments, catch_exceptions=False)
    assert out.read_text() == "before"
    assert not list(folder.glob("*.part"))


def test_info_tells_chrome_traces_from_profiles(folder: Path) -> None:
    result = CliRunner().invoke(tilescope, ["info", str(folder / "other.json")])
    assert "1 event on 1 thread" in result.stdout
    assert "began       not told" in result.stdout


def test_info_of_a_folder_tells_each_chrome_trace_and_all_together(tmp_path: Path) -> None:
    for rank, events in enumerate((2, 3)):
        made = [{"ph": "X", "name": "op", "pid": rank, "tid": 1, "ts": ts, "dur": 2}
                for ts in range(0, 10 * events, 10)]  # fmt: skip
        data = gzip.compress(json.dumps({"traceEvents": made}).encode())
        (tmp_path / f"rank_{rank}.json.gz").write_bytes(data)
    (tmp_path / "notes.json").write_text('{"a": 1}')
    lines = CliRunner().invoke(tilescope, ["trace", "info", str(tmp_path)]).stdout.splitlines()
    assert [line.split(": ")[1] for line in lines[:3]] == [
        "2 events on 1 thread in 12.0 µs",
        "3 events on 1 thread in 22.0 µs",
        "5 events on 2 threads in 22.0 µs",
    ]
    result = CliRunner().invoke(tilescope, ["trace", "info", str(tmp_path), "--json"])
    told = json.loads(result.stdout)
    assert (told["events"], [file["events"] for file in told["files"]]) == (5, [2, 3])
    assert "5 events" in CliRunner().invoke(tilescope, ["info", str(tmp_path)]).stdout


def test_info_of_a_folder_without_traces_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    result = CliRunner().invoke(tilescope, ["trace", "info", str(tmp_path)])
    assert result.exit_code == 2
    assert "no .pvti file or Chrome trace in this directory" in result.stderr
