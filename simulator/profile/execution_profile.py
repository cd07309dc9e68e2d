"""What runs did, as the tables of the execution profile (pva.schema).

What a step costs is the row of its program; so each program is measured once, and steps take their
columns from there. Syncs alone differ from one execution to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pva import schema
from simulator.compiler.executable import Executable, LoweredProgram
from simulator.graph.types import Array, BoolArray, IntArray
from simulator.profile.graph_profile import code
from simulator.profile.measured import Measured, profiler_mode
from simulator.runtime.blocks import BlockRows
from simulator.runtime.run import RunRecord

Columns = dict[str, Any]
Floats = npt.NDArray[np.float64]

CPU = "CPU"
WITHOUT_TRACE = (CPU, "NONE")  # the profiler modes that have no steps
PROGRAMS_AT_ONCE = 256  # rows of [program][tile] held in memory at a time
MISSING = schema.MISSING["int"]
ACTIVITY = {
    "OnTileExecute": "compute",
    "DoExchange": "do_exchange",
    "GlobalExchange": "global_exchange",
    "StreamCopy": "stream_copy",
    "Sync": "sync",
}
# The steps that may begin before the one before has ended on all tiles, so that some is hidden; so
# may all of the I/O tiles.
OVERLAPPING = [
    schema.STEP_TYPES.index(name) for name in ("OnTileExecute", "DoExchange", "CopySharedStructure")
]


@dataclass(frozen=True, slots=True, eq=False)
class StepCosts:
    """What a step of each program costs: by program, and by [program][IPU].

    kind, sync_type       codes of the tables `programs` and `steps`
    cycles, spent         of the longest running tile and of all tiles; 0 for syncs
    overlaps              whether some of it may be hidden behind earlier steps
    active_compute        cycles in which a vertex was being run, on all tiles
    tiles, ipu_tiles      active tiles
    bytes_in, bytes_out   received and sent by the tiles of each IPU
    data_balance          mean / most of the bytes sent and received by a tile; NaN without data
    """

    kind: IntArray
    sync_type: IntArray
    cycles: IntArray
    spent: IntArray
    overlaps: BoolArray
    active_compute: IntArray
    tiles: IntArray
    ipu_tiles: IntArray
    bytes_in: IntArray
    bytes_out: IntArray
    data_balance: Floats


def step_costs(executable: Executable) -> StepCosts:
    """Measure every program once."""
    programs = executable.lowered.programs
    compute = executable.costs.active_cycles.sum(axis=1)
    parts = [
        _costs_of(executable, programs[first : first + PROGRAMS_AT_ONCE], compute)
        for first in range(0, len(programs), PROGRAMS_AT_ONCE)
    ]
    names = StepCosts.__dataclass_fields__
    return StepCosts(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _costs_of(
    executable: Executable, programs: Sequence[LoweredProgram], compute: IntArray
) -> StepCosts:
    """Measure some programs; `compute` are the cycles of vertices by compute set."""
    target = executable.graph.target
    measured = [_measure(executable, program) for program in programs]
    cycles = np.stack([row[0] for row in measured])
    received = np.stack([row[1] for row in measured])
    sent = np.stack([row[2] for row in measured])
    by_ipu = (len(measured), target.num_ipus, target.tiles_per_ipu)
    is_sync = np.array([program.type == "Sync" for program in programs])
    active = (cycles > 0) | (is_sync[:, None] & _joined(executable, programs))
    data = (received + sent).astype(np.float64)
    most = data.max(axis=1)
    balance = np.divide(data.mean(axis=1), most, out=np.full(len(data), np.nan), where=most > 0)
    sets = [program.compute_set for program in programs]
    kinds = _step_types(programs)
    aside = np.array([program.tile_set == "IO" for program in programs])
    return StepCosts(
        kind=kinds,
        overlaps=np.isin(kinds, OVERLAPPING) | (aside & (cycles > 0).any(axis=1)),
        sync_type=np.array([code("steps", "sync_type", p.sync_type) for p in programs]),
        cycles=cycles.max(axis=1),
        spent=cycles.sum(axis=1),
        active_compute=np.array([compute[row] if row >= 0 else 0 for row in sets], dtype=np.int64),
        tiles=active.sum(axis=1),
        ipu_tiles=active.reshape(by_ipu).sum(axis=2),
        bytes_in=received.reshape(by_ipu).sum(axis=2),
        bytes_out=sent.reshape(by_ipu).sum(axis=2),
        data_balance=balance,
    )


def _joined(executable: Executable, programs: Sequence[LoweredProgram]) -> BoolArray:
    """Return by [program][tile] which tiles a program is for."""
    io, names = executable.lowered.io_tiles, np.array(schema.TILE_SETS)
    every = np.ones(executable.graph.target.num_tiles, dtype=np.bool_)
    sets = {"All": every, "IO": io, "Compute": ~io}
    table = np.stack([sets[name] if io.any() else every for name in names])
    numbers = {name: index for index, name in enumerate(names.tolist())}
    return table[[numbers[program.tile_set] for program in programs]]


def _step_types(programs: Sequence[LoweredProgram]) -> IntArray:
    numbers = {name: index for index, name in enumerate(schema.STEP_TYPES)}
    return np.array([numbers.get(program.type, -1) for program in programs], dtype=np.int64)


def _measure(executable: Executable, program: LoweredProgram) -> tuple[IntArray, ...]:
    """Return cycles, bytes received and bytes sent of every tile."""
    nothing = np.zeros(executable.graph.target.num_tiles, dtype=np.int64)
    match program.type:
        case "OnTileExecute":
            return executable.costs.cycles[program.compute_set], nothing, nothing
        case "DoExchange":
            exchange = executable.lowered.exchanges[program.exchange]
        case "GlobalExchange":
            exchange = executable.lowered.global_exchanges[program.exchange]
        case "StreamCopy":
            exchange = executable.lowered.host_exchanges[program.exchange]
        case _:
            return nothing, nothing, nothing
    return exchange.cycles, exchange.received, exchange.sent


class ExecutionProfile:
    """Grows run by run; what it gives for a run are rows to append.

    `origin` is the cycle from which its clock counts. Without a trace, of a program for the CPU or
    of one that is not `profiled`, there are runs alone; those on the CPU have no cycles.
    """

    def __init__(self, executable: Executable, origin: int = 0, *, profiled: bool = True) -> None:
        self._mode = profiler_mode(executable, profiled=profiled)
        self._traced = self._mode not in WITHOUT_TRACE
        self._measured = Measured(executable)
        self._origin = origin
        self._executable = executable
        self._tiles = executable.graph.target.num_tiles
        self._tiles_per_ipu = executable.graph.target.tiles_per_ipu
        self._spent = {column.name: 0 for column in schema.TABLE["tile_cycles"].columns}
        self._runs = self._steps = self._cycles = 0
        self._blocks = self._mode != CPU and executable.instrumentation.blocks.wanted

    @cached_property
    def _costs(self) -> StepCosts:
        """Measure every program, once the first run has to be written."""
        return step_costs(self._executable)

    def start(self) -> tuple[dict[str, Columns], dict[str, Array]]:
        """Return tables and arrays before the first run."""
        empty = ["runs", "other_runs", *(["steps", "steps_by_ipu"] if self._traced else [])]
        if self._blocks:
            empty.append("blocks")
        tables: dict[str, Columns] = {
            name: {c.name: [] for c in schema.TABLE[name].columns} for name in empty
        }
        if not self._traced:
            return {**tables, **self._totals()}, {}
        clock = np.zeros((0, self._tiles), np.int64)
        return {**tables, **self._totals()}, {"tile_clock": clock, **self._measured.start()}

    def append(self, record: RunRecord) -> tuple[dict[str, Columns], dict[str, Array]]:
        """Return the rows that a run adds."""
        if record.other:
            return {"other_runs": self._run_row(record)}, {}
        first = self._steps
        tables: dict[str, Columns] = {}
        arrays: dict[str, Array] = {}
        if record.replay is not None and self._traced:
            tables["steps"], tables["steps_by_ipu"] = self._step_rows(record)
            arrays["tile_clock"] = record.replay.snapshots - self._origin
            self._steps += len(record.steps)
            self._cycles += record.cycles
            self._spend(record)
        if self._traced:
            arrays |= self._measured.run(record.ran)
        steps = {"first_step": [first], "end_step": [self._steps]}
        work = {name: [value] for name, value in asdict(record.work).items()}
        tables["runs"] = self._run_row(record) | steps | work
        if self._blocks and record.blocks is not None:
            tables["blocks"] = self._block_rows(record, record.blocks)
        self._runs += 1
        return tables | self._totals(), arrays

    def _run_row(self, record: RunRecord) -> Columns:
        """Return what a run of the model and another one have."""
        timed = self._mode != CPU
        return {
            "name": [record.name],
            "program": [record.program],
            "cycles_from": [record.cycles_from - self._origin if timed else MISSING],
            "cycles": [record.cycles if timed else MISSING],
            "start_microseconds": [record.start / 1000],
            "end_microseconds": [record.end / 1000],
            "trace_begin": [record.trace_begin],
            "trace_end": [record.trace_end],
        }

    def _totals(self) -> dict[str, Columns]:
        mode = code("execution", "profiler_mode", self._mode)
        if not self._traced:
            return {"execution": {"profiler_mode": [mode], "cycles": [MISSING]}}
        return {
            "execution": {"profiler_mode": [mode], "cycles": [self._cycles]},
            "tile_cycles": {name: [value] for name, value in self._spent.items()},
        }

    def _block_rows(self, record: RunRecord, blocks: BlockRows) -> Columns:
        begin = record.cycles_from - self._origin
        return {
            "run": np.full(len(blocks.ipu), self._runs),
            "ipu": blocks.ipu,
            "tile": blocks.tile,
            "program": blocks.program,
            "kind": blocks.kind,
            "cycles_from": blocks.cycles_from + begin,
            "cycles_to": blocks.cycles_to + begin,
        }

    def _spend(self, record: RunRecord) -> None:
        """Add the cycles of a run to its activities; the rest of the time tiles were idle."""
        assert record.replay is not None
        costs, rows = self._costs, record.steps
        kinds = costs.kind[rows]
        for name, activity in ACTIVITY.items():
            mask = kinds == schema.STEP_TYPES.index(name)
            source = record.replay.sync_cycles if name == "Sync" else costs.spent[rows]
            self._spent[activity] += int(source[mask].sum())
        self._spent["active_compute"] += int(costs.active_compute[rows].sum())
        end = record.replay.end
        self._spent["idle_at_end"] += int((end.max() - end).sum())

    def _step_rows(self, record: RunRecord) -> tuple[Columns, Columns]:
        assert record.replay is not None
        costs, rows, replay = self._costs, record.steps, record.replay
        longest = np.zeros(len(rows), dtype=np.int64)
        np.maximum.at(longest, replay.ipu_step, replay.longest)
        spent = costs.spent[rows] + replay.sync_cycles
        tiles, active = costs.tiles[rows], costs.active_compute[rows]
        data = (costs.bytes_in + costs.bytes_out).sum(axis=1)[rows]
        kinds = costs.kind[rows]
        computes = kinds == schema.STEP_TYPES.index("OnTileExecute")
        moves = ~computes & (kinds != schema.STEP_TYPES.index("Sync"))
        durations = replay.cycles_to - replay.cycles_from
        steps = {
            "type": kinds,
            "sync_type": costs.sync_type[rows],
            "program": rows,
            "run": np.full(len(rows), self._runs),
            "cycles": longest,
            "cycles_from": replay.cycles_from - self._origin,
            "cycles_to": replay.cycles_to - self._origin,
            "cycles_overlapped": np.where(costs.overlaps[rows], longest - durations, -1),
            "active_tiles": tiles,
            "tile_balance": _share(spent, longest * self._tiles),
            "active_tile_balance": _share(spent, longest * tiles),
            "thread_balance": np.where(computes, _share(active, spent), np.nan),
            "total_data": np.where(moves, data // 2, -1),
            "data_balance": np.where(moves, costs.data_balance[rows], np.nan),
        }
        return steps, self._ipu_rows(record)

    def _ipu_rows(self, record: RunRecord) -> Columns:
        assert record.replay is not None
        costs, replay = self._costs, record.replay
        program, ipu = record.steps[replay.ipu_step], replay.ipu
        return {
            "step": self._steps + replay.ipu_step,
            "ipu": ipu,
            "cycles": replay.longest,
            "from_min": replay.from_min - self._origin,
            "from_max": replay.from_max - self._origin,
            "to_min": replay.to_min - self._origin,
            "to_max": replay.to_max - self._origin,
            "all_to_min": replay.all_to_min - self._origin,
            "all_to_max": replay.all_to_max - self._origin,
            "tile_balance": _share(replay.spent, replay.longest * self._tiles_per_ipu),
            "active_tile_balance": _share(
                replay.spent, replay.longest * costs.ipu_tiles[program, ipu]
            ),
            "bytes_in": costs.bytes_in[program, ipu],
            "bytes_out": costs.bytes_out[program, ipu],
        }


def _share(part: IntArray, total: IntArray) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    result = np.full(len(part), np.nan)
    np.divide(part, total, out=result, where=total > 0)
    return result
