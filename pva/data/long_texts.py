"""Texts that are too long for any reader, such as names of a megabyte, with their middle left out.

A text that is cut tells how long it was and a checksum: texts that differ stay different, equal
ones equal, in every report.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from zlib import crc32

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.data.sources import Source, Spend

JSON = ("debug_contexts", "json")  # the column of texts that are read as JSON


def cut(text: str, most: int) -> str:
    """Leave out the middle of a text of more letters than `most`, and say so there."""
    if len(text) <= most:
        return text
    # One word: pages that cut long words leave out more of it.
    left_out = f"…{len(text):,}-letters-{crc32(text.encode(errors='replace')):08x}…"
    end = (most - len(left_out)) // 3
    return f"{text[: most - len(left_out) - end]}{left_out}{text[-end:]}"


def cut_each(texts: Values, most: int) -> Values:
    """Cut the texts of an array of objects; the array itself where none is too long."""
    if set(map(type, texts)) <= {str} and max(map(len, texts), default=0) <= most:
        return texts
    sizes = (len(value) if isinstance(value, str) else 0 for value in texts)
    long = [place for place, size in enumerate(sizes) if size > most]
    if not long:
        return texts
    shown = np.array(texts, dtype=np.object_)
    shown[long] = [cut(texts[place], most) for place in long]
    return shown


def cut_inside(value: object, most: int) -> Any:
    """Cut the names and texts of what was read from JSON, at any depth and in its place."""

    def short(inner: object) -> Any:
        return cut(inner, most) if isinstance(inner, str) else inner

    holder = [value]
    todo: list[Any] = [holder]
    while todo:  # what nests deeply must not meet a recursion limit
        inside = todo.pop()
        if isinstance(inside, dict):
            pairs = {short(name): short(inner) for name, inner in inside.items()}
            inside.clear()
            inside.update(pairs)
        else:
            inside[:] = map(short, inside)
        values = inside.values() if isinstance(inside, dict) else inside
        todo += [inner for inner in values if isinstance(inner, dict | list)]
    return holder[0]


def cut_json(text: str, most: int) -> str:
    """Cut the texts in a JSON document, or the text where it is none."""
    if len(text) <= most:
        return text
    import json

    try:
        return json.dumps(cut_inside(json.loads(text), most))
    except (ValueError, RecursionError):
        return cut(text, most)


def cut_tables(tables: dict[str, Any], most: int) -> dict[str, Any]:
    """Cut the texts of the tables of a host trace; runs of metadata stay, who shows one cuts it."""
    return {
        table: {
            name: cut_each(values, most) if _are_objects(values) else values
            for name, values in columns.items()
        }
        for table, columns in tables.items()
    }


def _are_objects(values: object) -> bool:
    return isinstance(values, np.ndarray) and bool(values.dtype == np.object_)


def with_cut_texts(dataset: Dataset, most: int) -> Dataset:
    """Return a report whose texts are cut as they are read."""
    result = Dataset(CutTexts(dataset.source, most), dataset.name)
    result.foreign = dataset.foreign
    return result


class CutTexts:
    """The source of another dataset, with its texts cut."""

    def __init__(self, source: Source, most: int) -> None:
        self.room = source.room
        self._source = source
        self._most = most

    def tables(self) -> Collection[str]:
        return self._source.tables()

    def arrays(self) -> Collection[str]:
        return self._source.arrays()

    def length(self, table: str) -> int:
        return self._source.length(table)

    def column(self, table: str, column: str, spend: Spend) -> Values:
        values = self._source.column(table, column, spend)
        return self._cut(table, schema.TABLE[table].column(column), values)

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        columns = self._source.whole(table, spend)
        return columns and [
            self._cut(table, column, values)
            for column, values in zip(schema.TABLE[table].columns, columns, strict=True)
        ]

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        return self._source.rows(array, first, stop, spend)

    def _cut(self, table: str, column: schema.Column, values: Values) -> Values:
        if column.kind != "text":
            return values
        if (table, column.name) != JSON:
            return cut_each(values, self._most)
        return np.array([cut_json(text, self._most) for text in values], dtype=np.object_)
