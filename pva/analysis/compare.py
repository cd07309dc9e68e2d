"""What changed between two reports: matched by name, signed, with totals that reconcile.

Each function takes two reports and gives a DataFrame; the largest change comes first. Rows with the
same name are added up before they are matched; `in` says which reports have the row. The changes of
a table add up to the change of its total, which is that of a figure of `figures` where the table
says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.execution import cycles_by_program
from pva.analysis.figures import FIGURES, figures
from pva.analysis.memory import category_by_tile, category_label
from pva.analysis.operations import cycles_by_layer, cycles_by_operation

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report

BOTH, BEFORE, AFTER = "both", "before", "after"


def compare_figures(before: Report, after: Report) -> pd.DataFrame:
    """Compare the figures that both reports hold: figure, unit, before, after, change, ratio."""
    frame = figures(before).merge(figures(after), on=["figure", "unit"], suffixes=("_a", "_b"))
    frame = frame.rename(columns={"value_a": BEFORE, "value_b": AFTER})
    order = {name: place for place, name in enumerate(FIGURES)}
    frame = frame.sort_values("figure", key=lambda names: names.map(order), ignore_index=True)
    return _with_change(frame)


def compare_categories(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of all tiles by category; the changes add up to that of `total_memory`."""
    return _matched(_categories(before), _categories(after), ["category"], "bytes")


def compare_variables(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of variables by name; variables may share memory, so their sum is more."""
    return _matched(_variables(before), _variables(after), ["name"], "bytes")


def compare_layers(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each layer made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    return _matched(cycles_by_layer(before), cycles_by_layer(after), ["layer"], "cycles")


def compare_operations(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each operation made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_operation(before), cycles_by_operation(after))
    return _matched(*parts, ["operation"], "cycles")


def compare_programs(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each program made the recorded runs longer, by type and name.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_program(before), cycles_by_program(after))
    return _matched(*parts, ["type", "name"], "cycles")


def total_of(frame: pd.DataFrame) -> tuple[int, int, int]:
    """Add up a table of this module: before, after, change."""
    return tuple(int(frame[column].sum()) for column in (BEFORE, AFTER, "change"))  # type: ignore[return-value]


def _categories(report: Report) -> pd.DataFrame:
    import pandas as pd

    sums = category_by_tile(report).sum()
    labels = [category_label(category) for category in sums.index]
    return pd.DataFrame({"category": labels, "bytes": sums.to_numpy()})


def _variables(report: Report) -> pd.DataFrame:
    import pandas as pd

    data = report.dataset
    columns = {name: data.column("variables", name) for name in ("name", "bytes")}
    return pd.DataFrame(columns)


def _matched(
    before: pd.DataFrame, after: pd.DataFrame, names: list[str], value: str
) -> pd.DataFrame:
    """Match sums by name, nothing counting as 0; rows in both that are 0 in both are left out."""
    sums = [frame.groupby(names, observed=True)[value].sum() for frame in (before, after)]
    joined = sums[0].to_frame(BEFORE).join(sums[1].to_frame(AFTER), how="outer")
    where = np.select([joined[BEFORE].isna(), joined[AFTER].isna()], [AFTER, BEFORE], BOTH)
    frame = joined.fillna(0).astype("int64").assign(**{"in": where}).reset_index()
    frame = frame[(frame[BEFORE] != 0) | (frame[AFTER] != 0)]
    frame = _with_change(frame)
    order = (-frame["change"].abs()).argsort(kind="stable")
    columns = [*names, BEFORE, AFTER, "change", "ratio", "in"]
    return frame.iloc[order].reset_index(drop=True)[columns]


def _with_change(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the change, and after as a multiple of before (not a number when that is 0)."""
    change = frame[AFTER] - frame[BEFORE]
    return frame.assign(change=change, ratio=frame[AFTER] / frame[BEFORE].replace(0, np.nan))
