"""What stands beside the profile in a report directory, and when the profile is written."""

from __future__ import annotations

import gc
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pva
from pva.check import check
from pva.formats import registry
from simulator import poplar
from simulator.graph.errors import graph_memory_allocation_error
from simulator.poplar import FLOAT, program
from simulator.profile.write import with_folders_below, without_folders

ROOT = Path(__file__).parents[2]


def engine(directory: Path, **options: Any) -> poplar.Engine:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x, y = graph.addVariable(FLOAT, [4], "x"), graph.addVariable(FLOAT, [4], "y")
    graph.setTileMapping(x, 0)
    graph.setTileMapping(y, 3)
    given = {"autoReport.all": True, "autoReport.directory": str(directory)}
    made = poplar.Engine(graph, program.Sequence(program.Copy(x, y)), {**given, **options})
    made.load(device)
    return made


def read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


def test_framework_json_says_what_made_the_report(tmp_path: Path) -> None:
    engine(tmp_path)
    facts = read(tmp_path / "framework.json")
    assert facts["framework"] == "poplar"
    assert facts["simulator"] == f"tilescope {facts['version']}"


def test_app_json_has_the_facts_that_the_program_gave(tmp_path: Path) -> None:
    engine(tmp_path, **{"autoReport.app": {"name": "digits", "layers": [64, 10]}})
    assert read(tmp_path / "app.json") == {"name": "digits", "layers": [64, 10]}


def test_app_json_has_name_and_arguments_without_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/me/train.py", "--out=/home/me/out", "7", "a/b/c.txt"])
    engine(tmp_path)
    facts = {"application": "train.py", "arguments": ["--out=out", "7", "c.txt"]}
    assert read(tmp_path / "app.json") == facts


@pytest.mark.parametrize(
    ("argument", "kept"),
    [
        ("/a/b", "b"),
        ("/a/b/", "b"),
        ("--data=/a/b,/c/d", "--data=b,d"),
        ("C:\\a\\b.txt", "b.txt"),
        ("../up", "up"),
        ("--size=10", "--size=10"),
        ('{"out": "/a/b"}', '{"out": "b"}'),
        ("/", ""),
    ],
)
def test_no_folder_of_an_argument_is_kept(argument: str, kept: str) -> None:
    assert without_folders(argument) == kept


def test_lowered_variables_are_left_out_when_that_is_asked_for(tmp_path: Path) -> None:
    engine(tmp_path, **{"autoReport.outputLoweredVars": "false"}).run()
    data = registry.read(tmp_path)
    assert not data.has("variable_pieces")
    assert check(data) == []
    assert not pva.openReport(str(tmp_path)).compilation.loweredVariables.forTile(0)


def test_runs_may_be_kept_back_until_the_engine_goes(tmp_path: Path) -> None:
    made = engine(tmp_path, **{"autoReport.streamAtEachRun": False})
    made.run()
    made.run()
    assert registry.read(tmp_path).length("runs") == 0
    del made
    gc.collect()
    assert registry.read(tmp_path).length("runs") == 2


CHILD = """
import os
if os.fork(): os.wait()
"""


@pytest.mark.parametrize("more", ["", CHILD], ids=["alone", "after a forked child"])
def test_runs_that_are_kept_back_are_written_when_the_process_ends(
    tmp_path: Path, more: str
) -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_report_files import engine
kept = engine(Path(sys.argv[1]), **{"autoReport.streamAtEachRun": False})
kept.run()
"""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", script + more, str(tmp_path), here]
    subprocess.run(command, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert registry.read(tmp_path).length("runs") == 1


def test_the_graph_report_is_the_summary_without_the_execution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPLAR_GRAPH_REPORT_DEST", str(tmp_path / "graph.txt"))
    made = engine(tmp_path / "report")
    text = (tmp_path / "graph.txt").read_text(encoding="utf-8")
    whole = io.StringIO()
    made.printProfileSummary(whole)
    assert text.startswith("Target:")
    assert "Memory Usage:" in text
    assert "Execution" not in text
    assert whole.getvalue().startswith(text.rstrip("\n"))


def test_a_graph_report_needs_no_report_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    engine(tmp_path, **{"autoReport.all": False, "debug.graphReportDestination": "stdout"})
    assert capsys.readouterr().out.startswith("Target:")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_report_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(poplar.PoplarError, match=r"debug.graphReportDestination: cannot write .*x"):
        engine(tmp_path, **{"debug.graphReportDestination": str(tmp_path / "missing" / "x")})


def too_large(directory: Path, **options: Any) -> poplar.Engine:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    x, y = (graph.addVariable(FLOAT, [200_000], name) for name in "xy")
    graph.setTileMapping(x, 0)
    graph.setTileMapping(y, 3)
    given = {"autoReport.all": True, "autoReport.directory": str(directory)}
    return poplar.Engine(graph, program.Sequence(program.Copy(x, y)), {**given, **options})


def test_a_program_that_does_not_fit_leaves_its_report(tmp_path: Path) -> None:
    with pytest.raises(graph_memory_allocation_error) as raised:
        too_large(tmp_path, **{"debug.allowOutOfMemory": False})
    assert raised.value.graphProfilePath == str(tmp_path)
    assert re.match(r"out of memory on 2 tile\(s\): tile 0 needs [\d,]+ bytes", str(raised.value))
    assert f"its report is in {tmp_path}" in str(raised.value)
    over = registry.read(tmp_path).column("memory_by_tile", "overflowed")
    assert (over > 0).tolist() == [True, False, False, True]


def test_a_program_that_does_not_fit_names_the_option_when_no_report_is_written(
    tmp_path: Path,
) -> None:
    options = {"autoReport.all": False, "debug.allowOutOfMemory": "false"}
    with pytest.raises(graph_memory_allocation_error, match=r"see autoReport\.all") as raised:
        too_large(tmp_path, **options)
    assert raised.value.graphProfilePath == ""
    over = raised.value.graphProfile["memory"]["byTile"]["overflowed"]
    assert [bytes > 0 for bytes in over] == [True, False, False, True]


def test_runs_that_are_kept_back_are_in_the_report_that_the_engine_gives(tmp_path: Path) -> None:
    made = engine(tmp_path, **{"autoReport.streamAtEachRun": False})
    made.run()
    assert len(made.getReport().execution.runs) == 1


@pytest.mark.parametrize(
    ("argument", "kept"),
    [
        ("models/m.onnx", "models/m.onnx"),
        ("/home/me/models/m.onnx", "models/m.onnx"),
        ("/srv/m.onnx", "m.onnx"),
        ("--target=../a/b.toml", "--target=b.toml"),
        ("a/../../b", "b"),
        ("C:\\a\\b.txt", "b.txt"),
    ],
)
def test_paths_of_a_command_are_those_below_the_current_directory(argument: str, kept: str) -> None:
    assert with_folders_below(Path("/home/me"), argument) == kept
