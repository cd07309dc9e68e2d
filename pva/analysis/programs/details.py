"""One program: what it costs, what it runs, what it reads and writes, where it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import EXCHANGES, OPERANDS, elapsed, labels
from pva.analysis.columns import analysis
from pva.analysis.debug_contexts import above, context_columns
from pva.analysis.facts import Facts
from pva.analysis.memory.code import code_of_exchanges
from pva.analysis.memory.totals import VERTEX_PARTS, counts_code
from pva.analysis.programs.hierarchy import sync_estimate
from pva.analysis.selection import chosen, tile_count
from pva.analysis.table import Columns, largest_first

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 230  # of its analyses in the catalogue
UNKNOWN = -1
_COMPUTE = "OnTileExecute"


@dataclass(frozen=True, slots=True)
class ProgramFigures(Facts):
    """What one program is and costs by itself, without its parts; -1 for what is not told.

    `operand` is the row of its compute set or exchange. `cycles` are by how many it made the
    recorded runs longer, of which `share` is a part; `min_cycles` to `max_cycles` what one of its
    `executions` took, and `estimated_cycles` the estimate for its slowest tile. `active_tiles` did
    something; bytes, code, `vertices` and `flops` are of one execution, on all tiles.
    `first_step` and `longest_step` are executed steps, `liveness_step` a program step.
    """

    program: int
    type: str
    name: str
    operand: int
    operand_name: str
    count: int
    sync_type: str
    executions: int
    cycles: int
    share: float
    min_cycles: int
    mean_cycles: float
    max_cycles: int
    estimated_cycles: int
    active_tiles: int
    bytes_received: int
    bytes_sent: int
    vertices: int
    flops: int
    control_code: int
    exchange_code: int
    vertex_state: int
    first_step: int
    longest_step: int
    liveness_step: int


@analysis(
    "program type name operand operand_name count sync_type executions cycles:cycles "
    "share:fraction min_cycles:cycles mean_cycles:cycles max_cycles:cycles "
    "estimated_cycles:cycles active_tiles bytes_received:bytes bytes_sent:bytes vertices "
    "flops:flop control_code:bytes exchange_code:bytes vertex_state:bytes first_step "
    "longest_step liveness_step"
)
def program_figures(report: Report, *, program: int) -> ProgramFigures:
    """Describe one program: what it runs, how often, what one execution takes, its code and data.

    `program` is the row of the table of programs, as in `program_tree`. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    row = chosen("program", program, len(data.column("programs", "name")))
    tag = str(data.texts("programs", "type")[row])
    operand = int(data.column("programs", OPERANDS[tag][0])[row]) if tag in OPERANDS else UNKNOWN
    is_compute = tag == _COMPUTE and 0 <= operand < data.length("compute_sets")
    return ProgramFigures(
        program=row,
        type=tag,
        name=str(labels(report, np.array([row]))[0]),
        operand=operand,
        operand_name=str(data.column("compute_sets", "name")[operand]) if is_compute else "",
        count=int(data.column("programs", "count")[row]),
        sync_type=str(data.texts("programs", "sync_type")[row]) if tag == "Sync" else "",
        **_executed(report, row),
        estimated_cycles=_estimate(report, row, tag, operand),
        **_moved(report, tag, operand),
        vertices=_vertices(report, operand) if is_compute else UNKNOWN,
        flops=int(data.column("compute_sets", "flops")[operand]) if is_compute else UNKNOWN,
        control_code=_control_code(report, row),
        exchange_code=_exchange_code(report, tag, operand),
        vertex_state=_state(report, operand) if is_compute else UNKNOWN,
        liveness_step=_first(report, row),
    )


def _executed(report: Report, program: int) -> dict[str, Any]:
    """Sum up the executed steps of a program."""
    data = report.dataset
    names = ("executions", "cycles", "min_cycles", "max_cycles", "first_step", "longest_step")
    unknown: dict[str, Any] = dict.fromkeys(names, UNKNOWN)
    unknown |= {"share": float("nan"), "mean_cycles": float("nan")}
    if not data.has("steps"):
        return unknown
    longer = elapsed(report)
    steps = data.rows_where("steps", "program", program)
    if not len(steps):
        return unknown | {"executions": 0, "cycles": 0, "share": 0.0}
    step_cycles = data.column("steps", "cycles")[steps]
    return {
        "executions": len(steps),
        "cycles": int(longer[steps].sum()),
        "share": float(longer[steps].sum() / max(int(longer.sum()), 1)),
        "min_cycles": int(step_cycles.min()),
        "mean_cycles": float(step_cycles.mean()),
        "max_cycles": int(step_cycles.max()),
        "first_step": int(steps[0]),
        "longest_step": int(steps[step_cycles.argmax()]),
    }


