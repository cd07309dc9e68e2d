"""What changed between two reports: matched by name, signed, with totals that reconcile.

Each analysis takes two reports, or traces; the largest change comes first. Rows with the
same name are added up before they are matched; `in` says which reports have the row. The changes of
a table add up to the change of its total, which is that of a figure of `figures` where the table
says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis, table
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
from pva.analysis.table import Columns, Table, arrays_of, groups_of, joined, rows_of
from pva.analysis.whole_report.key_figures import FIGURES, figures, no_run
from pva.array_types import Values
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Dataset, Report
    from pva.trace import Trace

Settings = dict[tuple[str, str], str]  # about what, and its name -> value
BOTH, BEFORE, AFTER = "both", "before", "after"
SAME_WORK = 1e-6  # relative: items times clock of two reports that differ by less are the same


@analysis(
    "figure unit before after change ratio",
    before="the figure of the first report, in the unit of the row",
    after="that of the second report",
    change="the second less the first",
)
def compare_figures(before: Report, after: Report) -> Columns:
    """Compare the figures that both reports hold: figure, unit, before, after, change, ratio."""
    first, second = figures(before), figures(after)
    names = [name for name in FIGURES if name in first and name in second]
    columns = {
        "figure": names,
        "unit": [FIGURES[name].unit for name in names],
        BEFORE: np.array([first[name] for name in names]),
        AFTER: np.array([second[name] for name in names]),
    }
    return _with_change(columns)


@analysis("category before:bytes after:bytes change:bytes ratio in")
def compare_categories(before: Report, after: Report) -> Columns:
    """Compare the bytes of all tiles by category; the changes add up to that of `total_memory`."""
    return _matched(map(_categories, (before, after)), ("category",), "bytes")


@analysis("tile before:bytes after:bytes change:bytes ratio in")
def compare_tiles(
    before: Report, after: Report, *, gaps: Literal["included", "excluded"] = "included"
) -> Columns:
    """Compare the bytes of each tile by its number: what it needs, or its data without `gaps`."""
    parts = (memory_by_tile(report).arrays for report in (before, after))
    return _matched(parts, ("tile",), "total_including_gaps" if gaps == "included" else "total")


@analysis("name before:bytes after:bytes change:bytes ratio in")
def compare_variables(before: Report, after: Report) -> Columns:
    """Compare the bytes of variables by name; variables may share memory, so their sum is more."""
    parts = (report.dataset.table("variables") for report in (before, after))
    return _matched(parts, ("name",), "bytes")


@analysis("vertex_type before:bytes after:bytes change:bytes ratio in")
def compare_vertex_types(before: Report, after: Report) -> Columns:
    """Compare the bytes of vertices by type: their code once a tile, and their data."""
    parts = (memory_by_vertex_type(report).arrays for report in (before, after))
    return _matched(parts, ("vertex_type",), "total")


@analysis("name before:bytes after:bytes change:bytes ratio in")
def compare_compute_sets(before: Report, after: Report) -> Columns:
    """Compare the bytes that the vertices of each compute set hold for it alone, by name."""
    parts = (memory_by_compute_set(report).arrays for report in (before, after))
    return _matched(parts, ("name",), "state")


@analysis("name before:bytes after:bytes change:bytes ratio in")
def compare_always_live(before: Report, after: Report) -> Columns:
    """Compare what is always live, by name; the changes add up to that of `always_live`."""
    parts = (always_live_variables(report).arrays for report in (before, after))
    return _matched(parts, ("name",), "bytes")


@analysis("name before:bytes after:bytes change:bytes ratio in")
def compare_live_at_peak(before: Report, after: Report) -> Columns:
    """Compare what is not always live, each report where its own liveness peaks, by name.

    The changes add up to that of `max_live` less that of `always_live`. Raises NotRecordedError.
    """
    return _matched(map(_at_peak, (before, after)), ("name",), "bytes")


@analysis("cause before:cycles after:cycles change:cycles ratio in")
def compare_causes(before: Report, after: Report) -> Columns:
    """Compare by how many cycles each cause made the runs longer, as `cycles_by_cause` counts them.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_cause(report).arrays for report in _run(before, after))
    return _matched(parts, ("cause",), "cycles")


