"""What two reports are compared by: tabs, and the tables of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from dashboard.address import Address
from dashboard.details.object_rows import variables_named
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Frame
from dashboard.store import Report, Store
from pva import units
from pva.analysis import COMPARISONS
from pva.analysis.whole_report.comparison import compare_categories, compare_causes, in_tile_order
from pva.analysis.whole_report.key_figures import NO_RUN, RUN_IT
from pva.errors import NotFoundError
from pva.plot.theme import step_words

Unit = Literal["bytes", "cycles"]
UNITS: tuple[Unit, ...] = get_args(Unit)


TABS = {
    "memory": "Memory",
    "liveness": "Liveness",
    "operations": "Operations",
    "execution": "Execution",
    "settings": "Target and options",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table: its words, the comparison, the columns that name a row, what its total is."""

    words: str
    name: str
    keys: tuple[str, ...]
    unit: Unit
    total: str


# tab: {choice: table}; the first of each is shown first.
TABLES: dict[str, dict[str, Comparison]] = {
    "memory": {
        "categories": Comparison("By category", "compare_categories", ("category",), "bytes",
                                 "the memory of all tiles, without gaps"),
        "tiles": Comparison("By tile", "compare_tiles", ("tile",), "bytes",
                            "the memory of all tiles, with gaps"),
        "variables": Comparison("By variable", "compare_variables", ("name",), "bytes",
                                "all variables, which share memory"),
        "vertex-types": Comparison("By vertex type", "compare_vertex_types", ("vertex_type",),
                                   "bytes", "code and state of vertices"),
        "compute-sets": Comparison("By compute set", "compare_compute_sets", ("name",), "bytes",
                                   "the state of vertices"),
        "operations": Comparison("By operation", "compare_operation_memory", ("operation",),
                                 "bytes", "variables, vertices and code"),
    },
    "liveness": {
        "peak": Comparison("Live at the peak", "compare_live_at_peak", ("name",), "bytes",
                           "what is not always live, each at its own peak"),
        "always": Comparison("Always live", "compare_always_live", ("name",), "bytes",
                             "what is always live"),
    },
    "operations": {
        "operations": Comparison("By operation", "compare_operations", ("operation",), "cycles",
                                 "the cycles of the recorded runs"),
        "layers": Comparison("By layer", "compare_layers", ("layer",), "cycles",
                             "the cycles of the recorded runs"),
    },
    "execution": {
        "causes": Comparison("By cause", "compare_causes", ("cause",), "cycles",
                             "the cycles of the recorded runs"),
        "phases": Comparison("By phase", "compare_phases", ("phase",), "cycles",
                             "the cycles of the recorded runs"),
        "programs": Comparison("By program", "compare_programs", ("type", "name"), "cycles",
                               "the cycles of the recorded runs"),
    },
}  # fmt: skip
MANY_TIMES = 10  # what grew so much is told as a multiple
WHERE = {"both": "both", "before": "only before", "after": "only after"}


def columns(unit: Unit) -> tuple[Column, ...]:
    """Return the columns of every table in a unit."""
    comparison = compare_categories if unit == "bytes" else compare_causes
    return (
        Column("name", "Name", "name", note="What is compared"),
        *declared_columns(comparison, "before@100 Before", "after@100 After", "change@125 Change"),
        Column("percent", "Relative", "figure", 95, "The change as a part of what was before"),
        Column("where", "In", "text", 105, "Which of the reports has it"),
    )


def both(store: Store, state: Address) -> tuple[Report, Report]:
    """Open the two reports; raises NotFoundError when the second was not chosen.

    Where their clocks differ, cycles are written as cycles in this request: one clock would give
    the other report wrong times.
    """
    if not state.against:
        raise NotFoundError("compare", "one report", "choose the one to compare it with")
    reports = store.report(state.report), store.report(state.against)
    if len(set(clocks(reports))) > 1:
        units.write_as(replace(units.manner(), clock=0.0))
    return reports


def clocks(reports: tuple[Report, Report]) -> list[float]:
    """Return the clocks of two reports in Hz, as far as these are told."""
    data = [report.dataset for report in reports]
    return [float(one.value("target", "clock_frequency")) for one in data if one.has("target")]


