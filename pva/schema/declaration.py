"""How a table, a column and an array of a report are declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "float", "bool", "text", "code"]
Document = Literal["graph", "execution", "debug", "trace"]
Layout = Literal["object", "columns", "records", "map", "list"]

GRAPH_OPTION = "autoReport.outputGraphProfile"
LOWERED_OPTION = "autoReport.outputLoweredVars"
EXECUTION_OPTION = "autoReport.outputExecutionProfile"
DEBUG_OPTION = "autoReport.outputDebugInfo"
COMPUTE_OPTION = "debug.instrumentCompute"
EXCHANGE_OPTION = "debug.instrumentExternalExchange"
BLOCKS_OPTION = "profiler.blocks.filter"

# What a column holds where the document has no such key.
MISSING: dict[str, object] = {
    "int": -1,
    "code": 0,
    "float": float("nan"),
    "bool": False,
    "text": "",
}


def camel(name: str) -> str:
    """Turn `num_tiles` into `numTiles`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def snake(key: str) -> str:
    """Turn `receiveMux` into `receive_mux`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in dataset, frames and SQL, and its key (a dotted path) in the documents."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    key: str = ""
    optional: bool = False
    values: tuple[str, ...] = ()

    @property
    def document_key(self) -> str:
        """Give the key in the documents."""
        return self.key or camel(self.name)


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `wide`: its length depends on tiles, steps or events, so profile.pop keeps it as arrays.

    Layouts at `place`: `object` one row, keys are columns; `columns` one list a column; `records` a list of objects;
    `map` name to value; `list` a plain list of the only column. Readers take `columns` and `records` alike.
    """

    name: str
    document: Document
    place: str
    layout: Layout
    columns: tuple[Column, ...]
    meaning: str
    option: str = GRAPH_OPTION
    wide: bool = False

    def column(self, name: str) -> Column:
        """Find a column by name; raises KeyError."""
        return {column.name: column for column in self.columns}[name]


@dataclass(frozen=True, slots=True)
class Array:
    """One array, index order outermost first, as in the user guide: [compute set][tile].

    `replaced`: it is measured anew in every run, so that what is recorded later takes the place of
    what was recorded before.
    """

    name: str
    document: Document
    place: str
    index: tuple[str, ...]
    unit: str
    meaning: str
    option: str = GRAPH_OPTION
    kind: Kind = "int"
    replaced: bool = False

    @property
    def value_column(self) -> str:
        """Name the column of the values where the array stands in long form."""
        return self.unit or "value"


def whole(name: str, unit: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "int", unit, meaning, key, optional)


def fraction(
    name: str, unit: str, meaning: str, key: str = "", *, optional: bool = False
) -> Column:
    return Column(name, "float", unit, meaning, key, optional)


def text(name: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "text", "", meaning, key, optional)


def code(name: str, values: tuple[str, ...], meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "code", "", meaning, "", optional, values)
