"""The programs before compilation, as they were given to the engine, and what each became.

A program as written is a row of `written_programs`; the compiled ones that it became are rows of
`programs`. What it costs is what these cost: those of them that lie in none of the others, with
all their parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.programs.layout import CONTROL, FUNCTION, UNKNOWN, Roots, laid_out, roots_of
from pva.analysis.selection import chosen
from pva.analysis.table import Arrays
from pva.array_types import Floats, Integers, Texts

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 250  # of its analyses in the catalogue

_MAX_CYCLES = 2.0**62  # what int64 still holds, whatever a file tells
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class WrittenFigures(Facts):
    """What a program says as it was written; -1 and the empty text for what it does not.

    `role` is the branch that it is of the one around it. A Copy moves `bytes` from `source` to
    `destination`, a loop or choice decides by `source`. `target` is the function that it calls.
    """

    program: int
    type: str
    name: str
    role: str
    compute_set: int
    compute_set_name: str
    target: int
    count: int
    source: str
    destination: str
    bytes: int


def origins_of(report: Report) -> Integers:
    """Return by program the row of the written one that it was made of, -1 for the compiler's own.

    Raises NotRecordedError.
    """
    data = report.dataset
    origins = np.full(len(data.column("programs", "name")), UNKNOWN)
    written, results = (data.column("written_results", name) for name in ("written", "program"))
    origins[results[::-1]] = written[::-1]
    return origins


def written_tree(report: Report, compiled: Arrays) -> Arrays:
    """Lay out the programs as written like `program_tree`, whose lines for the compiled are given.

    Raises NotRecordedError.
    """
    data = report.dataset
    around = data.column("written_programs", "parent")
    inside = np.flatnonzero(around >= 0)
    origins = origins_of(report)
    tree = laid_out(len(around), _roots(report, origins), around[inside], inside)
    rows = tree.program
    costs = _costs(len(around), origins[compiled["program"]], compiled)
    types = data.texts("written_programs", "type")[rows]
    columns = {
        **tree.columns(),
        "type": types,
        "name": _labels(report)[rows],
        "sync_type": np.where(types == "Sync", costs.pop("sync_type")[rows], "None"),
        "count": data.column("written_programs", "count")[rows],
        "function": data.column("written_programs", "target")[rows],
        **{name: values[rows] for name, values in costs.items()},
    }
    return {name: columns[name] for name in compiled}


def _roots(report: Report, origins: Integers) -> Roots:
    """Return the functions, which became functions, from what was given to the engine."""
    data = report.dataset
    roots = np.flatnonzero(data.column("written_programs", "parent") < 0).tolist()
    functions: list[tuple[str, int, int]] = []
    if data.has("function_programs"):
        function_origins = origins[data.column("function_programs", "program")].tolist()
        number = {row: at for at, row in reversed(list(enumerate(function_origins)))}
        functions = sorted((FUNCTION, number[row], row) for row in roots if row in number)
    called = {row for _, _, row in functions}
    outermost = [row for row in roots if row not in called]
    return roots_of([*((CONTROL, at, row) for at, row in enumerate(outermost)), *functions])


def outermost(origins: Integers, parent: Integers) -> Integers:
    """List the lines that were made of another written program than the line around them."""
    around = np.where(parent >= 0, origins[parent], UNKNOWN)
    return np.flatnonzero((origins >= 0) & (origins != around))


def _costs(count: int, origins: Integers, compiled: Arrays) -> dict[str, Any]:
    """Assign each written program what those cost that it became; `origins` are by line."""
    lines = outermost(origins, compiled["parent"])
    columns = {name: values[lines] for name, values in compiled.items()}

    def summed(name: str) -> Floats:
        values = np.nan_to_num(np.maximum(columns[name], 0))
        return np.bincount(origins[lines], weights=values, minlength=count).astype(np.float64)

    def of_first(name: str, unknown: object) -> Any:
        column = np.full(count, unknown, dtype=columns[name].dtype)
        column[origins[lines[::-1]]] = columns[name][::-1]
        return column

    executed = bool((compiled["cycles"] >= 0).any())
    cycles = np.where(executed, np.minimum(summed("cycles"), _MAX_CYCLES), UNKNOWN)
    ran = of_first("executions", UNKNOWN)
    return {
        "sync_type": of_first("sync_type", "None"),
        "executions": ran,
        "cycles": cycles.astype(np.int64),
        "share": np.where(executed, summed("share"), np.nan),
        "mean_cycles": np.where(executed & (ran > 0), cycles / np.maximum(ran, 1), np.nan),
        "estimated_cycles": np.minimum(summed("estimated_cycles"), _MAX_CYCLES).astype(np.int64),
        **{
            name: _earliest(count, origins, compiled[name])
            for name in ("first_step", "liveness_step")
        },
    }


def _earliest(count: int, origins: Integers, steps: Integers) -> Integers:
    """Return the first step of all that each written program became, -1 for none."""
    valid = np.flatnonzero((origins >= 0) & (steps >= 0))
    first = np.full(count, _NEVER)
    np.minimum.at(first, origins[valid], steps[valid])
    return np.where(first < _NEVER, first, UNKNOWN)


def _labels(report: Report) -> Texts:
    """Name the written programs: one without a name by what it reads and writes."""
    columns = ("name", "source", "destination")
    name, source, destination = (report.dataset.column("written_programs", c) for c in columns)
    both = (source != "") & (destination != "")
    operands = np.where(both, source + " to " + destination, source + destination)
    labels: Texts = np.where(name != "", name, operands)
    return labels


@analysis(
    "program type name role compute_set compute_set_name target count source destination "
    "bytes:bytes"
)
def written_figures(report: Report, *, program: int) -> WrittenFigures:
    """Describe one program as it was written, before compilation.

    `program` is the row of the table `written_programs`, as in `program_tree` of the stage written.
    Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    row = chosen("written program", program, len(data.column("written_programs", "type")))
    table = data.table("written_programs")
    fields = {name: table[name][row : row + 1].tolist()[0] for name in table if name != "parent"}
    fields |= {"type": str(data.texts("written_programs", "type")[row])}
    number = fields["compute_set"]
    has_compute_set = data.has("compute_sets") and 0 <= number < data.length("compute_sets")
    name = str(data.column("compute_sets", "name")[number]) if has_compute_set else ""
    return WrittenFigures(program=row, compute_set_name=name, **fields)


def written_roles(report: Report) -> Texts:
    """Return what each program as written is to the one around it, such as a branch of an If."""
    return report.dataset.column("written_programs", "role")
