"""Which object (objects.py) a row of a table is, so that a click opens the drawer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.elements.components import Frame
from dashboard.store import Report
from pva.analysis.execution.exchanges import KINDS
from pva.analysis.memory.one_variable import variable_figures
from pva.array_types import Integers


def first_programs(report: Report, tag: str, column: str, rows: Integers) -> Integers:
    """Return the first program of a type that runs each compute set or exchange, -1 for none."""
    data = report.dataset
    programs = np.flatnonzero(data.texts("programs", "type") == tag)[::-1]
    operands = data.column("programs", column)[programs]
    by_operand = np.full(max(int(rows.max(initial=0)), int(operands.max(initial=0))) + 1, -1)
    by_operand[operands[operands >= 0]] = programs[operands >= 0]
    first: Integers = by_operand[rows]
    return first


def exchange_objects(report: Report, frame: Frame) -> list[str | None]:
    """Return the programs of exchanges, each told by its `kind` and its row `exchange`."""
    numbers = np.full(len(frame), -1)
    for tag, kind in KINDS.items():
        mine = (frame["kind"] == kind).to_numpy()
        rows = frame["exchange"].to_numpy()[mine]
        numbers[mine] = first_programs(report, tag, "exchange", rows)
    return texts_of("program", numbers)


def texts_of(kind: str, rows: Integers) -> list[str | None]:
    """Return the objects of some rows, none for a row of -1."""
    return [f"{kind}:{row}" if row >= 0 else None for row in rows.tolist()]


def variables_named(report: Report, names: Sequence[str]) -> list[str | None]:
    """Return the first variable of each name, none where there is none."""
    if not report.dataset.has("variables"):
        return [None] * len(names)
    every = report.dataset.column("variables", "name").tolist()
    rows = {name: row for row, name in reversed(list(enumerate(every)))}
    return [f"variable:{rows[name]}" if name in rows else None for name in names]


def compute_set_objects(report: Report, sets: Integers) -> list[str | None]:
    """Return the first programs that run compute sets, told by their rows."""
    return texts_of("program", first_programs(report, "OnTileExecute", "compute_set", sets))


def node_objects(keys: Sequence[str]) -> list[str | None]:
    """Return the variables and programs that nodes of the computation graph are, by their keys."""
    return [f"{'variable' if key.startswith('v') else 'program'}:{key[1:]}" for key in keys]


def object_steps(report: Report, text: str) -> tuple[int, int, str] | None:
    """Return the first and last liveness step of an object and its name; None without a life."""
    kind, number = numbered(text)
    data = report.dataset
    if kind == "variable" and 0 <= number < data.length("variables"):
        figures = variable_figures(report, variable=number)
        if figures.first_step < 0 or figures.always_live:
            return None
        return figures.first_step, figures.last_step, figures.name
    if kind == "program-step" and 0 <= number < data.length("liveness_steps"):
        program = int(data.column("liveness_steps", "program")[number])
        return number, number, str(data.column("programs", "name")[program])
    if kind == "step" and 0 <= number < data.length("steps"):
        kind, number = "program", int(data.column("steps", "program")[number])
    if kind == "program" and 0 <= number < data.length("programs"):
        steps = np.flatnonzero(data.column("liveness_steps", "program") == number)
        name = str(data.column("programs", "name")[number])
        return (int(steps[0]), int(steps[-1]), name) if len(steps) else None
    return None


def object_tiles(report: Report, text: str) -> tuple[Integers, str]:
    """Return the tiles that a variable lies on, or that a tile is, and its name."""
    kind, number = numbered(text)
    data = report.dataset
    if kind == "tile" and number >= 0:
        return np.array([number]), f"Tile {number:,}"
    variables = range(data.length("variables") if data.has("variable_pieces") else 0)
    if kind != "variable" or number not in variables:
        return np.zeros(0, dtype=np.int64), ""
    rows = data.rows_where("variable_pieces", "variable", number)
    tiles: Integers = np.unique(data.column("variable_pieces", "tile")[rows])
    return tiles, str(data.column("variables", "name")[number])


def numbered(text: str) -> tuple[str, int]:
    """Return the kind and the number of an object, -1 where it has a name instead."""
    kind, _, which = text.partition(":")
    return kind, int(which) if which.isascii() and which.isdigit() and len(which) < 19 else -1
