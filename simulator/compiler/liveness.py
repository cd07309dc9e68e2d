"""When variables are live: a backward data-flow over the program tree, all variables at once.

A variable is live where its value may still be read, and at the steps that touch it. The control
program runs again and again, so what is live at its begin is live at its end; what the host reads
is live at the end, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.compiler.executable import (
    Access,
    Liveness,
    Lowered,
    LoweredProgram,
    Pieces,
)
from simulator.graph import kernels
from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import ascending, spread
from simulator.graph.graph import Graph
from simulator.graph.types import BoolArray, IntArray

CHOICES = (
    "Switch",
    "OnEveryTileSwitch",
    "If",
    "IfElse",
)  # containers that run one of their children, or none
MAX_STEPS = 1 << 20  # of the tree; each holds a row of all variables
STEPS_AT_ONCE = 256  # rows of [step][tile] held in memory at a time


def liveness_steps(
    programs: Sequence[LoweredProgram], functions: Sequence[int] = ()
) -> tuple[IntArray, IntArray]:
    """List programs (without syncs) depth first; give for each its row and the step around it.

    A function stands below every Call of it: the tree holds all possible call stacks.
    """
    rows: list[int] = []
    parents: list[int] = []
    waiting = [(0, -1)]
    while waiting:
        row, parent = waiting.pop()
        program = programs[row]
        if program.type == "Sync":
            continue
        if len(rows) == MAX_STEPS:
            raise PoplarError(
                f"{program.type} {program.name!r}: with all calls of functions written out the "
                f"programs are more than {MAX_STEPS:,} steps"
            )
        rows.append(row)
        parents.append(parent)
        below = [functions[program.target]] if program.type == "Call" else program.children
        waiting += [(child, len(rows) - 1) for child in reversed(below)]
    return np.array(rows, dtype=np.int64), np.array(parents, dtype=np.int64)


class _Flow:
    """Which values each step needs from before it, and which it overwrites, by [step][variable].

    Of a container: all that its children do together. A first pass finds both from the innermost
    steps outward, a second one takes what is live at the end inward, so that deep nests of loops
    cost no more than flat programs.
    """

    def __init__(self, lowered: Lowered, variables: int) -> None:
        programs, access = lowered.programs, lowered.access
        self.rows, self.parents = liveness_steps(programs, lowered.functions)
        self._programs = [programs[row] for row in self.rows.tolist()]
        self._children: list[list[int]] = [[] for _ in self._programs]
        for step, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                self._children[parent].append(step)
        shape = (len(self.rows), variables)
        self.touched, self._needs, self._kills = (np.zeros(shape, dtype=bool) for _ in range(3))
        self._touch(access, len(programs))
        for number in reversed(range(len(self.rows))):
            if self._children[number]:
                self._join(number)

    def _touch(self, access: Access, programs: int) -> None:
        """Enter the accesses of every step; a function's are those of all its steps."""
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=programs)
        starts = np.cumsum(counts) - counts
        entry = np.repeat(np.arange(len(access.program)), counts[access.program])
        within = spread(starts[access.program], counts[access.program])
        at, variable = order[within], access.variable[entry]
        write, kills = access.write[entry], access.whole[entry]
        self.touched[at, variable] = True
        self._needs[at[~write], variable[~write]] = True
        self._kills[at[kills], variable[kills]] = True

    def before(self, step: int, after: BoolArray) -> BoolArray:
        """Return what is live before a step from what is live after it."""
        live: BoolArray = self._needs[step] | (after & ~self._kills[step])
        return live

    def _join(self, step: int) -> None:
        """Sum up the children of a container; the only thing a Repeat of 0 does is nothing."""
        program, children = self._programs[step], self._children[step]
        if program.type == "Repeat" and program.count == 0:
            return
        if program.type in CHOICES:
            needs = self._needs[children].any(axis=0)
            kills = self._kills[children].all(axis=0) & (program.type != "If")
        elif program.type == "RepeatWhile":
            check, body = children
            needs = self.before(check, self._needs[body])
            kills = self._kills[check]
        else:
            needs = kills = np.zeros(self.touched.shape[1], dtype=bool)
            for child in reversed(children):
                needs = self.before(child, needs)
                kills = kills | self._kills[child]
        self._needs[step] |= needs & ~self._kills[step]
        self._kills[step] |= kills

    def alive(self, end: BoolArray) -> BoolArray:
        """Return what is live at each step, when `end` is live after the whole program."""
        after = np.zeros_like(self.touched)
        after[0] = end
        alive = self.touched.copy()
        for step in range(len(self.rows)):
            alive[step] |= after[step] | self.before(step, after[step])
            self._hand_down(step, after)
        return alive

    def _hand_down(self, step: int, after: BoolArray) -> None:
        """Set what is live after each child of a container."""
        program, children = self._programs[step], self._children[step]
        if program.type in CHOICES:
            after[children] = after[step]
            return
        live = after[step]
        if program.type == "RepeatWhile":
            check, body = children
            # The least fixed point: after the check comes the end, or the body and a check again.
            again = self._needs[check] & ~self._kills[body]
            after[check] = live | self._needs[body] | again
            after[body] = self.before(check, after[check])
            return
        if program.type == "Repeat" and program.count > 1:
            live = live | self._needs[step]  # the next turn of the loop
        for child in reversed(children):
            after[child] = live
            live = self.before(child, live)


