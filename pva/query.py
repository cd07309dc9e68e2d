"""SQL over the tables and arrays of a report, named and typed as in `pva.frames`.

Tables have a column `row` beside theirs, counted from 0, which columns such as `program` refer to.

DuckDB answers when it is installed, and reads the columns where they lie; SQLite answers for small
tables without it. Both are set so that a query means the same: whole numbers divide to whole
numbers, a division by zero gives null, numbers that are missing are null, null sorts before all
else, LIKE tells capitals. SQLite knows no types of expressions: what is true comes as 1, and an
expression that has no value in any row as float64.

The connection is in memory, holds only what the query names, and opens no file.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import MissingPackageError, QueryError, nearest
from pva.frames import NAMES, frame_of
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    import sqlite3

    import duckdb

Values = np.ndarray[Any, Any]
Lend = Callable[["duckdb.DuckDBPyConnection", str], None]  # a table or array, by name

ROW = "row"  # the column of a table that a frame has as its index
SQLITE_ROWS = 200_000  # of one table; DuckDB has no such limit
# Values of an answer: two GB of memory, as numbers or, from SQLite, as Python's objects. A join
# without a condition has more, and would fill the memory of the machine.
MAX_VALUES, SQLITE_VALUES = 250_000_000, 20_000_000
FEWER = "join by a condition, choose rows with WHERE, or add LIMIT"
BETWEEN_INTERRUPTS = 0.05  # seconds: one that comes between two statements stops none
OUT_OF_MEMORY = "Out of Memory Error"  # DuckDB's words
STEPS_UNTIL_CTRL_C = 1_000_000  # of SQLite's machine: some 10 ms
INSTALL = "pip install 'tilescope[sql]' brings DuckDB, which has no such limit"
LISTED = "frames.schema()"
LISTED_AT_MOST = 20  # names in the text of an error

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "integer_division": True,
    "ieee_floating_point_ops": False,
    "default_null_order": "sqlite",
}
# Since DuckDB 2; a division by zero gave null before.
DIVISION = "error_on_division_by_zero"
TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
    "code": "VARCHAR",
}
DTYPES = {"BIGINT": "int64", "DOUBLE": "float64", "BOOLEAN": "bool", "VARCHAR": "str"}
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")

SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
NO_COLUMN = (
    re.compile(r'column "([^"]+)" (?:was )?not found', re.IGNORECASE),
    re.compile(r'does not have a column named "([^"]+)"'),
    re.compile(r"no such column: (?:\w+\.)*(.+)"),
)
# What SQL reads as a whole; the group is a name in double quotes.
WHOLE_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|`[^`]*`|\[[^\]]*\]|"((?:[^"]|"")*)\"""", re.DOTALL
)
NO_TABLE = re.compile(r"no such table: (?:main\.)?(.+)|Table with name (.+) does not exist!")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a result; `null` tells where there is no value."""

    name: str
    dtype: str
    values: Values
    null: Values


def select(data: Dataset, query: str, seconds: float | None = None) -> pd.DataFrame:
    """Answer one SELECT, by DuckDB when it is installed, else by SQLite; or name the tables.

    Raises QueryError, also when it takes longer than `seconds`; NotRecordedError; and
    MissingPackageError where SQLite is not enough.
    """
    if not isinstance(query, str):
        raise QueryError(data.name, f"the query is {query!r}", "give one SELECT, as a text")
    if SHOW_TABLES.fullmatch(query):
        return _tables(data)
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return by_sqlite(data, query, seconds)
    return by_duckdb(data, query, seconds=seconds)


def _tables(data: Dataset) -> pd.DataFrame:
    """Name what this report has; a connection has only what its query speaks of."""
    return pd.DataFrame({"name": pd.array([name for name in NAMES if data.has(name)], dtype="str")})


@contextmanager
def _limited(data: Dataset, seconds: float | None, interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt a query that takes longer than `seconds`; raises QueryError."""
    if seconds is None:
        yield
        return
    ended, late = threading.Event(), threading.Event()

    def watch() -> None:
        if not ended.wait(seconds):
            late.set()
            interrupt()
        while late.is_set() and not ended.wait(BETWEEN_INTERRUPTS):
            interrupt()

    watcher = threading.Thread(target=watch, name="tilescope query", daemon=True)
    watcher.start()
    try:
        yield
    except (Exception, KeyboardInterrupt):
        if late.is_set():
            raise QueryError(
                data.name, f"the query took longer than {seconds:g} s", FEWER
            ) from None
        raise
    finally:
        ended.set()
        watcher.join()


