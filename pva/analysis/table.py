"""What an analysis gives: a frozen table of NumPy columns, with their units and meanings.

table = memory_by_tile(report)
table.arrays["total"], table.units["total"], table.meanings["total"]
table.frame()        # a DataFrame of one's own; pandas is imported by the first
table["total"].max() # whatever else is asked of a table is asked of its frame
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers, Values
from pva.lazy import pandas as pd

Arrays = Mapping[str, Values]
Columns = Mapping[str, object]  # of arrays, of lists, and of single values for all rows
ANY = "*"  # the columns that depend on the report
# A table of more rows is shown in a notebook by so many of its first and last, as by pandas.
MAX_ROWS, ENDS = 60, 5


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

    def __init__(self, columns: Columns, declared: Declared, index: str | None = None) -> None:
        self._declared = declared
        self._index = index
        self._arrays = MappingProxyType(_frozen(columns))
        self._pandas: pd.DataFrame | None = None

    @property
    def arrays(self) -> Arrays:
        """Return the columns by name, read-only; texts are objects.

        A missing text is None, a column of whole numbers that may be missing is a masked array.
        """
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
            columns = {name: _typed(values) for name, values in self.arrays.items()}
            frame = pd.DataFrame(columns, copy=False)
            self._pandas = frame if self._index is None else frame.set_index(self._index)
        return self._pandas.copy(deep=False)

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values()), ()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame())

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
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


def _frozen(columns: Columns) -> dict[str, Values]:
    """Return read-only views of the columns."""
    return {name: _read_only(values) for name, values in arrays_of(columns).items()}


def _read_only(values: Values) -> Values:
    if _is_masked(values):
        return np.ma.MaskedArray(_read_only(values.data), _read_only(np.ma.getmaskarray(values)))
    view = values.view()
    view.flags.writeable = False
    return view


def _is_masked(values: object) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    # Nothing is masked before numpy.ma is imported, which takes 10 ms.
    return "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def _typed(values: Values) -> Any:
    """Return values of which pandas sees their type: texts, also where there are none."""
    if _is_masked(values):
        return pd.arrays.IntegerArray(values.data, np.ma.getmaskarray(values))
    is_without_texts = values.dtype == object and all(value is None for value in values)
    return pd.array(values, dtype="str") if is_without_texts else values


def arrays_of(columns: Columns | pd.DataFrame) -> dict[str, Values]:
    """Return columns as arrays of one length: texts as objects, one value for all rows repeated."""
    arrays = {str(name): _array(values) for name, values in columns.items()}
    rows = max((len(values) for values in arrays.values() if values.ndim), default=0)
    return {name: values if values.ndim else values.repeat(rows) for name, values in arrays.items()}


def rows_of(columns: Columns, rows: Values | slice) -> Arrays:
    """Return some of the rows, by number, or by a truth for each."""
    return {name: values[rows] for name, values in arrays_of(columns).items()}


def whole_numbers(values: Iterable[int | None]) -> Values:
    """Return whole numbers of which some are missing, None, as a masked array."""
    numbers = list(values)
    return np.ma.MaskedArray(
        [value or 0 for value in numbers], [value is None for value in numbers], dtype=np.int64
    )


def columns_of(rows: Sequence[Mapping[str, object]], names: Iterable[str]) -> Arrays:
    """Return rows, each with a value by name, as columns of these names."""
    return arrays_of({name: [row[name] for row in rows] for name in names})


def joined(parts: Iterable[Columns]) -> Arrays:
    """Return the rows of parts that have the same columns, one part behind the other."""
    arrays = [arrays_of(part) for part in parts]
    return {name: _concatenated([part[name] for part in arrays]) for name in arrays[0]}


def _concatenated(parts: list[Values]) -> Values:
    if any(map(_is_masked, parts)):
        masked: Values = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
        return masked
    return np.concatenate(parts)


def groups_of(columns: Columns) -> tuple[Arrays, Values]:
    """Return the different rows of columns, ascending, and the number of that of each row."""
    arrays = arrays_of(columns)
    group, *others = map(_codes, arrays.values())
    for codes in others:
        pairs = group * (int(codes.max(initial=0)) + 1) + codes
        group = np.unique(pairs, return_inverse=True)[1]
    first = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return rows_of(arrays, first), group


def _codes(values: Values) -> Integers:
    """Return the place of each value among the different ones, ascending."""
    if values.dtype != object:
        return np.unique(values, return_inverse=True)[1]
    # Only the different texts are sorted: comparing objects takes long. Numbered by their first
    # place they are looked up in the order of the memory.
    texts = values.tolist()
    different = list(dict.fromkeys(texts))
    numbers = dict(zip(different, range(len(different)), strict=True))
    places = np.empty(len(different), np.int64)
    places[sorted(numbers.values(), key=different.__getitem__)] = np.arange(len(different))
    return places[np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))]


def largest_first(columns: Columns, *keys: str) -> Arrays:
    """Return the rows in descending order of the columns `keys`, of which the first decides first.

    Rows that are equal stay in order; what is not a number comes last.
    """
    arrays = arrays_of(columns)
    return rows_of(arrays, np.lexsort([_falling(arrays[key]) for key in reversed(keys)]))


def _array(values: object) -> Values:
    array: Values = values if _is_masked(values) else np.asarray(values)
    is_empty = isinstance(values, list) and not values  # of texts, most likely
    return array.astype(object) if is_empty or array.dtype.kind in "US" else array


def _falling(values: Values) -> Values:
    """Return numbers that ascend as the values descend."""
    return -values.astype(np.int64) if values.dtype.kind in "ub" else -values
