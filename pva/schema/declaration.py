"""How a table, a column and an array of a report are declared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

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


NUMBER_LIMIT = 1 << 62  # sums of two numbers stay within 64 bits
SIZE_LIMIT = 1 << 56  # of bytes and cycles: sums of a hundred stay within 64 bits
TILE_LIMIT = 1 << 21  # of a machine; what is held by tile is of this length even when it is empty


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value of a column; what is no number aside, which is not known.

    `rows`: the values number rows of a table, with `end` the place after the last as well. `axis`:
    they number an index of arrays. `most` holds where neither is known.
    """

    least: int = -1  # not known
    most: int = NUMBER_LIMIT
    rows: str = ""
    end: bool = False
    axis: str = ""


# By unit, where a column declares no range of its own.
SIZES = Range(most=SIZE_LIMIT)
BY_UNIT = {"bytes": SIZES, "cycles": SIZES, "Hz": Range(least=0)}
ANY = Range(least=-NUMBER_LIMIT)
COUNT = Range(least=1, most=TILE_LIMIT)  # of IPUs and tiles
MEMORY = Range(least=1, most=SIZE_LIMIT)
TILES = Range(most=TILE_LIMIT)
FRACTIONS = Range(least=-int(np.finfo(np.float64).max), most=int(np.finfo(np.float64).max))


def camel(name: str) -> str:
    """Turn `num_tiles` into `numTiles`."""
    head, *words = name.split("_")
    return head + "".join(part.capitalize() for part in words)


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
    within: Range | None = None

    @property
    def range(self) -> Range:
        """Return what its values may be: declared, of the table it numbers, or by kind and unit."""
        if self.values:
            return Range(0, len(self.values) - 1)
        if self.within is not None:
            return self.within
        table = self.meaning.removeprefix("row of ") if self.kind == "int" else self.meaning
        if table != self.meaning and " " not in table:
            return Range(-1 if self.optional else 0, rows=table)
        if self.kind == "float" and self.unit not in BY_UNIT:
            return ANY if self.unit else FRACTIONS
        return BY_UNIT.get(self.unit, Range())

    @property
    def document_key(self) -> str:
        """Return the key in the documents."""
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
        """Return a column by name; raises KeyError."""
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
    def range(self) -> Range:
        """Return what its values may be; each is known."""
        return replace(BY_UNIT.get(self.unit, Range()), least=0)

    @property
    def value_column(self) -> str:
        """Name the column of the values where the array stands in long form."""
        return self.unit or "value"


def whole(
    name: str,
    unit: str,
    meaning: str,
    key: str = "",
    *,
    optional: bool = False,
    within: Range | None = None,
) -> Column:
    return Column(name, "int", unit, meaning, key, optional, within=within)


def fraction(
    name: str, unit: str, meaning: str, key: str = "", *, optional: bool = False
) -> Column:
    return Column(name, "float", unit, meaning, key, optional)


def text(name: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "text", "", meaning, key, optional)


def code(name: str, values: tuple[str, ...], meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "code", "", meaning, "", optional, values)
