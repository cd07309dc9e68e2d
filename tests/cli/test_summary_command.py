"""`tilescope summary`: encodings, two files, standard input, bad input, texts that come at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope
from cli.shared import output
from pva.formats import registry
from pva.report import openReport
from pva.summary import profile_summary
from tests.builders import small_report, write_report

ALL = {
    "show_var_storage": True, "show_optimizations": True, "show_execution_steps": True,
    "show_exchange_instruction_breakdown": True, "show_per_ipu_memory_usage": True,
}  # fmt: skip
FLAGS = (
    "--showVarStorage", "--showOptimizations", "--showExecutionSteps",
    "--showExchangeInstructionBreakdown", "--showPerIpuMemoryUsage",
)  # fmt: skip
SHORT = ("--liveness", "--optimizations", "--steps", "--exchange-instructions", "--per-ipu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make reports of every encoding in a path with a space and letters that are not ASCII."""
    made = tmp_path_factory.mktemp("größe of réports")
    data = small_report()
    write_report(made / "run", data)
    for suffix in ("json", "cbor"):
        for document in ("graph", "execution"):
            registry.write(data, made / f"{document}.{suffix}")
        registry.write(data, made / f"both.{suffix}")
    return made


def run(*arguments: str | Path, input: bytes | None = None) -> Result:
    return CliRunner().invoke(tilescope, ["summary", *map(str, arguments)], input=input)


@pytest.mark.parametrize(
    "files",
    [
        ("run",), ("run/profile.pop",), ("both.json",), ("both.cbor",), ("graph.json", "run"),
        ("graph.json", "execution.json"), ("graph.cbor", "execution.json"), ("run", "both.cbor"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("flags", [FLAGS, SHORT])
def test_every_encoding_gives_the_same_summary(
    folder: Path, files: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    result = run(*(folder / file for file in files), *flags)
    assert result.stdout == profile_summary(openReport(folder / "run"), **ALL)


def test_standard_input_stands_for_a_file(folder: Path) -> None:
    whole = run(folder / "both.json").stdout
    assert run("-", input=(folder / "both.cbor").read_bytes()).stdout == whole
    assert (
        run("-", folder / "execution.json", input=(folder / "graph.json").read_bytes()).stdout
        == whole
    )
    assert (
        run(folder / "graph.cbor", "-", input=(folder / "execution.cbor").read_bytes()).stdout
        == whole
    )


def test_json_is_one_object_of_what_the_text_is_written_from(folder: Path) -> None:
    plain = json.loads(run(folder / "run", "--json").stdout)
    assert (plain["command"], plain["of"]) == ("summary", str(folder / "run"))
    assert (plain["target"][0]["type"], plain["graph"][0]["num_vertices"]) == ("IPU_MODEL", 18)
    assert plain["memory_usage"]["including_gaps"] == 6_400
    assert plain["execution_overview"]["cycles"] == 1_024
    assert "steps" not in plain
    whole = json.loads(run(folder / "graph.json", *FLAGS, "--json").stdout)
    assert whole["steps"] is None and whole["execution_overview"] is None
    assert whole["optimization_info"] == [{"name": "exchanges.merged", "value": 3.0}]
    assert len(whole["liveness_curve"]) == 14


def test_a_graph_profile_alone_has_no_execution(folder: Path) -> None:
    text = run(folder / "graph.json", "--steps").stdout
    assert text.endswith(" tile(s) out of memory\n\nExecution profiling not enabled\n")


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (("execution.json", "graph.json"), "no graph profile, but one of the execution; give the"),
        (("graph.json", "graph.cbor"), "no execution profile, but one of the graph; give the"),
        (("absent",), "no such file or directory"),
        ((".",), "no "),
        (("graph.json", "absent"), "no such file or directory"),
    ],
)
def test_what_is_not_a_pair_of_profiles_is_one_line(
    folder: Path, files: tuple[str, ...], fault: str, tmp_path: Path
) -> None:
    root = tmp_path if files == (".",) else folder
    result = run(*(root / file for file in files))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tilescope: ") and result.stderr.count("\n") == 1
    assert fault in result.stderr


@pytest.mark.parametrize("name", ["both.json", "both.cbor", "run/profile.pop"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_one_line(
    folder: Path, name: str, share: float, tmp_path: Path
) -> None:
    data = (folder / name).read_bytes()
    file = tmp_path / Path(name).name
    file.write_bytes(data[: int(share * len(data))])
    result = run(file)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert str(file) in result.stderr
    assert result.stdout == ""


def test_texts_come_as_they_are_found_the_first_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(output.click, "echo", lambda text, **_: written.append(text))
    texts = (f"{number}{'x' * 30_000}" if number else "first" for number in range(5))
    output.write_texts(texts)
    assert written[0] == "first"
    assert [len(text) for text in written[1:]] == [90_003, 30_001]


def test_a_pipe_that_is_closed_ends_quietly(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        with pytest.raises(SystemExit) as ended:
            tilescope(["summary", str(folder / "run")], prog_name="tilescope")
    assert ended.value.code == output.PIPE_CLOSED
