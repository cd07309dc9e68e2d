"""What the README and the tour show is what happens."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, TOUR = ROOT / "README.md", ROOT / "docs" / "tour.md"


def test_notebook_session_prints_what_the_tour_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(TOUR), module_relative=False)
    assert (failed, tried > 5) == (0, True)


def test_program_runs_as_it_stands(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TOUR.read_text(), re.DOTALL)
    program = next(block for block in blocks if "poplin" in block)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("32.0\n", "")
    assert (tmp_path / "my-report/profile.pop").is_file()


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_read_in_a_minute() -> None:
    """Some 240 words; links, pictures and the list of commands are looked up, not read."""
    text = README.read_text(encoding="utf-8").partition("## Commands")[0]
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)|^    .*$", "", text, flags=re.MULTILINE)
    assert len(re.findall(r"[A-Za-z][\w'-]*", text)) <= 240
