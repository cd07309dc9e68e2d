"""The programs as the tree that they are: what is done, in which order, and what each part costs.

A line of the tree is a row of `program_tree`: depth first, control programs before functions, so
that a program's parts are the lines after it up to its `end`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import (
    OPERANDS,
    elapsed,
    executions,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.programs.layout import CONTROL, FUNCTION, UNKNOWN, Tree, tree_of
from pva.analysis.programs.written import written_tree
from pva.analysis.selection import SelectionError
from pva.analysis.table import Arrays, Columns, arrays_of
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 220  # of its analyses in the catalogue
__all__ = ["CONTROL", "FUNCTION", "UNKNOWN", "program_tree", "step_estimates", "sync_estimate"]

COMPILED, WRITTEN = STAGES = ("compiled", "written")
# Of the parts of these one is run, and not all.
_CHOICES = ("If", "IfElse", "Switch", "OnEveryTileSwitch")
_SEQUENCE, _REPEAT, _CALL, _SYNC = "Sequence", "Repeat", "Call", "Sync"
_INTERNAL = "Internal"
_MAX_CYCLES = 2.0**62  # what a file may tell by loops in loops, and int64 still holds
_MAX_ROUNDS = 32  # of functions that call functions


@analysis(
    "program parent depth end part number type name sync_type count function executions "
    "cycles:cycles share:fraction mean_cycles:cycles estimated_cycles:cycles first_step "
    "liveness_step",
    cycles="cycles by which it and its parts made the recorded runs longer; a function's are "
    "shared out among its calls",
    share="part of the cycles of the recorded runs",
    mean_cycles="mean cycles of one execution, as it was recorded",
    estimated_cycles="cycles of one execution that the compiler estimated, its parts included",
)
def program_tree(report: Report, *, stage: str = COMPILED) -> Columns:
    """Lay out the control programs and functions as lines of a tree, depth first, with their cost.

    `stage` is compiled, or written for the programs as they were given to the engine: then
    `program` is a row of `written_programs`, and a line costs what it was compiled to.

    `parent` and `end` are lines: those after a line up to its `end` are its parts. `part` and
    `number` tell which control program or function a line belongs to. `cycles` is by how many a
    program with all its parts made the recorded runs longer; a function's are shared out among its
    calls by how often these ran. `mean_cycles` are those of one execution, and `estimated_cycles`
    the same from the estimates of the compiler: a Repeat counts `count` times, of the branches of
    an If or Switch the longest, of any other loop one pass, and a sync as if all tiles were
    waiting, of all IPUs by the `global_sync_cycles` of the target. `executions`, `first_step`
    (executed) and `liveness_step` are -1 where they are not known. Raises
    SelectionError, NotRecordedError.
    """
    if stage not in STAGES:
        raise SelectionError(f"stage {stage}", "not there", f"choose {COMPILED} or {WRITTEN}")
    compiled = _compiled_tree(report)
    return compiled if stage == COMPILED else written_tree(report, compiled)


def _compiled_tree(report: Report) -> Arrays:
    data = report.dataset
    tree = tree_of(report)
    rows = tree.program
    types = data.texts("programs", "type")[rows]
    ran = _executions(report, tree, types)
    cycles = _cycles(report, tree, types, ran)
    total = _total(report)
    return arrays_of(
        {
            **tree.columns(),
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


def _total(report: Report) -> int:
    return int(elapsed(report).sum()) if report.dataset.has("steps") else 0


def _first(report: Report, table: str, programs: Integers) -> Integers:
    """Return the first row of a table of steps for each program, -1 for none."""
    data = report.dataset
    first = np.full(len(data.column("programs", "name")), UNKNOWN)
    if data.has(table):
        steps = data.column(table, "program")
        valid = np.flatnonzero((steps >= 0) & (steps < len(first)))
        first[steps[valid][::-1]] = valid[::-1]
    return first[programs]


def _executions(report: Report, tree: Tree, types: npt.NDArray[np.object_]) -> Integers:
    """Return how often each line was run, -1 where that does not follow.

    Steps tell it of what they execute. What lies in a row with such a program, in sequences alone,
    ran as often. A Repeat ran as often as its body by its count; the branches of an IfElse or
    Switch as often as it did, together; and the calls of a function as often as the function.
    """
    if not report.dataset.has("steps"):
        return np.full(len(tree.program), UNKNOWN)
    ran = executions(report)[tree.program]
    is_step = np.isin(types, (*OPERANDS, _SYNC)) | (ran > 0)
    row = np.arange(len(ran))
    for level in tree.levels[1:]:
        above = tree.parent[level]
        row[level] = np.where(types[above] == _SEQUENCE, row[above], level)
    of_row = np.full(len(ran), UNKNOWN)
    np.maximum.at(of_row, row[is_step], ran[is_step])
    count = report.dataset.column("programs", "count")[tree.program]
    for level in reversed(tree.levels[1:]):
        above = tree.parent[level]
        body = level[(types[above] == _REPEAT) & (count[above] > 0) & (of_row[level] >= 0)]
        around = row[tree.parent[body]]
        iterations = of_row[body] // count[tree.parent[body]]
        np.maximum.at(of_row, around, iterations)
    inside = np.flatnonzero(tree.parent >= 0)
    above = tree.parent[inside]
    alternatives = np.bincount(above, minlength=1)[above] > 1
    branches = inside[np.isin(types[above], _CHOICES) & alternatives]
    _tell_the_last(of_row, row[branches], tree.parent[branches], of_row[row[tree.parent[branches]]])
    calls = _calls(report, tree, types)
    _tell_the_last(of_row, row[calls[:, 0]], calls[:, 1], of_row[calls[:, 1]])
    return np.where(is_step, ran, of_row[row])


def _tell_the_last(of_row: Integers, rows: Integers, total: Integers, runs: Integers) -> None:
    """Where rows ran as often as a whole and all but one are known, tell of that one."""
    _, group = np.unique(total, return_inverse=True)
    unknown = of_row[rows] < 0
    sums = np.bincount(group, weights=np.maximum(of_row[rows], 0)).astype(np.int64)
    alone = unknown & (np.bincount(group, weights=unknown)[group] == 1) & (runs >= 0)
    of_row[rows[alone]] = np.maximum(runs[alone] - sums[group[alone]], 0)


def _cycles(report: Report, tree: Tree, types: npt.NDArray[np.object_], ran: Integers) -> Integers:
    """Add up by how many cycles each line made the runs longer, its parts and calls included."""
    data = report.dataset
    if not data.has("steps"):
        return np.full(len(tree.program), UNKNOWN)
    count = len(data.column("programs", "name"))
    programs = data.column("steps", "program")
    valid = (programs >= 0) & (programs < count)
    own_cycles = summed(programs[valid], elapsed(report)[valid], count)[tree.program]
    calls = _calls(report, tree, types)
    inside = _inclusive(own_cycles, tree)
    for _ in range(_MAX_ROUNDS if len(calls) else 0):
        shared = own_cycles.copy()
        shared[calls[:, 0]] += _shared_out(inside, calls, ran)
        before, inside = inside, _inclusive(shared, tree)
        if np.array_equal(before, inside):
            break
    return inside


def _inclusive(values: Integers, tree: Tree) -> Integers:
    sums = np.append(0, np.cumsum(values))
    inside: Integers = sums[tree.end] - sums[:-1]
    return inside


def _calls(report: Report, tree: Tree, types: npt.NDArray[np.object_]) -> Integers:
    """Return (line of a call, line of its function), functions one after another."""
    data = report.dataset
    calls = np.flatnonzero(types == _CALL)
    if not len(calls) or not data.has("function_programs"):
        return np.zeros((0, 2), dtype=np.int64)
    functions = data.column("function_programs", "program")
    target = data.column("programs", "target")[tree.program[calls]]
    valid = (target >= 0) & (target < len(functions))
    calls, rows = calls[valid], functions[target[valid]]
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
    own_cycles = step_estimates(report)[tree.program].astype(np.float64)
    count = report.dataset.column("programs", "count")[tree.program]
    times = np.where(types == _REPEAT, np.maximum(count, 0), 1)
    of_choice = np.isin(types, _CHOICES)
    calls = _calls(report, tree, types)
    total = own_cycles
    for _ in range(_MAX_ROUNDS if len(calls) else 1):
        before, total = total, own_cycles.copy()
        total[calls[:, 0]] += before[calls[:, 1]]
        for level in reversed(tree.levels[1:]):
            above = tree.parent[level]
            branching = of_choice[above]
            np.maximum.at(total, above[branching], total[level[branching]])
            np.add.at(total, above[~branching], total[level[~branching]])
            loops = np.unique(above)
            total[loops] = np.minimum(total[loops] * times[loops], _MAX_CYCLES)
        if np.array_equal(before, total):
            break
    return total.astype(np.int64)


def step_estimates(report: Report) -> Integers:
    """Return the cycles that one execution of each program is estimated to take, without its parts.

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
        slowest = data.row_maxima(array)
        rows = data.column("programs", column)[programs]
        valid = (rows >= 0) & (rows < len(slowest))
        cycles[programs[valid]] = slowest[rows[valid]]
    syncs = np.where(types == _SYNC, data.texts("programs", "sync_type"), "")
    for kind in data.words("programs", "sync_type"):
        cycles[syncs == kind] = sync_estimate(report, kind)
    return cycles


def sync_estimate(report: Report, kind: str) -> int:
    """Return the cycles of a sync that no tile has to wait for: the way to the farthest tile.

    Between IPUs it is longer by what the target tells.
    """
    data = report.dataset
    if not data.has("relative_sync_delay"):
        return 0
    farthest = int(data.array("relative_sync_delay").max(initial=0))
    between = 0 if kind == _INTERNAL else max(int(data.value("target", "global_sync_cycles")), 0)
    return int(data.value("target", "min_sync_delay")) + farthest + between
