"""A run: the program tree laid out as executed steps, their values and their clock."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter_ns, time_ns

import numpy as np
from numpy.typing import ArrayLike

import pvti
from simulator.compiler.executable import Executable, LoweredProgram
from simulator.graph.types import IntArray
from simulator.instances.share import Place, Share
from simulator.runtime.blocks import BlockRecorder, BlockRows
from simulator.runtime.execute import ValueRunner
from simulator.runtime.flow import Clocks, Flow, Watch, meet
from simulator.runtime.timeline import Delays, Phase, Replay, replay, watch
from simulator.runtime.work import NOTHING_KNOWN, Work

NO_TRACE = -1


@dataclass(frozen=True, slots=True, eq=False)
class RunRecord:
    """What a run did.

    name, program          its name, and the user's program that was run
    steps                  row of programs of every executed step; empty when not recorded
    ran                    rows of the programs that are among its steps, recorded or not, ascending
    replay                 what the steps did to the clocks, None when not recorded
    cycles_from, cycles    latest clock of any tile when it began, and cycles until it ended
    start, end             on the host, nanoseconds since the epoch
    trace_begin, trace_end on the clock of the host trace, -1 without one
    blocks                 what lightweight profiling recorded, None when it is off
    other                  whether profiling was disabled: it counts among the other runs
    work                   what it took in
    """

    name: str
    program: int
    steps: IntArray
    ran: IntArray
    replay: Replay | None
    cycles_from: int
    cycles: int
    start: int
    end: int
    trace_begin: int
    trace_end: int
    blocks: BlockRows | None = None
    other: bool = False
    work: Work = NOTHING_KNOWN


class Runner:
    """Runs the programs of an executable; a run begins on all tiles when the last one ended.

    `values` are those of every replica, or of those in the `share` of this instance; the clocks are
    those of replica `profiled` among them.
    """

    def __init__(
        self,
        executable: Executable,
        *values: ValueRunner,
        profiled: int = 0,
        share: Share | None = None,
    ) -> None:
        self._replicas, self._share = executable.graph.replication, share
        self._ran = 0
        self._users = list(executable.lowered.user_programs)
        self._flow = Flow(executable.lowered)
        self._values = values
        self._profiled = profiled
        target = executable.graph.target
        apart = executable.graph.device_target.sync_cycles_between_ipus
        self._delays = Delays.of(target.sync_delay_by_tile(), target.num_ipus, apart)
        self._phases = _phases(executable)
        self._clock = np.zeros(target.num_tiles, dtype=np.int64)
        self._recorded = 0
        self._blocks = BlockRecorder(executable)
        self._events = frozenset(np.flatnonzero(self._blocks.events).tolist())
        # Cycles and blocks of a run, by the steps that it took.
        self._taken: dict[bytes, tuple[int, BlockRows | None]] = {}

    @property
    def cycles(self) -> int:
        """Return the latest clock of any tile."""
        return int(self._clock.max())

    def reload(self, *values: ValueRunner) -> None:
        """Take the values of another load; the clocks go on, as the report does."""
        self._values = values

    def run(
        self, index: int, name: str, work: Work = NOTHING_KNOWN, *, record: bool,
        other: bool = False,
    ) -> RunRecord:  # fmt: skip
        """Run a user's program; `record` keeps every step, otherwise only the cycles."""
        start, trace_begin = _wall_clock(), _trace_clock()
        with pvti.Tracepoint(pvti.tracePoplar, "run/values"):
            steps = self._run_values(self._users[index], name)
        self._ran += 1
        before = int(self._clock.max())
        with pvti.Tracepoint(pvti.tracePoplar, "run/clocks"):
            replayed, cycles, blocks = self._tick(steps, before, record)
        self._clock = np.full_like(self._clock, before + cycles)
        end, trace_end = _wall_clock(), _trace_clock()
        recorded_steps = steps if record else steps[:0]
        ran, host, trace = np.unique(steps), (start, end), (trace_begin, trace_end)
        clocks = before, cycles, *host, *trace
        return RunRecord(name, index, recorded_steps, ran, replayed, *clocks, blocks, other, work)

    def _run_values(self, row: int, name: str) -> IntArray:
        """Run a program in every replica here; give the steps of the profiled one."""
        walks = [self._flow.walk(row, v, self._replicas, self._lap()) for v in self._values]
        meetings = meet(walks)
        for number in count(1):
            try:
                copy = next(meetings)
            except StopIteration as end:
                profiled: IntArray = end.value[self._profiled]
                return profiled
            sent = [values.read(copy.src) for values in self._values]
            if self._share is None:
                first, got = 0, {to: sent[by] for by, to in copy.replicaMap.items()}
            else:
                place = Place(self._ran, name, number, copy.name)
                first = self._share.first
                with pvti.Tracepoint(pvti.tracePoplar, f"Collective {copy.name}"):
                    got = self._share.exchange(place, copy.replicaMap, sent)
            for receiver, moved in got.items():
                self._values[receiver - first].write(copy.dst, moved)
        raise AssertionError("count has no end")

    def _lap(self) -> Watch:
        """Return what follows the clocks of one replica through a run, as far as it has come."""
        clock, taken = self._clock, 0

        def watched(trace: Sequence[IntArray]) -> Clocks:
            nonlocal clock, taken
            *until, last = (part.tolist() for part in trace[taken:])
            order = [step for part in until for step in part]
            before, _, _ = watch(clock, self._phases, order, self._delays)
            clock, _, _ = watch(before, self._phases, last, self._delays)
            taken = len(trace)
            return before, clock

        return watched

    def _tick(
        self, steps: IntArray, before: int, record: bool
    ) -> tuple[Replay | None, int, BlockRows | None]:
        """Take the clocks through the steps.

        Gives what they did when recorded, the cycles, and the blocks.
        """
        # All costs are static and a run begins on all tiles at once, so the same steps always take
        # as long.
        key = hashlib.blake2b(steps.tobytes()).digest()
        if record:
            replayed = replay(
                self._clock, self._phases, steps.tolist(), self._delays, self._recorded
            )
            self._recorded += len(steps)
            if key not in self._taken:
                events = self._blocks.events[steps][replayed.ipu_step]
                begin, end = replayed.from_min[events], replayed.to_min[events]
                self._taken[key] = self._cycles_of_run(steps, before, begin, end, replayed.end)
            return replayed, *self._taken[key]
        if key not in self._taken:
            clock, begins, ends = watch(
                self._clock, self._phases, steps.tolist(), self._delays, self._events
            )
            self._taken[key] = self._cycles_of_run(steps, before, begins, ends, clock)
        return None, *self._taken[key]

    def _cycles_of_run(
        self, steps: IntArray, before: int, begin: ArrayLike, end: ArrayLike, clock: IntArray
    ) -> tuple[int, BlockRows | None]:
        """Return the cycles of a run and its blocks, from the clocks around each event."""
        cycles = int(clock.max()) - before
        if not self._events:
            return cycles, None
        tiles = self._blocks.tiles
        shape = (-1, len(tiles))
        begins, ends = (
            np.asarray(times, dtype=np.int64).reshape(shape) - before for times in (begin, end)
        )
        rows = steps[self._blocks.events[steps]]
        return cycles, self._blocks.blocks(rows, begins, ends, clock[tiles] - before)


