"""Every table and array of a report as a DataFrame, generated from the schema.

`frames.programs()` is a table, with its columns in their types: int64, float64, bool, text, and
codes as categoricals. `frames.exchange_cycles()` is an array in long form: a column for each index,
and one named for the unit; with more than one index, rows of zero are left out. `frames.schema()`
tells what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pva import schema
from pva.dataset import Dataset

if TYPE_CHECKING:
    import pandas as pd

# Indexes of arrays that are names.
NAMED = {"category": schema.CATEGORIES, "region": schema.REGIONS, "overlap": schema.OVERLAPS}
DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "text": "str", "code": "category"}


class Frames:
    """Tables and arrays by name, each a method without arguments that gives a DataFrame."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name in schema.TABLE:
            return lambda: _table(self._data, schema.TABLE[name])
        if name in schema.ARRAY:
            return lambda: _array(self._data, schema.ARRAY[name])
        raise AttributeError(f"no table or array {name}; frames.schema() lists them")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *schema.TABLE, *schema.ARRAY]

    def schema(self) -> pd.DataFrame:
        """List every column that a frame may have, and whether this report has it.

        `name` is the table or array, `column` empty for an array; `index` its indexes.
        """
        import pandas as pd

        rows = [
            (t.name, c.name, DTYPES[c.kind], c.unit, c.meaning, "", t.option)
            for t in schema.TABLES
            for c in t.columns
        ]
        rows += [
            (a.name, "", DTYPES[a.kind], a.unit, a.meaning, ", ".join(a.index), a.option)
            for a in schema.ARRAYS
        ]
        names = ["name", "column", "dtype", "unit", "meaning", "index", "recorded_by"]
        frame = pd.DataFrame(rows, columns=names)
        return frame.assign(recorded=[self._data.has(name) for name in frame["name"]])


def _table(data: Dataset, table: schema.Table) -> pd.DataFrame:
    import pandas as pd

    columns = {column.name: _column(data, table, column) for column in table.columns}
    return pd.DataFrame(columns)


def _column(data: Dataset, table: schema.Table, column: schema.Column) -> Any:
    import pandas as pd

    values = data.column(table.name, column.name)
    if column.kind == "code":
        return pd.Categorical.from_codes(values, categories=pd.Index(column.values))
    return pd.array(values, dtype="str") if column.kind == "text" else values


def _array(data: Dataset, array: schema.Array) -> pd.DataFrame:
    import pandas as pd

    values = data.array(array.name)
    several = values.ndim > 1
    places = np.nonzero(values) if several else (np.arange(len(values)),)
    columns: dict[str, Any] = {
        name: _index(name, place) for name, place in zip(array.index, places, strict=True)
    }
    columns[array.unit or "value"] = values[places]
    return pd.DataFrame(columns)


def _index(name: str, places: Any) -> Any:
    import pandas as pd

    if name not in NAMED:
        return places
    return pd.Categorical.from_codes(places, categories=pd.Index(NAMED[name]))
