"""Variables of a report: where they lie and when they are live.

A lowered variable is what a variable of the graph, or of the compiler, has on one tile: a row of
the table `variable_pieces`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset
from pva.model.show import Shown
from pva.model.views import Item, Items, chosen

Rows = npt.NDArray[np.int64]

PIECES, INTERVALS = "variable_pieces", "variable_intervals"
# Categories of the graph's own variables; those of all others were made by the compiler.
OF_THE_GRAPH = tuple(schema.CATEGORIES.index(name) for name in ("constant", "variable"))


@dataclass(frozen=True, slots=True, repr=False)
class VariableSize(Shown):
    """The name of a variable and its bytes, on all tiles, one IPU or one tile.

    Two are equal when they are of one variable and of one size.
    """

    name: str
    size: int
    _row: int = -1  # of the table variables; -1 for a category of other data

    _figures = ("size",)


class LoweredVariable(Item):
    """What a variable has on one tile."""

    __slots__ = ()
    _figures = ("bytes", "tileId")

    @property
    def _id(self) -> int:
        """The `id` of the same among `allBriefVars`."""
        return self._row

    @property
    def name(self) -> str:
        """Debug name."""
        return str(self._of_variable("name"))

    @property
    def bytes(self) -> int:
        """Bytes on its tile."""
        return int(self._value(PIECES, "bytes"))

    @property
    def tileId(self) -> int:
        """Its tile, of the first replica."""
        return int(self._value(PIECES, "tile"))

    @property
    def alwaysLive(self) -> bool:
        """Whether it is live at every step."""
        return bool(self._of_variable("always_live"))

    @property
    def hasUnloweredVar(self) -> bool:
        """Whether it is of a variable of the graph, not one that the compiler made."""
        return self._of_variable("category") in OF_THE_GRAPH

    @property
    def unloweredVar(self) -> VariableSize | None:
        """The graph's variable with its bytes on the tile, as lists of what is live there have it.

        None when the compiler made the variable.
        """
        if not self.hasUnloweredVar:
            return None
        data, variable, tile = self._data, self._variable, self.tileId
        pieces = data.rows_where(PIECES, "variable", variable)
        on_tile = pieces[data.column(PIECES, "tile")[pieces] == tile]
        size = int(data.column(PIECES, "bytes")[on_tile].sum())
        return VariableSize(self.name, size, variable)

    @property
    def _variable(self) -> int:
        return int(self._value(PIECES, "variable"))

    def _of_variable(self, column: str) -> object:
        return self._data.column("variables", column)[self._variable]


class Interval(NamedTuple):
    """Liveness steps from `start` to `end`, the latter not included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, repr=False)
class EquivalenceClass(Shown):
    """The liveness that variables have in common: indexes into `livenessProgramSteps`."""

    id: int
    steps: tuple[Interval, ...]

    _figures = ("id", "steps")


class BriefVariable(Item):
    """What a variable has on one tile, in brief."""

    __slots__ = ("equivalenceClass",)
    _figures = ("bytes", "tileId", "class=equivalenceClass.id")

    def __init__(self, data: Dataset, row: int, equivalence_class: EquivalenceClass) -> None:
        super().__init__(data, row)
        self.equivalenceClass = equivalence_class

    @property
    def id(self) -> int:
        """The `_id` of the same among the lowered variables of programs and tiles."""
        return self._row

    @property
    def bytes(self) -> int:
        """Bytes on its tile."""
        return int(self._value(PIECES, "bytes"))

    @property
    def tileId(self) -> int:
        """Its tile, of the first replica."""
        return int(self._value(PIECES, "tile"))


