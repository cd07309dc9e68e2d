"""`tilescope check REPORT`: hold a report against the conservation laws, and against budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.check_cases import JUNIT, SARIF, cases, junit, sarif
from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.fitting import labelled
from cli.shared.output import (
    FORMATS,
    OBJECT,
    FormChoice,
    Rows,
    counted,
    limit_option,
    object_option,
    printable,
    write,
    write_json,
    write_object,
    write_rows,
)
from cli.shared.source import name_stdin, open_report
from pva import units
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

EXAMPLES = """
\b
Examples:
  tilescope check run/                          bytes, cycles and steps that must add up
  tilescope check run/ --budget budgets.toml    and figures that must stay within limits
  tilescope check run/ --baseline main/         and figures that may not get worse
  tilescope check run/ --format json            what is broken, for a program to read
  tilescope check run/ --format sarif > r.sarif and what stands out, for code scanning
\b
A file of budgets names figures with what they may be at most, or at least:
  largest_tile = "560 kB"
  always_live = "300 MB"
  total_cycles = 2_100_000
  tile_balance = {min = "10 %"}
  run_cycles = "+2 %"       # so much more than in the report of --baseline, at most
\b
The others are total_memory, max_live, tiles_out_of_memory, recorded_runs and steps.
Any number of an analysis of `tilescope show` can be one, too:
  [[budget]]
  analysis = "cycles_by_layer"
  where = ["layer = Layer1"]
  column = "cycles"
  take = "sum"              # of the rows: max (unless told), min, sum or mean
  max = 700_000
