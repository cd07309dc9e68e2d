"""What is live at each program step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.model.programs import Program, program
from pva.model.show import Shown
from pva.model.variables import VariableSize, alive_at, bytes_on_tiles, sized, tile_row
from pva.model.views import Item, Items, chosen


@dataclass(frozen=True, slots=True, repr=False)
class LiveMemory(Shown):
    """Bytes that are live and the variables that they belong to."""

    _figures = ("bytes", "variables")

    bytes: int
    variables: Sequence[VariableSize]


class LivenessProgramStep(Item):
    """A program step, in depth-first order."""

    __slots__ = ()
    _figures = ("program=program.name", "bytes=notAlwaysLiveMemory.bytes")

    @property
    def program(self) -> Program:
        """The program of the step."""
        return program(self._data, int(self._value("liveness_steps", "program")))

    @property
    def notAlwaysLiveMemory(self) -> LiveMemory:
        """What is live beside the always-live, on all tiles of one replica."""
        size = int(self._value("liveness_steps", "bytes"))
        if not self._data.has("variable_intervals"):
            return LiveMemory(size, [])
        alive, sizes = alive_at(self._data, self._row), self._data.column("variables", "bytes")
        return LiveMemory(size, sized(self._data, alive, sizes))

    def notAlwaysLiveMemoryForTile(self, tile: int) -> LiveMemory:
        """Tell the same of one tile; raises NotRecordedError when variables were not recorded."""
        row = tile_row(self._data, tile)
        return self._on(row, row + 1)

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LiveMemory:
        """Tell the same of one IPU; raises NotRecordedError when variables were not recorded."""
        chosen("IPU", ipu, int(self._data.value("target", "num_ipus")))
        row = ipu % self._data.of_replica("num_ipus")
        tiles = int(self._data.value("target", "tiles_per_ipu"))
        return self._on(row * tiles, (row + 1) * tiles)

    def _on(self, first: int, end: int) -> LiveMemory:
        sizes = bytes_on_tiles(self._data, first, end)
        alive = alive_at(self._data, self._row)
        return LiveMemory(int(sizes[alive].sum()), sized(self._data, alive, sizes))


def liveness_steps(data: Dataset) -> Items[LivenessProgramStep]:
    """Give the program steps in depth-first order."""
    rows = range(data.length("liveness_steps"))
    return Items(rows, lambda row: LivenessProgramStep(data, row))


def always_live(data: Dataset) -> list[VariableSize]:
    """Give what is never dead in one replica: variables, and categories of other data."""
    names, sizes = (data.column("always_live_variables", name) for name in ("name", "bytes"))
    return [VariableSize(name, size) for name, size in zip(names, sizes.tolist(), strict=True)]


def always_live_on_tile(data: Dataset, tile: int) -> list[VariableSize]:
    """Give what is never dead on one tile: variables, and categories of other data."""
    row = tile_row(data, tile)
    sizes = bytes_on_tiles(data, row, row + 1)
    always = np.flatnonzero(data.column("variables", "always_live"))
    other = data.array("memory_by_category")[..., row].sum(axis=(1, 2))
    np.subtract.at(other, data.column("variables", "category"), sizes)
    categories = set(data.column("always_live_variables", "name"))
    return sized(data, always, sizes) + [
        VariableSize(name, size)
        for name, size in zip(schema.CATEGORIES, other.tolist(), strict=True)
        if name in categories and size > 0
    ]
