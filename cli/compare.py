"""`tilescope compare A B`: what changed between two reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cli.faults import Command
from cli.output import (
    OBJECT,
    format_option,
    limit_option,
    of_frame,
    signed,
    table_lines,
    write_object,
    write_paged,
    write_rows,
)
from cli.source import open_report, told
from pva import units
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report

EXAMPLES = """
\b
Examples:
  tilescope compare before/ after/                    figures, then memory and cycles
  tilescope compare before/ after/ --by operations    every operation, not only the first ten
  tilescope compare before/ after/ --by variables --format csv > variables.csv
"""
# What --by names: the comparison, its unit, its heading.
TABLES = {
    "categories": ("compare_categories", "bytes", "Memory by category"),
    "tiles": ("compare_tiles", "bytes", "Memory by tile, with gaps"),
    "variables": ("compare_variables", "bytes", "Variables"),
    "vertex-types": ("compare_vertex_types", "bytes", "Memory by vertex type"),
    "compute-sets": ("compare_compute_sets", "bytes", "Vertex state by compute set"),
    "always-live": ("compare_always_live", "bytes", "Always live"),
    "peak": ("compare_live_at_peak", "bytes", "Not always live, at the peak"),
    "phases": ("compare_phases", "cycles", "Cycles by phase"),
    "layers": ("compare_layers", "cycles", "Cycles by layer"),
    "operations": ("compare_operations", "cycles", "Cycles by operation"),
    "operation-memory": ("compare_operation_memory", "bytes", "Memory by operation"),
    "programs": ("compare_programs", "cycles", "Cycles by program"),
}
FIRST, ROWS = ("categories", "operations"), 10


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("before", metavar="A", type=click.Path())
@click.argument("after", metavar="B", type=click.Path())
@click.option("--by", type=click.Choice([*TABLES]), help="All rows of this table alone.")
@format_option
@limit_option
def compare(before: str, after: str, by: str | None, form: str, limit: int | None) -> None:
    """Show what changed from report A to report B: memory, cycles, and where.

    Rows are matched by name, changes are signed, and the rows of a table add up to its total. Of
    cycles those of the recorded runs count, as far as these were recorded step by step.
    """
    if form in ("json", "csv") and by is None:
        raise click.UsageError(f"--format {form} writes one table; add --by or use --json")
    reports = open_report(before), open_report(after)
    if form == OBJECT:
        _write_object(reports, by, limit)
    elif form == "table":
        write_paged(list(_lines(reports, by, ROWS if limit is None and by is None else limit)))
    else:
        write_rows(of_frame(_changed(reports, str(by))), form, limit)


def _comparison(reports: tuple[Report, Report], name: str) -> pd.DataFrame:
    from pva.analysis import COMPARISONS

    found: pd.DataFrame = COMPARISONS[name](*reports)
    return found


def _changed(reports: tuple[Report, Report], by: str) -> pd.DataFrame:
    frame = _comparison(reports, TABLES[by][0])
    return frame[frame["change"] != 0]


def _lines(reports: tuple[Report, Report], by: str | None, limit: int | None) -> Iterator[str]:
    if by is None:
        yield f"A: {told(str(reports[0].path))}"
        yield f"B: {told(str(reports[1].path))}"
        yield ""
        yield from _figure_lines(_comparison(reports, "compare_figures"))
    for name in FIRST if by is None else [by]:
        if by is None:
            yield ""
        try:
            yield from _table(reports, name, limit)
        except NotRecordedError as error:
            if by is not None:
                raise
            yield f"{TABLES[name][2]}: {error}"


def _figure_lines(figures: pd.DataFrame) -> Iterator[str]:
    rows = [
        (name.replace("_", " "), *(_value(value, unit) for value in values), _percent(*values[:2]))
        for name, unit, *values in figures[
            ["figure", "unit", "before", "after", "change"]
        ].itertuples(index=False)
    ]
    rows = [(name, a, b, c if c.startswith("-") or a == b else f"+{c}", p)
            for name, a, b, c, p in rows]  # fmt: skip
    yield from table_lines(("figure", "A", "B", "change", ""), rows, right=(1, 2, 3, 4))


def _value(value: float, unit: str) -> str:
    if unit == "fraction":
        return units.share(value)
    return f"{value:,.0f} {unit}".rstrip()


def _percent(before: float, after: float) -> str:
    return f"{100 * (after - before) / before:+.1f} %" if before and before != after else ""


def _table(reports: tuple[Report, Report], name: str, limit: int | None) -> Iterator[str]:
    from pva.analysis.compare import total_of

    comparison, unit, title = TABLES[name]
    frame = _comparison(reports, comparison)
    before, after, change = total_of(frame)
    changed = frame[frame["change"] != 0]
    shown = changed.head(limit) if limit else changed
    yield f"{title}: {before:,} {unit} -> {after:,} {unit}, {signed(change)}"
    if len(shown):
        rows = of_frame(shown.drop(columns="ratio"))
        yield from table_lines(rows.columns, list(rows.rows))
    rest = changed.iloc[len(shown) :]
    if len(rest):
        more = int(rest["change"].sum())
        yield f"... {len(rest):,} more rows, {signed(more)} together; --by {name} shows all"
    same = len(frame) - len(changed)
    yield f"{same:,} of {len(frame):,} rows are the same in both"


def _write_object(reports: tuple[Report, Report], by: str | None, limit: int | None) -> None:
    from pva.analysis.compare import total_of

    tables: dict[str, Any] = {}
    for name in TABLES if by is None else [by]:
        try:
            frame = _comparison(reports, TABLES[name][0])
        except NotRecordedError:
            tables[name] = None
            continue
        rows = frame.head(limit) if limit else frame
        total = dict(zip(("before", "after", "change"), total_of(frame), strict=True))
        found = rows.to_dict("records")
        tables[name] = {"unit": TABLES[name][1], "total": total, "rows": found}
    figures = _comparison(reports, "compare_figures").to_dict("records")
    of = [told(str(report.path)) for report in reports]
    write_object("compare", of, figures=figures, **tables)
