"""What was executed: runs, steps and what each IPU did in them. All times are cycles."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset
from pva.model.blocks import Block, blocks
from pva.model.graph import ComputeSet
from pva.model.programs import Program, program
from pva.model.show import Shown
from pva.model.sync_cycles import CYCLES_BY_TILE, SYNCS, sync_cycles
from pva.model.views import Item, Items, Numbers

TABLE = "steps_by_ipu"
CYCLES = (TABLE, "cycles")


@dataclass(frozen=True, slots=True, repr=False)
class Extremes(Shown):
    """The first and the last of the tiles."""

    _figures = ("min", "max")

    min: int
    max: int


@dataclass(frozen=True, slots=True, repr=False)
class CycleRange(Shown):
    """When the tiles began and ended."""

    _figures = ("from=cyclesFrom.min", "to=cyclesTo.max")

    cyclesFrom: Extremes
    cyclesTo: Extremes


class IpuStep(Item):
    """What one IPU did in a step; one that took no part has no cycles, and a place in time.

    `cycles` of the steps do not add up to `totalCycles`. They are those of the longest running
    tile, which goes on while others are at earlier steps, and a sync's are those of the tile that
    waits longest in it. In the sample `matmul_chain_mk2` the sum is 1.8 times the total: the
    longest waits in its syncs are 29,970 cycles, by 1,479 of which the run is longer.

    Graphcore's guide defines `cycles` of a step so ("may be non-zero even if the execution doesn't
    actually take any extra time"), and counts waiting among the cycles of syncs, 58.9 of the 65.9
    million tile cycles of its sample. What libpva gives for a sync stands in no public text: its
    documents name the attribute, and the tutorial, which adds up `step.ipus[0].cycles`, prints no
    total beside the sum. TensorFlow's tests, which want the time, add up the differences of
    `activeCycles`, not `cycles`.

    To share the time out among steps, take `allCycles.cyclesTo.max - allCycles.cyclesFrom.max`: by
    so much a step made its run longer on this IPU, and the sum over all steps is `totalCycles`.
    """

    __slots__ = ()
    _figures = ("cycles", "tileBalance", "dataIn", "dataOut")

    @property
    def cycles(self) -> int:
        """Cycles of the longest running tile of the IPU."""
        data, row = self._data, self._row
        # As `_recorded`, which would be a quarter of a walk through all steps.
        values = data.held.get(CYCLES)
        if values is None:
            values = data.stored(*CYCLES)
        return 0 if row < 0 else values.item(row)

    @property
    def activeCycles(self) -> CycleRange:
        """When its active tiles began and ended."""
        data, row = self._data, self._row
        if row < 0:
            step, _ = divmod(~row, data.of_replica("num_ipus"))
            at = max(int(data.stored("steps", "cycles_from")[step]), 0)
            return CycleRange(Extremes(at, at), Extremes(at, at))
        return CycleRange(_extremes(data, row, "from"), _extremes(data, row, "to"))

    @property
    def allCycles(self) -> CycleRange:
        """The clocks of all of its tiles before and after; of active ones where these are told."""
        data, row, active = self._data, self._row, self.activeCycles
        if row < 0:
            before = _clocks_before(data, *divmod(~row, data.of_replica("num_ipus")))
            return CycleRange(before, before) if before else active
        after = _extremes(data, row, "all_to")
        if after.min < 0:
            return active
        step, ipu = (int(data.stored(TABLE, name)[row]) for name in ("step", "ipu"))
        return CycleRange(_clocks_before(data, step, ipu) or active.cyclesFrom, after)

    @property
    def tileBalance(self) -> float:
        """Cycles of all tiles / (cycles * tiles), a fraction of 1."""
        return self._recorded("tile_balance", 0.0)  # type: ignore[no-any-return]

    @property
    def activeTileBalance(self) -> float:
        """The same over the active tiles alone."""
        return self._recorded("active_tile_balance", 0.0)  # type: ignore[no-any-return]

    @property
    def dataIn(self) -> int:
        """Bytes that its tiles received."""
        return max(int(self._recorded("bytes_in", 0)), 0)

    @property
    def dataOut(self) -> int:
        """Bytes that its tiles sent."""
        return max(int(self._recorded("bytes_out", 0)), 0)

    def _recorded(self, column: str, absent: float) -> Any:
        row = self._row
        return absent if row < 0 else self._data.stored(TABLE, column).item(row)


class ComputeSetStep(ComputeSet):
    """A compute set that was executed in a step."""

    __slots__ = ()
    _figures = ("tiles=cyclesByTile",)

    @property
    def cyclesByTile(self) -> Numbers:
        """Cycles of each tile of the profiled replica."""
        return self.estimatedCyclesByTile


class ExecutionStep(Item):
    """An executed step."""

    __slots__ = ()
    _figures = ("program=program.name", "type=program.type", "cycles")

    @property
    def program(self) -> Program:
        """The program that was executed."""
        return program(self._data, int(self._value("steps", "program")))

    @property
    def cycles(self) -> int:
        """Cycles of the longest running tile; -1 when they were not recorded."""
        return int(self._value("steps", "cycles"))

    @property
    def ipus(self) -> Items[IpuStep]:
        """What each IPU of the profiled replica did."""
        ipus, rows, make = self._data.kept("rows by IPU", _rows_by_ipu)
        first = ipus * self._row
        end = first + ipus
        return Items(rows[first:end] if rows else range(first, end), make)

    @property
    def cyclesByTile(self) -> Numbers:
        """Cycles of each tile of the profiled replica; of a sync what the tile waits, itself too.

        Empty where the report does not say.
        """
        code = self._value("steps", "type")
        table, array = CYCLES_BY_TILE.get(schema.STEP_TYPES[code], ("", ""))
        if code in SYNCS:
            cycles = sync_cycles(self._data, self._row)
        elif not array and self.cycles == 0:  # the host was ready at once
            cycles = np.zeros(self._data.of_replica("num_tiles"), np.int64)
        else:
            row = int(self._data.column("programs", table)[self.program._id]) if array else -1
            cycles = self._data.array(array)[row] if row >= 0 else None
        return Numbers(np.zeros(0, np.int64) if cycles is None else cycles)

    @property
    def computeSets(self) -> Sequence[ComputeSetStep]:
        """The compute set that was executed, if any."""
        row = int(self._data.column("programs", "compute_set")[self.program._id])
        if row < 0:
            return []
        return [ComputeSetStep(self._data, row)]


def _extremes(data: Dataset, row: int, border: str) -> Extremes:
    first, last = (int(data.stored(TABLE, f"{border}_{which}")[row]) for which in ("min", "max"))
    return Extremes(first, last)


def _clocks_before(data: Dataset, step: int, ipu: int) -> Extremes | None:
    """Return the clocks of the tiles of an IPU before a step; None where they are not told.

    They are those after the last step in which it took part. A run begins on all tiles at once.
    """
    rows, steps = data.kept((TABLE, ipu), lambda data: _rows_of_ipu(data, ipu))
    place = int(np.searchsorted(steps, step)) - 1
    run = int(data.stored("steps", "run")[step])
    if place >= 0 and int(data.stored("steps", "run")[steps[place]]) == run:
        clocks = _extremes(data, int(rows[place]), "all_to")
    elif 0 <= run < data.length("runs"):
        clocks = Extremes(*[int(data.stored("runs", "cycles_from")[run])] * 2)
    else:
        return None
    return clocks if clocks.min >= 0 else None


def _rows_of_ipu(data: Dataset, ipu: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.integer]]:
    rows = data.rows_where(TABLE, "ipu", ipu)
    return rows, data.column(TABLE, "step")[rows]


def _is_every_place(step: npt.NDArray[np.integer], ipu: npt.NDArray[np.integer]) -> bool:
    """Return whether step and IPU are those of their places, [step][IPU]."""
    steps, ipus = step.shape
    return bool((step == np.arange(steps)[:, None]).all() and (ipu == np.arange(ipus)).all())


def _rows_by_ipu(data: Dataset) -> tuple[int, Sequence[int], Callable[[int], IpuStep]]:
    """Return the row of each step on each IPU, [step * IPUs + IPU]; ~place where it took no part.

    None are given where the row is the place, as in most reports.
    """
    ipus, make = data.of_replica("num_ipus"), partial(IpuStep, data)
    steps = data.length("steps")
    count = ipus * steps
    step, ipu = data.stored(TABLE, "step"), data.stored(TABLE, "ipu")
    if len(step) == count and _is_every_place(step.reshape(steps, -1), ipu.reshape(steps, -1)):
        return ipus, (), make
    step, ipu = data.column(TABLE, "step"), data.column(TABLE, "ipu")
    valid = np.flatnonzero((step >= 0) & (ipu >= 0) & (ipu < ipus))
    place = step[valid] * ipus + ipu[valid]
    rows = ~np.arange(count)
    rows[place[::-1]] = valid[::-1]
    return ipus, array("q", rows.tobytes()), make


@dataclass(frozen=True, slots=True, repr=False)
class Microseconds(Shown):
    """Begin and end on the host, in microseconds since the epoch."""

    _figures = ("start", "end")

    start: float
    end: float


class OtherRun(Item):
    """One call of Engine.run while profiling was disabled, such as one that moves weights."""

    __slots__ = ()
    _figures: ClassVar[tuple[str, ...]] = ("cycles",)
    _table = "other_runs"

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._text(self._table, "name")

    @property
    def cycles(self) -> int:
        """How long it took on the device; -1 on a CPU."""
        return int(self._value(self._table, "cycles"))

    @property
    def microseconds(self) -> Microseconds:
        """When it was, on the host."""
        names = ("start_microseconds", "end_microseconds")
        return Microseconds(*(float(self._value(self._table, name)) for name in names))


class Run(OtherRun):
    """One call of Engine.run: a run of the model."""

    __slots__ = ()
    _figures = ("steps", "cycles")
    _table = "runs"

    @property
    def steps(self) -> Sequence[ExecutionStep]:
        """Its steps; empty when it was not recorded in full."""
        first, end = (int(self._value("runs", name)) for name in ("first_step", "end_step"))
        return steps(self._data)[first:end]

    @property
    def items(self) -> int:
        """Items that it took in, such as images, on all replicas; -1 where it is not known."""
        return int(self._value("runs", "items"))

    @property
    def batches(self) -> int:
        """Batches that one replica took in one after another; -1 where it is not known."""
        return int(self._value("runs", "batches"))

    @property
    def stages(self) -> int:
        """Batches in its pipeline at once when it is full, 1 without one; -1: not known."""
        return int(self._value("runs", "stages"))


@dataclass(frozen=True, slots=True, repr=False)
class TotalCycles(Shown):
    """Cycles of all recorded runs; 0 without an execution."""

    _figures = ("total",)

    total: int


class ExecutionReport(Shown):
    """What was executed; without an execution all of it is empty."""

    _figures = ("runs", "steps", "cycles=totalCycles.total")

    def __init__(self, data: Dataset) -> None:
        self._data = data

    @property
    def steps(self) -> Items[ExecutionStep]:
        """Every executed step of the runs that were recorded in full."""
        return steps(self._data)

    @property
    def runs(self) -> Items[Run]:
        """The calls of Engine.run: the runs of the model."""
        return Items(range(self._data.length("runs")), lambda row: Run(self._data, row))

    @property
    def otherRuns(self) -> Items[OtherRun]:
        """Those made while profiling was disabled, such as those that move weights."""
        return Items(range(self._data.length("other_runs")), lambda row: OtherRun(self._data, row))

    def blocks(self, tile: int) -> Items[Block]:
        """Return what lightweight profiling saw on a tile; empty when it was off."""
        return blocks(self._data, tile)

    @property
    def totalCycles(self) -> TotalCycles:
        """Cycles of all recorded runs."""
        recorded = self._data.has("execution")
        return TotalCycles(max(int(self._data.value("execution", "cycles")), 0) if recorded else 0)


def steps(data: Dataset) -> Items[ExecutionStep]:
    """Return the executed steps."""
    return Items(range(data.length("steps")), partial(ExecutionStep, data))
