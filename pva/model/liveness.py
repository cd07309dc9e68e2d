"""What is live at each program step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pva import schema
from pva.data.dataset import Dataset
from pva.model.programs import Program, program
from pva.model.show import Shown
from pva.model.variables import VariableSize, alive_at, bytes_on_tiles, sized, tile_row
from pva.model.views import Item, Items, chosen


class LiveMemory(Shown):
    """Bytes that are live and the variables that they belong to, which are found when asked for."""

    __slots__ = ("_find", "bytes")
    _figures = ("bytes", "variables")

    def __init__(self, size: int, find: Callable[[], Sequence[VariableSize]]) -> None:
        self.bytes = size
        self._find = find

    @property
    def variables(self) -> Sequence[VariableSize]:
        """The variables, those without bytes left out."""
        return self._find()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiveMemory):
            return NotImplemented
        return (self.bytes, self.variables) == (other.bytes, other.variables)

    def __hash__(self) -> int:
        return hash(self.bytes)


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
        return LiveMemory(int(self._value("liveness_steps", "bytes")), self._everywhere)

    def notAlwaysLiveMemoryForTile(self, tile: int) -> LiveMemory:
        """Return the same of one tile; raises NotRecordedError when variables were not recorded."""
        row = tile_row(self._data, tile)
        return self._on(row, row + 1)

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LiveMemory:
        """Return the same of one IPU; raises NotRecordedError when variables were not recorded."""
        chosen("IPU", ipu, int(self._data.value("target", "num_ipus")))
        row = ipu % self._data.of_replica("num_ipus")
        tiles = int(self._data.value("target", "tiles_per_ipu"))
        return self._on(row * tiles, (row + 1) * tiles)

    def _on(self, first: int, end: int) -> LiveMemory:
        sizes, alive = bytes_on_tiles(self._data, first, end), alive_at(self._data, self._row)
        return LiveMemory(int(sizes[alive].sum()), partial(sized, self._data, alive, sizes))

    def _everywhere(self) -> Sequence[VariableSize]:
        data = self._data
        if not data.has("variable_intervals"):
            return []
        return sized(data, alive_at(data, self._row), data.column("variables", "bytes"))


def liveness_steps(data: Dataset) -> Items[LivenessProgramStep]:
    """Return the program steps in depth-first order."""
    rows = range(data.length("liveness_steps"))
    return Items(rows, lambda row: LivenessProgramStep(data, row))


def always_live(data: Dataset) -> list[VariableSize]:
    """Return what is always live in one replica: variables, and categories of other data."""
    names, sizes = (data.column("always_live_variables", name) for name in ("name", "bytes"))
    return [VariableSize(name, size) for name, size in zip(names, sizes.tolist(), strict=True)]


def always_live_on_tile(data: Dataset, tile: int) -> list[VariableSize]:
    """Return what is always live on one tile: variables, and categories of other data."""
    row = tile_row(data, tile)
    sizes = bytes_on_tiles(data, row, row + 1)
    always = np.flatnonzero(data.column("variables", "always_live"))
    beside_variables = data.array("memory_by_category")[..., row].sum(axis=(1, 2))
    np.subtract.at(beside_variables, data.column("variables", "category"), sizes)
    categories = set(data.column("always_live_variables", "name"))
    return sized(data, always, sizes) + [
        VariableSize(name, size)
        for name, size in zip(schema.CATEGORIES, beside_variables.tolist(), strict=True)
        if name in categories and size > 0
    ]
