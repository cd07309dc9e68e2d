"""Which bytes of the arena no step needs once an action has run: their pages can go back."""

from __future__ import annotations

import numpy as np

from simulator.compiler.executable import Executable, LoweredProgram
from simulator.graph.program import Program
from simulator.graph.types import BoolArray, IntArray

LEAST_BYTES = 1 << 20  # of a variable; smaller ones cost more to fault in anew at each turn
CHOICES = ("Switch", "OnEveryTileSwitch", "If", "IfElse")
Discards = dict[Program, list[tuple[int, int]]]


def discards_of(executable: Executable) -> Discards:
    """Return the variables, as bytes [begin, end) of the arena, that are dead after each action.

    Those alone that are dead in every place where the action stands.
    """
    live, programs = executable.liveness, executable.lowered.programs
    number: dict[Program | None, int] = {p.action: place for place, p in enumerate(programs)}
    number[None] = -1
    carried = np.array([number[program.action] for program in programs])[live.program]
    actions = np.flatnonzero(carried >= 0)
    last = live.end - 1
    after = np.append(actions, -1)[np.searchsorted(actions, last)]
    again = np.append(live.begin[1:], 0)  # when the variable lives once more
    again[np.append(live.variable[1:] != live.variable[:-1], True)] = len(live.program)
    # What an exchange reads last, the values of the action behind it still need.
    dead = np.where(after == last, _goes_on(executable)[last], again > after)
    sizes = np.array([variable.bytes for variable in executable.graph.variables], dtype=np.int64)
    is_large = np.append(sizes, 0)[np.minimum(live.variable, len(sizes))] >= LEAST_BYTES
    ends = np.flatnonzero(dead & is_large & (after >= 0))
    keys = np.stack([carried[after[ends]], live.variable[ends]], axis=1)
    pairs, counts = np.unique(keys, axis=0, return_counts=True)
    places = np.bincount(carried[actions], minlength=len(programs))
    result: Discards = {}
    for place, which in pairs[counts == places[pairs[:, 0]]].tolist():
        action, variable = programs[place].action, executable.graph.variables[which]
        assert action is not None
        parts = result.setdefault(action, [])
        parts.append((variable.offset, variable.offset + variable.bytes))
    return result


def _goes_on(executable: Executable) -> BoolArray:
    """Return after which steps the next one of the list always comes next."""
    rows, parent = executable.liveness.program, executable.liveness.parent
    programs = [executable.lowered.programs[row] for row in rows.tolist()]
    decides = np.array([p.type in CHOICES or p.type == "RepeatWhile" for p in programs])
    turns = np.array([_turns(program) for program in programs])
    loop = _nearest(turns, parent)
    result = np.zeros(len(rows), dtype=bool)
    around, next_around = parent[:-1], parent[1:]
    is_leaf = next_around != np.arange(len(rows) - 1)
    result[:-1] = is_leaf & ~decides[next_around] & (loop[around] == loop[next_around])
    return result


def _turns(program: LoweredProgram) -> bool:
    """Return whether a container may run what is in it other than once."""
    return program.type == "RepeatWhile" or (program.type == "Repeat" and program.count != 1)


def _nearest(marked: BoolArray, parent: IntArray) -> IntArray:
    """Return the nearest marked step among each one and those around it, -1 for none."""
    around = np.where(marked, np.arange(len(marked)), parent)
    while True:
        climbing = (around >= 0) & ~marked[around]
        if not climbing.any():
            return around
        around = np.where(climbing, around[around], around)
