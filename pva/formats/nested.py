"""Nested dicts and lists: a value at a dotted place, rows into columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.values import Rows, Values, column_of, shown


def put(root: dict[str, Any], place: str, value: Any, *, merge: bool = False) -> None:
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


def look_up(file: object, root: Any, place: str) -> Any:
    """Find the value at a dotted place; None when a key is not there.

    Raises DamagedFileError when something other than an object or a list stands on the way.
    """
    found = root
    for depth, key in enumerate(place.split(".") if place else ()):
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list | np.ndarray) or found is None:
            return None
        else:
            here = ".".join(place.split(".")[:depth])
            raise DamagedFileError(file, f"found {shown(found)}", "an object", place=here)
    return found


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


def column_values(file: object, found: Any, place: str, key: str) -> Rows | None:
    """Give one value a row, of an object with a list a column or of a list of objects.

    None when an object has no such list. Raises DamagedFileError when there are no rows there.
    """
    return _columns_at(file, found, place, (key,))[0]


def _columns_at(file: object, found: Any, place: str, keys: Sequence[str]) -> list[Rows | None]:
    """Give the values of several keys, looking at the rows once."""
    if not isinstance(found, list):
        return [_list_at(file, found, place, key) for key in keys]
    if set(map(type, found)) - {dict}:
        wrong = next(row for row in found if type(row) is not dict)
        raise DamagedFileError(file, f"found {shown(wrong)}", "a list of values", place=place)
    columns: list[Rows | None] = []
    for key in keys:
        head, _, tail = key.partition(".")
        try:
            values = list(map(itemgetter(head), found))
        except KeyError:
            values = [row.get(head) for row in found]
        columns.append([look_up(file, value, tail) for value in values] if tail else values)
    return columns


def _list_at(file: object, found: Any, place: str, key: str) -> Rows | None:
    if isinstance(found, dict):
        values = look_up(file, found, key)
        if values is None or isinstance(values, list | np.ndarray):
            return values
        found, place = values, f"{place}.{key}"
    raise DamagedFileError(file, f"found {shown(found)}", "a list of values", place=place)


def columns_of(file: object, found: Any, table: schema.Table) -> dict[str, Values] | None:
    """Turn rows into columns, those that are not there filled in; None when there are no rows.

    Raises DamagedFileError.
    """
    if found is None:
        return None
    place = table.place
    keys = [column.document_key for column in table.columns]
    given = dict(zip(keys, _columns_at(file, found, place, keys), strict=True))
    lengths = {len(column) for column in given.values() if column is not None}
    if not lengths:
        return None
    if len(lengths) > 1:
        wanted = "one length"
        raise DamagedFileError(file, f"lists of {sorted(lengths)} values", wanted, place=place)
    rows = lengths.pop()
    columns: dict[str, Values] = {}
    for column in table.columns:
        key = column.document_key
        values = given[key]
        columns[column.name] = column_of(
            file, f"{place}.{key}", column, [None] * rows if values is None else values
        )
    return columns
