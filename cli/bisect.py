"""`tilescope bisect --good REV --bad REV -- COMMAND`: which commit made it larger or slower?"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from cli.bisect_step import (
    COMMITS,
    PLAN,
    REPORTS,
    Plan,
    environment,
    git,
    is_good,
    opened,
    read_plan,
    report_of,
    write_json,
)
from cli.check import causes_of
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import (
    OBJECT,
    Rows,
    counted,
    object_option,
    printable,
    write,
    write_object,
    write_rows,
)
from pva.errors import NotRecordedError, OverwriteError, PvaError, nearest

if TYPE_CHECKING:
    from pva.report import Report

EXAMPLES = """
\b
Examples:
  tilescope bisect --good v1.2 --bad main -- tilescope simulate train.py --epochs 2
  tilescope bisect --good main~20 --bad main --figure largest_tile -- python model.py
  tilescope bisect --good v1.2 --bad HEAD --budget budgets.toml -- ./run.sh {report}
"""
FOUND, NOT_FOUND = 0, 1
ONLY_SKIPPED = 2  # of `git bisect run`: commits without a report are in the way
COLUMNS = ("commit", "verdict", "value", "subject")
CAUSE_COLUMNS = ("cause", "change", "share of the change")
SHORT = 10  # letters of a commit
LESS_IS_WORSE = ("tile_balance", "items_per_second", "steady_items_per_second")


@click.command(
    cls=Command, epilog=EXAMPLES, context_settings={"allow_interspersed_args": False}
)  # fmt: skip
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--good", required=True, metavar="REV", help="A commit before the regression.")
@click.option("--bad", required=True, metavar="REV", help="A commit that has it.")
@click.option("--figure", metavar="NAME", help="Figure of `tilescope check` that got worse."
              "  [default: of memory and cycles what grew by the largest part]")  # fmt: skip
@click.option("--budget", type=click.Path(), help="Limits of a good commit, instead of --figure;"
              " such as +2 % go by the report of --good.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("bisect"), show_default=True,
              help="Directory of the reports.")  # fmt: skip
@object_option
def bisect(
    command: tuple[str, ...], good: str, bad: str, figure: str | None, budget: str | None,
    out: Path, form: str | None,
) -> int:  # fmt: skip
    """Search the commit of a regression: simulate commits of this repository by `git bisect run`.

    COMMAND runs in a worktree of its own, which goes at the end: neither your files nor your
    branch are touched, and a bisection of yours goes on. Files that git does not have are not
    there: name them by absolute paths. The report of each commit is OUT/reports/COMMIT. COMMAND is
    told its place by POPLAR_ENGINE_OPTIONS (autoReport.directory), as {report} in its words and as
    TILESCOPE_REPORT; else the one report that it leaves is taken. A commit at which COMMAND fails
    is skipped.

    A commit is bad where its figure is nearer to that of --bad than to that of --good, or with
    --budget where it breaks a limit. What is done is kept: the same call goes on where it was
    stopped. Ends with 1 where nothing got worse, or where skipped commits hide which it was.
    """
    from pva.analysis.whole_report.key_figures import FIGURES

    if figure and budget:
        raise click.UsageError("give --figure or --budget, not both")
    if figure and figure not in FIGURES:
        raise click.UsageError(f"no figure {figure!r}; {nearest(figure, FIGURES)}")
    top = Path(git(Path.cwd(), "rev-parse", "--show-toplevel"))
    ends = [_commit(top, revision) for revision in (good, bad)]
    folder = os.path.relpath(Path.cwd(), Path(os.path.realpath(top)))
    plan = Plan(command, folder, ends[0], budget and str(Path(budget).resolve()) or "")
    out = out.resolve()
    _take(out, plan)
    with _worktree(top, ends[0]) as worktree:
        judged = _judged(out, worktree, plan, ends, figure or "")
        if judged is None:
            click.echo(f"nothing got worse from {good} to {bad}", err=True)
            return NOT_FOUND
        write_json(out / PLAN, dataclasses.asdict(judged))
        suspects = _suspects(out, worktree, ends)
    answer = _answer(out, top, judged, ends, suspects)
    if form == OBJECT:
        write_object("bisect", ends, **answer)
    else:
        _write(answer)
    return FOUND if answer["first_bad"] else NOT_FOUND


def _commit(top: Path, revision: str) -> str:
    try:
        return git(top, "rev-parse", "--verify", "--quiet", "--end-of-options",
                   f"{revision}^{{commit}}")  # fmt: skip
    except PvaError:
        raise PvaError(revision, "no commit of this repository", "give a tag or branch") from None


def _take(out: Path, plan: Plan) -> None:
    """Make OUT, or go on in that of the same command; raises OverwriteError."""
    if (out / PLAN).is_file():
        earlier = read_plan(out)
        if (earlier.command, earlier.folder) != (plan.command, plan.folder):
            remedy = "give another --out"
            raise OverwriteError(out, "has the reports of another command", remedy)
    elif out.exists() and any(out.iterdir()):
        raise OverwriteError(out, "is not empty, and not of a bisection", "give another --out")
    for name in (COMMITS, REPORTS):
        (out / name).mkdir(parents=True, exist_ok=True)
    write_json(out / PLAN, dataclasses.asdict(plan))


@contextmanager
def _worktree(top: Path, commit: str) -> Iterator[Path]:
    """Check out a commit in a worktree of its own, which goes again."""
    with tempfile.TemporaryDirectory(prefix="tilescope-bisect-", ignore_cleanup_errors=True) as at:
        folder = Path(os.path.realpath(at), "worktree")
        git(top, "worktree", "add", "--detach", "--quiet", str(folder), commit)
        try:
            yield folder
        finally:
            with suppress(PvaError):
                git(folder, "bisect", "reset", "HEAD", check=False)
                git(top, "worktree", "remove", "--force", str(folder))


def _judged(out: Path, worktree: Path, plan: Plan, ends: Sequence[str], figure: str) -> Plan | None:
    """Simulate both ends; return the plan with how commits are judged, None if both are good."""
    for commit in ends:
        git(worktree, "checkout", "--detach", "--quiet", commit)
        _say(f"simulating {commit[:SHORT]}")
        if failed := report_of(out, worktree, commit, plan):
            raise PvaError(commit[:SHORT], failed, "both ends must leave a report")
    if plan.budget:
        if not is_good(out, ends[0], plan):
            raise PvaError(ends[0][:SHORT], "breaks the budget", "give a good commit")
        return None if is_good(out, ends[1], plan) else plan
    reports = [opened(out, commit) for commit in ends]
    worst = figure or _worst(reports)
    if not worst:
        return None
    before, after = (_value(report, worst) for report in reports)
    grown = after > before
    if before == after or grown == (worst in LESS_IS_WORSE):
        return None
    return dataclasses.replace(plan, figure=worst, limit=(before + after) / 2, above=grown)


def _value(report: Report, figure: str) -> float:
    from pva.analysis.whole_report.key_figures import FIGURES

    return FIGURES[figure].of(report)


def _worst(reports: Sequence[Report]) -> str:
    """Name the figure of memory or cycles that grew by the largest part; empty if none did."""
    from pva.analysis.whole_report.budgets import NO_WORSE

    grown = {}
    for name in NO_WORSE:
        with suppress(NotRecordedError):
            before, after = (_value(report, name) for report in reports)
            grown[name] = after / before - 1 if before else after
    worst = max(grown, key=lambda name: grown[name], default="")
    return worst if worst and grown[worst] > 0 else ""


def _suspects(out: Path, worktree: Path, ends: Sequence[str]) -> list[str]:
    """Let git find the first bad commit; return it, or all that it may be."""
    git(worktree, "bisect", "start", ends[1], ends[0])
    step = [sys.executable, "-P", "-m", "cli.bisect_step", str(out)]
    with subprocess.Popen(
        ["git", "bisect", "run", *step], cwd=worktree, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment() | {"LC_ALL": "C"},
    ) as process:  # fmt: skip
        last_line = "it ended"
        for line in process.stdout or ():
            last_line = line.strip() or last_line
            if line.startswith("Bisecting: "):
                _say(last_line.removeprefix("Bisecting: "))
    if process.returncode not in (0, ONLY_SKIPPED):
        raise PvaError("git bisect run", last_line)
    bad = git(worktree, "rev-parse", "refs/bisect/bad")
    if process.returncode == 0:
        return [bad]
    good = git(worktree, "for-each-ref", "--format=%(objectname)", "refs/bisect/good-*").split()
    return git(worktree, "rev-list", bad, "--not", *good).split()


def _say(text: str) -> None:
    click.echo(f"tilescope bisect: {text}", err=True)


class FirstBad(TypedDict):
    """The commit that broke the budget, and the one before it, with their reports."""

    commit: str
    subject: str
    before: str
    figure: str
    reports: list[str]


class Answer(TypedDict):
    """What was simulated, and the first bad commit with its causes."""

    out: str
    figure: str
    budget: str
    commits: list[dict[str, Any]]
    suspects: list[str]
    first_bad: FirstBad | None
    causes: list[dict[str, object]]


def _answer(out: Path, top: Path, plan: Plan, ends: Sequence[str], suspects: list[str]) -> Answer:
    """Return what was simulated, and the first bad commit with its causes, if there is one."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _rows(out, top, plan, ends)]
    answer: Answer = {
        "out": str(out), "figure": plan.figure, "budget": plan.budget, "commits": rows,
        "suspects": suspects, "first_bad": None, "causes": [],
    }  # fmt: skip
    if len(suspects) != 1:
        return answer
    culprit = suspects[0]
    before = _before(out, top, plan, culprit, ends[0])
    reports = opened(out, before), opened(out, culprit)
    figure = plan.figure or _worst(reports)
    causes = causes_of(figure, *reports) if figure else []
    subject = next(str(row["subject"]) for row in rows if row["commit"] == culprit)
    first_bad: FirstBad = {
        "commit": culprit, "subject": subject, "before": before, "figure": figure,
        "reports": [str(out / REPORTS / commit) for commit in (before, culprit)],
    }  # fmt: skip
    rows_of_causes = [dict(zip(CAUSE_COLUMNS, row[1:], strict=True)) for row in causes]
    return {**answer, "first_bad": first_bad, "causes": rows_of_causes}


