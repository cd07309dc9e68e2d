"""What changed between two reports: matched by name, signed, with totals that reconcile.

Each function takes two reports and gives a DataFrame; the largest change comes first. Rows with the
same name are added up before they are matched; `in` says which reports have the row. The changes of
a table add up to the change of its total, which is that of a figure of `figures` where the table
says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pva.analysis.execution.cycle_causes import cycles_by_cause
from pva.analysis.execution.totals import cycles_by_program
from pva.analysis.host.labels import label_statistics
from pva.analysis.memory.code import memory_by_operation
from pva.analysis.memory.liveness import always_live_variables, live_variables
from pva.analysis.memory.totals import (
    category_by_tile,
    category_label,
    counts_code,
    memory_by_compute_set,
    memory_by_tile,
    memory_by_vertex_type,
)
from pva.analysis.operations.cycle_breakdown import (
    cycles_by_layer,
    cycles_by_operation,
    cycles_by_phase,
)
from pva.analysis.whole_report.key_figures import FIGURES, figures, no_run
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Dataset, Report
    from pva.trace import Trace

BOTH, BEFORE, AFTER = "both", "before", "after"
SAME_WORK = 1e-6  # relative: items times clock of two reports that differ by less are the same


def compare_figures(before: Report, after: Report) -> pd.DataFrame:
    """Compare the figures that both reports hold: figure, unit, before, after, change, ratio."""
    frame = figures(before).merge(figures(after), on=["figure", "unit"], suffixes=("_a", "_b"))
    frame = frame.rename(columns={"value_a": BEFORE, "value_b": AFTER})
    order = {name: place for place, name in enumerate(FIGURES)}
    frame = frame.sort_values("figure", key=lambda names: names.map(order), ignore_index=True)
    return _with_change(frame)


def rates_of_other_work(frame: pd.DataFrame) -> tuple[float, float] | None:
    """Return the items a second of both reports, where their cycles do not tell which is faster.

    `frame` is that of `compare_figures`. Cycles tell it, and None is returned, where the runs of
    both take the same number of items by the same clock.
    """
    rows = frame.set_index("figure")[[BEFORE, AFTER]]
    if not {"run_cycles", "items_per_second"} <= set(rows.index):
        return None
    rates = rows.loc["items_per_second"].to_numpy(np.float64)
    work = rates * rows.loc["run_cycles"].to_numpy(np.float64)
    return None if abs(work[1] - work[0]) <= SAME_WORK * work[0] else (rates[0], rates[1])


def code_of_one(before: Report, after: Report, names: tuple[str, str]) -> str:
    """Return a sentence where one of two reports alone counts code, else nothing."""
    if counts_code(before) == counts_code(after):
        return ""
    without, counted = names if counts_code(after) else names[::-1]
    return f"{without} is without code, {counted} has it: memory differs by it, too."


def compare_categories(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of all tiles by category; the changes add up to that of `total_memory`."""
    return _matched(map(_categories, (before, after)), ["category"], "bytes")


def compare_tiles(
    before: Report, after: Report, *, gaps: Literal["included", "excluded"] = "included"
) -> pd.DataFrame:
    """Compare the bytes of each tile by its number: what it needs, or its data without `gaps`."""
    parts = (memory_by_tile(report).frame() for report in (before, after))
    return _matched(parts, ["tile"], "total_including_gaps" if gaps == "included" else "total")


