"""The text of a pull request: what changed between two reports, the verdict first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from cli.check import number, wanted
from cli.shared.output import counted, printable, signed
from pva import units
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

Reports = tuple["Report", "Report"]
Figures = dict[str, tuple[int, int]]  # by name: before, after
CAUSES = 3  # changes that have a row of their own
CHANGED = 0.0005  # of what was there before: less is written as "the same"
LONGEST_NAME = 120  # letters
# Comparison, its unit, and the heading of its causes.
TABLES = (
    ("compare_operations", "cycles", "Cycles by operation, recorded runs"),
    ("compare_categories", "bytes", "Memory by category"),
)
LINKS = (("compare", "/compare"), ("execution of B", "/execution"), ("insights of B", "/insights"))


def change_summary(
    reports: Reports, paths: tuple[str, str], dashboard: str, budgets: pd.DataFrame | None
) -> Iterator[str]:
    """Return the lines of the text in Markdown: verdict, causes, budgets, links.

    `budgets` are those of `check_budgets` of the second report. Shares of causes are signed and add
    up to the whole change.
    """
    from pva.analysis import COMPARISONS

    figures = _figures(reports)
    yield f"### {verdict(reports)}"
    yield ""
    yield _memory(figures)
    for comparison, unit, title in TABLES:
        try:
            yield from _causes(COMPARISONS[comparison](*reports), unit, title)
        except NotRecordedError as error:
            yield from ("", f"{title}: {_escaped(str(error))}")
    if budgets is not None:
        yield from _budgets(budgets)
    yield from _links(paths, dashboard)


def _figures(reports: Reports) -> Figures:
    from pva.analysis import COMPARISONS

    frame = COMPARISONS["compare_figures"](*reports)
    rows = zip(*(frame[name].tolist() for name in ("figure", "before", "after")), strict=True)
    return {name: (int(before), int(after)) for name, before, after in rows}


def verdict(reports: Reports) -> str:
    """Write whether the second report fits, then whether it is faster."""
    figures, speed = _figures(reports), _speed(reports)
    before, after = figures.get("tiles_out_of_memory", (0, 0))
    if after and not before:
        return f"Does not fit any more: {counted(after, 'tile')} out of memory"
    if before and not after:
        return f"Fits now; {speed}"
    return f"Does not fit, as before; {speed}" if after else speed[:1].upper() + speed[1:]


def _speed(reports: Reports) -> str:
    """Write how much faster a run of the model is, of as many runs as each recorded."""
    from pva.analysis.execution.main_runs import main_run
    from pva.analysis.whole_report.comparison import compare_figures, rates_of_other_work

    try:
        runs = [main_run(report) for report in reports]
    except NotRecordedError as error:
        return _escaped(str(error))
    if rates := rates_of_other_work(compare_figures(*reports)):
        return _change(
            *rates, "items/s of runs that differ in items or clock", ("faster", "slower")
        )
    before, after = (run.cycles / max(run.runs, 1) for run in runs)
    return _change(before, after, "cycles a run", ("slower", "faster"))


def _change(before: float, after: float, unit: str, words: tuple[str, str]) -> str:
    """Write how much faster or slower it is: the word for an increase, then that for a decrease."""
    change = after / before - 1 if before else 0.0
    if abs(change) < CHANGED:
        return f"as fast as before: {after:,.0f} {unit}"
    word = words[0] if change > 0 else words[1]
    return f"{units.share(abs(change))} {word}: {before:,.0f} → {after:,.0f} {unit}"


def _memory(figures: Figures) -> str:
    parts = []
    for figure, name in (
        ("largest_tile", "Fullest tile"), ("total_memory", "all tiles"), ("max_live", "most live")
    ):  # fmt: skip
        if figure in figures:
            before, after = figures[figure]
            grown = f" ({signed(after - before)})" if after != before else ", as before"
            parts.append(f"{name} {after:,} bytes{grown}")
    return "; ".join(parts) + "."


def _causes(frame: pd.DataFrame, unit: str, title: str) -> Iterator[str]:
    from pva.analysis.whole_report.comparison import total_of, waterfall

    before, after, change = total_of(frame)
    yield ""
    yield f"**{title}**: {before:,} → {after:,} {unit}, {signed(change)}"
    steps = waterfall(frame, count=CAUSES)
    if not len(steps):
        return
    gross = int(frame["change"].abs().sum())
    yield ""
    yield "| cause | change | share of the change |"
    yield "| --- | ---: | ---: |"
    unlisted = int((frame["change"] != 0).sum()) - CAUSES
    for name, part in steps[["name", "change"]].itertuples(index=False):
        cause = _code(name) if name else f"{unlisted:,} others"
        yield f"| {cause} | {signed(part)} | {_share(part, change)} |"
    yield f"| all | {signed(change)} | {_share(change, change)} |"
    if change and gross > 2 * abs(change):
        yield ""
        yield f"Changes of {gross:,} {unit} in both directions come to {signed(change)}."


def _share(part: int, change: int) -> str:
    return f"{100 * part / change:+,.1f} %" if change else "–"


def _budgets(budgets: pd.DataFrame) -> Iterator[str]:
    broken = budgets[~budgets["kept"]]
    yield ""
    if not len(broken):
        yield f"Budgets: {counted(len(budgets), 'budget')} kept."
        return
    yield f"**Budgets: {len(broken):,} of {len(budgets):,} broken**"
    yield ""
    for name, value, least, most in zip(
        *(broken[column] for column in ("budget", "found", "least", "most")), strict=True
    ):
        yield f"* {_code(name)}: {number(value)}; {wanted(value, least, most)}"


def _links(paths: tuple[str, str], dashboard: str) -> Iterator[str]:
    first, second = (path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
    pair = urlencode({"report": second, "against": first})
    one = urlencode({"report": second})
    yield ""
    if dashboard:
        base = dashboard.rstrip("/")
        yield " · ".join(
            f"[{text}]({base}{path}?{pair if path == '/compare' else one})" for text, path in LINKS
        )
        yield ""
    yield f"Again: {_code(f'tilescope compare {first} {second}')}"


def _code(text: object) -> str:
    """Write a name of a report as code: no letter of it is Markdown, HTML or ends a cell."""
    plain = printable(str(text)).replace("`", "'").replace("|", "¦")
    return f"`{plain if len(plain) <= LONGEST_NAME else plain[:LONGEST_NAME] + '…'}`"


def _escaped(text: str) -> str:
    return printable(text).translate({ord(c): f"\\{c}" for c in "\\`*_{}[]<>()#|!"})
