"""A run: the program tree laid out as executed steps, their values and their clock."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns, time_ns

import numpy as np

import pvti
from pva.schema import STEP_TYPES
from simulator.compiler.executable import Executable, LoweredProgram
from simulator.graph.types import IntArray
from simulator.runtime.execute import ValueRunner
from simulator.runtime.timeline import Delays, Phase, Replay, advance, replay

NO_TRACE = -1


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """What a run did.

    name, program          its name, and the user's program that was run
    steps                  row of programs of every executed step; empty when not recorded
    replay                 what the steps did to the clocks, None when not recorded
    cycles_from, cycles    latest clock of any tile when it began, and cycles until it ended
    start, end             on the host, nanoseconds since the epoch
    trace_begin, trace_end on the clock of the host trace, -1 without one
    """

    name: str
    program: int
    steps: IntArray
    replay: Replay | None
    cycles_from: int
    cycles: int
    start: int
    end: int
    trace_begin: int
    trace_end: int


@dataclass(frozen=True, slots=True)
class _Order:
    """Rows of programs in the order of execution: those that are steps, those that have values."""

    steps: IntArray
    values: IntArray


class Runner:
    """Runs the programs of an executable; a run begins on all tiles when the last one ended."""

    def __init__(self, executable: Executable, values: ValueRunner) -> None:
        self._programs = executable.lowered.programs
        self._users = list(executable.lowered.user_programs)
        self._values = values
        target = executable.graph.target
        self._delays = Delays.of(target.sync_delay_by_tile())
        self._phases = [_phase(executable, program) for program in self._programs]
        self._clock = np.zeros(target.num_tiles, dtype=np.int64)
        self._recorded = 0
        self._cycles: dict[int, int] = {}  # of a run, by user program
        self._orders: dict[int, _Order] = {}

    def run(self, index: int, name: str, *, record: bool) -> RunRecord:
        """Run a user's program; `record` keeps every step, otherwise only the cycles."""
        order = self._order(index)
        start, trace_begin = _wall_clock(), _trace_clock()
        with pvti.Tracepoint(pvti.tracePoplar, "run/values"):
            for row in order.values.tolist():
                action = self._programs[row].action
                assert action is not None
                self._values.run(action)
        before = int(self._clock.max())
        with pvti.Tracepoint(pvti.tracePoplar, "run/clocks"):
            steps, replayed = self._tick(index, order.steps, before, record)
        # All costs are static and a run begins on all tiles at once: it always takes as long.
        cycles = self._cycles[index]
        self._clock = np.full_like(self._clock, before + cycles)
        end, trace_end = _wall_clock(), _trace_clock()
        return RunRecord(
            name, index, steps, replayed, before, cycles, start, end, trace_begin, trace_end
        )

    def _tick(
        self, index: int, steps: IntArray, before: int, record: bool
    ) -> tuple[IntArray, Replay | None]:
        """Take the clocks through the steps; give the recorded steps and what they did."""
        replayed = None
        if record:
            replayed = replay(
                self._clock, self._phases, steps.tolist(), self._delays, self._recorded
            )
            self._recorded += len(steps)
            self._cycles[index] = int(replayed.end.max()) - before
        elif index not in self._cycles:
            ended = advance(self._clock, self._phases, steps.tolist(), self._delays)
            self._cycles[index] = int(ended.max()) - before
        return steps if record else steps[:0], replayed

    def _order(self, index: int) -> _Order:
        if index not in self._orders:
            rows = lay_out(self._programs, 0, self._users[index])
            steps = np.array([p.type in STEP_TYPES for p in self._programs])
            values = np.array([p.action is not None for p in self._programs])
            self._orders[index] = _Order(rows[steps[rows]], rows[values[rows]])
        return self._orders[index]


def lay_out(programs: Sequence[LoweredProgram], root: int, chosen: int) -> IntArray:
    """List the rows below `root` as they are executed; a Switch takes the child `chosen`."""
    rows: list[int] = []
    waiting = [(root, -1)]
    while waiting:
        row, body = waiting.pop()
        program = programs[row]
        if body >= 0:  # all of a Repeat's body stands from there on, once
            once = rows[body:]
            del rows[body:]
            rows += once * program.count
            continue
        rows.append(row)
        if program.type == "Repeat":
            waiting.append((row, len(rows)))
        waiting += [(child, -1) for child in reversed(_taken(program, chosen))]
    return np.array(rows, dtype=np.int64)


def _taken(program: LoweredProgram, chosen: int) -> list[int]:
    if program.type == "Switch":
        return [child for child in program.children if child == chosen]
    return program.children


def _phase(executable: Executable, program: LoweredProgram) -> Phase:
    """Give the phase of a step; what is no step takes no time on any tile."""
    target = executable.graph.target
    nothing = np.zeros(0, dtype=np.int64)
    lowered = executable.lowered
    match program.type:
        case "Sync":
            return Phase.sync(target.num_tiles, target.tiles_per_ipu)
        case "OnTileExecute":
            cycles = executable.costs.cycles[program.compute_set]
        case "DoExchange":
            cycles = lowered.exchanges[program.exchange].cycles
        case "StreamCopy":
            cycles = lowered.host_exchanges[program.exchange].cycles
        case _:
            cycles = nothing
    return Phase.of(cycles, target.tiles_per_ipu)


def _wall_clock() -> int:
    """Give nanoseconds since the epoch; SOURCE_DATE_EPOCH stands still."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    return int(fixed) * 1_000_000_000 if fixed else time_ns()


def _trace_clock() -> int:
    """Give the host trace's time, -1 without a trace or when time stands still."""
    if os.environ.get("SOURCE_DATE_EPOCH") or not pvti.getCurrentTraceFilename():
        return NO_TRACE
    return perf_counter_ns()