def _moved(report: Report, tag: str, operand: int) -> dict[str, int]:
    """Count the tiles that do something, and the bytes that an exchange moves."""
    data = report.dataset
    figures = {"active_tiles": UNKNOWN, "bytes_received": UNKNOWN, "bytes_sent": UNKNOWN}
    if tag not in OPERANDS or operand < 0:
        return figures
    name = OPERANDS[tag][1]
    if tag == _COMPUTE:
        array = f"{name}_active_cycles_by_tile"
        if data.has(array):
            figures["active_tiles"] = int((data.row(array, operand) > 0).sum())
        return figures
    arrays = (f"{name}_bytes_received", f"{name}_bytes_sent")
    if all(data.has(array) for array in arrays):
        received, sent = (data.row(array, operand) for array in arrays)
        figures["active_tiles"] = int(((received > 0) | (sent > 0)).sum())
        figures["bytes_received"], figures["bytes_sent"] = int(received.sum()), int(sent.sum())
    return figures


def _vertices(report: Report, compute_set: int) -> int:
    data = report.dataset
    if not data.has("compute_set_vertices"):
        return UNKNOWN
    rows = data.rows_where("compute_set_vertices", "compute_set", compute_set)
    return int(data.column("compute_set_vertices", "count")[rows].sum())


def _estimate(report: Report, program: int, tag: str, operand: int) -> int:
    data = report.dataset
    if tag == "Sync":
        return sync_estimate(report, str(data.texts("programs", "sync_type")[program]))
    array = _cycles_array(tag) if operand >= 0 else ""
    return int(data.row(array, operand).max(initial=0)) if array and data.has(array) else UNKNOWN


def _cycles_array(tag: str) -> str:
    return f"{OPERANDS[tag][1]}_cycles{'_by_tile' if tag == _COMPUTE else ''}"


def _control_code(report: Report, program: int) -> int:
    data = report.dataset
    if not data.has("control_code") or not counts_code(report):
        return UNKNOWN
    rows = data.rows_where("control_code", "program", program)
    first, end, sizes = (
        data.column("control_code", c)[rows] for c in ("tile", "end_tile", "bytes")
    )
    return int(((end - first) * sizes).sum())


def _exchange_code(report: Report, tag: str, exchange: int) -> int:
    data = report.dataset
    if tag not in EXCHANGES or exchange < 0 or not counts_code(report):
        return UNKNOWN
    array = f"{OPERANDS[tag][1]}_code_bytes"
    if data.has(array):
        return int(data.row(array, exchange).sum())
    code = code_of_exchanges(report, tag)
    return int(code[exchange]) if exchange < len(code) else UNKNOWN


def _state(report: Report, compute_set: int) -> int:
    data = report.dataset
    arrays = [f"memory_by_compute_set_{part}" for part in VERTEX_PARTS]
    if not all(data.has(array) for array in arrays):
        return UNKNOWN
    return sum(int(data.row(array, compute_set).sum()) for array in arrays)


def _first(report: Report, program: int) -> int:
    if not report.dataset.has("liveness_steps"):
        return UNKNOWN
    return int(next(iter(report.dataset.rows_where("liveness_steps", "program", program)), UNKNOWN))