def by_duckdb(
    data: Dataset,
    query: str,
    lend: Lend | None = None,
    tables: Sequence[str] = NAMES,
    seconds: float | None = None,
) -> pd.DataFrame:
    """Answer one SELECT by DuckDB over what `lend` lends; raises QueryError, NotRecordedError."""
    import duckdb

    names: list[str] = []
    with (
        duckdb.connect(":memory:", config=SETTINGS) as connection,
        _limited(data, seconds, connection.interrupt),
    ):
        try:
            _settle(connection)
            _check_select(data, connection, query)
            while (missing := _missing_from_duckdb(connection, query)) is not None:
                names.append(_table_to_lend(data, missing, names, tables))
                (lend or partial(_lend_to_duckdb, data))(connection, names[-1])
            relation = connection.sql(query)
            rows = MAX_VALUES // len(relation.columns)
            return _frame(_bounded(data, _answer(relation.limit(rows + 1)), rows))
        except duckdb.Error as error:
            raise _fault(data, names, str(error)) from None
        except RuntimeError as error:  # DuckDB's word for Ctrl-C
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from None
            raise


def _settle(connection: duckdb.DuckDBPyConnection) -> None:
    import duckdb

    with suppress(duckdb.CatalogException):
        connection.execute(f"SET {DIVISION} = false")
    connection.execute("SET lock_configuration = true")


def _check_select(data: Dataset, connection: duckdb.DuckDBPyConnection, query: str) -> None:
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        problem = ", then ".join(kinds) or "nothing"
        raise QueryError(data.name, f"the query is {problem}", "give one SELECT")


def _missing_from_duckdb(connection: duckdb.DuckDBPyConnection, query: str) -> str | None:
    """Name a table that the query speaks of and that is not there yet.

    `get_table_names` would name them all, but fails at USING when one is not there.
    """
    import duckdb

    try:
        connection.sql(query)
    except duckdb.CatalogException as error:
        match = NO_TABLE.search(str(error))
        if match is None:
            raise
        return match[2]
    return None


def _table_to_lend(data: Dataset, table: str, lent: Iterable[str], tables: Sequence[str]) -> str:
    """Return the name of a table that is not lent yet; raises QueryError."""
    name = table.lower()
    if name in lent:  # DuckDB before 2.0 does not tell where it looked
        remedy = "tables are in no schema: write the name alone"
        raise QueryError(data.name, f"no table {table} where the query looks for it", remedy)
    if name not in tables:
        lists = LISTED if len(tables) > LISTED_AT_MOST else ""
        raise QueryError(data.name, f"no table {table}", nearest(name, tables, lists))
    return name


