"""What the page on lightweight profiling shows is what happens."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from pva.report import openReport

PAGE = Path(__file__).parents[2] / "docs" / "lightweight-profiling.md"
COMMAND = ["simulate", "newton_pipeline", "--target", "tiny", "--out"]


def simulated(folder: Path) -> Path:
    done = CliRunner().invoke(tilescope, [*COMMAND, str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def test_the_table_is_that_of_the_command(tmp_path: Path) -> None:
    shown = CliRunner().invoke(tilescope, ["show", "blocks", str(simulated(tmp_path))]).output
    (table,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert table == shown


def test_the_cycles_are_those_of_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = openReport(simulated(tmp_path / "recorded")).execution.runs[1].cycles
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({"profiler.blocks.filter": ""}))
    plain = openReport(simulated(tmp_path / "plain")).execution.runs[1].cycles
    assert f"takes {recorded:,} cycles, against {plain:,} without" in PAGE.read_text()