def compare_vertex_types(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of vertices by type: their code once a tile, and their data."""
    parts = (memory_by_vertex_type(report).frame() for report in (before, after))
    return _matched(parts, ["vertex_type"], "total")


def compare_compute_sets(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes that the vertices of each compute set hold for it alone, by name."""
    parts = (memory_by_compute_set(report).frame() for report in (before, after))
    return _matched(parts, ["name"], "state")


def compare_always_live(before: Report, after: Report) -> pd.DataFrame:
    """Compare what is always live, by name; the changes add up to that of `always_live`."""
    parts = (always_live_variables(report).frame() for report in (before, after))
    return _matched(parts, ["name"], "bytes")


def compare_live_at_peak(before: Report, after: Report) -> pd.DataFrame:
    """Compare what is not always live, each report where its own liveness peaks, by name.

    The changes add up to that of `max_live` less that of `always_live`. Raises NotRecordedError.
    """
    return _matched(map(_at_peak, (before, after)), ["name"], "bytes")


def compare_variables(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of variables by name; variables may share memory, so their sum is more."""
    return _matched(map(_variables, (before, after)), ["name"], "bytes")


def compare_causes(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each cause made the runs longer, as `cycles_by_cause` counts them.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_cause(report).frame() for report in _run(before, after))
    return _matched(parts, ["cause"], "cycles")


def compare_phases(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles compute, exchange, host exchange and sync made the runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_phase(report).frame() for report in _run(before, after))
    return _matched(parts, ["phase"], "cycles")


def compare_operation_memory(before: Report, after: Report) -> pd.DataFrame:
    """Compare the bytes of each operation: variables, vertices and code, as `memory_by_operation`.

    Raises NotRecordedError.
    """
    parts = (memory_by_operation(report).frame() for report in _named_alike(before, after))
    return _matched(parts, ["operation"], "bytes")


def compare_layers(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each layer made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_layer(report).frame() for report in _named_alike(*_run(before, after)))
    return _matched(parts, ["layer"], "cycles")


def compare_operations(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each operation made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_operation(report).frame() for report in _named_alike(*_run(before, after)))
    return _matched(parts, ["operation"], "cycles")


def compare_programs(before: Report, after: Report) -> pd.DataFrame:
    """Compare by how many cycles each program made the recorded runs longer, by type and name.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_program(report).frame() for report in _run(before, after))
    return _matched(parts, ["type", "name"], "cycles")


def compare_labels(before: Trace, after: Trace) -> pd.DataFrame:
    """Compare the time of each label of two host traces by itself, largest change first.

    `before` and `after` are in nanoseconds, without what the events directly inside took, so that
    the rows add up to the time in which threads were inside events. Of `events_before` and
    `events_after` one is 0 where `in` names the other trace alone.
    """
    parts = [label_statistics(trace).frame() for trace in (before, after)]
    frame = _matched(parts, ["label"], "self_ns")
    for name, part in zip((BEFORE, AFTER), parts, strict=True):
        events = part.groupby("label")["count"].sum()
        frame[f"events_{name}"] = frame["label"].map(events).fillna(0).astype("int64")
    return frame


def compare_settings(before: Report, after: Report) -> pd.DataFrame:
    """Compare target, graph, version and engine options: about, name, before and after, as texts.

    Those that differ come first, marked `differs`; a setting that one report lacks is empty there.
    """
    parts = (_settings(before), _settings(after))
    keys = dict.fromkeys([*parts[0], *parts[1]])
    rows = [(*key, parts[0].get(key, ""), parts[1].get(key, "")) for key in keys]
    frame = pd.DataFrame(rows, columns=["about", "name", BEFORE, AFTER])
    frame["differs"] = frame[BEFORE] != frame[AFTER]
    return frame.sort_values("differs", ascending=False, kind="stable", ignore_index=True)


def _settings(report: Report) -> dict[tuple[str, str], str]:
    """Return the rows that a report has one of, and its options, as texts."""
    data = report.dataset
    settings = {}
    for table, words in (("target", "target"), ("graph", "graph"), ("report", "version")):
        if data.has(table):
            for name in data.table(table):
                settings[words, name.replace("_", " ")] = _text(data, table, name)
    if data.has("engine_options"):
        columns = (data.column("engine_options", name).tolist() for name in ("name", "value"))
        settings |= {("option", name): value for name, value in zip(*columns, strict=True)}
    return settings


def _text(data: Dataset, table: str, name: str) -> str:
    if table == "target" and name == "type":
        return str(data.texts(table, name)[0])
    value = data.value(table, name)
    return value if isinstance(value, str) else f"{value:,.15g}"


def total_of(frame: pd.DataFrame) -> tuple[int, int, int]:
    """Add up a table of this module: before, after, change."""
    return tuple(int(frame[column].sum()) for column in (BEFORE, AFTER, "change"))  # type: ignore[return-value]


def waterfall(frame: pd.DataFrame, *, count: int = 8) -> pd.DataFrame:
    """Lead from the total before to the total after: the largest changes of a table, then the rest.

    `name` (those of the first columns), `change`, and from which `begin` to which `end` it leads. A
    row for each of at most `count` changes, the largest first, and one with the name "" for all
    others together, where there are some. The last `end` is the total after.
    """
    changed = frame[frame["change"] != 0]
    first = changed.head(count)
    keys = list(frame.columns[: frame.columns.get_loc(BEFORE)])
    names = first[keys[-1]].astype(str).tolist()
    changes = first["change"].tolist()
    if len(changed) > count:
        names.append("")
        changes.append(int(changed["change"].iloc[count:].sum()))
    end = total_of(frame)[0] + np.cumsum(np.array(changes, dtype=np.int64))
    values = np.array(changes, dtype=np.int64)
    return pd.DataFrame({"name": names, "change": values, "begin": end - values, "end": end})


def _run(before: Report, after: Report) -> tuple[Report, Report]:
    """Refuse to compare cycles where no run of one was recorded; raises NotRecordedError."""
    for report in (before, after):
        if not len(report.dataset.column("steps", "program")):
            raise no_run(report)
    return before, after


def _named_alike(before: Report, after: Report) -> tuple[Report, Report]:
    """Let operations go by names alone in both, where one report lacks debug contexts."""
    has_contexts = [report.dataset.has("debug_contexts") for report in (before, after)]
    if all(has_contexts) or not any(has_contexts):
        return before, after
    first, second = (
        report.of(report.dataset.select("graph", "execution")) for report in (before, after)
    )
    return first, second


def _categories(report: Report) -> pd.DataFrame:
    sums = category_by_tile(report).frame().sum()
    labels = [category_label(category) for category in sums.index]
    return pd.DataFrame({"category": labels, "bytes": sums.to_numpy()})


def _at_peak(report: Report) -> pd.DataFrame:
    live = report.dataset.column("liveness_steps", "bytes")
    if not len(live):
        return pd.DataFrame({"name": [], "bytes": []})
    return live_variables(report, step=int(live.argmax())).frame()


def _variables(report: Report) -> pd.DataFrame:
    data = report.dataset
    columns = {name: data.column("variables", name) for name in ("name", "bytes")}
    return pd.DataFrame(columns)


def _matched(parts: Iterable[pd.DataFrame], names: list[str], value: str) -> pd.DataFrame:
    """Match sums by name, nothing counting as 0; rows in both that are 0 in both are left out."""
    sums = [frame.groupby(names, observed=True)[value].sum() for frame in parts]
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


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many rows of a table grew, shrank, and are the same."""

    grown: int
    shrunk: int
    same: int


def change_counts(frame: pd.DataFrame) -> ChangeCounts:
    """Count the rows of a table of this module by the sign of their change."""
    signs = np.sign(frame["change"].to_numpy())
    return ChangeCounts(*(int(np.count_nonzero(signs == sign)) for sign in (1, -1, 0)))


def rows_of_waterfall(frame: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table that `waterfall` shows each by itself."""
    return frame[frame["change"] != 0].head(int((steps["name"] != "").sum()))


def in_tile_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Order the rows of `compare_tiles` by tile."""
    return frame.sort_values("tile")
