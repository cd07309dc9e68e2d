"""`docs/vertex-costs.md`, made from the catalogue. A test compares the file with this."""

from __future__ import annotations

from simulator.codelets import catalogue
from simulator.codelets.elementwise.operation import Step, Steps
from simulator.codelets.elementwise.operations import BINARY, UNARY
from simulator.codelets.vertex_type import VertexType

_HEAD = """# Vertex costs

What one vertex of each library type costs in the simulator: the table `CATALOGUE` of
`simulator.codelets.catalogue`, written by `make documents`. The cycles of a supervisor vertex are
those of its whole tile, of a worker those of one of its six threads: the tile takes six times those
of its busiest thread. W is the number of workers (6), n the elements of a vertex, a vector 64 bits;
divisions round down. Line numbers are of the source named.

*exact* restates the formula of the public source, or a figure that was observed; *estimate* is
ours. Bytes of state (a vertex without its edges' lists) and of code are estimates in every row.
"""

_STEPS = """## The op table

Cycles of one step of an operator's inner loop and the elements of a step, as in PopLibs
lib/popops/popopsCycleEstimators.hpp: `6/2` is 6 cycles for 2 elements. To a step marked v (one
vector) or + (one element) the vertex adds its own: 2 cycles for a binary operator in assembly (add,
subtract, multiply of float and half) or 5, 4 for a unary one, 1 or 4 with a number.
"""

_TYPES = ("float", "half", "int", "unsigned int", "long long", "short", "bool")
_TABLES: dict[str, list[tuple[str, Steps | None]]] = {
    "Unary": [(name, entry.steps) for name, entry in UNARY.items()],
    "Unary, in place, where it differs": [(name, entry.in_place) for name, entry in UNARY.items()],
    "Binary": [(name, entry.steps) for name, entry in BINARY.items()],
    "Binary with one number": [(name, entry.with_number) for name, entry in BINARY.items()],
}


def markdown() -> str:
    """Write the page."""
    head = ["vertex type", "fields", "cycles", "runs as", "state", "code", "source", "quality"]
    tables = [_HEAD, *_table(head, [_cells(entry) for entry in catalogue.CATALOGUE]), "", _STEPS]
    for title, table in _TABLES.items():
        rows = [
            [name, *(_step(steps.get(dtype)) for dtype in _TYPES)]
            for name, steps in sorted(table)
            if steps
        ]
        tables += [f"### {title}", "", *_table([title.partition(",")[0], *_TYPES], rows), ""]
    return "\n".join(tables)


def _cells(entry: VertexType) -> list[str]:
    runs = "supervisor" if entry.supervisor else "worker"
    sizes = [str(entry.state_bytes), str(entry.code_bytes)]
    quality = "exact" if entry.exact else "estimate"
    formula = entry.formula.replace("*", "\\*")
    return [f"`{entry.name}`", " ".join(entry.fields), formula, runs, *sizes, entry.source, quality]


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _step(step: Step | None) -> str:
    if step is None:
        return ""
    if not step.elements:
        return f"{step.cycles} v"
    return f"{step.cycles} +" if step.overhead else f"{step.cycles}/{step.elements}"
