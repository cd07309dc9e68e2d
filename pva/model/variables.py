"""Variables of a report: where they lie and when they are live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva.dataset import Dataset
from pva.model.views import Item, Items, chosen

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VariableSize:
    """The name of a variable and its bytes, on all tiles, one IPU or one tile."""

    name: str
    size: int


class LoweredVariable(Item):
    """One variable."""

    __slots__ = ()

    @property
    def _id(self) -> int:
        """Row in the table of variables."""
        return self._row

    @property
    def name(self) -> str:
        """Debug name."""
        return self._text("variables", "name")

    @property
    def bytes(self) -> int:
        """Bytes on all tiles."""
        return int(self._value("variables", "bytes"))

    @property
    def alwaysLive(self) -> bool:
        """Whether it is never dead."""
        return bool(self._value("variables", "always_live"))

    @property
    def hasUnloweredVar(self) -> bool:
        """Whether it is a copy or part of another variable."""
        return int(self._value("variables", "lowered_from")) >= 0

    @property
    def unloweredVar(self) -> LoweredVariable:
        """The variable that it is a copy or part of, or itself."""
        source = int(self._value("variables", "lowered_from"))
        return LoweredVariable(self._data, source) if source >= 0 else self


class LoweredVariables:
    """All variables; empty when they were not recorded."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @property
    def variables(self) -> Sequence[LoweredVariable]:
        """All of them."""
        rows = range(self._data.length("variables"))
        return Items(rows, lambda row: LoweredVariable(self._data, row))

    def forTile(self, tile: int) -> Sequence[LoweredVariable]:
        """Those with bytes on a tile; raises IndexError."""
        if not self._data.has("variable_pieces"):
            return []
        row = tile_row(self._data, tile)
        here = self._data.rows_where("variable_pieces", "tile", row)
        rows = np.unique(self._data.column("variable_pieces", "variable")[here]).tolist()
        return Items(rows, lambda row: LoweredVariable(self._data, row))


def tile_row(data: Dataset, tile: int) -> int:
    """Give the row of a tile in what is held by tile: the same for each replica.

    Raises IndexError.
    """
    count = int(data.value("target", "num_tiles"))
    return chosen("tile", tile, count) % data.of_replica("num_tiles")


def bytes_on_tiles(data: Dataset, first: int, end: int) -> Rows:
    """Give the bytes of each variable on tiles `first` to `end` (exclusive)."""
    tile = data.column("variable_pieces", "tile")
    here = (tile >= first) & (tile < end)
    rows = data.column("variable_pieces", "variable")[here]
    sizes = np.zeros(data.length("variables"), dtype=np.int64)
    np.add.at(sizes, rows, data.column("variable_pieces", "bytes")[here])
    return sizes


def alive_at(data: Dataset, step: int) -> Rows:
    """Give the rows of the variables that are live at a liveness step, beside the always-live."""
    begin, end = (data.column("variable_intervals", name) for name in ("begin", "end"))
    alive = (begin <= step) & (step < end)
    return np.unique(data.column("variable_intervals", "variable")[alive])


def sized(data: Dataset, rows: Rows, sizes: Rows) -> list[VariableSize]:
    """Name variables with their bytes, those without any left out."""
    rows = rows[sizes[rows] > 0]
    names = data.column("variables", "name")[rows]
    return [VariableSize(n, s) for n, s in zip(names, sizes[rows].tolist(), strict=True)]
