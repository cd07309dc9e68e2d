"""From one stage of the compilation to the other: what programs became, and what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import elapsed, summed
from pva.analysis.columns import analysis
from pva.analysis.programs.hierarchy import COMPILED, WRITTEN, program_tree
from pva.analysis.programs.written import origins_of, outermost
from pva.analysis.selection import chosen
from pva.analysis.table import Arrays, Columns, largest_first, rows_of
from pva.array_types import Integers, Texts

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 240  # of its analyses in the catalogue
__all__ = [
    "COMPILED",
    "WRITTEN",
    "compiled_of",
    "compiled_programs",
    "compiled_types",
    "first_programs",
    "origins_of",
    "owners_of_written",
]

OWN = ""  # stands for what the compiler adds, which nobody wrote
UNKNOWN = -1


@analysis(
    "program depth type name sync_type executions cycles:cycles share:fraction "
    "estimated_cycles:cycles parts"
)
def compiled_programs(report: Report, *, program: int) -> Columns:
    """Return the programs that one as it was written was compiled to, in order, with their cost.

    `program` is a row of `written_programs`. `depth` is 0 for those that lie in none of the others:
    their cycles add up to its own, as in `program_tree` of the stage written. `parts` counts the
    programs in each, which its parts became. Raises SelectionError, NotRecordedError.
    """
    return compiled_of(report, program_tree(report).arrays, program)


def compiled_of(report: Report, tree: Arrays, program: int) -> Arrays:
    """List what one program was compiled to, as lines of `tree`, the columns of `program_tree`."""
    count = len(report.dataset.column("written_programs", "type"))
    row = chosen("written program", program, count)
    origins = origins_of(report)[tree["program"]]
    lines = np.flatnonzero(origins == row)
    depth = tree["depth"][lines]
    tops = outermost(origins, tree["parent"])
    tops = tops[origins[tops] == row]
    around = np.searchsorted(tops, lines, side="right") - 1
    names = ("type", "name", "sync_type", "executions", "cycles", "share", "estimated_cycles")
    return {
        "program": tree["program"][lines],
        "depth": depth - tree["depth"][tops[around]] if len(tops) else depth,
        **{name: tree[name][lines] for name in names},
        "parts": tree["end"][lines] - lines - 1,
    }


@analysis("written compiled programs cycles:cycles")
def compiled_types(report: Report) -> Columns:
    """Count the programs by their type as written and as compiled, with the cycles of their steps.

    `written` is empty for what the compiler adds; `cycles` are those by which they made the
    recorded runs longer, -1 without steps. Most programs first. Raises NotRecordedError.
    """
    data = report.dataset
    origins = origins_of(report)
    types = np.append(data.texts("written_programs", "type"), OWN)
    cycles = np.full(len(origins), UNKNOWN)
    if data.has("steps"):
        steps = data.column("steps", "program")
        valid = (steps >= 0) & (steps < len(origins))
        cycles = summed(steps[valid], elapsed(report)[valid], len(origins))
    texts = types[origins], data.texts("programs", "type")
    (written, one), (compiled, other) = (np.unique(t, return_inverse=True) for t in texts)
    _, first, place = np.unique(one * len(compiled) + other, return_index=True, return_inverse=True)
    columns = {
        "written": texts[0][first],
        "compiled": texts[1][first],
        "programs": np.bincount(place, minlength=len(first)),
        "cycles": summed(place, cycles, len(first)) if data.has("steps") else UNKNOWN,
    }
    return largest_first(rows_of(columns, np.argsort(first)), "programs")


def first_programs(report: Report, programs: Integers) -> Integers:
    """Return by written program the first that it was compiled to, -1 for one that became none.

    `programs` are those of the lines of the `program_tree` of the compiled.
    """
    first = np.full(len(report.dataset.column("written_programs", "type")), UNKNOWN)
    rows, lines = np.unique(origins_of(report)[programs], return_index=True)
    first[rows[rows >= 0]] = programs[lines[rows >= 0]]
    return first


def owners_of_written(report: Report, owners: Texts) -> Texts:
    """Name the operation of each written program: that of the first it became that has one.

    `owners` are by compiled program, and last that of an unknown one, which ends the answer, too.
    """
    count = len(report.dataset.column("written_programs", "type"))
    names: Texts = np.full(count + 1, owners[-1], dtype=object)
    origins = origins_of(report)
    named = np.array([not str(owner).startswith("(") for owner in owners[:-1]], dtype=bool)
    for chosen_ones in (~named, named):
        rows = np.flatnonzero(chosen_ones & (origins >= 0))[::-1]
        names[origins[rows]] = owners[rows]
    return names


def program_count(report: Report) -> int:
    """Count the compiled programs of a report; raises NotRecordedError."""
    return len(report.dataset.column("programs", "name"))


def called_program(report: Report, program: int) -> int:
    """Return the program of the function that a compiled program calls, -1 if it calls none."""
    data = report.dataset
    if str(data.texts("programs", "type")[program]) != "Call":
        return -1
    return function_program(report, int(data.column("programs", "target")[program]))


def function_program(report: Report, function: int) -> int:
    """Return the program that a function is, -1 if the report has no such function."""
    data = report.dataset
    if not 0 <= function < data.length("function_programs"):
        return -1
    return int(data.column("function_programs", "program")[function])
