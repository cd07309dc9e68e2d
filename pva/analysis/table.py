"""What an analysis gives: a frozen table of NumPy columns, with their units and meanings.

table = memory_by_tile(report)
table.arrays["total"], table.units["total"], table.meanings["total"]
table.frame()        # a DataFrame of one's own; pandas is imported by the first
table["total"].max() # whatever else is asked of a table is asked of its frame
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pva.lazy import pandas as pd

Arrays = Mapping[str, npt.NDArray[Any]]
ANY = "*"  # the columns that depend on the report
MAX_ROWS, ENDS = (
    60,
    5,
)  # of a table in a notebook: more are cut to so many first and last, as pandas


@dataclass(frozen=True, slots=True)
class Declared:
    """The columns that an analysis declares: their units by name, and what they mean."""

    units: dict[str, str]
    meanings: dict[str, str]

    def unit(self, column: str) -> str:
        """Return the unit of a column, which may be one of those that depend on the report."""
        return self.units.get(column, self.units.get(ANY, ""))

    def meaning(self, column: str) -> str:
        """Return what a column means."""
        return self.meanings.get(column, self.meanings.get(ANY, ""))


class Table:
    """Columns of one length by name, which nothing can change.

    Its attributes, operators and indexing beyond those defined here are those of the DataFrame, so
    that what works on one works on a table; assigning to it raises TypeError.
    """

    __slots__ = ("_arrays", "_declared", "_index", "_pandas")

    def __init__(
        self, columns: Arrays | pd.DataFrame, declared: Declared, index: str | None = None
    ) -> None:
        self._declared = declared
        self._index = index
        self._arrays = MappingProxyType(_frozen(columns)) if isinstance(columns, Mapping) else None
        self._pandas = None if isinstance(columns, Mapping) else columns

    @property
    def arrays(self) -> Arrays:
        """Return the columns by name, read-only; texts are objects."""
        if self._arrays is None:
            frame = self.frame()
            frame = frame.reset_index() if frame.index.name else frame
            columns = {str(name): np.asarray(values) for name, values in frame.items()}
            self._arrays = MappingProxyType(_frozen(columns))
        return self._arrays

    @property
    def units(self) -> dict[str, str]:
        """Return the unit of each column, empty for a count, an index or a text."""
        return {name: self._declared.unit(name) for name in self.arrays}

    @property
    def meanings(self) -> dict[str, str]:
        """Return what each column means."""
        return {name: self._declared.meaning(name) for name in self.arrays}

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame, which may be changed; it shares memory until then."""
        if self._pandas is None:
            # Without copying, each column is a block of its own: nothing is held twice.
            frame = pd.DataFrame(dict(self.arrays), copy=False)
            self._pandas = frame if self._index is None else frame.set_index(self._index)
        return self._pandas.copy(deep=False)

    def __len__(self) -> int:
        if self._arrays is None:
            return len(self._pandas) if self._pandas is not None else 0
        return len(next(iter(self._arrays.values()), ()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame())

    def __contains__(self, name: object) -> bool:
        return name in self.frame() if self._arrays is None else name in self._arrays

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling ask for these before there is a frame
            raise AttributeError(f"a table has no {name}")
        return getattr(self.frame(), name)

    @overload
    def __getitem__(self, key: str) -> pd.Series[Any]: ...
    @overload
    def __getitem__(
        self, key: list[str] | pd.Series[bool] | npt.NDArray[np.bool_]
    ) -> pd.DataFrame: ...
    def __getitem__(self, key: Any) -> Any:
        return self.frame()[key]

    def equals(self, other: Table | pd.DataFrame) -> bool:
        """Return whether another table, or a DataFrame, has the same columns."""
        return self.frame().equals(other.frame() if isinstance(other, Table) else other)

    def __eq__(self, other: object) -> Any:
        compared: Any = other.frame() if isinstance(other, Table) else other
        return self.frame() == compared

    __hash__ = None  # type: ignore[assignment]  # as of a DataFrame

    def toPandas(self) -> pd.DataFrame:
        """Return the DataFrame, under the name by which plotly.express asks for it."""
        return self.frame()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.frame(), dtype=dtype)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (dict(self.arrays), self._declared, self._index)

    def __repr__(self) -> str:
        return repr(self.frame())

    def _repr_html_(self) -> str:
        from html import escape  # only notebooks need it

        whole = len(self) <= MAX_ROWS
        rows = [*range(len(self))] if whole else [*range(ENDS), *range(len(self) - ENDS, len(self))]
        heads = (
            f'<th title="{escape(self.meanings[name])}">{escape(name)}<br>{escape(unit)}</th>'
            for name, unit in self.units.items()
        )
        cells = (
            "".join(f"<td>{escape(_text(values[row]))}</td>" for values in self.arrays.values())
            for row in rows
        )
        body = "".join(f"<tr>{line}</tr>" for line in cells)
        note = "" if whole else f"<p>{len(self):,} rows, of which the first and last {ENDS}</p>"
        return f"<table><tr>{''.join(heads)}</tr>{body}</table>{note}"


def _frozen(columns: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return read-only views of the columns; lists become arrays, of objects where of texts."""
    views = {}
    for name, values in columns.items():
        array = np.asarray(values)
        if array.dtype.kind in "US":
            array = array.astype(object)
        views[name] = array.view()
        views[name].flags.writeable = False
    return views


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)