def _lend_to_duckdb(data: Dataset, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    if name in schema.ARRAY:
        _lend_array(connection, data, schema.ARRAY[name])
        return
    frame = frame_of(data, name, copy=False)
    connection.register(f"_{name}", frame)
    columns = ", ".join(
        f'CAST("{column.name}" AS {TYPES[column.kind]}) AS "{column.name}"'
        for column in schema.TABLE[name].columns
    )
    connection.execute(
        f'CREATE VIEW "{name}" AS SELECT i AS "{ROW}", {columns} FROM '
        f'"_{name}" POSITIONAL JOIN range({len(frame)}) AS t(i)'
    )


def _lend_array(connection: duckdb.DuckDBPyConnection, data: Dataset, array: schema.Array) -> None:
    """Make a view in long form, as the frame is, of an array that stays as it is."""
    values = data.array(array.name)
    connection.register(f"_{array.name}", pd.DataFrame({"v": values.reshape(-1)}, copy=False))
    columns, inner = [f'v AS "{array.value_column}"'], 1
    for index, size in reversed(list(zip(array.index, values.shape, strict=True))):
        number = f"i // {inner} % {max(size, 1)}"
        words = ", ".join(f"'{word}'" for word in schema.INDEX_WORDS.get(index, ()))
        columns.insert(0, f'{f"[{words}][1 + {number}]" if words else number} AS "{index}"')
        inner *= max(size, 1)
    zeros = " WHERE v <> 0" if values.ndim > 1 else ""
    connection.execute(
        f'CREATE VIEW "{array.name}" AS SELECT {", ".join(columns)} FROM '
        f'(SELECT * FROM "_{array.name}" POSITIONAL JOIN range({values.size}) AS t(i)){zeros}'
    )


def _answer(relation: duckdb.DuckDBPyRelation) -> list[_Column]:
    kinds = [_result_type(str(kind)) for kind in relation.types]
    columns = ", ".join(
        f"CAST(#{place} AS {kind}) AS c{place}" if kind in DTYPES else f"#{place} AS c{place}"
        for place, kind in enumerate(kinds, 1)
    )
    arrays = relation.project(columns).fetchnumpy().values()
    return [
        _Column(name, DTYPES.get(kind, ""), np.ma.getdata(values), np.ma.getmaskarray(values))
        for name, kind, values in zip(relation.columns, kinds, arrays, strict=True)
    ]


def _result_type(kind: str) -> str:
    """Name the type that a frame has for a type of a result; others stay as they are."""
    if kind.removeprefix("U") in WHOLE:
        return "BIGINT"
    if kind.startswith(("DECIMAL", "FLOAT", '"NULL"', "NULL")):
        return "DOUBLE"
    return "VARCHAR" if kind.startswith("ENUM") else kind


def by_sqlite(data: Dataset, query: str, seconds: float | None = None) -> pd.DataFrame:
    """Answer one SELECT over small tables by SQLite.

    Raises QueryError, NotRecordedError and MissingPackageError.
    """
    import sqlite3

    names: list[str] = []
    query = WHOLE_TOKEN.sub(_named, query)
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as connection,
        _limited(data, seconds, connection.interrupt),
    ):
        connection.set_progress_handler(_go_on, STEPS_UNTIL_CTRL_C)
        connection.execute("PRAGMA case_sensitive_like = ON")
        try:
            # A view is of one SELECT and nothing else; it also tells types.
            connection.execute(f"CREATE TEMP VIEW result AS {query}")
            while (missing := _missing_from_sqlite(connection)) is not None:
                names.append(_table_to_lend(data, missing, names, NAMES))
                _lend_to_sqlite(connection, data, names[-1])
            types = [str(row[2]) for row in connection.execute("PRAGMA table_info(result)")]
            connection.execute("PRAGMA query_only = ON")
            cursor = connection.execute(query)
            heads = [str(column[0]).replace("`", '"') for column in cursor.description]
            rows = SQLITE_VALUES // len(heads)
            columns = _columns(heads, types, cursor.fetchmany(rows + 1))
            return _frame(_bounded(data, columns, rows))
        except (sqlite3.Error, sqlite3.Warning) as error:
            if str(error) == "interrupted":  # the program raised in `_go_on`
                raise KeyboardInterrupt from None
            raise _fault(data, names, str(error)) from None


def _named(token: re.Match[str]) -> str:
    """Quote a name so that SQLite takes it for nothing else: in double quotes it may be a text."""
    if token[1] is None or "`" in token[1]:
        return token[0]
    return "`" + token[1].replace('""', '"') + "`"


def _go_on() -> int:
    """Let Python see to signals: while SQLite answers it does not."""
    return 0


def _missing_from_sqlite(connection: sqlite3.Connection) -> str | None:
    """Name a table that the query speaks of and that is not there yet."""
    import sqlite3

    try:
        connection.execute("EXPLAIN SELECT * FROM result")
    except sqlite3.OperationalError as error:
        match = NO_TABLE.fullmatch(str(error))
        if match is None:
            raise
        return match[1]
    return None


