"""SQL over the tables of all reports of a run, by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import MissingPackageError
from pva.frames import NAMES
from pva.lazy import pandas as pd
from pva.query import INSTALL, ROW, SHOW_TABLES, TYPES, by_duckdb

if TYPE_CHECKING:
    import duckdb

    from pva.report import Report

_COUNT = re.compile(r"count\s*\(\s*\*\s*\)", re.IGNORECASE)
# What stands for columns that it does not name.
_UNNAMED = re.compile(r"\*|\bnatural\b|\bcolumns\s*\(|(?:^|\()\s*from\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
INSTANCE, HOST, REPORT = "instance", "host", "report"  # columns before those of a table
_MARKS = {INSTANCE: "BIGINT", HOST: "VARCHAR", REPORT: "VARCHAR", ROW: "BIGINT"}


class Reports(Protocol):
    """Several reports whose tables stand below one another."""

    name: str

    @property
    def reports(self) -> Sequence[Report]:
        """The reports."""

    def frame(self, name: str, columns: frozenset[str] | None = None) -> pd.DataFrame:
        """Return a table or array of all reports, with only these of its columns."""


def select(run: Reports, query: str) -> pd.DataFrame:
    """Answer one SELECT, or name the tables; reads the columns that the query names.

    Raises QueryError, NotRecordedError and MissingPackageError.
    """
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise MissingPackageError(run.name, "a query over several reports", INSTALL) from None
    if SHOW_TABLES.fullmatch(query):
        return _tables(run)
    columns = named_columns(query)
    answer = _answered(run, query, columns)
    first = answer.iloc[0].tolist() if len(answer) else []
    rows_as_values = any(isinstance(value, dict) for value in first)
    # `select s from steps s` asks for all columns without a word of them.
    return _answered(run, query, None) if rows_as_values and columns is not None else answer


def named_columns(query: str) -> frozenset[str] | None:
    """Return the words of a query, which name its columns; None when it may mean all of them."""
    text = _COUNT.sub("", query)
    if _UNNAMED.search(text):
        return None
    return frozenset(word.lower() for word in _WORD.findall(text))


def _answered(run: Reports, query: str, columns: frozenset[str] | None) -> pd.DataFrame:
    def lend(connection: duckdb.DuckDBPyConnection, name: str) -> None:
        frame = run.frame(name, columns)
        if name in schema.TABLE:
            marks = [mark for mark in (INSTANCE, REPORT) if mark in frame]
            frame.insert(len(marks) + 1, ROW, frame.groupby(marks).cumcount())
        connection.register(f"_{name}", frame)
        kinds = _kinds(name)
        cast = ", ".join(f'CAST("{one}" AS {kinds[one]}) AS "{one}"' for one in frame.columns)
        connection.execute(f'CREATE VIEW "{name}" AS SELECT {cast} FROM "_{name}"')

    return by_duckdb(Dataset.joined((), run.name), query, lend)


def _kinds(name: str) -> dict[str, str]:
    """Return the SQL type of each column of a table or an array."""
    if name in schema.TABLE:
        return _MARKS | {one.name: TYPES[one.kind] for one in schema.TABLE[name].columns}
    array = schema.ARRAY[name]
    indexes = {
        index: "VARCHAR" if index in schema.INDEX_WORDS else "BIGINT" for index in array.index
    }
    return _MARKS | indexes | {array.value_column: TYPES[array.kind]}


def _tables(run: Reports) -> pd.DataFrame:
    recorded = [name for name in NAMES if any(one.dataset.has(name) for one in run.reports)]
    return pd.DataFrame({"name": pd.array(recorded, dtype="str")})
