"""The page of the command line against the help texts, the source and what is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.document import markdown, with_commands
from cli.main import COMMANDS, tilescope
from cli.shared import faults, output
from tests.builders import write_report

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"


def test_page_is_what_the_help_texts_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "write it again: make documents"


def test_every_command_is_on_the_page_and_in_the_readme() -> None:
    page, readme = PAGE.read_text(encoding="utf-8"), (ROOT / "README.md").read_text("utf-8")
    assert readme == with_commands(readme), "write it again: make documents"
    for command in COMMANDS:
        assert f"## tilescope {command.name}\n" in page
        assert f"tilescope {command.name}" in readme


@pytest.mark.parametrize("file", ["docs/tour.md", "docs/cli.md"])
def test_exit_codes_are_those_of_the_source(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    codes = {int(code) for line in re.findall(r"^\| ([\d, ]+) \|", text, re.M)
             for code in line.split(",")}  # fmt: skip
    assert codes == {0, 1, faults.BAD_INPUT, faults.INTERRUPTED, output.PIPE_CLOSED}


def documented_keys() -> set[str]:
    table = PAGE.read_text(encoding="utf-8").partition("| key |")[2].partition("## Completion")[0]
    return {key for line in table.splitlines() if line.startswith("| `")
            for key in re.findall(r"`(\w+)`", line.split("|")[1])}  # fmt: skip


def test_keys_of_json_objects_are_on_the_page(tmp_path: Path) -> None:
    report = str(write_report(tmp_path / "run"))
    calls = (
        ["info", report], ["info", report, "--tables"], ["show"], ["show", "runs", report],
        ["check", report], ["sql", report, "select 1 as one"],
    )  # fmt: skip
    for call in calls:
        found = json.loads(CliRunner().invoke(tilescope, [*call, "--json"]).stdout)
        assert set(found) <= documented_keys(), call


@pytest.mark.parametrize(
    ("words", "offered"),
    [("tilescope sho", "show"), ("tilescope show fullest", "fullest_tiles"),
     ("tilescope show table.st", "table.steps"),
     ("tilescope compare --b", "--by")],
)  # fmt: skip
def test_the_shell_completes_commands_analyses_and_options(words: str, offered: str) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "_TILESCOPE_COMPLETE": "bash_complete", "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "from cli.main import main; main()"],
        capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert f"plain,{offered}" in done.stdout.splitlines()
