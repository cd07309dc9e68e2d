"""Runs a compiled program with all that liveness calls dead overwritten by chance values.

What a step does not need may be anything; so a run in which it is must give the same results.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.compiler.executable import Executable, LoweredProgram
from simulator.graph.program import Copy, CrossReplicaCopy, Execute, If, Program, RepeatWhile
from simulator.graph.program import RepeatWhileFalse as WhileFalse
from simulator.graph.program import Switch as SwitchNode
from simulator.graph.tensors.tensor import Tensor
from simulator.runtime.execute import ValueRunner
from simulator.runtime.storage import Storage

CHOICES = ("Switch", "OnEveryTileSwitch")
CONTAINERS = ("Sequence", "Repeat", "RepeatWhile", "If", "IfElse", "Call", *CHOICES)
MANY_STEPS = 20_000
Bytes = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
Walk = Generator[CrossReplicaCopy, None, None]


def live_variables(executable: Executable) -> npt.NDArray[np.bool_]:
    """Return which variables are live at which step, [step][variable]; the last: the fixed data."""
    live = executable.liveness
    at = np.zeros((len(live.program), len(live.always_live) + 1), dtype=bool)
    for variable, begin, end in zip(live.variable, live.begin, live.end, strict=True):
        at[begin:end, variable] = True
    at[:, np.append(live.always_live, True)] = True
    return at


class PoisonedRun:
    """The program of one replica."""

    def __init__(self, executable: Executable, storage: Storage, values: ValueRunner) -> None:
        self._executable, self._storage, self._values = executable, storage, values
        self._live = live_variables(executable)
        self._chance = np.random.default_rng(7)
        self._steps = 0
        self._waiting: list[int] = []  # the steps of a program before the one that has its values
        self._valid = np.ones(self._live.shape[1], dtype=bool)  # by variable, the compiler's too
        self._children: dict[int, list[int]] = {}
        for number, parent in enumerate(executable.liveness.parent.tolist()):
            self._children.setdefault(parent, []).append(number)

    def walk(self, chosen: int) -> Walk:
        """Run the user's program at a row; yields where all replicas have to be there."""
        self._chosen = chosen
        yield from self._enter(0)

    def _program(self, number: int) -> LoweredProgram:
        row = int(self._executable.liveness.program[number])
        return self._executable.lowered.programs[row]

    def _enter(self, number: int) -> Walk:
        lowered = self._program(number)
        if lowered.type not in CONTAINERS:
            yield from self._leaf(number, lowered.action)
            return
        self._waiting.clear()
        below = self._children.get(number, [])
        match lowered.control:
            case RepeatWhile() as loop:
                check, body = below
                yield from self._enter(check)
                while self._values.is_set(loop.predicate) != isinstance(loop, WhileFalse):
                    yield from self._enter(body)
                    yield from self._enter(check)
            case If() as choice:
                taken = 0 if self._values.is_set(choice.predicate) else 1
                for child in below[taken : taken + 1]:
                    yield from self._enter(child)
            case SwitchNode() as switch:
                values = [value for value, _ in switch.cases]
                found = self._values.number(switch.control)
                yield from self._enter(below[values.index(found) if found in values else -1])
            case _:
                yield from self._each(number, lowered, below)
        self._waiting.clear()

    def _each(self, number: int, lowered: LoweredProgram, below: list[int]) -> Walk:
        rows = self._executable.liveness.program
        if lowered.type in CHOICES:
            below = [child for child in below if rows[child] == self._chosen]
        for _ in range(lowered.count if lowered.type == "Repeat" else 1):
            for child in below:
                yield from self._enter(child)

    def _leaf(self, number: int, action: Program | None) -> Walk:
        self._steps += 1
        assert self._steps < MANY_STEPS, "what is dead keeps a loop going"
        self._follow(number)
        if not self._waiting:
            self._poison(~self._live[number])
        self._waiting.append(number)
        if action is None:
            return
        if isinstance(action, CrossReplicaCopy) and self._executable.graph.replication > 1:
            yield action
        else:
            self._values.run(action)
        self._check_pieces()
        dead = ~self._live[self._waiting].all(axis=0)
        self._poison(~self._live[number])
        self._poison(dead & self._live[number], _written(self._executable, action))
        self._waiting.clear()

    def _follow(self, number: int) -> None:
        """Hold each step's reads to what is live from where it was written, by its accesses."""
        access = self._executable.lowered.access
        mine = access.program == self._executable.liveness.program[number]
        self._valid &= self._live[number]
        read = access.variable[mine & ~access.write]
        names = self._executable.variable_names()
        lost = [names[variable] for variable in read.tolist() if not self._valid[variable]]
        assert not lost, f"{self._program(number)} reads {lost}, which were dead before"
        self._valid[access.variable[mine & access.whole]] = True

    def _check_pieces(self) -> None:
        """Of what a program writes in several steps only the first may say that all is new."""
        access, rows = self._executable.lowered.access, self._executable.liveness.program
        begun: set[int] = set()
        for number in self._waiting:
            mine = access.program == rows[number]
            again = begun & {*access.variable[mine & access.whole].tolist()}
            names = [self._executable.variable_names()[variable] for variable in again]
            assert not names, f"{self._program(number)} forgets what is written of {names}"
            begun |= {*access.variable[mine & access.write].tolist()}

    def _poison(self, dead: npt.NDArray[np.bool_], kept: list[Bytes] | None = None) -> None:
        """Overwrite variables of the graph, except the elements of some tensors."""
        for number in np.flatnonzero(dead[: len(self._executable.graph.variables)]).tolist():
            variable = self._executable.graph.variables[number]
            low, high = variable.offset, variable.offset + variable.bytes
            place = self._storage.arena[low:high]
            before = place.copy()
            place[:] = self._any(variable.dtype.numpy, variable.elements).view(np.uint8)
            for begins, ends in kept or []:
                for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                    part = slice(max(begin, low) - low, max(min(end, high) - low, 0))
                    place[part] = before[part]

    def _any(self, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
        if dtype.kind == "f":
            return self._chance.uniform(-1, 1, count).astype(dtype)
        if dtype.kind == "b":
            return self._chance.random(count) < 0.5
        return self._chance.integers(0, 100, count).astype(dtype)


def _written(executable: Executable, action: Program) -> list[Bytes]:
    """List the bytes [begin, end) of the arena that a program writes."""
    if isinstance(action, Execute):
        groups = executable.graph.groups_of(action.compute_set.id)
        items: list[Any] = [
            field
            for group in groups
            for field in group.fields.values()
            if field.direction != "input"
        ]
    else:
        wrote = isinstance(action, Copy | CrossReplicaCopy) and isinstance(action.dst, Tensor)
        items = [action.dst] if wrote else []  # type: ignore[attr-defined]
    return [
        (item.begins * item.dtype.size, (item.begins + item.lengths) * item.dtype.size)
        for item in items
    ]


def run_together(runs: list[PoisonedRun], values: list[ValueRunner], chosen: int) -> None:
    """Run all replicas, from one copy between them to the next."""
    walks = [run.walk(chosen) for run in runs]
    while True:
        met = [next(walk, None) for walk in walks]
        if met[0] is None:
            assert set(met) == {None}
            return
        copy = met[0]
        sent = [each.read(copy.src) for each in values]
        for sender, receiver in copy.replicaMap.items():
            values[receiver].write(copy.dst, sent[sender])
