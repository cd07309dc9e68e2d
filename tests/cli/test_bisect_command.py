"""`tilescope bisect` on a real repository whose program is simulated at each commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import tilescope

PROGRAM = """
from simulator import poplar
device = poplar.IPUModel("tiny").createDevice()
graph = poplar.Graph(device.getTarget())
x, y = (graph.addVariable(poplar.FLOAT, [SIZE], name) for name in "xy")
graph.setTileMapping(x, 0)
graph.setTileMapping(y, 1)
engine = poplar.Engine(graph, poplar.program.Copy(x, y))
engine.load(device)
engine.run(0)
"""
COMMAND = ("--", sys.executable, "model.py")
# Subject and elements of each commit: two slips that do not matter, a crash, the regression, and
# a later change.
HISTORY = (("first", "64"), ("slip", "66"), ("crash", "no"), ("grown", "4096"), ("last", "4098"))


def git(*arguments: str) -> str:
    settings = ("-c", "user.name=A B", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *settings, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def bisect(*arguments: str) -> Result:
    return CliRunner().invoke(tilescope, ["bisect", *arguments])


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bisected")
    here = Path.cwd()
    os.chdir(folder)
    git("init", "-q", "-b", "main")
    for subject, size in HISTORY:
        Path("model.py").write_text(PROGRAM.replace("SIZE", size))
        git("add", "model.py")
        git("commit", "-q", "-m", subject)
    Path("model.py").write_text("work of mine\n")
    Path("notes").write_text("mine, too\n")
    yield folder
    os.chdir(here)


@pytest.fixture(scope="module")
def found(repository: Path) -> Result:
    return bisect("--good", "main~4", "--bad", "main", "--figure", "max_live", "--json", *COMMAND)


def test_the_commits_that_may_be_the_first_bad_one_are_named(found: Result) -> None:
    """The one before it crashes, so that both of them may be it."""
    answer = json.loads(found.stdout)
    commits = {row["subject"]: row for row in answer["commits"]}
    verdicts = {subject: row["verdict"] for subject, row in commits.items()}
    assert verdicts == {"first": "good", "slip": "good", "crash": "skipped", "grown": "bad",
                        "last": "bad"}  # fmt: skip
    assert set(answer["suspects"]) == {commits[name]["commit"] for name in ("crash", "grown")}
    assert (found.exit_code, answer["first_bad"]) == (1, None)
    # Two arrays of floats are live, and no other figure of the program depends on their size.
    assert commits["grown"]["value"] - commits["first"]["value"] == 2 * 4 * (4096 - 64)


def test_the_first_bad_commit_has_its_causes(repository: Path, found: Result) -> None:
    again = bisect("--good", "main~1", "--bad", "main", "--figure", "max_live", "--json", *COMMAND)
    answer = json.loads(again.stdout)
    assert (again.exit_code, answer["first_bad"]["subject"]) == (0, "last")
    assert {(row["cause"], row["change"]) for row in answer["causes"]} >= {("x", 8), ("y", 8)}
    assert all(Path(report, "profile.pop").is_file() for report in answer["first_bad"]["reports"])


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [("+0 %", 0, '"first_bad": {"commit"'), ("+1 %", 1, "nothing got worse"),
     ("-1 %", 2, "breaks the budget")],
)  # fmt: skip
def test_limits_of_a_budget_go_by_the_good_commit(
    repository: Path, found: Result, limit: str, code: int, said: str
) -> None:
    """The last commit has 16 bytes more than the one before, of some 33,000."""
    Path("notes").write_text(f'max_live = "{limit}"\n')
    result = bisect("--good", "main~1", "--bad", "main", "--budget", "notes", "--json", *COMMAND)
    assert result.exit_code == code
    assert said in result.output


def test_files_branch_and_worktrees_of_the_user_are_as_before(
    repository: Path, found: Result
) -> None:
    assert Path("model.py").read_text() == "work of mine\n"
    assert git("symbolic-ref", "--short", "HEAD") == "main"
    assert git("status", "--porcelain").split() == ["M", "model.py", "??", "bisect/", "??", "notes"]
    assert len(git("worktree", "list").splitlines()) == 1
    assert not git("for-each-ref", "refs/bisect")


def test_where_nothing_got_worse_the_code_is_one(repository: Path, found: Result) -> None:
    result = bisect("--good", "main", "--bad", "main~1", *COMMAND)
    assert result.exit_code == 1
    assert "nothing got worse from main to main~1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--good", "main~9", "--bad", "main", *COMMAND), "main~9: no commit of this repository"),
     (("--good", "main~4", "--bad", "main~2", *COMMAND), "ended with 1: "),
     (("--good", "main", "--bad", "main", "--", "true"), "reports of another command"),
     (("--good", "main", "--bad", "main", "--out", ".", *COMMAND), "is not empty"),
     (("--good", "main", "--bad", "main", "--figure", "cycle", *COMMAND), "no figure 'cycle'")],
)  # fmt: skip
def test_what_cannot_be_bisected_is_one_line(
    repository: Path, found: Result, arguments: tuple[str, ...], said: str
) -> None:
    result = bisect(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr.splitlines()[-1]