def compared(store: Store, state: Address, name: str, **arguments: str) -> Frame:
    """Return a comparison, worked out once while neither report changes."""
    reports = both(store, state)
    key = f"{name} {arguments} with {state.against} {store.stamp(state.against)}"
    frame: Frame = store.derived(
        state.report, key, lambda: COMPARISONS[name](*reports, **arguments).frame()
    )
    return frame


def tiles_of_both(store: Store, state: Address) -> Frame:
    """Return the bytes of each tile in both, with gaps or without, in the order of tiles."""
    gaps = "included" if state.option("gaps", ("off", "on")) == "on" else "excluded"
    return in_tile_order(compared(store, state, "compare_tiles", gaps=gaps))


def table_of(state: Address) -> Comparison:
    """Return the table that the address names; raises AddressError."""
    # The tab of the settings has no such table; the grid of the tab before may still ask.
    variants = TABLES.get(state.option("tab", [*TABLES, "settings"])) or TABLES["memory"]
    by = state.text("by")
    return variants[by if by in variants else next(iter(variants))]


def frame_of(store: Store, state: Address) -> Frame:
    """Return the rows of the chosen table that differ, or all, filtered by name."""
    table = table_of(state)
    frame = named(compared(store, state, table.name), table)
    if state.text("same", "off") != "on":
        frame = frame[frame["change"] != 0]
    frame = components.filtered(frame, state.filter)
    return frame.assign(
        **{KEY: np.array(objects_of(store.report(state.report), table, frame), object)}
    )


# What kind of object a row of a comparison is, by the column that names it.
KINDS = {"operation": "operation", "layer": "layer", "tile": "tile"}


def objects_of(report: Report, table: Comparison, frame: Frame) -> list[str | None]:
    """Return the objects of the first report that rows are, none where it has none."""
    there = (frame["in"] != "after").tolist()
    key, several = table.keys[0], len(table.keys) > 1
    if key in KINDS:
        pairs = zip(there, frame[key], strict=True)
        return [f"{KINDS[key]}:{name}" if known else None for known, name in pairs]
    if several or table.name not in OF_VARIABLES:
        return [None] * len(frame)
    return variables_named(report, frame[key].tolist())


OF_VARIABLES = ("compare_variables", "compare_live_at_peak", "compare_always_live")


def named(frame: Frame, table: Comparison) -> Frame:
    """Write what every table has in common: a name, the change in percent, who has the row."""
    names = frame[list(table.keys)].astype(str)
    if table.keys == ("type", "name"):
        words = [step_words(kind) for kind in frame["type"]]
        text = [name or f"({word})" for name, word in zip(frame["name"], words, strict=True)]
    elif table.keys == ("tile",):
        text = [f"Tile {tile:,}" for tile in frame["tile"]]
    else:
        text = names.iloc[:, 0].where(names.iloc[:, 0] != "", "(without a name)").tolist()
    return frame.assign(
        name=text, percent=percents(frame), where=[WHERE[word] for word in frame["in"]]
    )


def percents(frame: Frame) -> list[str]:
    """Write changes as parts of what was before; a row that came or went says so."""
    pairs = zip(frame["before"].tolist(), frame["after"].tolist(), strict=True)
    return [percent(before, after) for before, after in pairs]


def percent(before: float, after: float) -> str:
    """Write a change as a part of what was before."""
    if before == after:
        return ""
    if not before:
        return "new"
    if not after:
        return "gone"
    if after >= MANY_TIMES * before:
        return f"{after / before:,.0f}×"
    return f"{100 * (after - before) / before:+,.1f} %".replace("-", "−")


_STEPS = "steps"
_NEEDS = {
    "memory": "memory_by_category",
    "liveness": "always_live_variables",
    "operations": _STEPS,
    "execution": _STEPS,
}


def why_not(store: Store, state: Address, tab: str) -> str:
    """Return why a tab cannot be shown; nothing when both reports have what it compares."""
    if tab not in _NEEDS:
        return ""
    needed = _NEEDS[tab]
    keys = state.report or store.keys[0], state.against
    for key, report in zip(keys, both(store, state), strict=True):
        if not report.dataset.has(needed):
            return f"{key}: {needed} not recorded; {report.dataset.why_absent(needed)}"
        if needed == _STEPS and not report.dataset.length(needed):
            return f"{key}: {NO_RUN}; {RUN_IT}"
    return ""
