"""One operation: its compute sets, what it costs each tile, where it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import EXCHANGES, OPERANDS, elapsed, executions, summed
from pva.analysis.columns import analysis
from pva.analysis.debug_contexts import above, context_columns
from pva.analysis.execution.flops import peak_of_tile
from pva.analysis.memory.code import first_users
from pva.analysis.memory.totals import VERTEX_PARTS, code_if_counted
from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.layers import DEFAULT, MODULE, OUTSIDE, owners_in
from pva.analysis.operations.modules import is_within, modules_of, name_of_whole
from pva.analysis.selection import SelectionError, tile_count
from pva.analysis.table import Columns, largest_first
from pva.array_types import Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 200  # of its analyses in the catalogue
UNKNOWN = -1
_COMPUTE = "OnTileExecute"
_CYCLES = {
    _COMPUTE: "compute",
    "DoExchange": "exchange",
    "GlobalExchange": "exchange",
    "StreamCopy": "host_exchange",
}


def operation_programs(report: Report, *, operation: str = "", layer: str = DEFAULT) -> Integers:
    """Return the rows of the programs of an operation of a layer, in order.

    Without `operation` it is the one that costs most. Raises SelectionError, NotRecordedError.
    """
    owners = owners_in(report, layer)[:-1]
    if not operation:
        costs = operation_costs(report, layer=layer).arrays["operation"]
        operation = str(costs[0]) if len(costs) else ""
    programs = np.flatnonzero(owners == operation)
    if layer == MODULE and operation != OUTSIDE:  # with the modules within
        root = name_of_whole(modules_of(report))
        within = [is_within(name, operation, root) and name != OUTSIDE for name in owners]
        programs = np.flatnonzero(within)
    if not len(programs) and operation and operation not in set(_names(report, layer)):
        raise SelectionError(operation, "no such operation", f"see operation_costs, layer {layer}")
    return programs


def _names(report: Report, layer: str) -> list[str]:
    names: list[str] = operation_costs(report, layer=layer).arrays["operation"].tolist()
    return names


@analysis(
    "compute_set name vertices executions cycles:cycles estimated_cycles:cycles flops:flop "
    "float_peak_share:fraction",
    name="compute set of the operation",
    vertices="its vertices on all tiles; -1 where it was not recorded",
    flops="floating-point operations of one execution",
)
def operation_compute_sets(report: Report, *, operation: str = "", layer: str = DEFAULT) -> Columns:
    """List the compute sets of an operation: vertices, cycles, and their share of the peak.

    `cycles` are by how many a compute set made the recorded runs longer, `estimated_cycles` those
    of the slowest tile in one execution, as are `flops`; `float_peak_share` is of what all tiles
    could do in these cycles. -1 is not recorded. Without `operation` it is the one that costs most.
    Most cycles first. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    programs = operation_programs(report, operation=operation, layer=layer)
    types = data.texts("programs", "type")[programs]
    operand = data.column("programs", "compute_set")[programs]
    used = (types == _COMPUTE) & (operand >= 0)
    rows, place = np.unique(operand[used], return_inverse=True)
    sets_names = data.column("compute_sets", "name")
    vertices = np.zeros(len(sets_names), dtype=np.int64)
    if data.has("compute_set_vertices"):
        names = ("compute_set", "count")
        sets, counts = (data.column("compute_set_vertices", name) for name in names)
        np.add.at(vertices, sets, counts)
    estimated = np.full(len(rows), UNKNOWN)
    if len(rows) and data.has("compute_set_cycles_by_tile"):
        estimated = data.row_maxima("compute_set_cycles_by_tile")[rows]
    flops = data.column("compute_sets", "flops")[rows]
    could = peak_of_tile(report).float * tile_count(report) * np.maximum(estimated, 0)
    measured = (flops >= 0) & (could > 0)
    columns = {
        "compute_set": rows,
        "name": sets_names[rows],
        "vertices": vertices[rows],
        **_ran(report, programs[used], place, len(rows)),
        "estimated_cycles": estimated,
        "flops": flops,
        "float_peak_share": np.where(measured, flops / np.maximum(could, 1), np.nan),
    }
    by = ["cycles", "estimated_cycles"]
    return largest_first(columns, *by)


def _ran(report: Report, programs: Integers, place: Integers, count: int) -> dict[str, Integers]:
    """Sum up how often programs ran and what that cost, by place."""
    data = report.dataset
    if not data.has("steps"):
        return {name: np.full(count, UNKNOWN) for name in ("executions", "cycles")}
    rows = len(data.column("programs", "name"))
    of_step = data.column("steps", "program")
    valid = (of_step >= 0) & (of_step < rows)
    cycles = summed(of_step[valid], elapsed(report)[valid], rows)
    return {
        "executions": summed(place, executions(report)[programs], count),
        "cycles": summed(place, cycles[programs], count),
    }


