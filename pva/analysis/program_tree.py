"""The programs as the tree that they are: what is done, in which order, and what each part costs.

A line of the tree is a row of `program_tree`: depth first, control programs before functions, so
that a program's parts are the lines after it up to its `end`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.programs import (
    OPERANDS,
    Integers,
    elapsed,
    executions,
    summed,
)

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report

Floats = npt.NDArray[np.float64]

CONTROL, FUNCTION = "control", "function"
UNKNOWN = -1
# Of the parts of these one is run, and not all.
_CHOICES = ("If", "IfElse", "Switch", "OnEveryTileSwitch")
_SEQUENCE, _REPEAT, _CALL, _SYNC = "Sequence", "Repeat", "Call", "Sync"
_MOST_CYCLES = 2.0**62  # what a file may tell by loops in loops, and int64 still holds
_MOST_ROUNDS = 32  # of functions that call functions


@dataclass(frozen=True, slots=True)
class Tree:
    """The lines of the tree, as arrays; `levels` are the lines of each depth."""

    program: Integers
    parent: Integers
    depth: Integers
    end: Integers
    part: npt.NDArray[np.object_]
    number: Integers
    levels: tuple[Integers, ...]
    line_of: Integers  # by program, -1 for what no control program or function holds


def program_tree(report: Report) -> pd.DataFrame:
    """Lay out the control programs and functions as lines of a tree, depth first, with their cost.

    `parent` and `end` are lines: those after a line up to its `end` are its parts. `part` and
    `number` tell which control program or function a line belongs to. `cycles` is by how many a
    program with all its parts made the recorded runs longer; a function's are shared out among its
    calls by how often these ran. `mean_cycles` are those of one execution, and `estimated_cycles`
    the same from the estimates of the compiler: a Repeat counts `count` times, of the branches of
    an If or Switch the longest, of any other loop one pass, and a sync as if all tiles were
    waiting. `executions`, `first_step` (executed) and `liveness_step` are -1 where they are not
    known. Raises NotRecordedError.
    """
    import pandas as pd

    data = report.dataset
    tree = tree_of(report)
    rows = tree.program
    types = data.texts("programs", "type")[rows]
    ran = _executions(report, tree, types)
    cycles = _cycles(report, tree, types, ran)
    total = _total(report)
    return pd.DataFrame(
        {
            "program": rows,
            "parent": tree.parent,
            "depth": tree.depth,
            "end": tree.end,
            "part": tree.part,
            "number": tree.number,
            "type": types,
            "name": data.column("programs", "name")[rows],
            "sync_type": data.texts("programs", "sync_type")[rows],
            "count": data.column("programs", "count")[rows],
            "function": np.where(types == _CALL, data.column("programs", "target")[rows], UNKNOWN),
            "executions": ran,
            "cycles": cycles,
            "share": np.where(cycles >= 0, cycles / total, np.nan) if total else np.nan,
            "mean_cycles": np.where((cycles >= 0) & (ran > 0), cycles / np.maximum(ran, 1), np.nan),
            "estimated_cycles": _estimates(report, tree, types),
            "first_step": _first(report, "steps", rows),
            "liveness_step": _first(report, "liveness_steps", rows),
        }
    )


def tree_of(report: Report) -> Tree:
    """Put the programs in depth-first order; raises NotRecordedError."""
    data = report.dataset
    count = len(data.column("programs", "name"))
    parts, numbers, roots = _roots(report, count)
    parent, offsets, children = _children(report, count, roots)
    levels = [roots]
    while len(levels[-1]):
        levels.append(_gathered(levels[-1], offsets, children))
    levels.pop()
    sizes = np.ones(count, dtype=np.int64)
    for level in reversed(levels[1:]):
        np.add.at(sizes, parent[level], sizes[level])
    line_of = np.full(count, UNKNOWN)
    for number, level in enumerate(levels):
        before = np.cumsum(sizes[level]) - sizes[level]
        if number:
            _, first, group = np.unique(parent[level], return_index=True, return_inverse=True)
            before += line_of[parent[level]] + 1 - before[first][group]
        line_of[level] = before
    held = np.flatnonzero(line_of >= 0)
    program = held[np.argsort(line_of[held], kind="stable")]
    above = parent[program]
    root = np.repeat(np.arange(len(roots)), sizes[roots])
    depth = np.zeros(len(program), dtype=np.int64)
    for number, level in enumerate(levels):
        depth[line_of[level]] = number
    return Tree(
        program=program,
        parent=np.where(above >= 0, line_of[above], UNKNOWN) if len(above) else above,
        depth=depth,
        end=np.arange(len(program)) + sizes[program],
        part=parts[root],
        number=numbers[root],
        levels=tuple(line_of[level] for level in levels),
        line_of=line_of,
    )


def _roots(report: Report, count: int) -> tuple[npt.NDArray[np.object_], Integers, Integers]:
    """List control programs and functions, each program once; without them what has no parent."""
    data = report.dataset
    found = [
        (part, number, int(program))
        for part in (CONTROL, FUNCTION)
        if data.has(f"{part}_programs")
        for number, program in enumerate(data.column(f"{part}_programs", "program").tolist())
    ]
    if not found:
        inside = np.isin(np.arange(count), data.column("program_children", "child"))
        found = [
            (CONTROL, number, row) for number, row in enumerate(np.flatnonzero(~inside).tolist())
        ]
    once = {row: (part, number) for part, number, row in reversed(found) if 0 <= row < count}
    kept = [(part, number, row) for part, number, row in found if once.get(row) == (part, number)]
    parts, numbers, rows = zip(*kept, strict=True) if kept else ((), (), ())
    return (
        np.array(parts, dtype=object),
        np.array(numbers, dtype=np.int64),
        np.array(rows, dtype=np.int64),
    )


def _children(report: Report, count: int, roots: Integers) -> tuple[Integers, Integers, Integers]:
    """Give the parent of each program, and the children of all, one program's after another's.

    A program that a file hangs up twice stays where it was first.
    """
    data = report.dataset
    names = ("program", "child")
    above, below = (data.column("program_children", name) for name in names)
    known = (above >= 0) & (above < count) & (below >= 0) & (below < count)
    known &= ~np.isin(below, roots)
    above, below = above[known], below[known]
    first = np.sort(np.unique(below, return_index=True)[1])
    above, below = above[first], below[first]
    parent = np.full(count, UNKNOWN)
    parent[below] = above
    order = np.argsort(above, kind="stable")
    offsets = np.searchsorted(above[order], np.arange(count + 1))
    return parent, offsets, below[order]


def _gathered(rows: Integers, offsets: Integers, children: Integers) -> Integers:
    """Give the children of each of some programs, in order."""
    counts = offsets[rows + 1] - offsets[rows]
    begins = np.repeat(offsets[rows] - (np.cumsum(counts) - counts), counts)
    return children[begins + np.arange(len(begins))]


def _total(report: Report) -> int:
    return int(elapsed(report).sum()) if report.dataset.has("steps") else 0


def _first(report: Report, table: str, programs: Integers) -> Integers:
    """Give the first row of a table of steps for each program, -1 for none."""
    data = report.dataset
    first = np.full(len(data.column("programs", "name")), UNKNOWN)
    if data.has(table):
        steps = data.column(table, "program")
        known = np.flatnonzero((steps >= 0) & (steps < len(first)))
        first[steps[known][::-1]] = known[::-1]
    return first[programs]


def _executions(report: Report, tree: Tree, types: npt.NDArray[np.object_]) -> Integers:
    """Tell how often each line was run, -1 where that does not follow.

    Steps tell it of what they execute. What lies in a row with such a program, in sequences alone,
    ran as often. A Repeat ran as often as its body by its count; the branches of an IfElse or
    Switch as often as it did, together; and the calls of a function as often as the function.
    """
    if not report.dataset.has("steps"):
        return np.full(len(tree.program), UNKNOWN)
    own = executions(report)[tree.program]
    is_step = np.isin(types, (*OPERANDS, _SYNC)) | (own > 0)
    row = np.arange(len(own))
    for level in tree.levels[1:]:
        above = tree.parent[level]
        row[level] = np.where(types[above] == _SEQUENCE, row[above], level)
    of_row = np.full(len(own), UNKNOWN)
    np.maximum.at(of_row, row[is_step], own[is_step])
    count = report.dataset.column("programs", "count")[tree.program]
    for level in reversed(tree.levels[1:]):
        above = tree.parent[level]
        body = level[(types[above] == _REPEAT) & (count[above] > 0) & (of_row[level] >= 0)]
        around = row[tree.parent[body]]
        told = of_row[body] // count[tree.parent[body]]
        np.maximum.at(of_row, around, told)
    inside = np.flatnonzero(tree.parent >= 0)
    above = tree.parent[inside]
    several = np.bincount(above, minlength=1)[above] > 1
    branches = inside[np.isin(types[above], _CHOICES) & several]
    _tell_the_last(of_row, row[branches], tree.parent[branches], of_row[row[tree.parent[branches]]])
    calls = _calls(report, tree, types)
    _tell_the_last(of_row, row[calls[:, 0]], calls[:, 1], of_row[calls[:, 1]])
    return np.where(is_step, own, of_row[row])


def _tell_the_last(of_row: Integers, rows: Integers, whole: Integers, runs: Integers) -> None:
    """Where rows ran as often as a whole and all but one are known, tell of that one."""
    _, group = np.unique(whole, return_inverse=True)
    unknown = of_row[rows] < 0
    known = np.bincount(group, weights=np.maximum(of_row[rows], 0)).astype(np.int64)
    alone = unknown & (np.bincount(group, weights=unknown)[group] == 1) & (runs >= 0)
    of_row[rows[alone]] = np.maximum(runs[alone] - known[group[alone]], 0)


def _cycles(report: Report, tree: Tree, types: npt.NDArray[np.object_], ran: Integers) -> Integers:
    """Add up by how many cycles each line made the runs longer, its parts and calls included."""
    data = report.dataset
    if not data.has("steps"):
        return np.full(len(tree.program), UNKNOWN)
    count = len(data.column("programs", "name"))
    programs = data.column("steps", "program")
    known = (programs >= 0) & (programs < count)
    own = summed(programs[known], elapsed(report)[known], count)[tree.program]
    calls = _calls(report, tree, types)
    inside = _inclusive(own, tree)
    for _ in range(_MOST_ROUNDS if len(calls) else 0):
        shared = own.copy()
        shared[calls[:, 0]] += _shared_out(inside, calls, ran)
        before, inside = inside, _inclusive(shared, tree)
        if np.array_equal(before, inside):
            break
    return inside


def _inclusive(own: Integers, tree: Tree) -> Integers:
    sums = np.append(0, np.cumsum(own))
    inside: Integers = sums[tree.end] - sums[:-1]
    return inside


def _calls(report: Report, tree: Tree, types: npt.NDArray[np.object_]) -> Integers:
    """Give (line of a call, line of its function), functions one after another."""
    data = report.dataset
    calls = np.flatnonzero(types == _CALL)
    if not len(calls) or not data.has("function_programs"):
        return np.zeros((0, 2), dtype=np.int64)
    functions = data.column("function_programs", "program")
    target = data.column("programs", "target")[tree.program[calls]]
    known = (target >= 0) & (target < len(functions))
    calls, rows = calls[known], functions[target[known]]
    lines = np.where((rows >= 0) & (rows < len(tree.line_of)), tree.line_of[rows], UNKNOWN)
    pairs = np.stack([calls, lines], axis=1)[lines >= 0]
    return pairs[np.argsort(pairs[:, 1], kind="stable")]


def _shared_out(inside: Integers, calls: Integers, ran: Integers) -> Integers:
    """Share the cycles of each function out among its calls, so that they add up exactly."""
    weight = np.maximum(ran[calls[:, 0]], 0).astype(np.float64)
    _, first, group = np.unique(calls[:, 1], return_index=True, return_inverse=True)
    never = np.bincount(group, weights=weight)[group] == 0
    weight[never] = 1
    total = np.bincount(group, weights=weight)[group]
    until = np.cumsum(weight)
    until = (until - (until - weight)[first][group]) / total
    upper = np.rint(until * inside[calls[:, 1]]).astype(np.int64)
    lower = np.append(0, upper[:-1])
    lower[first] = 0
    parts: Integers = upper - lower
    return parts


def _estimates(report: Report, tree: Tree, types: npt.NDArray[np.object_]) -> Integers:
    """Add up the estimates of one execution of each line, bottom up."""
    own = step_estimates(report)[tree.program].astype(np.float64)
    count = report.dataset.column("programs", "count")[tree.program]
    times = np.where(types == _REPEAT, np.maximum(count, 0), 1)
    of_choice = np.isin(types, _CHOICES)
    calls = _calls(report, tree, types)
    whole = own
    for _ in range(_MOST_ROUNDS if len(calls) else 1):
        before, whole = whole, own.copy()
        whole[calls[:, 0]] += before[calls[:, 1]]
        for level in reversed(tree.levels[1:]):
            above = tree.parent[level]
            chosen = of_choice[above]
            np.maximum.at(whole, above[chosen], whole[level[chosen]])
            np.add.at(whole, above[~chosen], whole[level[~chosen]])
            loops = np.unique(above)
            whole[loops] = np.minimum(whole[loops] * times[loops], _MOST_CYCLES)
        if np.array_equal(before, whole):
            break
    return whole.astype(np.int64)


def step_estimates(report: Report) -> Integers:
    """Give the cycles that one execution of each program is estimated to take, without its parts.

    That is its slowest tile's; 0 for what takes none or is not told.
    """
    cycles: Integers = report.dataset.kept("step_estimates", lambda _: _slowest(report))
    return cycles


def _slowest(report: Report) -> Integers:
    data = report.dataset
    types = data.texts("programs", "type")
    cycles = np.zeros(len(types), dtype=np.int64)
    for tag, (column, name) in OPERANDS.items():
        array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
        programs = np.flatnonzero(types == tag)
        if not len(programs) or not data.has(array):
            continue
        slowest = data.array(array).max(axis=1, initial=0)
        rows = data.column("programs", column)[programs]
        known = (rows >= 0) & (rows < len(slowest))
        cycles[programs[known]] = slowest[rows[known]]
    cycles[types == _SYNC] = sync_estimate(report)
    return cycles


def sync_estimate(report: Report) -> int:
    """Give the cycles of a sync that no tile has to wait for: the way to the farthest tile."""
    data = report.dataset
    if not data.has("relative_sync_delay"):
        return 0
    farthest = int(data.array("relative_sync_delay").max(initial=0))
    return int(data.value("target", "min_sync_delay")) + farthest