def find_liveness(graph: Graph, lowered: Lowered, pieces: Pieces) -> Liveness:
    """Compute when each variable is live, and the live bytes of each step."""
    graph_count, count = len(graph.variables), len(graph.variables) + len(lowered.variables)
    flow = _Flow(lowered, count)
    host_reads, host_touched = _host_variables(graph, count)
    alive = flow.alive(flow.before(0, host_reads) | host_reads)
    written = np.zeros(count, dtype=bool)
    written[lowered.access.variable[lowered.access.write]] = True
    used = alive.any(axis=0) | host_touched
    # Never written by a program: it has to keep its value through all of them.
    always_live = used & ~written
    always_live[graph_count:] |= np.array([v.always_live for v in lowered.variables], dtype=bool)
    alive[:, always_live] = False
    intervals = _intervals(alive)
    variable, first, end = intervals
    return Liveness(
        program=flow.rows,
        parent=flow.parents,
        always_live=always_live,
        variable=variable,
        begin=first,
        end=end,
        **_bytes(intervals, pieces, len(alive), graph.target.num_tiles, graph.target.tiles_per_ipu),
    )


def _host_variables(graph: Graph, count: int) -> tuple[BoolArray, BoolArray]:
    """Return which variables the host reads, and which it reads or writes, between runs."""
    read, touched = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    begins, _ = graph.variable_bounds()
    for tensors, marked in ((graph.host_reads, read), (graph.host_writes, touched)):
        for tensor in tensors.values():
            first = tensor.begins * tensor.dtype.size
            marked[np.searchsorted(begins, first, side="right") - 1] = True
    return read, touched | read


def _intervals(alive: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Turn [step][variable] into half-open intervals, by variable."""
    padded = np.zeros((alive.shape[1], alive.shape[0] + 2), dtype=np.int8)
    padded[:, 1:-1] = alive.T
    change = np.diff(padded, axis=1)
    variable, begin = np.nonzero(change == 1)
    _, end = np.nonzero(change == -1)
    return variable.astype(np.int64), begin.astype(np.int64), end.astype(np.int64)


def _bytes(
    intervals: tuple[IntArray, IntArray, IntArray],
    pieces: Pieces,
    steps: int,
    tiles: int,
    tiles_per_ipu: int,
) -> dict[str, IntArray]:
    """Add up the live bytes by step, by step and IPU, and the most of any step by tile.

    What begins to live at a step adds to its tiles, what has ended takes from them; [step][tile]
    is the sum of that, made for some steps at a time.
    """
    changes = _changes(intervals, pieces)
    if kernels.compiled:
        sizes = np.array([steps, tiles, tiles_per_ipu])
        flat, most = kernels.columns("live", *changes, pieces.tile, pieces.bytes, sizes)
        by_ipu = flat.reshape(steps, -1)
        return {"bytes": by_ipu.sum(axis=1), "bytes_by_ipu": by_ipu, "max_bytes_by_tile": most}
    at_step, first_piece, counts, sign = changes
    piece, step = spread(first_piece, counts), np.repeat(at_step, counts)
    tile, size = pieces.tile[piece], np.repeat(sign, counts) * pieces.bytes[piece]
    ipus = np.arange(0, tiles, tiles_per_ipu)
    level, most = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    by_ipu = np.zeros((steps, len(ipus)), dtype=np.int64)
    for first in range(0, steps, STEPS_AT_ONCE):
        count = min(STEPS_AT_ONCE, steps - first)
        batch = slice(*np.searchsorted(step, [first, first + count]))
        place = (step[batch] - first) * tiles + tile[batch]
        change = np.bincount(place, weights=size[batch], minlength=count * tiles)
        live = level + np.cumsum(change.astype(np.int64).reshape(count, tiles), axis=0)
        most = np.maximum(most, live.max(axis=0))
        by_ipu[first : first + count] = np.add.reduceat(live, ipus, axis=1)
        level = live[-1]
    return {"bytes": by_ipu.sum(axis=1), "bytes_by_ipu": by_ipu, "max_bytes_by_tile": most}


def _changes(
    intervals: tuple[IntArray, IntArray, IntArray], pieces: Pieces
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """List by step what comes alive (1) or ends (-1): first piece, how many, and which of both."""
    variable, begin, end = intervals
    step = np.concatenate([begin, end])
    order = ascending(step)
    variable = np.tile(variable, 2)[order]
    first = np.searchsorted(pieces.variable, variable)
    counts = np.searchsorted(pieces.variable, variable, side="right") - first
    return step[order], first, counts, np.where(order < len(begin), 1, -1)
