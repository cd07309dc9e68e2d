"""The places of the documents that are laid out in a way of their own, each both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.documents.nested import column_values, columns_of, look_up, put, rows_of
from pva.formats.documents.steps import read_steps, write_steps
from pva.formats.values import Rows, array_of, shown

Nested = dict[str, Any]
Columns = dict[str, Values]

LIVENESS_STEPS = schema.TABLE["liveness_steps"].place
BY_CATEGORY = schema.ARRAY["memory_by_category"].place


def _lists(file: object, place: str, values: Rows) -> tuple[Values, Values]:
    """Join lists of whole numbers, one a row, None for none; give row numbers and values."""
    if set(map(type, values)) - {list, np.ndarray, type(None)}:
        wrong = next(v for v in values if not isinstance(v, list | np.ndarray | None))
        raise DamagedFileError(file, f"found {shown(wrong)}", "a list", place=place)
    lengths = [0 if part is None else len(part) for part in values]
    joined = list(chain.from_iterable(part for part in values if part is not None))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, array_of(file, place, "int", joined, 1)


def _write_children(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    columns = (dataset.column(table.name, name).tolist() for name in ("program", "child"))
    for program, child in zip(*columns, strict=True):
        root["programs"][program].setdefault("children", []).append(child)


def _read_children(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    if root.get("programs") is None:
        return None
    below = column_values(file, root["programs"], "programs", "children")
    rows, children = _lists(file, table.place, below or [])
    return {"program": rows, "child": children}


def _write_instructions(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    for row in rows_of(table, dataset):
        root["programs"][row.pop("program")]["memoryByInstruction"] = row


def _read_instructions(
    file: object, root: Mapping[str, object], table: schema.Table
) -> Columns | None:
    if root.get("programs") is None:
        return None
    values_of_programs = (
        column_values(file, root["programs"], "programs", "memoryByInstruction") or []
    )
    rows = [row for row, value in enumerate(values_of_programs) if value is not None]
    columns = columns_of(file, [values_of_programs[row] for row in rows], table) or {}
    return columns | {"program": np.array(rows, dtype=np.int64)}


def _write_vertices(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    sets, types, counts = (dataset.column(table.name, c.name).tolist() for c in table.columns)
    rows = range(dataset.length("compute_sets"))
    type_lists: list[list[int]] = [[] for _ in rows]
    count_lists: list[list[int]] = [[] for _ in rows]
    for row, vertex_type, count in zip(sets, types, counts, strict=True):
        type_lists[row].append(vertex_type)
        count_lists[row].append(count)
    put(root, "computeSets.vertexCounts", count_lists)
    put(root, "computeSets.vertexTypes", type_lists)


def _read_vertices(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    compute_sets = look_up(file, root, "computeSets")
    if compute_sets is None:
        return None
    lists = [
        column_values(file, compute_sets, "computeSets", key)
        for key in ("vertexTypes", "vertexCounts")
    ]
    if lists[0] is None or lists[1] is None:
        return None
    rows, types = _lists(file, "computeSets.vertexTypes", lists[0])
    counted, counts = _lists(file, "computeSets.vertexCounts", lists[1])
    if not np.array_equal(rows, counted):
        compute_sets, remedy = (
            f"{len(counts)} counts for {len(types)} types",
            "one count for each type",
        )
        raise DamagedFileError(file, compute_sets, remedy, place="computeSets.vertexCounts")
    return {"compute_set": rows, "vertex_type": types, "count": counts}


def _write_by_category(root: Nested, values: Values) -> None:
    for category, regions in zip(schema.CATEGORIES, values, strict=True):
        place = f"{BY_CATEGORY}.{category}"
        for region, overlaps in zip(schema.REGIONS, regions, strict=True):
            for overlap, sizes in zip(schema.OVERLAPS, overlaps, strict=True):
                put(root, f"{place}.{region}.{overlap}", sizes)
        put(root, f"{place}.total", regions.sum(axis=(0, 1)))


def _read_by_category(file: object, root: Mapping[str, object]) -> Values | None:
    categories = look_up(file, root, BY_CATEGORY)
    if categories is None:
        return None
    _check_categories(file, categories)
    keys = [
        f"{category}.{region}.{overlap}"
        for category in schema.CATEGORIES
        for region in schema.REGIONS
        for overlap in schema.OVERLAPS
    ]
    tables = {key: look_up(file, categories, key) for key in keys}
    rows = {
        key: array_of(file, f"{BY_CATEGORY}.{key}", "int", value, 1)
        for key, value in tables.items()
        if value is not None
    }
    tiles = {len(row) for row in rows.values()} or {0}
    if len(tiles) > 1:
        text = f"lists of {sorted(tiles)} tiles"
        raise DamagedFileError(file, text, "one length", place=BY_CATEGORY)
    empty = np.zeros(tiles.pop(), dtype=np.int64)
    shape = (len(schema.CATEGORIES), len(schema.REGIONS), len(schema.OVERLAPS), len(empty))
    return np.stack([rows.get(key, empty) for key in keys]).reshape(shape)


def _check_categories(file: object, categories: object) -> None:
    if not isinstance(categories, Mapping):
        raise DamagedFileError(file, f"found {shown(categories)}", "an object", place=BY_CATEGORY)
    unknown = next((key for key in categories if key not in schema.CATEGORIES), None)
    if unknown is not None:
        remedy = f"one of {', '.join(schema.CATEGORIES)}"
        raise DamagedFileError(file, f"found {shown(unknown)}", remedy, place=BY_CATEGORY)


def _write_by_ipu(root: Nested, values: Values) -> None:
    steps = look_up("", root, LIVENESS_STEPS) or []
    for step, sizes in zip(steps, values, strict=True):
        step["bytesByIpu"] = sizes


def _read_by_ipu(file: object, root: Mapping[str, object]) -> object:
    steps = look_up(file, root, LIVENESS_STEPS)
    if steps is None:
        return None
    sizes = column_values(file, steps, LIVENESS_STEPS, "bytesByIpu")
    if isinstance(sizes, list) and type(None) in map(type, sizes):
        return None
    return sizes


def _spelled_out(file: object, root: Mapping[str, object]) -> tuple[Values, Values] | None:
    """Return (step, variable) pairs when a document lists the variables of each liveness step."""
    steps = look_up(file, root, LIVENESS_STEPS)
    lists = None if steps is None else column_values(file, steps, LIVENESS_STEPS, "variables")
    if lists is None or all(part is None for part in lists):
        return None
    return _lists(file, f"{LIVENESS_STEPS}.variables", lists)


def _read_intervals(
    file: object, root: Mapping[str, object], table: schema.Table
) -> Columns | None:
    columns = columns_of(file, look_up(file, root, table.place), table)
    pairs = _spelled_out(file, root) if columns is None else None
    if pairs is None:
        return columns
    order = np.lexsort(pairs)
    steps, variables = (values[order] for values in pairs)
    joined = (np.diff(variables) == 0) & (np.diff(steps) <= 1)
    first = np.concatenate(([True], ~joined)) if len(steps) else np.zeros(0, dtype=bool)
    last = np.concatenate((~joined, [True])) if len(steps) else np.zeros(0, dtype=bool)
    return {"variable": variables[first], "begin": steps[first], "end": steps[last] + 1}


def _read_liveness_steps(
    file: object, root: Mapping[str, object], table: schema.Table
) -> Columns | None:
    listed_steps = look_up(file, root, table.place)
    columns = columns_of(file, listed_steps, table)
    pairs = _spelled_out(file, root) if columns is not None else None
    if (
        columns is None
        or pairs is None
        or column_values(file, listed_steps, table.place, "bytes") is None
    ):
        return columns
    variables = columns_of(file, look_up(file, root, "variables"), schema.TABLE["variables"])
    unknown = columns["bytes"] < 0
    if variables is not None and unknown.any():
        steps, rows = pairs
        _check_rows(file, f"{table.place}.variables", rows, len(variables["bytes"]))
        sums = np.zeros(len(unknown), dtype=np.int64)
        np.add.at(sums, steps, variables["bytes"][rows])
        columns["bytes"] = np.where(unknown, sums, columns["bytes"])
    return columns


def _check_rows(file: object, place: str, rows: Values, count: int) -> None:
    wrong = rows[(rows < 0) | (rows >= count)]
    if len(wrong):
        raise DamagedFileError(file, f"found {wrong[0]}", f"0 to {count - 1}", place=place)


# What stands inside a table is not written without it.
INSIDE = {
    "program_children": "programs",
    "exchange_instructions": "programs",
    "compute_set_vertices": "compute_sets",
    "liveness_bytes_by_ipu": "liveness_steps",
}
WRITE_TABLE: dict[str, Callable[[Nested, schema.Table, Dataset], None]] = {
    "program_children": _write_children,
    "exchange_instructions": _write_instructions,
    "compute_set_vertices": _write_vertices,
    "steps": write_steps,
}
READ_TABLE: dict[str, Callable[[object, Mapping[str, Any], schema.Table], Columns | None]] = {
    "program_children": _read_children,
    "exchange_instructions": _read_instructions,
    "compute_set_vertices": _read_vertices,
    "variable_intervals": _read_intervals,
    "liveness_steps": _read_liveness_steps,
    "steps": read_steps,
}
WRITE_ARRAY: dict[str, Callable[[Nested, Values], None]] = {
    "memory_by_category": _write_by_category,
    "liveness_bytes_by_ipu": _write_by_ipu,
}
READ_ARRAY: dict[str, Callable[[object, Mapping[str, Any]], Any]] = {
    "memory_by_category": _read_by_category,
    "liveness_bytes_by_ipu": _read_by_ipu,
}
