"""The way through a program: which steps are executed, as what the tensors hold decides.

Parts without decisions are laid out once, as arrays. The rest is walked with a stack of its own, so
that deep programs meet no limit. A walk stops where replicas have to meet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pva.progress import each
from pva.schema import STEP_TYPES
from simulator.compiler.executable import Lowered, LoweredProgram
from simulator.graph.errors import PoplarError
from simulator.graph.program import CrossReplicaCopy, If, Program, RepeatWhile, Switch
from simulator.graph.program import RepeatWhileFalse as WhileFalse
from simulator.graph.types import IntArray
from simulator.runtime.execute import ValueRunner

MAX_ROWS = 1 << 26  # programs that a run executes one after another; they take about 1 GB
SWITCHES = ("Switch", "OnEveryTileSwitch")
NOTHING = np.zeros(0, dtype=np.int64)
# Of all steps of a run until now: the clocks of the tiles before and after the last of them.
Clocks = tuple[IntArray, IntArray]
Watch = Callable[[Sequence[IntArray]], Clocks]


@dataclass(frozen=True, slots=True)
class _Order:
    """Rows of programs in the order of execution: those that are steps, those that have values."""

    steps: IntArray
    values: IntArray


class Flow:
    """Walks the lowered programs."""

    def __init__(self, lowered: Lowered) -> None:
        self._programs = lowered.programs
        self._functions = lowered.functions
        self._reads_clock = _reads_clock(lowered)
        self._decides = _decides(lowered, self._reads_clock)
        self._is_step = np.array([p.type in STEP_TYPES for p in lowered.programs])
        self._has_values = np.array([p.action is not None for p in lowered.programs])
        self._orders: dict[tuple[int, int], _Order] = {}

    def walk(
        self, entry: int, values: ValueRunner, replicas: int, watch: Watch
    ) -> Generator[CrossReplicaCopy, None, IntArray]:
        """Run the user's program at row `entry`; give the rows of its steps in their order.

        Yields every copy between replicas of the whole graph, for all of them to be there. Vertices
        that read a clock are told what `watch` says of the steps until then.
        """
        trace: list[IntArray] = []
        count = 0
        waiting: list[tuple[int, Iterator[int]]] = [(0, iter([0]))]
        while waiting:
            row = next(waiting[-1][1], None)
            if row is None:
                waiting.pop()
            elif self._decides[row]:
                waiting.append((row, self._below(row, entry, values)))
            else:
                order = self._order(row, entry)
                trace.append(order.steps)
                count += len(order.steps)
                if count > MAX_ROWS:
                    raise self._endless(above for above, _ in waiting)
                if self._reads_clock[row]:
                    values.tell_clocks(watch(trace))
                yield from self._run(order.values, values, replicas)
        return np.concatenate(trace) if trace else NOTHING

    def _endless(self, above: Iterable[int]) -> PoplarError:
        """Name the outermost loop of those that a run of too many programs is in."""
        loops = [p for p in map(self._programs.__getitem__, above) if p.type.startswith("Repeat")]
        program = loops[0] if loops else self._programs[0]
        return PoplarError(
            f"{program.type} {program.name!r}: its turns are more than the {MAX_ROWS:,} programs "
            "that a run of the simulator can have; a loop in it may have no end"
        )

    def _run(
        self, rows: IntArray, values: ValueRunner, replicas: int
    ) -> Iterator[CrossReplicaCopy]:
        """Run what has values; give the copies between replicas to whoever walks them all."""
        for row in each(rows.tolist(), "running steps"):
            action = self._programs[row].action
            assert action is not None
            if replicas > 1 and isinstance(action, CrossReplicaCopy):
                yield action
            else:
                values.run(action)

    def _below(self, row: int, entry: int, values: ValueRunner) -> Iterator[int]:
        """List the rows that a container runs, deciding as it goes."""
        program = self._programs[row]
        match program.control:
            case RepeatWhile() as loop:
                check, body = program.children
                yield check
                while values.is_set(loop.predicate) != isinstance(loop, WhileFalse):
                    yield body
                    yield check
            case If() as choice:
                branch = 0 if values.is_set(choice.predicate) else 1
                yield from program.children[branch : branch + 1]
            case Switch() as switch:
                yield program.children[_case(switch, len(program.children) - 1, values)]
            case _:
                for _ in range(program.count if program.type == "Repeat" else 1):
                    yield from self._children(row, entry)

    def _children(self, row: int, entry: int) -> list[int]:
        return children_of(self._programs, self._functions, row, entry)

    def _order(self, row: int, entry: int) -> _Order:
        if (row, entry) not in self._orders:
            rows = lay_out(self._programs, row, entry, self._functions)
            self._orders[row, entry] = _Order(
                rows[self._is_step[rows]], rows[self._has_values[rows]]
            )
        return self._orders[row, entry]


def _case(switch: Switch, compiled: int, values: ValueRunner) -> int:
    """Choose the child of a Switch: the case of its value, or the default, which is the last.

    It had `compiled` cases when it was compiled; what was added since is not there.
    """
    value = values.number(switch.control)
    cases = [case for case, _ in switch.cases[:compiled]]
    return cases.index(value) if value in cases else len(cases)


def _reads_clock(lowered: Lowered) -> list[bool]:
    """Return of every program whether its vertices read their tile's clock."""
    reading = {group.compute_set for group in lowered.groups if group.codelet.reads_clock}
    return [program.compute_set in reading for program in lowered.programs]