@analysis("tile ipu cycles:cycles active_cycles:cycles bytes_received:bytes bytes_sent:bytes")
def program_by_tile(report: Report, *, program: int) -> Columns:
    """Return what one execution of a program costs each tile: cycles, and what it moves.

    `active_cycles` are those in which a vertex was run; bytes are those of an exchange. No rows for
    what has no cycles by tile, such as a sync or a sequence. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    row = chosen("program", program, len(data.column("programs", "name")))
    tag = str(data.texts("programs", "type")[row])
    operand = int(data.column("programs", OPERANDS[tag][0])[row]) if tag in OPERANDS else UNKNOWN
    tiles = np.arange(tile_count(report) if operand >= 0 else 0)
    none = np.zeros(len(tiles), dtype=np.int64)
    values = dict.fromkeys(("cycles", "active_cycles", "bytes_received", "bytes_sent"), none)
    if operand >= 0:
        array = OPERANDS[tag][1]
        suffix = "_by_tile" if tag == _COMPUTE else ""
        names = ("active_cycles",) if tag == _COMPUTE else ("bytes_received", "bytes_sent")
        values["cycles"] = data.row(_cycles_array(tag), operand)
        values |= {name: data.row(f"{array}_{name}{suffix}", operand) for name in names}
    per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
    return {"tile": tiles, "ipu": tiles // per_ipu, **values}


@analysis(
    "vertex_type vertices tiles cycles:cycles state:bytes",
    vertices="how many of them the step runs; -1 where it was not recorded",
    tiles="tiles that have one; -1 where it was not recorded",
    cycles="active cycles of all of them together",
    state="bytes of all of them: fields and pointers",
)
def vertices_of_program(report: Report, *, program: int) -> Columns:
    """Return the vertices that a program runs by type: how many, on how many tiles, active cycles.

    `cycles` are those of one execution, summed over the tiles; `tiles` is -1 where it was not
    recorded on which they lie, and `state` the bytes of their state. Most cycles first; no rows for
    what runs no compute set. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    row = chosen("program", program, len(data.column("programs", "name")))
    is_compute = data.texts("programs", "type")[row] == _COMPUTE
    compute_set = int(data.column("programs", "compute_set")[row]) if is_compute else UNKNOWN
    rows = data.rows_where("compute_set_vertices", "compute_set", compute_set)
    rows = rows if compute_set >= 0 else rows[:0]
    types = data.column("compute_set_vertices", "vertex_type")[rows]
    counts = data.column("compute_set_vertices", "count")[rows]
    tiles = np.full(len(rows), UNKNOWN)
    if len(rows) and data.has("vertex_count_by_tile"):
        by_type = data.array("vertex_count_by_tile")
        recorded = rows < len(by_type)
        tiles[recorded] = (by_type[rows[recorded]] > 0).sum(axis=1)
    cycles = np.zeros(0, dtype=np.int64)
    if len(rows):
        cycles = data.row("compute_set_active_cycles_by_vertex_type", compute_set)[types]
    columns = {
        "vertex_type": data.column("vertex_types", "name")[types],
        "vertices": counts,
        "tiles": tiles,
        "cycles": cycles,
        "state": data.column("vertex_types", "size")[types] * counts,
    }
    return largest_first(columns, "cycles")


@analysis(
    "variable name type shape access bytes:bytes always_live",
    name="debug name of the variable",
    type="type of its elements",
    shape="size of each dimension",
    bytes="bytes on all tiles",
)
def variables_of_program(report: Report, *, program: int) -> Columns:
    """Return the variables that a program reads and writes, the largest first.

    `access` is read, written, or both. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    row = chosen("program", program, len(data.column("programs", "name")))
    used = data.rows_where("access", "program", row)
    names = ("variable", "write")
    variables, writes = (data.column("access", name)[used] for name in names)
    rows, place = np.unique(variables, return_inverse=True)
    written = np.bincount(place, weights=writes, minlength=len(rows)) > 0
    read = np.bincount(place, weights=~writes, minlength=len(rows)) > 0
    columns = {
        "variable": rows,
        "name": data.column("variables", "name")[rows],
        "type": data.column("variables", "type")[rows],
        "shape": data.column("variables", "shape")[rows],
        "access": np.select([written & read, written], ["both", "written"], "read"),
        "bytes": data.column("variables", "bytes")[rows],
        "always_live": data.column("variables", "always_live")[rows],
    }
    return largest_first(columns, "bytes")


@analysis(
    "context layer name file line function json",
    layer="layer that made this part of the program",
    name="name given there",
    function="function that made it",
)
def contexts_of_program(report: Report, *, program: int) -> Columns:
    """Return where a program was made, layer by layer, the outermost debug context first.

    `file`, `function` and `line` are of the source, empty and 0 where they are not told; `json` are
    further keys of the layer. No rows for what the compiler put in. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    row = chosen("program", program, len(data.column("programs", "name")))
    return context_columns(
        report, above(report, int(data.column("programs", "debug_context")[row]))
    )