"""
BROKEN = 1
COLUMNS = ("law", "place", "found", "wanted", "places")
CAUSE_COLUMNS = ("budget", "cause", "change", "share of the change")
MAX_CAUSES = 3  # of a budget, with a row of their own
# The comparisons whose rows add up to a figure, by its name or its unit.
CAUSES = {
    "max_live": ("compare_always_live", "compare_live_at_peak"),
    "always_live": ("compare_always_live",), "largest_tile": ("compare_tiles",),
    "bytes": ("compare_categories",), "cycles": ("compare_operations",),
}  # fmt: skip
WHOLE = 1e6  # numbers from here on are written without decimals
SHOWN = 0.0005, 10  # by which part of its limit a number misses it, written as a share


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("report", metavar="REPORT", type=click.Path())
@click.option(
    "--budget", "--budgets", "budget", type=click.Path(), help="Limits that figures must keep."
)
@click.option(
    "--baseline", metavar="OLD", type=click.Path(),
    help="Report that limits such as +2 % go by; without --budget nothing may be larger or slower.",
)  # fmt: skip
@click.option(
    "--format", "form", type=FormChoice((*FORMATS, JUNIT, SARIF)), default="table",
    help="How to write what is broken; junit and sarif have the findings of insights, too.",
)  # fmt: skip
@object_option
@limit_option
@click.pass_context
def check(
    ctx: click.Context, report: str, budget: str | None, baseline: str | None, form: str,
    limit: int | None,
) -> None:  # fmt: skip
    """Check that the figures of a report add up and keep their budgets; exit code 1 if not.

    Where a figure is worse than in the baseline allows, the largest causes are named.
    """
    from pva import progress
    from pva.check import LAWS

    opened = open_report(report)
    data = opened.dataset
    verdicts = [row for law in progress.each(LAWS, "checking") for row in law.verdict(data)]
    skipped = {law: why for law, _, holds, _, why, *_ in verdicts if holds is None}
    broken = [
        (law, place, value, limit, count)
        for law, _, holds, place, value, limit, count in verdicts
        if holds is False
    ]
    law_count = len(LAWS) - len(skipped) - len({law for law, *_ in broken})
    old = None if baseline is None else open_report(baseline)
    budgets = _budgets(opened, budget, old)
    causes = [] if old is None or budgets is None else _causes(old, opened, budgets)
    over = [] if budgets is None else _over(budgets)
    rows = broken + over
    if form in (JUNIT, SARIF):
        checked = cases(opened, verdicts, budgets, over, causes)
        if form == JUNIT:
            write([junit(report, checked)])
        else:
            write_json(sarif(report, checked))
    elif form == OBJECT:
        fields: dict[str, Any] = {
            "ok": not rows,
            "laws": {
                "held": law_count,
                "broken": len(LAWS) - len(skipped) - law_count,
                "not_checked": len(skipped),
            },
            "not_checked": skipped,
            "budgets": [] if budgets is None else budgets.to_dict("records"),
            "broken": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
            "causes": [dict(zip(CAUSE_COLUMNS, row, strict=True)) for row in causes],
        }
        write_object("check", report, **fields)
    elif rows or form != "table":
        write_rows(Rows(COLUMNS, rows, len(rows)), form, limit)
        if causes and form == "table":
            write([""])
            write_rows(Rows(CAUSE_COLUMNS, causes, len(causes)), form, limit)
    else:
        lines = _kept(name_stdin(str(opened.path)), law_count, list(skipped), budgets)
        write(list(labelled((("", line) for line in lines), 0)))
    ctx.exit(BROKEN if rows else 0)


def _budgets(report: Report, path: str | None, old: Report | None) -> pd.DataFrame | None:
    """Compare a report with a file of budgets, or with its baseline alone."""
    from pva.analysis.whole_report.budgets import check_budgets, no_worse, read_budgets

    if path is None and old is None:
        return None
    return check_budgets(report, no_worse() if path is None else read_budgets(path), old).frame()


def _causes(old: Report, new: Report, budgets: pd.DataFrame) -> list[tuple[str, str, int, str]]:
    """Return the largest changes behind the figures that are worse than the baseline allows."""
    worse = budgets[~budgets["kept"] & budgets["baseline"].notna()]
    return [row for name in worse["budget"].tolist() for row in causes_of(name, old, new)]


def causes_of(figure: str, old: Report, new: Report) -> list[tuple[str, str, int, str]]:
    """Return the largest changes behind a figure as rows of CAUSE_COLUMNS; none where unknown."""
    from pva.analysis import COMPARISONS
    from pva.analysis.whole_report.comparison import total_of, waterfall
    from pva.analysis.whole_report.key_figures import FIGURES

    unit = FIGURES[figure].unit if figure in FIGURES else ""
    comparisons = CAUSES.get(figure) or CAUSES.get(unit, ())
    if not comparisons:
        return []
    frames = [COMPARISONS[comparison](old, new) for comparison in comparisons]
    frame = pd.concat(frames).sort_values("change", key=abs, ascending=False, kind="stable")
    change = total_of(frame)[2]
    rows = []
    for cause, part in waterfall(frame, count=MAX_CAUSES)[["name", "change"]].values.tolist():
        share = f"{100 * part / change:+,.1f} %" if change else ""
        named = f"tile {cause}" if cause and comparisons == ("compare_tiles",) else cause
        rows.append((figure, named or "all others", part, share))
    return rows


def _over(budgets: pd.DataFrame) -> list[tuple[object, ...]]:
    """Return the budgets that are not kept as rows of COLUMNS."""
    return [
        ("budget", name, number(value), wanted(value, least, most), 1)
        for name, value, least, most, within, *_ in budgets.itertuples(index=False)
        if not within
    ]


def number(value: float) -> str:
    """Write a number of a budget: large ones without decimals."""
    if value != value:
        return "no row"
    integral = float(value).is_integer() or abs(value) >= WHOLE
    return f"{value:,.0f}" if integral else f"{value:,.6g}"


def wanted(value: float, least: float, most: float) -> str:
    """Write the limit that a number of a budget misses, and by how much."""
    if value != value:
        return "a row that the filter lets through"
    limit, word = (most, "at most") if value > most else (least, "at least")
    apart = abs(value - limit)
    part = apart / abs(limit) if limit else 0.0
    by = units.share(part) if SHOWN[0] <= part < SHOWN[1] else number(apart)
    return f"{word} {number(limit)}, by {by}"


def _kept(
    report: str, law_count: int, skipped: list[str], budgets: pd.DataFrame | None
) -> list[str]:
    report = printable(report)
    unchecked = (
        f"; {len(skipped)} not checked, as it does not hold what they need" if skipped else ""
    )
    lines = [f"{report}: keeps all {law_count} laws that were checked{unchecked}"]
    if budgets is not None:
        tightest = max(
            ((value / most, name) for name, value, _, most, *_ in budgets.itertuples(index=False)
             if most > 0), default=None,
        )  # fmt: skip
        nearest = (
            f"; nearest its limit is {tightest[1]}, at {units.share(tightest[0])}"
            if tightest
            else ""
        )
        lines.append(f"{report}: keeps {counted(len(budgets), 'budget')}{nearest}")
        empty = budgets.loc[budgets["rows"] == 0, "budget"]
        lines += [f"{report}: no row is let through by the filter of {name}" for name in empty]
    return lines


COMMAND = Declaration(
    command=check,
    order=100,
    usage={
        "`tilescope check REPORT --budget FILE`": (
            "Do the figures add up, and keep to their limits? For CI"
        ),
    },
    calls=(
        "check run",
        "check run --budget budgets.toml",
        "check broken.pop",
        "check run --budget budgets.toml --json",
    ),
    reports=("check IN",),
    steps=("check OTHER --baseline IN",),
)
