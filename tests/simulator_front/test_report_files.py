"""What stands beside the profile in a report directory, and when the profile is written."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pva
from pva.check import check
from pva.formats import registry
from simulator import poplar
from simulator.poplar import FLOAT, program
from simulator.profile.write import without_folders

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


def test_runs_that_are_kept_back_are_written_when_the_process_ends(tmp_path: Path) -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_report_files import engine
kept = engine(Path(sys.argv[1]), **{"autoReport.streamAtEachRun": False})
kept.run()
"""
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", script, str(tmp_path), here]
    subprocess.run(command, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert registry.read(tmp_path).length("runs") == 1
