"""What `show` keeps of a table, in which order, and how it is written."""

from __future__ import annotations

import dataclasses
import io
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from cli.shared.output import (
    FORMATS,
    OBJECT,
    FormChoice,
    Record,
    Result,
    Rows,
    limit_option,
    of_frame,
    of_record,
    write,
    write_bytes,
    write_result,
    write_rows_object,
)
from pva.errors import MissingPackageError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.analysis.table import Table

PARQUET = "parquet"
OPTIONS = (
    click.option(
        "--where", multiple=True, metavar="'COLUMN OP VALUE'",
        help="Only rows of which this holds; OP is = != < <= > >= ~ (contains) or !~. A number may"
        " have a unit: 64 kB, 25 %.",
    ),
    click.option(
        "--sort", metavar="COLUMN",
        help="Largest numbers first, texts from A to Z; -COLUMN is the other way round.",
    ),
    limit_option,
    click.option(
        "--format", "form", type=FormChoice((*FORMATS, PARQUET)), default="table",
        help="How to write the rows.",
    ),
    click.option(
        "--json", "form", flag_value=OBJECT,
        help="Write one JSON object: command, of, name, columns (name and unit), count, rows.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """The OPTIONS by name."""

    where: tuple[str, ...]
    sort: str | None
    limit: int | None
    form: str


def write_selected(
    name: str,
    path: str,
    result: Result,
    units: dict[str, str],
    selection: Selection,
    note: str = "",
) -> None:
    """Write the rows that are chosen of what an analysis or table gave; raises PvaError.

    `note` ends a table.
    """
    if selection.where or selection.sort or selection.form == PARQUET:
        rows = frame_of_record(result) if dataclasses.is_dataclass(result) else result
        result = selected(rows, selection)
    if selection.form == PARQUET and isinstance(result, pd.DataFrame):
        _write_parquet(result)
    elif selection.form == OBJECT:
        written = (
            _with_units(of_record(result), units)
            if dataclasses.is_dataclass(result)
            else of_frame(result)
        )
        write_rows_object("show", path, written, selection.limit, units, name=name)
    else:
        write_result(result, selection.form, selection.limit)
        write([note] if note and selection.form == FORMATS[0] else [])


def _with_units(rows: Rows, units: dict[str, str]) -> Rows:
    """Add to each field of a dataclass its unit."""
    fields = [
        (name, value, units.get(str(name).partition(".")[0], "")) for name, value in rows.rows
    ]
    return Rows((*rows.columns, "unit"), fields, rows.count)


def frame_of_record(record: Record) -> pd.DataFrame:
    """Return the fields of a dataclass as rows, their values as texts."""
    rows = of_record(record)
    return pd.DataFrame([(field, str(value)) for field, value in rows.rows], columns=rows.columns)


def selected(rows: pd.DataFrame | Table, selection: Selection) -> pd.DataFrame:
    """Keep and order rows as the options say; raises PvaError for an unknown column."""
    from pva.analysis.filters import column_of, matching, parse_filter
    from pva.analysis.table import Table

    frame = rows.frame() if isinstance(rows, Table) else rows
    if frame.index.name:
        frame = frame.reset_index()
    frame = matching(frame, map(parse_filter, selection.where))
    if selection.sort:
        column = selection.sort.removeprefix("-")
        turned = column != selection.sort
        rising = turned if pd.api.types.is_numeric_dtype(column_of(frame, column)) else not turned
        frame = frame.sort_values(column, ascending=rising, kind="stable")
    if selection.limit and selection.form == PARQUET:
        frame = frame.head(selection.limit)
    return frame


def _write_parquet(frame: pd.DataFrame) -> None:
    if sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal; write it to a file with > FILE")
    data = io.BytesIO()
    try:
        frame.to_parquet(data, index=False)
    except ImportError:
        raise MissingPackageError(
            "--format parquet", "needs the package pyarrow", "pip install 'tilescope[parquet]'"
        ) from None
    write_bytes(data.getvalue())
