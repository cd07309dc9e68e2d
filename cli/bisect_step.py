"""The process of one commit of a bisection: `python -m cli.bisect_step OUT`, in its worktree.

`git bisect run` starts it. It runs the command of OUT/bisect.json there, keeps the report and says
by its exit code whether the commit is good, bad, or gave no report.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pva.errors import PvaError

if TYPE_CHECKING:
    from pva.report import Report

GOOD, BAD, SKIPPED, ABORTED = 0, 1, 125, 128  # as `git bisect run` reads them
PLAN, COMMITS, REPORTS = "bisect.json", "commits", "reports"
PLACEHOLDER, VARIABLE = "{report}", "TILESCOPE_REPORT"
ENGINE = "POPLAR_ENGINE_OPTIONS"
LAST_LINES = 3  # of what a command that failed wrote


@dataclass(frozen=True, slots=True)
class Plan:
    """The command, its folder below the top of the repository, and what a good commit keeps.

    `good` is the commit that tolerances of the file `budget` go by. Without a file a commit is bad
    where its `figure` is beyond `limit`, above or below it.
    """

    command: tuple[str, ...]
    folder: str
    good: str = ""
    budget: str = ""
    figure: str = ""
    limit: float = 0.0
    above: bool = True


def read_plan(out: Path) -> Plan:
    """Read OUT/bisect.json."""
    values = json.loads((out / PLAN).read_text(encoding="utf-8"))
    return Plan(**{**values, "command": tuple(values["command"])})


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write a file whole, or leave the one that was there."""
    part = path.with_name(f"{path.name}.new")
    part.write_text(json.dumps(values, indent=1), encoding="utf-8")
    os.replace(part, path)


def environment() -> dict[str, str]:
    """Return this process's environment without the variables that lead git elsewhere."""
    led = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
    return {name: value for name, value in os.environ.items() if name not in led}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder and return what it writes to stdout; raises PvaError if it fails."""
    process = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, errors="replace",
        env=environment() | {"LC_ALL": "C"},
    )  # fmt: skip
    if check and process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines() or [
            f"ended with {process.returncode}"
        ]
        raise PvaError(f"git {arguments[0]}", lines[0])
    return process.stdout.strip()


def report_of(out: Path, worktree: Path, commit: str, plan: Plan) -> str:
    """Run the command in a worktree that has a commit checked out; return why there is no report.

    The report is OUT/reports/COMMIT, and the answer is kept in OUT/commits/COMMIT.json, so that
    nothing runs twice. What the command changed in the worktree is undone.
    """
    record = out / COMMITS / f"{commit}.json"
    if record.is_file():
        return str(json.loads(record.read_text(encoding="utf-8"))["failed"])
    report = out / REPORTS / commit
    shutil.rmtree(report, ignore_errors=True)  # of a run that was killed
    failed = _run(plan, worktree, report) or _keep(worktree, report)
    git(worktree, "reset", "--hard", "--quiet")
    git(worktree, "clean", "-fdq")
    write_json(record, {"failed": failed})
    return failed


def _run(plan: Plan, worktree: Path, report: Path) -> str:
    words = [word.replace(PLACEHOLDER, str(report)) for word in plan.command]
    folder = worktree / plan.folder
    options = {"autoReport.all": "true", "autoReport.directory": str(report)}
    extra = {
        VARIABLE: str(report),
        ENGINE: json.dumps({**_options(), **options}),
        "PYTHONDONTWRITEBYTECODE": "1",  # a commit's bytecode may look as new as the next one's
    }
    try:
        process = subprocess.run(
            words, cwd=folder if folder.is_dir() else worktree, env=environment() | extra,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        return f"{words[0]}: {error.strerror}"
    last = " / ".join(process.stderr.strip().splitlines()[-LAST_LINES:])
    return f"ended with {process.returncode}: {last}" if process.returncode else ""


def _options() -> dict[str, object]:
    with suppress(ValueError):
        options = json.loads(os.environ.get(ENGINE) or "{}")
        return options if isinstance(options, dict) else {}
    return {}


def _keep(worktree: Path, report: Path) -> str:
    """Bring the report to its place from where the command left it; return why there is none."""
    if any(report.glob("*")):
        return ""
    folders = [file.parent for file in sorted(worktree.rglob("profile.pop")) if _untracked(file)]
    if len(folders) != 1:
        return f"{len(folders)} reports were written" if folders else "no report was written"
    shutil.copytree(folders[0], report)
    return ""


def _untracked(file: Path) -> bool:
    return not git(file.parent, "ls-files", "--", file.name)


def opened(out: Path, commit: str) -> Report:
    """Open the report of a commit; raises PvaError."""
    from pva.report import openReport

    return openReport(out / REPORTS / commit)


def is_good(out: Path, commit: str, plan: Plan) -> bool:
    """Compare the report of a commit with the plan; raises PvaError."""
    from pva.analysis.whole_report.budgets import check_budgets, read_budgets
    from pva.analysis.whole_report.key_figures import FIGURES

    report = opened(out, commit)
    if plan.budget:
        baseline = opened(out, plan.good)
        return bool(check_budgets(report, read_budgets(plan.budget), baseline)["kept"].all())
    value = FIGURES[plan.figure].of(report)
    return value <= plan.limit if plan.above else value >= plan.limit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command for the commit that is checked out here."""
    out = Path((arguments or sys.argv[1:])[0])
    try:
        plan, root = read_plan(out), Path(git(Path.cwd(), "rev-parse", "--show-toplevel"))
        commit = git(root, "rev-parse", "HEAD")
        if report_of(out, root, commit, plan):
            return SKIPPED
        return GOOD if is_good(out, commit, plan) else BAD
    except PvaError as error:
        print(error, file=sys.stderr)
        return SKIPPED
    except OSError as error:
        print(error, file=sys.stderr)
        return ABORTED


if __name__ == "__main__":
    sys.exit(main())