def _write(answer: Answer) -> None:
    heads = ("commit", "verdict", answer["figure"] or "within", "subject")
    shown = [(row["commit"][:SHORT], *list(row.values())[1:]) for row in answer["commits"]]
    write_rows(Rows(heads, shown, len(shown)), limit=0)
    first = answer["first_bad"]
    if first is None:
        suspects = answer["suspects"]
        names = ", ".join(commit[:SHORT] for commit in suspects)
        counts = counted(len(suspects), "commit")
        write(["", f"the first bad one is of {counts}, of which some left no report: {names}"])
        return
    write(["", printable(f"{first['commit'][:SHORT]} is the first bad commit: {first['subject']}")])
    if answer["causes"]:
        write(["", f"{first['figure']}, against {first['before'][:SHORT]}:"])
        rows = [tuple(cause.values()) for cause in answer["causes"]]
        write_rows(Rows(CAUSE_COLUMNS, rows, len(rows)), limit=0)
    paths = " ".join(os.path.relpath(path) for path in first["reports"])
    write(["", printable(f"Again: tilescope compare {paths}")])


def _rows(
    out: Path, top: Path, plan: Plan, ends: Sequence[str]
) -> Iterator[tuple[str, str, float | str, str]]:
    """List what was simulated, the oldest commit first."""
    history = git(top, "log", "--format=%H %s", "--reverse", "--topo-order",
                  f"{ends[0]}..{ends[1]}").splitlines()  # fmt: skip
    first = git(top, "log", "-1", "--format=%H %s", ends[0])
    for line in (first, *history):
        commit, _, subject = line.partition(" ")
        if not (out / COMMITS / f"{commit}.json").is_file():
            continue
        value: float | str = ""
        try:
            verdict = "good" if is_good(out, commit, plan) else "bad"
            if plan.figure:
                value = _value(opened(out, commit), plan.figure)
        except PvaError:
            verdict = "skipped"
        yield commit, verdict, value, subject


def _before(out: Path, top: Path, plan: Plan, culprit: str, good: str) -> str:
    """Name the good commit that the first bad one is compared with: a parent, if it was run."""
    for parent in git(top, "rev-parse", f"{culprit}^@").split():
        with suppress(PvaError):
            if is_good(out, parent, plan):
                return parent
    return good


COMMAND = Declaration(
    command=bisect,
    order=110,
    usage={
        "`tilescope bisect --good REV --bad REV -- COMMAND`": (
            "Which commit made it larger or slower?"
        ),
    },
    calls=(
        "bisect --good a --bad b",
        "bisect --good a --bad b --figure cycles -- true",
        "bisect --good a --bad b --figure steps --budget budgets.toml -- true",
    ),
    reports=(),
)