@analysis(
    "tile ipu compute:cycles exchange:cycles host_exchange:cycles control_code:bytes "
    "exchange_code:bytes vertex_state:bytes"
)
def operation_by_tile(report: Report, *, operation: str = "", layer: str = DEFAULT) -> Columns:
    """Return what an operation costs each tile: cycles, code, and the state of its vertices.

    Cycles of compute, exchange (on and between IPUs) and with the host are those of its programs as
    often as they ran in the recorded runs, or once where there are none. `control_code`,
    `exchange_code` and `vertex_state` are bytes, 0 where they were not recorded, and of code -1
    where it was not counted; what several programs share counts once, in the operation of the
    first. Without `operation` it is the one that costs most. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    programs = operation_programs(report, operation=operation, layer=layer)
    tiles = tile_count(report)
    per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
    ran = executions(report) if data.has("steps") else None
    columns: dict[str, Any] = {
        name: np.zeros(tiles, dtype=np.int64)
        for name in ("compute", "exchange", "host_exchange", "control_code", "exchange_code",
                     "vertex_state")
    }  # fmt: skip
    types = data.texts("programs", "type")[programs]
    for tag, part in _CYCLES.items():
        mine = programs[types == tag]
        operand = data.column("programs", OPERANDS[tag][0])[mine]
        mine, operand = mine[operand >= 0], operand[operand >= 0]
        times = np.ones(len(mine), dtype=np.int64) if ran is None else ran[mine]
        name = OPERANDS[tag][1]
        cycles = f"{name}_cycles_by_tile" if tag == _COMPUTE else f"{name}_cycles"
        columns[part] = columns[part] + _rows(report, cycles, operand, times, tiles)
        shared, users = first_users(report, tag)
        once = shared[np.isin(users, mine)]
        ones = np.ones(len(once), dtype=np.int64)
        if tag in EXCHANGES:
            code = _rows(report, f"{name}_code_bytes", once, ones, tiles)
            columns["exchange_code"] = columns["exchange_code"] + code
        else:
            parts = (f"memory_by_compute_set_{part}" for part in VERTEX_PARTS)
            columns["vertex_state"] = sum(_rows(report, a, once, ones, tiles) for a in parts)
    columns["control_code"] = _control_code(report, programs, tiles)
    for name in ("control_code", "exchange_code"):
        columns[name] = code_if_counted(report, columns[name])
    return {"tile": np.arange(tiles), "ipu": np.arange(tiles) // per_ipu, **columns}


def _rows(report: Report, array: str, rows: Integers, times: Integers, tiles: int) -> Integers:
    """Add up rows of an array by tile, each so many times; nothing where it was not recorded."""
    data = report.dataset
    if not len(rows) or not data.has(array):
        return np.zeros(tiles, dtype=np.int64)
    run = times > 0
    sums: Integers = times[run] @ data.chosen(array, rows[run])
    return sums


def _control_code(report: Report, programs: Integers, tiles: int) -> Integers:
    data = report.dataset
    if not data.has("control_code"):
        return np.zeros(tiles, dtype=np.int64)
    names = ("program", "tile", "end_tile", "bytes")
    rows, first, end, sizes = (data.column("control_code", name) for name in names)
    mine = np.isin(rows, programs)
    change = np.zeros(tiles + 1, dtype=np.int64)
    np.add.at(change, np.minimum(first[mine], tiles), sizes[mine])
    np.add.at(change, np.minimum(end[mine], tiles), -sizes[mine])
    return np.cumsum(change[:-1])


@analysis("context layer name file line function json programs", layer="software layer")
def operation_contexts(report: Report, *, operation: str = "", layer: str = DEFAULT) -> Columns:
    """Return the debug contexts of an operation and those around them, outermost first.

    `file`, `function` and `line` are of the source, empty and 0 where they are not told; `json` are
    further keys of the layer, such as the arguments of a call. `programs` of the operation were
    made in each. Without `operation` it is the one that costs most. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    programs = operation_programs(report, operation=operation, layer=layer)
    contexts, counts = np.unique(
        data.column("programs", "debug_context")[programs], return_counts=True
    )
    paths = [above(report, int(context)) for context in contexts.tolist()]
    programs_of_context: dict[int, int] = {}
    for path, count in zip(paths, counts.tolist(), strict=True):
        for row in path.tolist():
            programs_of_context[row] = programs_of_context.get(row, 0) + count
    contexts_and_above = np.array(list(programs_of_context), dtype=np.int64)
    counts_by_context = np.array(list(programs_of_context.values()), dtype=np.int64)
    return {**context_columns(report, contexts_and_above), "programs": counts_by_context}


def filled_columns(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the columns in which any tile of `operation_by_tile` has something."""
    return [name for name in names if (frame[name] > 0).any()]


def by_flops(sets: pd.DataFrame) -> pd.DataFrame:
    """Order the rows of `operation_compute_sets` by their floating-point operations, descending."""
    return sets.sort_values("flops", ascending=False, kind="stable")


def executed_flops(sets: pd.DataFrame) -> int:
    """Add up the floating-point operations of compute sets in all their recorded executions.

    A set without recorded executions counts once; one whose operations are not told counts none.
    """
    return int((sets["flops"] * sets["executions"].fillna(1)).sum())