class LoweredVariables(Shown):
    """All that variables have on tiles; empty when it was not recorded."""

    _figures = ("allBriefVars",)

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @property
    def allBriefVars(self) -> Sequence[BriefVariable]:
        """All of them in brief; those of one liveness share one equivalence class."""
        data = self._data
        if not data.has(PIECES):
            return []
        owner = data.column(PIECES, "variable").item
        of_variable = data.kept("equivalence classes", _equivalence_classes)
        rows = range(data.length(PIECES))
        return Items(rows, lambda row: BriefVariable(data, row, of_variable[owner(row)]))

    def forTile(self, tile: int) -> Sequence[LoweredVariable]:
        """Return those on a tile; raises IndexError."""
        row = tile_row(self._data, tile)
        if not self._data.has(PIECES):
            return []
        return _lowered(self._data, self._data.rows_where(PIECES, "tile", row))


def _equivalence_classes(data: Dataset) -> list[EquivalenceClass]:
    """Return the equivalence class of each variable; what is always live is so at every step."""
    always = [Interval(0, data.length("liveness_steps"))]
    classes: dict[tuple[Interval, ...], EquivalenceClass] = {}
    lives = _lives(data)
    for variable in np.flatnonzero(data.column("variables", "always_live")).tolist():
        lives[variable] = always
    keys = map(tuple, lives)
    return [classes.setdefault(key, EquivalenceClass(len(classes), key)) for key in keys]


def _lives(data: Dataset) -> list[list[Interval]]:
    """List the intervals of each variable, in order."""
    lives: list[list[Interval]] = [[] for _ in data.column("variables", "bytes")]
    if not data.has(INTERVALS):
        return lives
    columns = [data.column(INTERVALS, name) for name in ("end", "begin", "variable")]
    order = np.lexsort(columns)
    ends, begins, variables = (column[order].tolist() for column in columns)
    for variable, begin, end in zip(variables, begins, ends, strict=True):
        lives[variable].append(Interval(begin, end))
    return lives


def accessed(data: Dataset, programs: npt.ArrayLike) -> Items[LoweredVariable]:
    """Return what the variables that programs read or write have on tiles, each once.

    None when access, or where variables lie, was not recorded.
    """
    if not (data.has("access") and data.has(PIECES)):
        return Items([], lambda row: LoweredVariable(data, row))
    mine = data.rows_among("access", "program", programs)
    variables = np.unique(data.column("access", "variable")[mine])
    return _lowered(data, data.rows_among(PIECES, "variable", variables))


def _lowered(data: Dataset, rows: Rows) -> Items[LoweredVariable]:
    return Items(rows.tolist(), lambda row: LoweredVariable(data, row))


def tile_row(data: Dataset, tile: int) -> int:
    """Return the row of a tile in what is held by tile: the same for each replica.

    Raises IndexError.
    """
    count = int(data.value("target", "num_tiles"))
    return chosen("tile", tile, count) % data.of_replica("num_tiles")


def bytes_on_tiles(data: Dataset, first: int, end: int) -> Rows:
    """Return the bytes of each variable on tiles `first` to `end` (exclusive)."""
    pieces = data.rows_among(PIECES, "tile", np.arange(first, end))
    rows = data.column(PIECES, "variable")[pieces]
    sizes = np.zeros_like(data.column("variables", "bytes"))
    np.add.at(sizes, rows, data.column(PIECES, "bytes")[pieces])
    return sizes


def alive_at(data: Dataset, step: int) -> Rows:
    """Return the rows of the variables that are live at a liveness step, beside the always-live."""
    begin, end = (data.column(INTERVALS, name) for name in ("begin", "end"))
    alive = (begin <= step) & (step < end)
    return np.unique(data.column(INTERVALS, "variable")[alive])


def sized(data: Dataset, rows: Rows, sizes: Rows) -> list[VariableSize]:
    """Name variables with their bytes, those without any left out."""
    rows = rows[sizes[rows] > 0]
    names = data.column("variables", "name")[rows]
    columns = (names, sizes[rows].tolist(), rows.tolist())
    return [VariableSize(n, s, row) for n, s, row in zip(*columns, strict=True)]
