"""The action of this repository: its script in a real repository, its files as they name others."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_reports"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def git(*arguments: str, cwd: Path) -> str:
    settings = ("-c", "user.name=A B", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *settings, *arguments], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_script_compares_the_checkout_with_its_base(tmp_path: Path) -> None:
    """The program of this repository writes a report by copying the one that a file names."""
    program = Path(tmp_path, "report")
    git("init", "-q", "-b", "main", cwd=tmp_path)
    for sample in ("matmul_chain_tiny", "mlp_digits_tiny"):
        program.write_text(str(SAMPLES / sample))
        git("add", "report", cwd=tmp_path)
        git("commit", "-q", "-m", sample, cwd=tmp_path)
    Path(tmp_path, "budgets.toml").write_text('run_cycles = "+2 %"\nlargest_tile = "1 MB"\n')
    environment = os.environ | {
        "COMMAND": 'cp -r "$(cat report)" "$TILESCOPE_REPORT"', "BASE": "main~1",
        "BUDGET": "budgets.toml", "OUT": "gate", "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "TILESCOPE": str(Path(sys.executable).with_name("tilescope")),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "step"),
    }  # fmt: skip
    script = str(ROOT / "tools" / "gate.sh")
    subprocess.run(["bash", script], cwd=tmp_path, env=environment, check=True, capture_output=True)
    summary = Path(tmp_path, "gate", "summary.md").read_text(encoding="utf-8")
    assert "**Budgets: 1 of 2 broken**" in summary and "run_cycles" in summary
    assert "\n    law " in summary  # what `tilescope check` says, as code
    assert Path(tmp_path, "outputs").read_text() == "kept=false\n"
    junit = ElementTree.parse(tmp_path / "gate" / "junit.xml")
    assert len(list(junit.iter("failure"))) == 1
    assert len(git("worktree", "list", cwd=tmp_path).splitlines()) == 1


def test_inputs_reach_scripts_as_variables_alone() -> None:
    """A value that is pasted into a script is run by the shell."""
    declared = action()
    for step in declared["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(declared["inputs"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_name_what_there_is(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"]["contents"] == "read"
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses") == "./":
                assert set(step["with"]) <= set(action()["inputs"])
                assert (ROOT / step["with"]["budget"]).is_file()
            words = shlex.split(step.get("run", ""), comments=True)
            if words[:1] == ["make"]:
                assert words[1] in targets


def test_no_text_names_an_owner_that_is_still_to_be_filled_in() -> None:
    listed = git("ls-files", "*.md", "*.yml", "*.toml", "*.cff", cwd=ROOT).splitlines()
    assert [
        name for name in listed if re.search(r"\bOWNER/", (ROOT / name).read_text("utf-8"))
    ] == []