def _lend_to_sqlite(connection: sqlite3.Connection, data: Dataset, name: str) -> None:
    rows = data.length(name) if name in schema.TABLE else np.count_nonzero(data.array(name))
    if rows > SQLITE_ROWS:
        problem = f"{name} has {rows:,} rows, and SQLite is asked for up to {SQLITE_ROWS:,}"
        raise MissingPackageError(data.name, problem, INSTALL)
    frame = frame_of(data, name)
    if name in schema.TABLE:
        frame = frame.reset_index(names=ROW)
    kinds = {"int64": "int", "float64": "float", "bool": "bool"}
    declared = ", ".join(
        f'"{column}" {TYPES[kinds.get(str(dtype), "text")]}'
        for column, dtype in frame.dtypes.items()
    )
    connection.execute(f'CREATE TABLE "{name}" ({declared})')
    marks = ", ".join("?" * len(frame.columns))
    columns = [frame[column].tolist() for column in frame.columns]
    connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', zip(*columns, strict=True))


def _columns(heads: Sequence[str], declared: Sequence[str], rows: list[object]) -> list[_Column]:
    value_columns = zip(*rows, strict=True) if rows else [()] * len(heads)
    columns = []
    for name, kind, values in zip(heads, declared, value_columns, strict=True):
        null = np.array([value is None for value in values], dtype=np.bool_)
        value_types = {type(value) for value in values} - {type(None)}
        dtype = DTYPES.get(kind) or _dtype_of(value_types)
        filled = [0 if value is None else value for value in values]
        columns.append(_Column(name, dtype, np.array(filled, dtype=np.object_), null))
    return columns


def _dtype_of(types: set[type]) -> str:
    if str in types:
        return "str"
    return "int64" if types == {int} else "float64"


def _bounded(data: Dataset, columns: list[_Column], rows: int) -> list[_Column]:
    """Return columns of at most so many rows; raises QueryError."""
    if len(columns[0].values) > rows:
        problem = f"the answer has more than {rows:,} rows of {len(columns)} columns"
        raise QueryError(data.name, problem, FEWER)
    return columns


def _frame(columns: Sequence[_Column]) -> pd.DataFrame:
    frame = pd.DataFrame({place: _typed(column) for place, column in enumerate(columns)})
    return frame.set_axis(_distinct([column.name for column in columns]), axis=1)


def _typed(column: _Column) -> object:
    values, null = column.values, column.null
    if column.dtype in ("str", "") and null.any():
        values = values.astype(np.object_)
        values[null] = None
    if column.dtype == "str":
        return pd.array(values, dtype="str")
    if not column.dtype:
        return values
    numbers = values.astype(column.dtype)
    if column.dtype == "float64":
        return np.where(null, np.nan, numbers)
    if not null.any():
        return numbers
    kind = pd.arrays.BooleanArray if column.dtype == "bool" else pd.arrays.IntegerArray
    return kind(numbers, null)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number the later ones of columns that have one name."""
    seen = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}_{count}" if count else name for name, count in zip(names, seen, strict=True)]


def _fault(data: Dataset, names: Iterable[str], text: str) -> QueryError:
    """Return in one line what is wrong with a query over the tables named."""
    if text.startswith(OUT_OF_MEMORY):
        return QueryError(data.name, "the query takes more memory than there is", FEWER)
    for pattern in NO_COLUMN:
        match = pattern.search(text)
        if match:
            column_names = [column for name in names for column in _column_names(name)]
            lists = LISTED if len(column_names) > LISTED_AT_MOST or not column_names else ""
            return QueryError(
                data.name, f"no column {match[1]}", nearest(match[1], column_names, lists)
            )
    line = text.partition("\n")[0]
    return QueryError(
        data.name, f"the query is wrong: {line}", f"{LISTED} lists tables and columns"
    )


def _column_names(name: str) -> list[str]:
    if name in schema.TABLE:
        return [ROW, *(column.name for column in schema.TABLE[name].columns)]
    if name not in schema.ARRAY:
        return []
    return [*schema.ARRAY[name].index, schema.ARRAY[name].value_column]