@analysis("phase before:cycles after:cycles change:cycles ratio in")
def compare_phases(before: Report, after: Report) -> Columns:
    """Compare by how many cycles compute, exchange, host exchange and sync made the runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_phase(report).arrays for report in _run(before, after))
    return _matched(parts, ("phase",), "cycles")


@analysis("layer before:cycles after:cycles change:cycles ratio in")
def compare_layers(before: Report, after: Report) -> Columns:
    """Compare by how many cycles each layer made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_layer(report).arrays for report in _named_alike(*_run(before, after)))
    return _matched(parts, ("layer",), "cycles")


@analysis("operation before:cycles after:cycles change:cycles ratio in")
def compare_operations(before: Report, after: Report) -> Columns:
    """Compare by how many cycles each operation made the recorded runs longer.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_operation(report).arrays for report in _named_alike(*_run(before, after)))
    return _matched(parts, ("operation",), "cycles")


@analysis("operation before:bytes after:bytes change:bytes ratio in")
def compare_operation_memory(before: Report, after: Report) -> Columns:
    """Compare the bytes of each operation: variables, vertices and code, as `memory_by_operation`.

    Raises NotRecordedError.
    """
    parts = (memory_by_operation(report).arrays for report in _named_alike(before, after))
    return _matched(parts, ("operation",), "bytes")


@analysis("type name before:cycles after:cycles change:cycles ratio in")
def compare_programs(before: Report, after: Report) -> Columns:
    """Compare by how many cycles each program made the recorded runs longer, by type and name.

    The changes add up to that of `total_cycles`. Raises NotRecordedError.
    """
    parts = (cycles_by_program(report).arrays for report in _run(before, after))
    return _matched(parts, ("type", "name"), "cycles")


@analysis(
    "label before:ns after:ns change:ns ratio in events_before events_after",
    label="text of the events",
    before="time in the first trace, without that of the events directly inside",
    after="time in the second trace, without that of the events directly inside",
)
def compare_labels(before: Trace, after: Trace) -> Columns:
    """Compare the time of each label of two host traces by itself, largest change first.

    `before` and `after` are in nanoseconds, without what the events directly inside took, so that
    the rows add up to the time in which threads were inside events. Of `events_before` and
    `events_after` one is 0 where `in` names the other trace alone.
    """
    parts = [label_statistics(trace).arrays for trace in (before, after)]
    columns = _matched(parts, ("label",), "self_ns")
    for name, part in zip((BEFORE, AFTER), parts, strict=True):
        texts, group = groups_of({"label": part["label"]})
        sums = summed(group, part["count"], len(texts["label"])).tolist()
        events = dict(zip(texts["label"].tolist(), sums, strict=True))
        counts = [events.get(label, 0) for label in columns["label"].tolist()]
        columns[f"events_{name}"] = np.array(counts, np.int64)
    return columns


@analysis(
    "about name before after differs",
    about="target, graph, version or option",
    before="its value in the first report, empty where that has none",
    after="its value in the second report, empty where that has none",
    differs="true if it is not the same in both",
    name="name of the setting",
)
def compare_settings(before: Report, after: Report) -> Columns:
    """Compare target, graph, version and engine options: about, name, before and after, as texts.

    Those that differ come first, marked `differs`; a setting that one report lacks is empty there.
    """
    parts = (_settings(before), _settings(after))
    keys = sorted(dict.fromkeys([*parts[0], *parts[1]]), key=lambda key: _same(parts, key))
    values = [[part.get(key, "") for key in keys] for part in parts]
    return {
        "about": [about for about, _ in keys],
        "name": [name for _, name in keys],
        BEFORE: values[0],
        AFTER: values[1],
        "differs": np.array([not _same(parts, key) for key in keys], bool),
    }


def _same(parts: tuple[Settings, Settings], key: tuple[str, str]) -> bool:
    return parts[0].get(key, "") == parts[1].get(key, "")


def rates_of_other_work(frame: pd.DataFrame | Table) -> tuple[float, float] | None:
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


def _settings(report: Report) -> Settings:
    """Return the rows that a report has one of, and its options, as texts."""
    data = report.dataset
    settings = {}
    for part, words in (("target", "target"), ("graph", "graph"), ("report", "version")):
        if data.has(part):
            for name in data.table(part):
                settings[words, name.replace("_", " ")] = _text(data, part, name)
    if data.has("engine_options"):
        columns = (data.column("engine_options", name).tolist() for name in ("name", "value"))
        settings |= {("option", name): value for name, value in zip(*columns, strict=True)}
    return settings


def _text(data: Dataset, table: str, name: str) -> str:
    if table == "target" and name == "type":
        return str(data.texts(table, name)[0])
    value = data.value(table, name)
    return value if isinstance(value, str) else f"{value:,.15g}"


def total_of(frame: pd.DataFrame | Table) -> tuple[int, int, int]:
    """Add up a table of this module: before, after, change."""
    return tuple(int(frame[column].sum()) for column in (BEFORE, AFTER, "change"))  # type: ignore[return-value]


@table(
    "name change begin end",
    name='name of the rows, "" for all others together',
    begin="sum before the change",
    end="sum after it",
)
def waterfall(frame: pd.DataFrame | Table, *, count: int = 8) -> Columns:
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
    return {"name": names, "change": values, "begin": end - values, "end": end}


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


def _categories(report: Report) -> Columns:
    arrays = category_by_tile(report).arrays
    by_category = {name: int(of.sum()) for name, of in arrays.items() if name != "tile"}
    labels = [category_label(category) for category in by_category]
    return {"category": labels, "bytes": np.array([*by_category.values()], np.int64)}


def _at_peak(report: Report) -> Columns:
    live = report.dataset.column("liveness_steps", "bytes")
    if not len(live):
        return {"name": [], "bytes": live}
    return live_variables(report, step=int(live.argmax())).arrays


def _matched(parts: Iterable[Columns], names: Sequence[str], value: str) -> dict[str, Values]:
    """Match sums by name, nothing counting as 0; rows in both that are 0 in both are left out."""
    sides = [arrays_of({name: part[name] for name in (*names, value)}) for part in parts]
    keys, group = groups_of(joined({name: side[name] for name in names} for side in sides))
    rows = len(keys[names[0]])
    groups = np.split(group, [len(sides[0][value])])
    sums = [summed(of, side[value], rows) for of, side in zip(groups, sides, strict=True)]
    is_there = [np.bincount(of, minlength=rows) > 0 for of in groups]
    columns = _with_change({**keys, BEFORE: sums[0], AFTER: sums[1]})
    columns["in"] = np.select([~is_there[0], ~is_there[1]], [AFTER, BEFORE], BOTH).astype(object)
    order = np.argsort(-np.abs(columns["change"]), kind="stable")
    is_shown = (sums[0] != 0) | (sums[1] != 0)
    return dict(rows_of(columns, order[is_shown[order]]))


def _with_change(columns: Columns) -> dict[str, Values]:
    """Add the change, and after as a multiple of before (not a number when that is 0)."""
    arrays = dict(arrays_of(columns))
    before, after = (np.asarray(arrays[name]) for name in (BEFORE, AFTER))
    ratio = np.divide(after, before, out=np.full(len(before), np.nan), where=before != 0)
    return {**arrays, "change": after - before, "ratio": ratio}


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


def rows_of_waterfall(frame: pd.DataFrame, steps: pd.DataFrame | Table) -> pd.DataFrame:
    """Return the rows of a table that `waterfall` shows each by itself."""
    return frame[frame["change"] != 0].head(int((steps["name"] != "").sum()))


def in_tile_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Order the rows of `compare_tiles` by tile."""
    return frame.sort_values("tile")
