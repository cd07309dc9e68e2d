"""Datasets made by hypothesis from the schema: whatever a new table holds is drawn too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pva import schema
from pva.data.dataset import Dataset
from pva.data.validation import ARRAY_ROWS, ASCENDING, LENGTHS, limits

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
FRACTIONS = st.one_of(st.floats(0, 1e18), st.sampled_from([0.0, 0.5, 1.0, 5e-324, float("nan")]))
# Rows of these stand in the documents at the row that they refer to, and in its order.
INSIDE = {
    "program_children": "program",
    "exchange_instructions": "program",
    "compute_set_vertices": "compute_set",
}
UNIQUE = {"exchange_instructions", "optimization_info", "engine_options"}
# What a document cannot tell from an empty one: it is there exactly when the other is.
TOGETHER = {
    "program_children": "programs",
    "exchange_instructions": "programs",
    "compute_set_vertices": "compute_sets",
    "liveness_bytes_by_ipu": "liveness_steps",
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long tables and indexes of arrays will be: limits on values are told from these."""

    rows: dict[str, int]
    axes: dict[str, int]
    foreign: bool = False

    def has(self, name: str) -> bool:
        """Return whether there will be such a table."""
        return name in self.rows

    def length(self, table: str) -> int:
        """Count the rows of a table."""
        return _count(table, self.rows)

    def axis(self, axis: str) -> int:
        """Return how long an index is."""
        counted = schema.DIMENSIONS.get(axis, "")
        if isinstance(counted, int):
            return counted
        return self.length(counted) if counted in self.rows else self.axes.get(axis, -1)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Draw a dataset of few rows that fits the schema; it need not make sense otherwise."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    present = draw(st.sets(st.sampled_from([*schema.TABLE, *schema.ARRAY])))
    present = {name for name in present if name not in TOGETHER}
    present |= {name for name, other in TOGETHER.items() if other in present}
    present.add("target")
    rows = {name: draw(st.integers(0, 3)) for name in present if name in schema.TABLE}
    rows |= {name: 1 for name in rows if schema.TABLE[name].layout == "object"}
    ipus, per_ipu = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    replicas = draw(st.integers(1, 2))
    axes = {"ipu": ipus, "tile_of_ipu": per_ipu, "tile": ipus * per_ipu}
    rows |= {table: axes[axis] for table, axis in LENGTHS.items() if table in rows}
    if "graph" in rows:
        counted = [rows.get(table, 1) for table in ("compute_sets", "vertex_types")]
        axes["vertex"] = draw(st.integers(0, 3)) if all(counted) else 0
    lengths = Lengths(rows, axes)
    _empty_what_leads_nowhere(lengths)
    tables = {
        table.name: _table(draw, numbers, table, lengths)
        for table in schema.TABLES
        if table.name in present
    }
    tables["target"] |= {
        "num_ipus": [replicas * ipus],
        "tiles_per_ipu": [per_ipu],
        "num_tiles": [replicas * ipus * per_ipu],
        "num_replicas": [replicas],
    }
    if "graph" in tables:
        tables["graph"]["num_vertices"] = [axes["vertex"]]
    found = [array for array in schema.ARRAYS if array.name in present]
    drawn = {a.index[0]: 0 for a in found if _refers_to_nothing(a, lengths)}
    return Dataset.of(tables, {a.name: _array(numbers, a, lengths, drawn) for a in found})


def _empty_what_leads_nowhere(lengths: Lengths) -> None:
    """Leave no rows in tables that have to refer to a table without rows, over and over."""
    for table in [table for table in schema.TABLES if table.name in lengths.rows] * len(INSIDE):
        numbers = [column for column in table.columns if column.kind == "int"]
        if any(high < low for low, high in (limits(lengths, table.name, c) for c in numbers)):
            lengths.rows[table.name] = 0


def _count(name: str, rows: dict[str, int]) -> int:
    inside = TOGETHER.get(name)
    return rows[name] if not inside or rows[inside] else 0


def _table(
    draw: st.DrawFn, numbers: np.random.Generator, table: schema.Table, lengths: Lengths
) -> dict[str, list[Any]]:
    columns = {c.name: _column(draw, numbers, table, c, lengths) for c in table.columns}
    _order(table.name, columns)
    for name, values in columns.items():
        if f"{table.name}.{name}" in ASCENDING:
            values.sort()
    if table.name == "program_children":  # a child comes after what contains it
        kept = [row for row, pair in enumerate(zip(*columns.values(), strict=True))
                if pair[0] < pair[1]]  # fmt: skip
        columns = {name: [values[row] for row in kept] for name, values in columns.items()}
    if table.name in ("liveness_steps", "written_programs"):
        columns["parent"] = [min(p, row - 1) for row, p in enumerate(columns["parent"])]
    if table.name == "programs":
        columns["exchange"] = [-1] * len(columns["exchange"])
    return columns


def _column(
    draw: st.DrawFn,
    numbers: np.random.Generator,
    table: schema.Table,
    column: schema.Column,
    lengths: Lengths,
) -> list[Any]:
    count = lengths.length(table.name)
    if column.kind == "text":
        return draw(st.lists(TEXTS, min_size=count, max_size=count, unique=table.name in UNIQUE))
    if column.kind == "float":
        return draw(st.lists(FRACTIONS, min_size=count, max_size=count))
    if column.kind == "bool":
        return (numbers.random(count) < 0.5).tolist()
    low, most = limits(lengths, table.name, column)
    high = min(most + 1, 2 ** int(numbers.integers(1, 62)))
    if INSIDE.get(table.name) == column.name and table.name in UNIQUE:
        return list(range(min(count, high)))[:count] + [0] * max(count - high, 0)
    return numbers.integers(low, high, size=count).tolist() if high > low else [low] * count


def _order(name: str, columns: dict[str, list[Any]]) -> None:
    """Put the rows that stand inside others in order, each place once where it must be."""
    if name not in INSIDE:
        return
    places = columns[INSIDE[name]]
    order = sorted(range(len(places)), key=places.__getitem__)
    if name in UNIQUE:
        order = [
            row for at, row in enumerate(order) if not at or places[order[at - 1]] != places[row]
        ]
    for column, values in columns.items():
        columns[column] = [values[row] for row in order]


def _refers_to_nothing(array: schema.Array, lengths: Lengths) -> bool:
    """Return whether an array refers to rows of a table that has none."""
    return array.name in ARRAY_ROWS and lengths.axis(ARRAY_ROWS[array.name]) == 0


def _array(
    numbers: np.random.Generator, array: schema.Array, lengths: Lengths, drawn: dict[str, int]
) -> Any:
    """Draw an array; `drawn` are lengths of indexes that no table tells, alike for all arrays."""
    known = [lengths.axis(axis) for axis in array.index]
    shape = tuple(
        drawn.setdefault(axis, int(numbers.integers(0, 3))) if length < 0 else length
        for axis, length in zip(array.index, known, strict=True)
    )
    if shape[0] == 0:  # what no table tells is lost with the last row
        shape = tuple(max(length, 0) for length in known)
    counted = lengths.axis(ARRAY_ROWS[array.name]) if array.name in ARRAY_ROWS else -1
    if _refers_to_nothing(array, lengths):
        return np.zeros((0,) * len(shape), dtype=np.int64)
    most = counted if counted > 0 else 2 ** int(numbers.integers(1, 53))
    return numbers.integers(0, most, size=shape)
