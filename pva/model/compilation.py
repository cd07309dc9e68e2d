"""What is known at the end of compilation."""

from __future__ import annotations

from functools import cached_property

from pva.data.dataset import Dataset
from pva.model.graph import ComputeSet, Graph, compute_sets
from pva.model.liveness import (
    LivenessProgramStep,
    always_live,
    always_live_on_tile,
    liveness_steps,
)
from pva.model.programs import Program, programs
from pva.model.show import Shown
from pva.model.target import IPU, Target, Tile, ipus, tiles
from pva.model.variables import LoweredVariables, VariableSize
from pva.model.views import Items


class CompilationReport(Shown):
    """What is known at the end of compilation. Views are made on access, over arrays held once."""

    _figures = ("programs", "computeSets", "tiles")

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @cached_property
    def graph(self) -> Graph:
        """How large the graph is."""
        return Graph(self._data)

    @cached_property
    def target(self) -> Target:
        """The machine that the program was compiled for."""
        return Target(self._data)

    @property
    def tiles(self) -> Items[Tile]:
        """All tiles in the order of the device."""
        return tiles(self._data)

    @property
    def ipus(self) -> Items[IPU]:
        """All IPUs."""
        return ipus(self._data)

    @property
    def computeSets(self) -> Items[ComputeSet]:
        """Compute sets, the compiler's included."""
        return compute_sets(self._data)

    @property
    def programs(self) -> Items[Program]:
        """All programs, flat."""
        return programs(self._data, range(self._data.length("programs")))

    @property
    def livenessProgramSteps(self) -> Items[LivenessProgramStep]:
        """Program steps in depth-first order."""
        return liveness_steps(self._data)

    @cached_property
    def alwaysLiveVariables(self) -> list[VariableSize]:
        """What is always live: variables, and categories of other data."""
        return always_live(self._data)

    def alwaysLiveVariablesForTile(self, tile: int) -> list[VariableSize]:
        """Return the same of one tile; raises IndexError and NotRecordedError."""
        return always_live_on_tile(self._data, tile)

    @property
    def tilesWithLivenessInfo(self) -> Items[Tile]:
        """The tiles of which what is live at a step can be told: all, or none."""
        everything = tiles(self._data)
        recorded = self._data.has("variable_pieces") and self._data.has("variable_intervals")
        return everything if recorded else everything[:0]

    @property
    def loweredVariables(self) -> LoweredVariables:
        """What variables, the compiler's included, have on tiles."""
        return LoweredVariables(self._data)
