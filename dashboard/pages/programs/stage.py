"""The tree at a stage of the compilation, under one numbering: that of the compiled programs.

A line of a program as it was written goes by the first program that it was compiled to, so that the
same program is chosen at either stage, and a link to a program holds at both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from dash import html

from dashboard import controls
from dashboard.address import Address
from dashboard.elements.components import Element, Frame
from dashboard.store import Report, Store
from pva.analysis.operations.layers import DEFAULT, owners_in
from pva.analysis.programs.compilation import (
    COMPILED,
    WRITTEN,
    first_programs,
    origins_of,
    owners_of_written,
    program_count,
)
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.written import written_tree
from pva.analysis.table import arrays_of
from pva.lazy import pandas as pd

WORDS = {COMPILED: "As compiled", WRITTEN: "As written"}
ONE_STAGE = (
    "The report records one stage of the compilation. Those that the simulator writes also hold "
    "the programs as they were given to the engine."
)


@dataclass(frozen=True, slots=True)
class StageTree:
    """The lines of a stage; `line_of` gives by program the line to which it belongs, -1 for none.

    `rows` are by line: rows of `programs`, or of `written_programs`.
    """

    stage: str
    lines: Frame
    line_of: Any
    rows: Any

    def line(self, program: str) -> int:
        """Return the line of a program as it stands in the address, -1 for none."""
        if not (program.isascii() and program.isdigit()) or len(program) > len(str(1 << 60)):
            return -1
        row = int(program)
        return int(self.line_of[row]) if row < len(self.line_of) else -1


def known_stages(report: Report) -> list[str]:
    """List the stages that a report has, what is shown by default first."""
    tables = ("written_programs", "written_results")
    return [COMPILED, WRITTEN] if all(map(report.dataset.has, tables)) else [COMPILED]


def stage_of(report: Report, state: Address) -> str:
    """Return the stage in the address, or the one that the report has; raises AddressError."""
    stage = state.option("stage", tuple(WORDS))
    return stage if stage in known_stages(report) else COMPILED


def selector(report: Report, state: Address) -> Element:
    """Choose the stage, or say calmly that there is one."""
    stages = known_stages(report)
    if len(stages) == 1:
        return html.Span(WORDS[COMPILED], className="note", title=ONE_STAGE)
    choices = [(stage, WORDS[stage]) for stage in stages]
    return controls.select("stage", choices, state, label="Stage of the compilation", width=140)


def whole_tree(store: Store, key: str, stage: str = COMPILED) -> Frame:
    """Return the tree of a report at a stage, laid out once; raises PvaError."""
    report = store.report(key)
    if stage == WRITTEN:
        compiled = whole_tree(store, key)
        return store.derived(
            key, "written_tree", lambda: pd.DataFrame(written_tree(report, arrays_of(compiled)))
        )
    return store.derived(key, "program_tree", lambda: program_tree(report).frame())


def stage_tree(store: Store, state: Address) -> StageTree:
    """Return the lines of the chosen stage; raises PvaError."""
    key = state.report
    stage = stage_of(store.report(key), state)
    return store.derived(key, f"stage {stage}", lambda: _numbered(store, key, stage))


def owners_at(store: Store, state: Address, stage: str) -> Any:
    """Name the operation, of the chosen layer, of each row of a stage; raises PvaError."""
    key, layer = state.report, state.text("layer", DEFAULT)
    report = store.report(key)
    owners = store.derived(key, f"owners {layer}", lambda: owners_in(report, layer))
    if stage == COMPILED:
        return owners
    name = f"owners {layer} {stage}"
    return store.derived(key, name, lambda: owners_of_written(report, owners))


def _numbered(store: Store, key: str, stage: str) -> StageTree:
    lines = whole_tree(store, key, stage)
    report, rows = store.report(key), lines["program"].to_numpy()
    count = program_count(report)
    if stage == COMPILED:
        line_of = np.full(count, -1)
        line_of[rows] = np.arange(len(rows))
        return StageTree(stage, lines, line_of, rows)
    first = first_programs(report, whole_tree(store, key)["program"].to_numpy())
    # What became nothing, such as a copy of no elements, is numbered behind the programs.
    numbers = np.where(first >= 0, first, count + np.arange(len(first)))
    line_of_written = np.full(len(first) + 1, -1)  # the last for what nobody wrote
    line_of_written[rows] = np.arange(len(rows))
    line_of = line_of_written[np.append(origins_of(report), np.arange(len(first)))]
    return StageTree(stage, lines.assign(program=numbers[rows]), line_of, rows)
