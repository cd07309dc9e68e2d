"""Nested dicts and lists: a value at a dotted place, rows into columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.memory_limit import ManyRows, check_size, values_at
from pva.formats.values import Rows, column_of, shown

# What is read of lists of objects; keys of any name stand in debug contexts alone.
ROW_KEYS = frozenset(
    {column.document_key.partition(".")[0] for table in schema.TABLES for column in table.columns}
    | {"bytesByIpu", "children", "memoryByInstruction", "variables", "vertexCounts", "vertexTypes"}
)
FURTHER_KEYS = schema.TABLE["debug_contexts"].place


def put(root: dict[str, Any], place: str, value: object, *, merge: bool = False) -> None:
    """Put a value at a dotted place and make the objects around it; `merge` adds to an object."""
    *above, key = place.split(".")
    for name in above:
        root = root.setdefault(name, {})
    if merge and isinstance(value, dict):
        inside = root.setdefault(key, {})
        for name, part in value.items():
            put(inside, name, part, merge=True)
    else:
        root[key] = value


def look_up(file: object, root: object, place: str) -> Any:
    """Return the value at a dotted place; None when a key is not there.

    Raises DamagedFileError when something other than an object or a list stands on the way.
    """
    value = root
    for depth, key in enumerate(place.split(".") if place else ()):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list | np.ndarray | ManyRows | None):
            return None
        else:
            parent = ".".join(place.split(".")[:depth])
            raise DamagedFileError(file, f"found {shown(value)}", "an object", place=parent)
    return value


def rows_of(table: schema.Table, dataset: Dataset) -> list[dict[str, Any]]:
    """Turn a table into one dict a row, without the optional values that are missing."""
    rows: list[dict[str, Any]] = [{} for _ in range(dataset.length(table.name))]
    for column in table.columns:
        read = dataset.texts if column.kind == "code" else dataset.column
        values = read(table.name, column.name).tolist()
        skipped = column.values[0] if column.kind == "code" else schema.MISSING[column.kind]
        head, _, tail = column.document_key.partition(".")
        for row, value in zip(rows, values, strict=True):
            if column.optional and (value == skipped or value != value):
                continue
            if tail:
                row.setdefault(head, {})[tail] = value
            else:
                row[head] = value
    return rows


def column_values(file: object, rows: object, place: str, key: str) -> Rows | None:
    """Return one value a row, of an object with a list a column or of a list of objects.

    None when an object has no such list. Raises DamagedFileError when there are no rows there.
    """
    return _columns_at(file, rows, place, (key,))[0]


def _columns_at(file: object, rows: object, place: str, keys: Sequence[str]) -> list[Rows | None]:
    """Return the values of several keys, looking at the rows once; None for a key of no row."""
    if not isinstance(rows, list | ManyRows):
        return [_list_at(file, rows, place, key) for key in keys]
    if isinstance(rows, list) and set(map(type, rows)) - {dict}:
        wrong = next(row for row in rows if type(row) is not dict)
        raise DamagedFileError(file, f"found {shown(wrong)}", "a list of values", place=place)
    columns: list[Rows | None] = []
    for key in keys:
        head, _, tail = key.partition(".")
        values: Rows | None = (
            rows.column(head) if isinstance(rows, ManyRows) else values_at(rows, head)
        )
        if values is not None and tail:
            values = _inside(file, values, tail)
        columns.append(values)
    return columns


def _inside(file: object, values: Rows, place: str) -> list[object]:
    """Return what objects have at a place; None for those that are none."""
    if "." not in place and set(map(type, values)) <= {dict, type(None)}:
        return [None if value is None else value.get(place) for value in values]
    return [look_up(file, value, place) for value in values]


def _list_at(file: object, rows: object, place: str, key: str) -> Rows | None:
    if isinstance(rows, dict):
        values = look_up(file, rows, key)
        if values is None or isinstance(values, list | np.ndarray):
            return values
        rows, place = values, f"{place}.{key}"
    raise DamagedFileError(file, f"found {shown(rows)}", "a list of values", place=place)


def columns_of(file: object, content: object, table: schema.Table) -> dict[str, Values] | None:
    """Turn rows into columns, those that are not there filled in; None when there are no rows.

    Raises DamagedFileError.
    """
    if content is None:
        return None
    keys = [column.document_key for column in table.columns]
    if isinstance(content, list | ManyRows):
        rows = len(content)
    else:
        values_by_key = _columns_at(file, content, table.place, keys)
        lengths = {len(column) for column in values_by_key if column is not None}
        if not lengths:
            return None
        if len(lengths) > 1:
            text, remedy = f"lists of {sorted(lengths)} values", "one length"
            raise DamagedFileError(file, text, remedy, place=table.place)
        rows = lengths.pop()
    check_size(file, table.place, rows, len(keys))
    columns: dict[str, Values] = {}
    for column in table.columns:  # lists of the values of all columns would be as large again
        key, place = column.document_key, f"{table.place}.{column.document_key}"
        (values,) = _columns_at(file, content, table.place, (key,))
        if values is None:
            missing = column_of(file, place, column, [None])
            columns[column.name] = np.full(rows, missing[0], dtype=missing.dtype)
        else:
            columns[column.name] = column_of(file, place, column, values)
    return columns
