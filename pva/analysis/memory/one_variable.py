"""One variable: what it is, where it lies, when it is live, who uses it, and where it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import owners
from pva.analysis.columns import analysis
from pva.analysis.debug_contexts import above, context_columns, source_of
from pva.analysis.facts import Facts
from pva.analysis.memory.placement import variable_by_tile, variable_uses
from pva.analysis.selection import chosen
from pva.analysis.table import Columns

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 70  # of its analyses in the catalogue
NONE = -1


@dataclass(frozen=True, slots=True)
class VariableFigures(Facts):
    """What is known of a variable; -1 and empty texts stand for what was not recorded.

    `tiles` is on how many it lies, and `most_bytes` what lies on `fullest_tile`. It is live from
    liveness step `first_step` to `last_step`, of the names `first_name` and `last_name`, or always.
    `last_reader` and `last_writer` are the programs that read and write it last.
    """

    variable: int
    name: str
    type: str
    shape: str
    category: str
    bytes: int
    tiles: int
    fullest_tile: int
    most_bytes: int
    always_live: bool
    first_step: int
    last_step: int
    first_name: str
    last_name: str
    at_peak: bool
    readers: int
    writers: int
    last_reader: str
    last_writer: str
    operation: str
    file: str
    line: int
    function: str


@analysis(
    "variable name type shape category bytes:bytes tiles fullest_tile most_bytes:bytes "
    "always_live first_step last_step first_name last_name at_peak readers writers last_reader "
    "last_writer operation file line function",
    type="type of the elements",
)
def variable_figures(report: Report, *, variable: int) -> VariableFigures:
    """Return what a variable is, where it lies, when it is live, who uses it, where it was made.

    `variable` is its row in the table of variables. `file`, `line` and `function` are of the
    innermost debug context that names a place in the source; of what it is a copy, where it has
    none of its own, as messages. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    variable = chosen("variable", variable, len(data.column("variables", "name")))
    name = str(data.column("variables", "name")[variable])
    tiles, fullest, most = _places(report, variable)
    first, last, at_peak = _life(report, variable)
    readers, last_reader = _users(report, variable, "reads")
    writers, last_writer = _users(report, variable, "writes")
    context = data.column("variables", "debug_context")[variable : variable + 1]
    file, line, function = _source(report, variable)
    return VariableFigures(
        variable=variable,
        name=name,
        type=str(data.column("variables", "type")[variable]),
        shape=str(data.column("variables", "shape")[variable]),
        category=str(data.texts("variables", "category")[variable]),
        bytes=int(data.column("variables", "bytes")[variable]),
        tiles=tiles,
        fullest_tile=fullest,
        most_bytes=most,
        always_live=bool(data.column("variables", "always_live")[variable]),
        first_step=first,
        last_step=last,
        first_name=_step_name(report, first),
        last_name=_step_name(report, last),
        at_peak=at_peak,
        readers=readers,
        writers=writers,
        last_reader=last_reader,
        last_writer=last_writer,
        operation=str(owners(report, np.array([name], dtype=object), context)[0]),
        file=file,
        line=line,
        function=function,
    )


@analysis("context layer name file line function json", layer="software layer")
def variable_contexts(report: Report, *, variable: int) -> Columns:
    """Return where a variable was made: its debug context and those around it, outermost first.

    As `operation_contexts`, for the row of a variable. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    variable = chosen("variable", variable, len(data.column("variables", "name")))
    context = int(data.column("variables", "debug_context")[variable])
    return context_columns(report, above(report, context))


def _places(report: Report, variable: int) -> tuple[int, int, int]:
    """Return on how many tiles a variable lies, and the one with the most of it, with its bytes."""
    if not report.dataset.has("variable_pieces"):
        return NONE, NONE, NONE
    tiles, sizes = (
        variable_by_tile(report, variable=variable).arrays[n] for n in ("tile", "bytes")
    )
    if not len(tiles):
        return 0, NONE, NONE
    return len(tiles), int(tiles[0]), int(sizes[0])


def _life(report: Report, variable: int) -> tuple[int, int, bool]:
    """Return the first and last liveness step of a variable, and whether it is live at the peak."""
    data = report.dataset
    if not data.has("variable_intervals"):
        return NONE, NONE, False
    rows = data.rows_where("variable_intervals", "variable", variable)
    begin, end = (data.column("variable_intervals", name)[rows] for name in ("begin", "end"))
    live = data.column("liveness_steps", "bytes")
    peak = int(live.argmax()) if len(live) else NONE
    at_peak = bool(((begin <= peak) & (peak < end)).any())
    at_peak |= bool(data.column("variables", "always_live")[variable])
    first, last = int(begin.min(initial=len(live))), int(end.max(initial=0)) - 1
    return (first, last, at_peak) if first <= last else (NONE, NONE, at_peak)


def _users(report: Report, variable: int, how: str) -> tuple[int, str]:
    """Return how many programs read or write a variable, and the name of the last of them."""
    data = report.dataset
    if not data.has("access"):
        return NONE, ""
    uses = variable_uses(report, variable=variable).arrays
    rows = np.flatnonzero(uses[how])
    if not len(rows):
        return 0, ""
    programs, names = uses["program"][rows], uses["name"][rows]
    places = programs
    if data.length("liveness_steps"):
        steps = data.column("liveness_steps", "program")
        order = np.argsort(steps, kind="stable")
        at = np.searchsorted(steps[order], programs, side="right") - 1
        places = np.where((at >= 0) & (steps[order][at] == programs), order[at], NONE)
    return len(rows), str(names[int(places.argmax())])


def _step_name(report: Report, step: int) -> str:
    if step < 0:
        return ""
    data = report.dataset
    program = int(data.column("liveness_steps", "program")[step])
    return str(data.column("programs", "name")[program]) if program >= 0 else ""


def _source(report: Report, variable: int) -> tuple[str, int, str]:
    """Return file, line and function of a variable's debug context, or what it is a copy of."""
    data = report.dataset
    for row in (variable, int(data.column("variables", "lowered_from")[variable])):
        context = int(data.column("variables", "debug_context")[row]) if row >= 0 else NONE
        place = source_of(report, context)
        if place[0]:
            return place
    return "", NONE, ""


def variable_name(report: Report, variable: int) -> str:
    """Return the name of a variable; raises NotRecordedError."""
    return str(report.dataset.column("variables", "name")[variable])