def _decides(lowered: Lowered, apart: Sequence[bool]) -> list[bool]:
    """Return of every program whether what it runs depends on the values of tensors.

    So do those around what is to run apart, at a time that is known.
    """
    programs = lowered.programs
    decides = [program.control is not None or apart[row] for row, program in enumerate(programs)]
    above: list[list[int]] = [[] for _ in programs]
    for row in range(len(programs)):
        for child in children_of(programs, lowered.functions, row, -1):
            above[child].append(row)
    waiting = [row for row, decision in enumerate(decides) if decision]
    while waiting:
        for row in above[waiting.pop()]:
            if not decides[row]:
                decides[row] = True
                waiting.append(row)
    return [decision and not apart[row] for row, decision in enumerate(decides)]


def children_of(
    programs: Sequence[LoweredProgram], functions: Sequence[int], row: int, entry: int
) -> list[int]:
    """List what a program without a choice of its own runs, one after another.

    The control program's Switch takes the child `entry`, or all of them for -1.
    """
    program = programs[row]
    if program.type == "Call":
        return [functions[program.target]]
    if program.type in SWITCHES and program.control is None and entry >= 0:
        return [child for child in program.children if child == entry]
    return program.children


def lay_out(
    programs: Sequence[LoweredProgram], root: int, entry: int, functions: Sequence[int] = ()
) -> IntArray:
    """List the rows below `root` as they are executed, when nothing depends on values."""
    rows: list[int] = []
    waiting = [(root, -1)]
    while waiting:
        row, body = waiting.pop()
        program = programs[row]
        if body >= 0:  # all of a Repeat's body stands from there on, once
            once = rows[body:]
            del rows[body:]
            if len(once) * program.count > MAX_ROWS:
                raise PoplarError(
                    f"Repeat {program.name!r}: {program.count:,} turns of {len(once):,} "
                    f"program(s); a run of the simulator can have {MAX_ROWS:,}"
                )
            rows += once * program.count
            continue
        rows.append(row)
        if program.type == "Repeat":
            waiting.append((row, len(rows)))
        below = children_of(programs, functions, row, entry)
        waiting += [(child, -1) for child in reversed(below)]
    return np.array(rows, dtype=np.int64)


def meet(
    walks: Sequence[Generator[CrossReplicaCopy, None, IntArray]],
) -> Generator[CrossReplicaCopy, None, list[IntArray]]:
    """Walk all replicas from one meeting to the next; yield each copy when all are there.

    Raises PoplarError when some have ended or wait for another copy.
    """
    ended: dict[int, IntArray] = {}
    while True:
        arrivals: list[Program] = []
        for replica, walk in enumerate(walks):
            try:
                arrivals.append(next(walk))
            except StopIteration as end:
                ended[replica] = end.value
        if len(ended) == len(walks):
            return [ended[replica] for replica in range(len(walks))]
        copy = arrivals[0]
        assert isinstance(copy, CrossReplicaCopy)
        if ended or any(arrival is not copy for arrival in arrivals):
            raise PoplarError(
                f"CrossReplicaCopy {copy.name!r}: not all replicas came to it; their programs took "
                "different ways"
            )
        yield copy