def cycles_of(executable: Executable, program: LoweredProgram) -> IntArray:
    """Return the cycles of a step on each tile; empty for syncs and for what is no step."""
    lowered = executable.lowered
    match program.type:
        case "OnTileExecute":
            cycles: IntArray = executable.costs.cycles[program.compute_set]
            return cycles
        case "DoExchange":
            return lowered.exchanges[program.exchange].cycles
        case "GlobalExchange":
            return lowered.global_exchanges[program.exchange].cycles
        case "StreamCopy":
            return lowered.host_exchanges[program.exchange].cycles
    return np.zeros(0, dtype=np.int64)


def _phases(executable: Executable) -> list[Phase]:
    """Return the phase of each step; what is no step takes no time on any tile."""
    programs, tiles_per_ipu = executable.lowered.programs, executable.graph.target.tiles_per_ipu
    nothing = Phase.of(np.zeros(0, dtype=np.int64), tiles_per_ipu)
    sync_of = functools.cache(functools.partial(_sync, executable))

    def phase_of(program: LoweredProgram) -> Phase:
        if program.type == "Sync":
            return sync_of(program.sync_type, program.tile_set)
        cycles = cycles_of(executable, program)
        return Phase.of(cycles, tiles_per_ipu) if len(cycles) else nothing

    return [phase_of(program) for program in programs]


def _sync(executable: Executable, sync_type: str, tile_set: str) -> Phase:
    """Return the phase of a sync of a set of tiles."""
    target, external = executable.graph.target, sync_type == "External"
    if tile_set == "All":
        return Phase.sync(target.num_tiles, target.tiles_per_ipu, external=external)
    mask = executable.lowered.io_tiles == (tile_set == "IO")
    return Phase.sync_of(np.flatnonzero(mask), target.tiles_per_ipu, external=external)


def _wall_clock() -> int:
    """Return nanoseconds since the epoch; SOURCE_DATE_EPOCH stands still."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    return int(fixed) * 1_000_000_000 if fixed else time_ns()


def _trace_clock() -> int:
    """Return the host trace's time, -1 without a trace or when time stands still."""
    if os.environ.get("SOURCE_DATE_EPOCH") or not pvti.getCurrentTraceFilename():
        return NO_TRACE
    return perf_counter_ns()
