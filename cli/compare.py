"""`tilescope compare A B`: what changed between two reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from cli.shared.output import (
    FORMATS,
    OBJECT,
    FormChoice,
    counted,
    limit_option,
    object_option,
    of_frame,
    printable,
    signed,
    table_lines,
    write,
    write_object,
    write_paged,
    write_rows,
)
from cli.shared.source import is_trace, name_stdin, open_report, open_trace, source
from pva import units
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

EXAMPLES = """
\b
Examples:
  tilescope compare before/ after/                    figures, then memory and cycles
  tilescope compare before/ after/ --by operations    every operation, not only the first ten
  tilescope compare before/ after/ --by variables --format csv > variables.csv
  tilescope compare main/ branch/ --format markdown --budget budgets.toml >> comment.md
"""
MARKDOWN = "markdown"
# What --by names: the comparison, its unit, its heading.
TABLES = {
    "categories": ("compare_categories", "bytes", "Memory by category"),
    "tiles": ("compare_tiles", "bytes", "Memory by tile, with gaps"),
    "variables": ("compare_variables", "bytes", "Variables"),
    "vertex-types": ("compare_vertex_types", "bytes", "Memory by vertex type"),
    "compute-sets": ("compare_compute_sets", "bytes", "Vertex state by compute set"),
    "always-live": ("compare_always_live", "bytes", "Always live"),
    "peak": ("compare_live_at_peak", "bytes", "Not always live, at the peak"),
    "causes": ("compare_causes", "cycles", "Cycles by cause"),
    "phases": ("compare_phases", "cycles", "Cycles by phase"),
    "layers": ("compare_layers", "cycles", "Cycles by layer"),
    "operations": ("compare_operations", "cycles", "Cycles by operation"),
    "operation-memory": ("compare_operation_memory", "bytes", "Memory by operation"),
    "programs": ("compare_programs", "cycles", "Cycles by program"),
}
SETTINGS = "settings"
FIRST, ROWS = ("categories", "causes", "operations", SETTINGS), 10
SETTINGS_TITLE = "Target, graph, version and options"


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("before", metavar="A", type=click.Path())
@click.argument("after", metavar="B", type=click.Path())
@click.option(
    "--by", type=click.Choice([*TABLES, SETTINGS]), help="This table alone, all rows that differ."
)
@click.option(
    "--budget",
    type=click.Path(),
    help="Limits that figures of B must keep, such as +2 % of A's: Markdown.",
)
@click.option("--dashboard", default="", metavar="URL", help="Link to this server: Markdown.")
@click.option(
    "--format", "form", type=FormChoice((*FORMATS, MARKDOWN)), default="table",
    help="How to write the rows; markdown is a text for a pull request, the verdict first.",
)  # fmt: skip
@object_option
@limit_option
def compare(
    before: str, after: str, by: str | None, budget: str | None, dashboard: str, form: str,
    limit: int | None,
) -> None:  # fmt: skip
    """Show what changed from report A to report B: memory, cycles, and where.

    Of two host traces: the time of each label, without the events inside.

    Rows are matched by name, changes are signed, and the rows of a table add up to its total. Of
    cycles those of the recorded runs count, as far as these were recorded step by step. --json has
    the rows that are the same, too.
    """
    paths = source(before), source(after)
    traces = all(is_trace(Path(path)) for path in paths)
    if form in ("json", "csv") and by is None and not traces:
        raise click.UsageError(f"--format {form} writes one table; add --by or use --json")
    if (budget or dashboard) and form != MARKDOWN:
        raise click.UsageError(f"--budget and --dashboard are of --format {MARKDOWN}")
    if form == MARKDOWN and (by is not None or limit is not None):
        raise click.UsageError(
            f"--format {MARKDOWN} has its own tables; leave --by and --limit out"
        )
    if traces:
        if form == MARKDOWN:
            raise click.UsageError(f"--format {MARKDOWN} is of two reports, not of host traces")
        _write_traces(paths, by, form, limit)
        return
    reports = open_report(paths[0]), open_report(paths[1])
    if form == MARKDOWN:
        from cli.change_summary import change_summary
        from pva.analysis.whole_report.budgets import check_budgets, read_budgets

        limits = None if budget is None else read_budgets(budget)
        budgets = None if limits is None else check_budgets(reports[1], limits, reports[0]).frame()
        write(change_summary(reports, (before, after), dashboard, budgets))
    elif form == OBJECT:
        _write_object(reports, [before, after], by, limit)
    elif form == "table":
        write_paged(list(_lines(reports, by, limit)))
    else:
        write_rows(of_frame(_changed(reports, str(by))), form, limit)


def _write_traces(paths: tuple[str, str], by: str | None, form: str, limit: int | None) -> None:
    """Write what the labels of two host traces take, by themselves."""
    from pva.analysis.whole_report.comparison import compare_labels, total_of

    if by is not None:
        raise click.UsageError(f"--by {by} is of reports; host traces are compared by label")
    before, after = (open_trace(path) for path in paths)
    frame = compare_labels(before, after).frame()
    if form == OBJECT:
        write_object("compare", list(paths), labels=frame.to_dict("records"))
        return
    totals = total_of(frame)
    changed = frame[frame["change"] != 0].drop(columns="ratio")
    if form != "table":
        write_rows(of_frame(changed), form, limit)
        return
    head = [
        f"{side}: {printable(name_stdin(path))}" for side, path in zip("AB", paths, strict=True)
    ]
    title = f"Time by label: {totals[0]:,} ns -> {totals[1]:,} ns, {signed(totals[2])}"
    same = f"{len(frame) - len(changed):,} of {len(frame):,} rows are the same in both"
    shown = limit or (ROWS if limit is None else None)
    write_paged([*head, "", title, *_rows(changed, "labels", shown), same])


def _comparison(reports: tuple[Report, Report], name: str) -> pd.DataFrame:
    from pva.analysis import COMPARISONS

    changes: pd.DataFrame = COMPARISONS[name](*reports).frame()
    return changes


def _settings(reports: tuple[Report, Report]) -> pd.DataFrame:
    from pva.analysis.whole_report.comparison import compare_settings

    return compare_settings(*reports).frame()


def _changed(reports: tuple[Report, Report], by: str) -> pd.DataFrame:
    if by == SETTINGS:
        return _differing(_settings(reports))
    frame = _comparison(reports, TABLES[by][0])
    return frame[frame["change"] != 0]


def _differing(settings: pd.DataFrame) -> pd.DataFrame:
    return settings[settings["differs"]].drop(columns="differs")


def _lines(reports: tuple[Report, Report], by: str | None, limit: int | None) -> Iterator[str]:
    if by is not None:
        yield from _part(reports, by, limit)
        return
    from pva.analysis.whole_report.comparison import code_of_one

    for side, report in zip("AB", reports, strict=True):
        yield f"{side}: {printable(name_stdin(str(report.path)))}"
    if apart := code_of_one(*reports, ("A", "B")):
        yield apart
    yield ""
    yield from _figure_lines(_comparison(reports, "compare_figures"))
    for name in FIRST:
        yield ""
        most = ROWS if limit is None and name in TABLES else limit
        try:
            yield from _part(reports, name, most)
        except NotRecordedError as error:
            yield f"{TABLES[name][2]}: {error}"


def _part(reports: tuple[Report, Report], name: str, limit: int | None) -> Iterator[str]:
    if name == SETTINGS:
        return _setting_lines(_settings(reports), limit)
    return _table(reports, name, limit)


def _figure_lines(figures: pd.DataFrame) -> Iterator[str]:
    rows = [
        (name.replace("_", " "), _value(before, unit), _value(after, unit), _change(change, unit),
         "" if unit == "fraction" else _percent(before, after))
        for name, unit, before, after, change in figures[
            ["figure", "unit", "before", "after", "change"]
        ].itertuples(index=False)
    ]  # fmt: skip
    yield from table_lines(("figure", "A", "B", "change", ""), rows, right=(1, 2, 3, 4))
    runs = figures.loc[figures["figure"] == "recorded_runs", ["before", "after"]]
    for counts in runs.to_numpy().tolist():
        first, second = (counted(int(count), "recorded run") for count in counts)
        if first != second:
            yield f"cycles and steps of A are those of {first}, of B those of {second}"


def _value(value: float, unit: str) -> str:
    if unit == "fraction":
        return units.share(value)
    return f"{value:,.0f} {unit}".rstrip()


def _change(value: float, unit: str) -> str:
    """Write a change with its sign, that of a share in percentage points."""
    if not value:
        return "0"
    return (
        f"{100 * value:+.1f} percentage points"
        if unit == "fraction"
        else f"{value:+,.0f} {unit}".rstrip()
    )


def _percent(before: float, after: float) -> str:
    return f"{100 * (after - before) / before:+,.1f} %" if before and before != after else ""


def _table(reports: tuple[Report, Report], name: str, limit: int | None) -> Iterator[str]:
    from pva.analysis.whole_report.comparison import total_of

    comparison, unit, title = TABLES[name]
    frame = _comparison(reports, comparison)
    before, after, change = total_of(frame)
    changed = frame[frame["change"] != 0]
    yield f"{title}: {before:,} {unit} -> {after:,} {unit}, {signed(change)}"
    yield from _rows(changed.drop(columns="ratio"), name, limit)
    same = len(frame) - len(changed)
    yield f"{same:,} of {len(frame):,} rows are the same in both"


def _setting_lines(settings: pd.DataFrame, limit: int | None) -> Iterator[str]:
    differing = _differing(settings)
    yield f"{SETTINGS_TITLE}: {len(differing):,} of {len(settings):,} differ"
    yield from _rows(differing, SETTINGS, limit)


def _rows(frame: pd.DataFrame, name: str, limit: int | None) -> Iterator[str]:
    """Write the first rows, and what those left out come to."""
    shown = frame.head(limit) if limit else frame
    if len(shown):
        rows = of_frame(shown)
        yield from table_lines(rows.columns, list(rows.rows))
    unlisted = frame.iloc[len(shown) :]
    if len(unlisted):
        sum_of = (
            f", {signed(int(unlisted['change'].sum()))} together" if "change" in unlisted else ""
        )
        yield f"... {counted(len(unlisted), 'more row')}{sum_of}; --by {name} --limit 0 shows all"


def _write_object(
    reports: tuple[Report, Report], of: list[str], by: str | None, limit: int | None
) -> None:
    names = [*TABLES, SETTINGS] if by is None else [by]
    tables = {name: _object(reports, name, limit) for name in names}
    figures = _comparison(reports, "compare_figures").to_dict("records")
    write_object("compare", of, figures=figures, **tables)


def _object(reports: tuple[Report, Report], name: str, limit: int | None) -> object:
    from pva.analysis.whole_report.comparison import total_of

    if name == SETTINGS:
        settings = _settings(reports)
        return (settings.head(limit) if limit else settings).to_dict("records")
    try:
        frame = _comparison(reports, TABLES[name][0])
    except NotRecordedError:
        return None
    rows = frame.head(limit) if limit else frame
    total = dict(zip(("before", "after", "change"), total_of(frame), strict=True))
    return {"unit": TABLES[name][1], "total": total, "rows": rows.to_dict("records")}


COMMAND = Declaration(
    command=compare,
    order=60,
    usage={
        "`tilescope compare A B`": "What changed, and where?",
    },
    calls=(
        "compare run changed",
        "compare run changed --by variables",
        "compare run graph.json",
        "compare run changed --by layers --format csv",
        "compare run changed --by categories --limit 1 --json",
        "compare run changed --format markdown",
        "compare run changed --format markdown --budget budgets.toml",
    ),
    reports=(
        "compare IN OTHER",
        "compare OTHER IN",
    ),
)
