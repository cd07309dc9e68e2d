"""Datasets made by hypothesis from the schema: whatever a new table holds is drawn too."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pva import schema
from pva.dataset import Dataset, referred_table

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
FRACTIONS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False), st.sampled_from([0.0, 0.5, 1.0])
)
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
    tables = {}
    for table in schema.TABLES:
        if table.name in present:
            count = _count(table.name, rows)
            tables[table.name] = {
                c.name: _column(draw, numbers, table, c, count, rows) for c in table.columns
            }
            _order(table.name, tables[table.name])
    ipus, per_ipu = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    replicas = draw(st.integers(1, 2))
    tables["target"] |= {
        "num_ipus": [replicas * ipus],
        "tiles_per_ipu": [per_ipu],
        "num_tiles": [replicas * ipus * per_ipu],
        "num_replicas": [replicas],
    }
    lengths = {
        axis: size if isinstance(size, int) else _count(size, rows)
        for axis, size in schema.DIMENSIONS.items()
        if isinstance(size, int) or size in rows
    }
    lengths |= {"ipu": ipus, "tile_of_ipu": per_ipu, "tile": ipus * per_ipu}
    if "graph" in tables:
        lengths["vertex"] = draw(st.integers(0, 3))
        tables["graph"]["num_vertices"] = [lengths["vertex"]]
    arrays = {a.name: _array(numbers, a, lengths) for a in schema.ARRAYS if a.name in present}
    return Dataset.of(tables, arrays)


def _count(name: str, rows: dict[str, int]) -> int:
    inside = TOGETHER.get(name)
    return rows[name] if not inside or rows[inside] else 0


def _column(
    draw: st.DrawFn,
    numbers: np.random.Generator,
    table: schema.Table,
    column: schema.Column,
    count: int,
    rows: dict[str, int],
) -> list[Any]:
    if column.kind == "text":
        return draw(st.lists(TEXTS, min_size=count, max_size=count, unique=table.name in UNIQUE))
    if column.kind == "float":
        return draw(st.lists(FRACTIONS, min_size=count, max_size=count))
    if column.kind == "bool":
        return (numbers.random(count) < 0.5).tolist()
    low, high = -1, 2 ** int(numbers.integers(1, 62))
    if column.kind == "code":
        low, high = 0, len(column.values)
    elif referred_table(column) in rows:
        high = _count(referred_table(column), rows)
    if INSIDE.get(table.name) == column.name:
        low = 0
        if table.name in UNIQUE:
            return list(range(min(count, high)))[:count] + [0] * max(count - high, 0)
    return numbers.integers(low, high, size=count).tolist()


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


def _array(numbers: np.random.Generator, array: schema.Array, lengths: dict[str, int]) -> Any:
    shape = tuple(lengths.get(axis, int(numbers.integers(0, 3))) for axis in array.index)
    if shape[0] == 0:  # what no table tells is lost with the last row
        shape = tuple(lengths.get(axis, 0) for axis in array.index)
    return numbers.integers(0, 2 ** int(numbers.integers(1, 62)), size=shape)
