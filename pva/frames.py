"""Every table and array of a report as a DataFrame, generated from the schema.

`frames.programs()` is a table, with its columns in their types: int64, float64, bool, text, and
codes as categoricals. `frames.exchange_cycles()` is an array in long form: a column for each index,
and one named for the unit; with more than one index, rows of zero are left out. `frames.schema()`
tells what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import nearest
from pva.lazy import pandas as pd

DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "text": "str", "code": "category"}
NAMES = (*schema.TABLE, *schema.ARRAY)


class Frames:
    """Tables and arrays by name, each a function without arguments that gives a DataFrame."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in NAMES:
            hint = "" if name.startswith("_") else nearest(name, NAMES, "frames.schema()")
            raise AttributeError(f"no table or array {name}; {hint}")

        def frame() -> pd.DataFrame:
            return frame_of(self._data, name)

        frame.__name__, frame.__qualname__ = name, f"frames.{name}"
        frame.__doc__ = _described(name)
        return frame

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *NAMES]

    def __repr__(self) -> str:
        present = sum(map(self._data.has, NAMES))
        return f"<Frames: {present} of {len(NAMES)} tables and arrays; schema() lists them>"

    def _repr_html_(self) -> str:
        rows = [(name, _declared(name).meaning) for name in NAMES if self._data.has(name)]
        return pd.DataFrame(rows, columns=["frame", "meaning"]).to_html(index=False)

    def schema(self) -> pd.DataFrame:
        """List every column that a frame may have, and whether this report has it.

        Columns: name (of the table or array), column, dtype, unit, meaning, recorded_by (the engine
        option), recorded. An index of an array has the dtype int64, or category where it is a name.
        """
        columns = ["name", "column", "dtype", "unit", "meaning", "recorded_by"]
        frame = pd.DataFrame([*_table_rows(), *_array_rows()], columns=columns)
        return frame.assign(recorded=[self._data.has(name) for name in frame["name"]])


def frame_of(
    data: Dataset, name: str, *, copy: bool = True, columns: Collection[str] | None = None
) -> pd.DataFrame:
    """Return a table or array as a DataFrame; without `copy` it shares memory and is read-only.

    Of a table only these `columns`, if they are given; of an array all.

    Raises NotRecordedError.
    """
    is_array = name in schema.ARRAY
    columns_of_values = (
        _array(data, schema.ARRAY[name]).items() if is_array else _table(data, name, columns)
    )
    # Copied one by one: pandas would hold all columns twice.
    values = {
        column: _own(values_of_column) if copy else values_of_column
        for column, values_of_column in columns_of_values
    }
    index = None if is_array or values else range(data.length(name))  # as many rows without columns
    return pd.DataFrame(values, index, copy=False)


def _own(values: Any) -> Any:
    shared = isinstance(values, np.ndarray) and not values.flags.writeable
    return values.copy() if shared else values


def _table_rows() -> Iterator[tuple[str, ...]]:
    for table in schema.TABLES:
        for column in table.columns:
            facts = (column.name, DTYPES[column.kind], column.unit, column.meaning)
            yield (table.name, *facts, table.option)


def _array_rows() -> Iterator[tuple[str, ...]]:
    for array in schema.ARRAYS:
        for index in array.index:
            dtype = DTYPES["code" if index in schema.INDEX_WORDS else "int"]
            yield array.name, index, dtype, "", f"index: {index}", array.option
        facts = (array.value_column, DTYPES[array.kind], array.unit, array.meaning)
        yield (array.name, *facts, array.option)


def _declared(name: str) -> schema.Table | schema.Array:
    return schema.TABLE.get(name) or schema.ARRAY[name]


def _described(name: str) -> str:
    """Write what a frame holds, for help in a notebook."""
    declared = _declared(name)
    lines = [f"Give {name} as a DataFrame: {declared.meaning}.", ""]
    rows = _table_rows() if name in schema.TABLE else _array_rows()
    for owner, column, dtype, unit, meaning, _ in rows:
        if owner == name:
            lines.append(f"{column} ({', '.join(filter(None, (dtype, unit)))}): {meaning}")
    if name in schema.ARRAY:
        size = 8 * (len(schema.ARRAY[name].index) + 1)
        lines += ["", f"{size} bytes for each value but 0; dataset.array({name!r}) has 8 for each."]
    return "\n".join([*lines, "", f"Recorded by {declared.option}; raises NotRecordedError."])


def _table(
    data: Dataset, name: str, selected: Collection[str] | None = None
) -> Iterator[tuple[str, Any]]:
    for column in schema.TABLE[name].columns:
        if selected is None or column.name in selected:
            yield column.name, _column(data, name, column)


def _column(data: Dataset, table: str, column: schema.Column) -> object:
    values = data.column(table, column.name)
    if column.kind == "code":
        return pd.Categorical.from_codes(values, categories=pd.Index(column.values, dtype="str"))
    return pd.array(values, dtype="str") if column.kind == "text" else values


def _array(data: Dataset, array: schema.Array) -> dict[str, object]:
    values = data.array(array.name)
    is_nested = values.ndim > 1
    places = np.nonzero(values) if is_nested else (np.arange(len(values)),)
    columns: dict[str, Any] = {
        name: _index(name, place) for name, place in zip(array.index, places, strict=True)
    }
    columns[array.value_column] = values[places]
    return columns


def _index(name: str, places: Any) -> object:
    if name not in schema.INDEX_WORDS:
        return places
    return pd.Categorical.from_codes(
        places, categories=pd.Index(schema.INDEX_WORDS[name], dtype="str")
    )
