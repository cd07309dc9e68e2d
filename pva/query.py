"""SQL over the tables and arrays of a report, named and typed as in `pva.frames`.

DuckDB answers when it is installed, and reads the columns where they lie; SQLite answers for small
tables without it. Both are set so that a query means the same: whole numbers divide to whole
numbers, division by zero and numbers that are missing are null, null sorts before all else. What a
query does not order comes in any order.

The connection is in memory, holds only what the query names, and reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.errors import MissingPackageError, QueryError, nearest
from pva.frames import DTYPES, NAMED, NAMES, frame_of, value_column

if TYPE_CHECKING:
    import sqlite3

    import pandas as pd

SQLITE_ROWS = 200_000  # of one table; DuckDB has no such limit
INSTALL = "pip install 'tilescope[sql]'"
LISTED = "frames.schema()"

# What DuckDB may not do with data that nobody vouches for, and what SQLite does the same way.
SETTINGS: dict[str, str | bool] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "integer_division": True,
    "ieee_floating_point_ops": False,
    "default_null_order": "sqlite",
}
# Since DuckDB 2; those before give null.
DIVISION = "error_on_division_by_zero"
TYPES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "text": "VARCHAR", "code": "VARCHAR"}
SQLITE_TYPES = TYPES | {"text": "TEXT", "code": "TEXT"}
# Types of results that no frame has, as those that it has.
RESULT_TYPES = {"HUGEINT": "BIGINT", "UHUGEINT": "BIGINT", "UBIGINT": "BIGINT", "FLOAT": "DOUBLE"}
RESULT_DTYPES = {"BIGINT": "int64", "DOUBLE": "float64", "BOOLEAN": "bool", "VARCHAR": "str"}
NULLABLE = {"int64": "Int64", "bool": "boolean"}
QUOTED_NAME = r'[Cc]olumn:? "?([^\s"!]+)"?'
_COLUMN_FAULTS = (
    re.compile(r'[Cc]olumn "([^"]+)" (?:not found|was not found)'),
    re.compile(r'does not have a column named "([^"]+)"'),
    re.compile(r"no such column: (\S+)"),
)


def select(data: Dataset, query: str) -> pd.DataFrame:
    """Answer one SELECT, by DuckDB when it is installed, else by SQLite.

    Raises QueryError, NotRecordedError, and MissingPackageError when SQLite is not enough.
    """
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return by_sqlite(data, query)
    return by_duckdb(data, query)
