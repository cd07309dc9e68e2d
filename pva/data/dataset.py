"""The one thing in the middle: columns and arrays by name, loaded when asked for.

Formats turn files into a Dataset and back; model, frames and checks are views of it. Whole numbers
come as int64, fractions as float64, truth values as bool, texts as objects, codes as int64 indexes
into the `values` of their column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Never, TypeVar

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.array_types import Values
from pva.data import validation
from pva.data.sources import Joined, Memory, Source, Spend, Spending
from pva.errors import InconsistentDataError, NotRecordedError

T = TypeVar("T")
NOTHING: Any = object()

SIZE = 1 << 30  # limit of an index of an array without values
LONG = 1 << 18  # rows of a table too many for its columns to be held together
RUNS_OPTION = "autoReport.executionProfileProgramRunCount"
AXES_OF_TARGET = {"tile": "num_tiles", "ipu": "num_ipus"}

DTYPES: dict[str, type] = {
    "int": np.int64, "code": np.int64, "float": np.float64, "bool": np.bool_, "text": np.object_
}  # fmt: skip


class Dataset:
    """Columns and arrays of one report. Equal when all of them are."""

    def __init__(self, source: Source, name: str = "report") -> None:
        self.name = name
        self.foreign = False  # told by another writer, whose documents leave things out
        self.source = source
        self.room = source.room
        self.held = self.room.keep(1 / 2)  # what `stored` has read
        self._wide = self.room.keep(1 / 6)  # of them, in the types of the schema
        self._sizes: dict[tuple[str, str], int] = {}
        self._kept: dict[object, Any] = {}
        self._lengths: dict[str, tuple[str, int]] = {}  # by index, of the first array read

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Mapping[str, npt.ArrayLike]],
        arrays: Mapping[str, npt.ArrayLike] | None = None,
        name: str = "report",
        *,
        foreign: bool = False,
    ) -> Dataset:
        """Make a dataset from values in memory; optional columns may be left out.

        Raises InconsistentDataError when a name is not declared, a column is missing or lengths
        do not fit.
        """
        unknown = set(arrays or {}) - set(schema.ARRAY)
        if unknown:
            raise InconsistentDataError(name, f"no array {', '.join(sorted(unknown))} is declared")
        source = Memory(
            {table: completed(name, table, columns) for table, columns in tables.items()},
            {array: np.asarray(values) for array, values in (arrays or {}).items()},
        )
        dataset = cls(source, name)
        dataset.foreign = foreign
        dataset._check_shapes({name: values.shape for name, values in source.held.items()})
        return dataset

    @classmethod
    def joined(cls, parts: Sequence[Dataset], name: str = "report") -> Dataset:
        """Make one dataset of several; what two of them hold comes from the earlier."""
        joined = cls(Joined(parts), name)
        joined.foreign = any(part.foreign for part in parts)
        return joined

    def select(self, *documents: schema.Document) -> Dataset:
        """Return what belongs to the documents named, from graph, execution and debug."""
        items: list[schema.Table | schema.Array] = [*schema.TABLES, *schema.ARRAYS]
        names = {item.name for item in items if item.document in documents}
        return Dataset(Joined([self], names), self.name)

    @property
    def tables(self) -> tuple[str, ...]:
        """Name the tables that are there, in the order of the schema."""
        present = set(self.source.tables())
        return tuple(table.name for table in schema.TABLES if table.name in present)

    @property
    def arrays(self) -> tuple[str, ...]:
        """Name the arrays that are there, in the order of the schema."""
        present = set(self.source.arrays())
        return tuple(array.name for array in schema.ARRAYS if array.name in present)

    def has(self, name: str) -> bool:
        """Return whether the table or array was recorded."""
        return name in self.source.tables() or name in self.source.arrays()

    def column(self, table: str, column: str) -> Values:
        """Return one column, one value a row; raises NotRecordedError."""
        wide = self._wide.get((table, column))  # asked once: another thread may let go of it
        if wide is not None:
            return wide
        stored = self.stored(table, column)
        with self.room.spending() as spend:
            place = f"table {table}, column {column}"
            values = self._widened(stored, schema.TABLE[table].column(column).kind, place, spend)
            return self._wide.hold((table, column), _frozen(values), self.size(table, column))

    def stored(self, table: str, column: str) -> Values:
        """Return the same in the type that it has in the file, which may be a narrower one."""
        values = self.held.get((table, column))
        if values is not None:
            return values
        return self.held.hold((table, column), *self._read(table, column))

    def passed(self, table: str, column: str) -> Values:
        """Return the same for one pass over it: who asks holds it, the dataset does not."""
        values = self.held.get((table, column))
        return self._read(table, column)[0] if values is None else values

    def _read(self, table: str, column: str) -> tuple[Values, int]:
        """Read a column, and tell how many bytes it takes."""
        self._require(table, self.source.tables())
        declared = schema.TABLE[table].column(column)
        with self.room.spending() as spend:
            values: Values = self.source.column(table, column, spend)
            size = spend.spent
            wide = len(values) * np.dtype(DTYPES[declared.kind]).itemsize
            self._sizes[table, column] = size if declared.kind == "text" else wide
            checked = values
            if values.dtype.kind not in "iu" or not validation.takes_narrow(table, declared):
                place = f"table {table}, column {column}"
                checked = self._widened(values, declared.kind, place, spend)
            validation.check_column(self, table, declared, checked)
            return _frozen(values), size

    def size(self, table: str, column: str) -> int:
        """Return the bytes of a column that was read, its texts among them."""
        return self._sizes[table, column]

    def texts(self, table: str, column: str) -> Values:
        """Return a column of codes as the texts that they stand for."""
        return texts_of(schema.TABLE[table].column(column), self.column(table, column))

    @staticmethod
    def words(table: str, column: str) -> tuple[str, ...]:
        """Return the texts that the codes of a column stand for, by code."""
        return schema.TABLE[table].column(column).values

    def table(self, table: str) -> dict[str, Values]:
        """Return all columns of a table; raises NotRecordedError, DamagedFileError (too large)."""
        return dict(self.columns(table))

    def columns(self, table: str) -> Iterator[tuple[str, Values]]:
        """Return the columns of a table one by one, for one who keeps them all."""
        self._require(table, self.source.tables())
        columns, rows = schema.TABLE[table].columns, self.length(table)
        self.make_room(8 * len(columns) * rows, f"table {table}")
        with self.room.spending() as spend:
            all_columns = self.whole(table, spend) if rows >= LONG else None
            for column, values in zip(columns, all_columns or (), strict=False):
                yield column.name, values
            for column in columns if all_columns is None else ():
                values = self.column(table, column.name)
                spend(self.size(table, column.name), f"table {table}, column {column.name}")
                yield column.name, values

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        """Read all columns of a table at once and hold none; None where one by one is as fast."""
        columns_read = self.source.whole(table, spend)
        for column, values in zip(schema.TABLE[table].columns, columns_read or (), strict=False):
            validation.check_column(self, table, column, values)
        return columns_read and list(map(_frozen, columns_read))

    def make_room(self, amount: int, place: str) -> None:
        """Let go of what is held for bytes that are about to be taken.

        Raises DamagedFileError where they are more than reading the file may take.
        """
        self.room.check(amount, place)

    def value(self, table: str, column: str) -> Any:
        """Return the value of a table of one row, as a Python object."""
        return self.column(table, column).tolist()[0]

    def of_replica(self, column: str) -> int:
        """Return how many tiles or IPUs (a column of `target`) a replica of the graph has.

        All that is held by tile or by IPU is of one replica: the others are alike.
        """
        count = int(self.value("target", column))
        return -(-count // max(int(self.value("target", "num_replicas")), 1))

    def rows_where(self, table: str, column: str, value: int) -> Values:
        """Return the rows of a table with a value in a column, in order; the first call sorts."""
        order, ordered = self._sorted(table, column)
        return order[slice(*np.searchsorted(ordered, (value, value + 1)))]

    def rows_among(self, table: str, column: str, values: npt.ArrayLike) -> Values:
        """Return the rows of a table with any of some values in a column, value after value."""
        order, ordered = self._sorted(table, column)
        first = np.searchsorted(ordered, values)
        counts = np.searchsorted(ordered, values, side="right") - first
        begins = np.repeat(first - (np.cumsum(counts) - counts), counts)
        return order[begins + np.arange(len(begins))]

    def _sorted(self, table: str, column: str) -> tuple[Values, Values]:
        """Return the order of the rows by a column, and the column in that order."""

        def sort(data: Dataset) -> tuple[Values, Values]:
            values = data.column(table, column)
            order = np.argsort(values, kind="stable")
            return order, values[order]

        return self.kept((table, column), sort)

    def kept(self, key: object, make: Callable[[Dataset], T]) -> T:
        """Return what `make` finds in this dataset; it is called once for a key."""
        result: T = self._kept.get(key, NOTHING)
        if result is NOTHING:
            result = self._kept[key] = make(self)
        return result

    def length(self, table: str) -> int:
        """Count the rows of a table; 0 when it was not recorded."""
        if table not in self.source.tables():
            return 0
        return self.source.length(table)

    def array(self, array: str) -> Values:
        """Return a whole array; raises NotRecordedError."""
        if array in self._wide:
            return self._wide[array]
        with self.room.spending() as spend:
            wide = self._widened(self._whole(array, spend), schema.ARRAY[array].kind, array, spend)
            return self._wide.hold(array, _frozen(wide), wide.nbytes)

    def row_sums(self, array: str) -> Values:
        """Return the sum of each row of an array, found once; raises NotRecordedError."""
        return self._of_rows(
            array, "sum", lambda array_values: array_values.sum(axis=1, dtype=np.int64)
        )

    def row_maxima(self, array: str) -> Values:
        """Return the largest value of each row of an array, at least 0, as `row_sums` does."""
        return self._of_rows(array, "max", lambda array_values: array_values.max(axis=1, initial=0))

    def _of_rows(self, array: str, key: str, find: Callable[[Values], Values]) -> Values:
        """Return a number a row of an array of which the dataset holds what the file does."""

        def make(data: Dataset) -> Values:
            with data.room.spending() as spend:
                return _frozen(find(data._whole(array, spend)).astype(np.int64))

        return self.kept((key, array), make)

    def chosen(self, array: str, rows: Values) -> Values:
        """Return some rows of an array, of which the dataset holds what the file does.

        Raises InconsistentDataError for rows that are not there: without the table that an array
        counts, what refers to its rows may be any numbers.
        """
        with self.room.spending() as spend:
            whole = self._whole(array, spend)
            validation.check_range(self.name, array, rows, (0, len(whole) - 1), "its rows")
            values = whole[rows]
            return _frozen(self._widened(values, schema.ARRAY[array].kind, array, spend))

    def on_tiles(self, array: str, tiles: Values | slice | int) -> Values:
        """Return what an array by [...][tile] has of some tiles, as `chosen` does of rows."""
        with self.room.spending() as spend:
            values = self._whole(array, spend)[..., tiles]
            return _frozen(self._widened(values, schema.ARRAY[array].kind, array, spend))

    def _whole(self, array: str, spend: Spending) -> Values:
        """Return an array in the type that it has in the file, and hold it."""
        values = self._rows(array, 0, None, spend)
        if array not in self.held:
            validation.check_shape(self, schema.ARRAY[array], values.shape)
            validation.check_users(self, schema.ARRAY[array], len(values))
            self._check_same_lengths(array, values.shape)
            self.held.hold(array, values, spend.spent)
        return values

    def rows(self, array: str, first: int, stop: int | None) -> Values:
        """Return rows `first` to `stop` of an array and read no others; raises NotRecordedError."""
        with self.room.spending() as spend:
            values = self._rows(array, first, stop, spend)
            return _frozen(self._widened(values, schema.ARRAY[array].kind, array, spend))

    def _rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        """Return the same in the type that it has in the file."""
        declared = schema.ARRAY[array]
        self._require(array, self.source.arrays())
        if array in self.held:
            return self.held[array][first:stop]
        values = self.source.rows(array, first, stop, spend)
        if not len(values):  # lists of nothing, in a document of its own, tell no shape
            inner = zip(declared.index[1:], values.shape[1:], strict=False)
            values = values.reshape(
                0, *(size or min(max(self.axis(a), 0), SIZE) for a, size in inner)
            )
        validation.check_array(self, declared, values)
        return _frozen(values)

    def _widened(self, values: Values, kind: schema.Kind, place: str, spend: Spend) -> Values:
        """Return values in the type that the schema has."""
        if values.dtype != DTYPES[kind]:
            spend(values.size * np.dtype(DTYPES[kind]).itemsize, place)
        try:
            return values.astype(DTYPES[kind], copy=False)
        except MemoryError as error:
            problem, remedy = "too large for the memory", "some rows of it"
            raise InconsistentDataError(self.name, problem, remedy, place=place) from error

    def row(self, array: str, row: int) -> Values:
        """Return one row of an array; raises NotRecordedError, InconsistentDataError."""
        rows = self.rows(array, max(row, 0), row + 1)
        if not len(rows):
            remedy = "each row that is used"
            raise InconsistentDataError(self.name, f"no row {row}", remedy, place=array)
        first: Values = rows[0]
        return first

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {len(self.tables)} tables, {len(self.arrays)} arrays>"

    def __deepcopy__(self, memo: object) -> Dataset:
        return self  # what it holds never changes

    def __reduce__(self) -> Never:
        remedy = "pickle the report, which is opened anew from its path, or a frame"
        raise TypeError(f"{self.name}: what shows a report cannot be pickled; {remedy}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dataset):
            return NotImplemented
        if (self.tables, self.arrays) != (other.tables, other.arrays):
            return False
        columns = ((t, c.name) for t in self.tables for c in schema.TABLE[t].columns)
        return all(_same(self.column(*key), other.column(*key)) for key in columns) and all(
            _same(self.array(name), other.array(name)) for name in self.arrays
        )

    __hash__ = None  # type: ignore[assignment]

    def why_absent(self, name: str) -> str:
        """Return why a table or array is not there, or which engine option records it."""
        declared = schema.TABLE.get(name) or schema.ARRAY[name]
        items: list[schema.Table | schema.Array] = [*schema.TABLES, *schema.ARRAYS]
        recorded = any(item.option == declared.option and self.has(item.name) for item in items)
        of_runs = declared.document == "execution"
        of_tiles = recorded or of_runs or declared.option == schema.LOWERED_OPTION
        if of_tiles and self._tells("target", "type", "CPU"):
            return "a CPU runs values without a model of tiles and cycles"
        in_full = of_runs and declared.option != schema.BLOCKS_OPTION
        if in_full and self._tells("execution", "profiler_mode", "NONE"):
            return f"no run was recorded step by step; see the engine option {RUNS_OPTION}"
        if recorded:
            return f"the program has none, or its writer does not tell; {declared.option} was on"
        return f"run the program with the engine option {declared.option}"

    def _tells(self, table: str, column: str, text: str) -> bool:
        return self.length(table) > 0 and bool(self.texts(table, column)[0] == text)

    def _require(self, name: str, present: Collection[str]) -> None:
        if name not in present:
            raise NotRecordedError(self.name, f"{name} not recorded", self.why_absent(name))

    def axis(self, axis: str) -> int:
        """Return how long an index of arrays is; -1 when no table tells."""
        counted = schema.DIMENSIONS.get(axis, "")
        if isinstance(counted, int):
            return counted
        if counted:
            return self.length(counted) if self.has(counted) else -1
        if axis == "vertex" and self.has("graph"):
            return int(self.value("graph", "num_vertices"))
        if axis == "tile_of_ipu" and self.has("target"):
            return int(self.value("target", "tiles_per_ipu"))
        of_target = AXES_OF_TARGET.get(axis, "")
        return self.of_replica(of_target) if of_target and self.has("target") else -1

    def dimensions(self) -> dict[str, int]:
        """Return how long the index of arrays is, where the tables say so."""
        axes = {axis for array in schema.ARRAYS for axis in array.index}
        lengths = {axis: self.axis(axis) for axis in axes}
        return {name: length for name, length in lengths.items() if length >= 0}

    def _check_same_lengths(self, array: str, shape: tuple[int, ...]) -> None:
        """Refuse an array that is longer or shorter than others with the same index."""
        lengths = shape if 0 not in shape else shape[:1]  # rows of nothing have no columns
        for axis, size in zip(schema.ARRAY[array].index, lengths, strict=False):
            other_array, length = self._lengths.setdefault(axis, (array, size))
            if size != length:
                problem = f"{size} along its index {axis}"
                raise InconsistentDataError(
                    self.name, problem, f"{other_array} has {length}", place=array
                )

    def _check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name in self.arrays:
            validation.check_shape(self, schema.ARRAY[name], shapes[name])


def texts_of(column: schema.Column, codes: Values) -> Values:
    """Return codes as the texts that they stand for."""
    return np.array(column.values, dtype=np.object_)[codes]


def completed(name: str, table: str, arrays: Mapping[str, npt.ArrayLike]) -> dict[str, Values]:
    """Check one table's columns against the schema, and fill in the optional ones.

    Raises InconsistentDataError, its text beginning with `name`.
    """
    if table not in schema.TABLE:
        raise InconsistentDataError(name, f"no table {table} is declared", "see pva.schema.TABLES")
    declared = schema.TABLE[table].columns
    unknown = set(arrays) - {column.name for column in declared}
    if unknown:
        raise InconsistentDataError(name, f"{table} has no column {', '.join(sorted(unknown))}")
    absent = [c.name for c in declared if c.name not in arrays and not c.optional]
    if absent:
        raise InconsistentDataError(name, f"{table} lacks the column {', '.join(absent)}")
    columns: dict[str, Values] = {
        c.name: np.asarray(arrays[c.name], dtype=DTYPES[c.kind])
        for c in declared
        if c.name in arrays
    }
    for c in declared:
        if c.values and c.name in columns:
            place, last = f"{table}.{c.name}", len(c.values) - 1
            validation.check_range(name, place, columns[c.name], (0, last), place)
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InconsistentDataError(name, f"columns of {table} differ in length: {lengths}")
    rows = next(iter(lengths.values()))
    for c in declared:
        if c.name not in columns:
            columns[c.name] = np.full(rows, schema.MISSING[c.kind], dtype=DTYPES[c.kind])
    return columns


def _frozen(values: Values) -> Values:
    view = values.view()
    view.flags.writeable = False
    return view


def _same(left: Values, right: Values) -> bool:
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f" == right.dtype.kind)
