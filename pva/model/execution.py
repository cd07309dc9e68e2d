"""What was executed: runs, steps and what each IPU did in them. All times are cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.model.blocks import Block, blocks
from pva.model.programs import Program, program
from pva.model.views import Item, Items, Numbers

# Where the cycles by tile of a step are, by its type: the column of its program, and the array.
CYCLES_BY_TILE = {
    "OnTileExecute": ("compute_set", "compute_set_cycles_by_tile"),
    "DoExchange": ("exchange", "exchange_cycles"),
    "GlobalExchange": ("exchange", "external_exchange_cycles"),
    "StreamCopy": ("exchange", "host_exchange_cycles"),
}


@dataclass(frozen=True, slots=True)
class Extremes:
    """The first and the last of the tiles."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class CycleRange:
    """When the tiles began and ended."""

    cyclesFrom: Extremes
    cyclesTo: Extremes


@dataclass(frozen=True, slots=True)
class IpuStep:
    """What one IPU did in a step; `dataIn` and `dataOut` are bytes, balances fractions of 1."""

    cycles: int
    activeCycles: CycleRange
    allCycles: CycleRange
    tileBalance: float
    activeTileBalance: float
    dataIn: int
    dataOut: int


@dataclass(frozen=True, slots=True)
class ComputeSetStep:
    """A compute set that was executed in a step."""

    name: str
    cyclesByTile: Numbers


class ExecutionStep(Item):
    """An executed step."""

    __slots__ = ()

    @property
    def program(self) -> Program:
        """The program that was executed."""
        return program(self._data, int(self._value("steps", "program")))

    @property
    def cycles(self) -> int:
        """Cycles of the longest running tile; -1 when they were not recorded."""
        return int(self._value("steps", "cycles"))

    @property
    def ipus(self) -> Sequence[IpuStep]:
        """What each IPU of the profiled replica did."""
        return [_ipu_step(self._data, self._row, ipu) for ipu in range(_num_ipus(self._data))]

    @property
    def cyclesByTile(self) -> Numbers:
        """Cycles of each tile of the profiled replica; empty for syncs."""
        kind = schema.STEP_TYPES[self._value("steps", "type")]
        table, array = CYCLES_BY_TILE.get(kind, ("", ""))
        if not array:
            return Numbers(np.zeros(0, dtype=np.int64))
        row = self._data.column("programs", table)[int(self._value("steps", "program"))]
        return Numbers(self._data.array(array)[row])

    @property
    def computeSets(self) -> Sequence[ComputeSetStep]:
        """The compute set that was executed, if any."""
        row = int(self._data.column("programs", "compute_set")[self.program._id])
        if row < 0:
            return []
        name = str(self._data.column("compute_sets", "name")[row])
        return [ComputeSetStep(name, self.cyclesByTile)]


def _num_ipus(data: Dataset) -> int:
    return data.of_replica("num_ipus")


def _ipu_step(data: Dataset, step: int, ipu: int) -> IpuStep:
    """Find the row of a step and an IPU; rows are in the order of steps."""
    first, end = np.searchsorted(data.column("steps_by_ipu", "step"), (step, step + 1))
    mine = np.flatnonzero(data.column("steps_by_ipu", "ipu")[first:end] == ipu)
    if not len(mine):
        at = max(int(data.column("steps", "cycles_from")[step]), 0)
        nothing = CycleRange(Extremes(at, at), Extremes(at, at))
        return IpuStep(0, nothing, nothing, 0.0, 0.0, 0, 0)
    row = int(first) + int(mine[0])
    found = {name: values[row].item() for name, values in data.table("steps_by_ipu").items()}
    span = CycleRange(
        Extremes(found["from_min"], found["from_max"]), Extremes(found["to_min"], found["to_max"])
    )
    return IpuStep(
        cycles=found["cycles"],
        activeCycles=span,
        allCycles=span,
        tileBalance=found["tile_balance"],
        activeTileBalance=found["active_tile_balance"],
        dataIn=max(found["bytes_in"], 0),
        dataOut=max(found["bytes_out"], 0),
    )


@dataclass(frozen=True, slots=True)
class Microseconds:
    """Begin and end on the host, in microseconds since the epoch."""

    start: float
    end: float


class Run(Item):
    """One call of Engine.run."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._text("runs", "name")

    @property
    def steps(self) -> Sequence[ExecutionStep]:
        """Its steps; empty when it was not recorded in full."""
        first, end = (int(self._value("runs", name)) for name in ("first_step", "end_step"))
        return steps(self._data)[first:end]

    @property
    def cycles(self) -> int:
        """How long it took on the device; -1 on a CPU."""
        return int(self._value("runs", "cycles"))

    @property
    def microseconds(self) -> Microseconds:
        """When it was, on the host."""
        names = ("start_microseconds", "end_microseconds")
        return Microseconds(*(float(self._value("runs", name)) for name in names))


@dataclass(frozen=True, slots=True)
class TotalCycles:
    """Cycles of all recorded runs; 0 without an execution."""

    total: int


class ExecutionReport:
    """What was executed; without an execution all of it is empty."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @property
    def steps(self) -> Items[ExecutionStep]:
        """Every executed step of the runs that were recorded in full."""
        return steps(self._data)

    @property
    def runs(self) -> Items[Run]:
        """The calls of Engine.run."""
        return Items(range(self._data.length("runs")), lambda row: Run(self._data, row))

    def blocks(self, tile: int) -> Items[Block]:
        """Give what lightweight profiling saw on a tile; empty when it was off."""
        return blocks(self._data, tile)

    @property
    def totalCycles(self) -> TotalCycles:
        """Cycles of all recorded runs."""
        recorded = self._data.has("execution")
        return TotalCycles(max(int(self._data.value("execution", "cycles")), 0) if recorded else 0)


def steps(data: Dataset) -> Items[ExecutionStep]:
    """Give the executed steps."""
    return Items(range(data.length("steps")), lambda row: ExecutionStep(data, row))
