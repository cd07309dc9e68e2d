"""What each operation of a software layer costs: cycles, arithmetic, code and memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import (
    EXCHANGES,
    PHASES,
    elapsed,
    executions,
    phases,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.memory.code import control_code_by_program, once_by_program
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.memory.placement import live_at_peak_truths
from pva.analysis.memory.totals import CODE_CATEGORIES, counts_code, memory_by_category
from pva.analysis.operations.layers import (
    DEFAULT,
    MODULE,
    OUTSIDE,
    operation_kinds,
    owners_in,
    variable_owners_in,
)
from pva.analysis.operations.modules import by_subtree
from pva.analysis.programs.hierarchy import step_estimates
from pva.analysis.selection import SelectionError
from pva.analysis.table import Arrays, Columns, arrays_of, largest_first, rows_of
from pva.array_types import Integers
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 190  # of its analyses in the catalogue
UNKNOWN = -1
_COMPUTE = "OnTileExecute"
_PHASES = tuple(phase.replace(" ", "_") for phase in PHASES)
CODE = tuple(CODE_CATEGORIES)


@analysis(
    "operation kind programs steps cycles:cycles share:fraction compute:cycles exchange:cycles "
    "host_exchange:cycles sync:cycles estimated_cycles:cycles flops:flop code:bytes "
    "control_code:bytes exchange_code:bytes vertex_code:bytes vertex_state:bytes "
    "variables:bytes peak_bytes:bytes",
    operation="operation, as its layer names it",
    kind="its operator in the framework, or the library called",
    programs="programs that it was compiled into",
    steps="steps executed in the recorded runs",
    cycles="cycles by which its steps made the recorded runs longer",
    share="part of the cycles of the recorded runs",
    exchange="cycles of exchange on and between IPUs",
    flops="floating-point operations executed",
    code="control code, exchange code, and code of vertices that no other operation has; -1 where "
    "it was not counted",
    peak_bytes="bytes of its code, state and variables that are live where liveness peaks",
    variables="bytes of all of its variables, live or not",
)
def operation_costs(report: Report, *, layer: str = DEFAULT, by: str = "") -> Columns:
    """Return what each operation of a software layer costs in cycles, arithmetic, code and memory.

    `layer` is one of `software_layers`; what is in none of its operations is `(outside)`. `kind` is
    the operator of a framework, such as ai.onnx.Conv-11, or the library that was called. `cycles`
    are by how many its steps made the recorded runs longer, by phase and in all, and
    `estimated_cycles` those of its programs by the estimates of the compiler: as often as they ran
    in the recorded runs, or once where there are none. `flops` are those executed. `code` is
    control code, exchange code and that of vertex types that no other operation uses; vertices'
    state is `vertex_state`. `variables` are bytes of its variables; `peak_bytes` of those of them
    live where liveness peaks, with code and state. -1 is not recorded, as code is without
    compileIPUCode. Most cycles first, then most
    code. `by` "module" makes a row of each module of PyTorch, with all that is within, in the order
    of the tree: its path, class, the line of its code (`source`), `depth` and `own_cycles`. Raises
    SelectionError, NotRecordedError without programs.
    """
    if by not in ("", MODULE):
        raise SelectionError(f"by {by}", "not there", f"known: {MODULE}")
    if by:
        return by_subtree(report, operation_costs(report, layer=MODULE).arrays)
    owners = owners_in(report, layer)
    of_variables = _of_variables(report, layer)
    names, place = np.unique(
        np.concatenate([owners, of_variables]).astype(str), return_inverse=True
    )
    of_program, of_variable = place[: len(owners)], place[len(owners) :]
    count, kinds = len(names), operation_kinds(report, layer)
    columns = arrays_of(
        {
            "operation": names,
            "kind": [kinds.get(name, "") for name in names.tolist()],
            "programs": np.bincount(of_program[:-1], minlength=count),
            **_spent(report, of_program, count),
            "estimated_cycles": _estimated(report, of_program[:-1], count),
            "flops": _flops(report, of_program[:-1], count),
            **_code(report, of_program[:-1], count),
            "vertex_state": _once(report, (_COMPUTE,), of_program[:-1], count),
            **_variables(report, of_variable, count),
        }
    )
    always = np.maximum(columns["code"], 0) + np.maximum(columns["vertex_state"], 0)
    peak = columns["peak_bytes"]
    columns["peak_bytes"] = peak + np.where(peak >= 0, always, 0)
    counted = (columns[name] > 0 for name in ("programs", "steps", "variables"))
    rows = rows_of(columns, np.logical_or.reduce([*counted]))
    return largest_first(rows, "cycles", "estimated_cycles", "code")


def _spent(report: Report, owner_of: Integers, count: int) -> dict[str, Any]:
    """Sum up steps and cycles by owner; the last owner is of unknown programs."""
    data = report.dataset
    if not data.has("steps"):
        unknown = np.full(count, UNKNOWN)
        names = ("steps", "cycles", "share", *_PHASES)
        return {name: unknown * (np.nan if name == "share" else 1) for name in names}
    programs, last = data.column("steps", "program"), len(owner_of) - 1
    owner = owner_of[np.where((programs >= 0) & (programs < last), programs, last)]
    places = owner * len(PHASES) + phases(report)
    cycles = summed(places, elapsed(report), count * len(PHASES)).reshape(count, len(PHASES))
    total = cycles.sum(axis=1)
    return {
        "steps": np.bincount(owner, minlength=count),
        "cycles": total,
        "share": total / max(int(total.sum()), 1),
        **{name: cycles[:, place] for place, name in enumerate(_PHASES)},
    }


def _estimated(report: Report, owner_of: Integers, count: int) -> Integers:
    ran = executions(report) if report.dataset.has("steps") else np.ones(len(owner_of), np.int64)
    return summed(owner_of, step_estimates(report) * ran, count)


def _flops(report: Report, owner_of: Integers, count: int) -> Integers:
    """Sum up the operations executed by owner; those of compute sets that do not tell are none."""
    data = report.dataset
    if not data.has("steps") or not data.has("compute_sets"):
        return np.full(count, UNKNOWN)
    flops = data.column("compute_sets", "flops")
    if int(flops.max(initial=UNKNOWN)) < 0:
        return np.full(count, UNKNOWN)
    rows = data.column("programs", "compute_set")
    programs = np.flatnonzero((data.texts("programs", "type") == _COMPUTE) & (rows >= 0))
    executed = np.maximum(flops, 0)[rows[programs]] * executions(report)[programs]
    return summed(owner_of[programs], executed, count)


def _code(report: Report, owner_of: Integers, count: int) -> dict[str, Integers]:
    """Sum up the kinds of code by owner, and what is known of them."""
    data = report.dataset
    unknown = np.full(count, UNKNOWN)
    if not counts_code(report):
        return dict.fromkeys(("code", *CODE), unknown)
    control = unknown
    if data.has("control_code"):
        control = summed(owner_of, control_code_by_program(report), count)
    parts = {
        "control_code": control,
        "exchange_code": _once(report, EXCHANGES, owner_of, count),
        "vertex_code": _own_vertex_code(report, owner_of, count),
    }
    parts_bytes = [np.maximum(part, 0) for part in parts.values()]
    recorded = any(int(part.max(initial=UNKNOWN)) >= 0 for part in parts.values())
    return {"code": np.sum(parts_bytes, axis=0) if recorded else unknown, **parts}


def _once(report: Report, tags: tuple[str, ...], owner_of: Integers, count: int) -> Integers:
    """Sum up what each compute set or exchange takes, charged to the first program that runs it."""
    try:
        return summed(owner_of, once_by_program(report, tags), count)
    except NotRecordedError:
        return np.full(count, UNKNOWN)


def _own_vertex_code(report: Report, owner_of: Integers, count: int) -> Integers:
    """Sum up the code of vertex types that one owner alone uses."""
    data = report.dataset
    if not (data.has("memory_by_vertex_type_code") and data.has("compute_set_vertices")):
        return np.full(count, UNKNOWN)
    pairs = _used_types(report, owner_of)
    types, users = np.unique(pairs[:, 1], return_counts=True)
    exclusive = np.isin(pairs[:, 1], types[users == 1])
    code = data.row_sums("memory_by_vertex_type_code")
    return summed(pairs[exclusive, 0], code[pairs[exclusive, 1]], count)


def _used_types(report: Report, owner_of: Integers) -> Integers:
    """Pair each owner with the vertex types that its compute sets have, each pair once."""
    data = report.dataset
    rows = data.column("programs", "compute_set")
    programs = np.flatnonzero((data.texts("programs", "type") == _COMPUTE) & (rows >= 0))
    used = np.unique(np.stack([owner_of[programs], rows[programs]], axis=1), axis=0)
    names = ("compute_set", "vertex_type")
    sets, types = (data.column("compute_set_vertices", name) for name in names)
    order = np.argsort(sets, kind="stable")
    first, end = (np.searchsorted(sets[order], used[:, 1], side=s) for s in ("left", "right"))
    begins = np.repeat(first - (np.cumsum(end - first) - (end - first)), end - first)
    of_types = types[order[begins + np.arange(len(begins))]]
    return np.unique(np.stack([np.repeat(used[:, 0], end - first), of_types], axis=1), axis=0)


def _of_variables(report: Report, layer: str) -> object:
    has_them = report.dataset.has("variables")
    return variable_owners_in(report, layer) if has_them else np.zeros(0, dtype=object)


def _variables(report: Report, owner_of: Integers, count: int) -> dict[str, Integers]:
    """Sum up variables by owner: in all, and live where liveness peaks."""
    data = report.dataset
    if not data.has("variables"):
        return dict.fromkeys(("variables", "peak_bytes"), np.full(count, UNKNOWN))
    sizes = data.column("variables", "bytes")
    return {
        "variables": summed(owner_of, sizes, count),
        "peak_bytes": summed(owner_of, sizes * live_at_peak_truths(report), count),
    }


@analysis("figure unit operations outside elsewhere whole")
def operation_totals(report: Report, *, layer: str = DEFAULT) -> Columns:
    """Add up the operations of a software layer, and what they leave of the whole report.

    Of each `figure`, in its `unit`: what the `operations` take, what is `outside` of those of the
    layer, and what is `elsewhere`, that no operation has: code that several share, and stacks.
    They add up to the `whole` report. Figures that were not recorded are left out. Raises
    SelectionError, NotRecordedError.
    """
    return totals_of(report, operation_costs(report, layer=layer).arrays)


def totals_of(report: Report, costs: Arrays) -> Arrays:
    """Add up the costs of the operations of a software layer, as `operation_totals` does."""
    outside = costs["operation"] == OUTSIDE
    rows = []
    for figure, (unit, total) in _wholes(report).items():
        if figure not in costs or int(costs[figure].max(initial=UNKNOWN)) < 0:
            continue
        mine, outer = int(costs[figure][~outside].sum()), int(costs[figure][outside].sum())
        rows.append((figure, unit, mine, outer, total - mine - outer, total))
    texts = [row[:2] for row in rows]
    figures, units = np.array(texts, dtype=object).reshape(-1, 2).T
    sums = np.array([row[2:] for row in rows], dtype=np.int64).reshape(-1, 4).T
    names = ("operations", "outside", "elsewhere", "whole")
    return {"figure": figures, "unit": units, **dict(zip(names, sums, strict=True))}


def _wholes(report: Report) -> dict[str, tuple[str, int]]:
    """Return figures of the whole report, found without its operations."""
    data = report.dataset
    totals: dict[str, tuple[str, int]] = {}
    if data.has("steps"):
        totals["cycles"] = ("cycles", int(elapsed(report).sum()))
    if data.has("steps") and data.has("compute_sets"):
        rows = data.column("compute_sets", "flops")
        of_programs = data.column("programs", "compute_set")
        runs = (data.texts("programs", "type") == _COMPUTE) & (of_programs >= 0)
        executed = np.maximum(rows, 0)[of_programs[runs]] @ executions(report)[runs]
        totals["flops"] = ("flop", int(executed))
    if data.has("memory_by_category"):
        memory = memory_by_category(report).arrays
        total = dict(zip(memory["category"].tolist(), memory["total"].tolist(), strict=True))
        for part, categories in CODE_CATEGORIES.items():
            totals[part] = ("bytes", sum(total.get(category, 0) for category in categories))
    with suppress(NotRecordedError):
        totals["peak_bytes"] = ("bytes", liveness_overview(report).max_live)
    return totals


def total_of_costs(costs: pd.DataFrame, figures: Sequence[str]) -> pd.DataFrame:
    """Add up figures of all operations in a frame of one row, missing where none has it."""
    return pd.DataFrame({name: [costs[name].sum(min_count=1)] for name in figures})
