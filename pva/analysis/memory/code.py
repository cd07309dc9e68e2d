"""What the code of programs takes, and with it what each operation takes in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import (
    EXCHANGES,
    OPERANDS,
    labels,
    layer_of,
    moved_by_exchange,
    operations,
    owners,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.memory.totals import (
    CODE_CATEGORIES,
    VERTEX_PARTS,
    check_code,
    code_if_counted,
    counts_code,
)
from pva.analysis.table import Columns, largest_first, rows_of
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 50  # of its analyses in the catalogue


@analysis(
    "program type name code:bytes control_code:bytes exchange_code:bytes tiles most_on_a_tile:bytes"
)
def code_by_program(report: Report) -> Columns:
    """Return which programs take the most code, in bytes on all tiles, the most first.

    `control_code` is the program's own, without its children's; `exchange_code` that of its
    exchange, 0 where it has none. Programs that run one exchange share its code, so that the
    column may add up to more than there is. `tiles` have control code of it, at most
    `most_on_a_tile` each. Raises NotRecordedError, also where code was not counted.
    """
    check_code(report)
    data = report.dataset
    count = len(data.column("programs", "name"))
    names = ("program", "tile", "end_tile", "bytes")
    rows, first, end, sizes = (data.column("control_code", name) for name in names)
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, rows, sizes)
    programs = np.arange(count)
    control, exchange = control_code_by_program(report), _exchange_code(report)
    columns = {
        "program": programs,
        "type": data.texts("programs", "type"),
        "name": labels(report, programs),
        "code": control + exchange,
        "control_code": control,
        "exchange_code": exchange,
        "tiles": summed(rows, end - first, count),
        "most_on_a_tile": most,
    }
    return largest_first(rows_of(columns, columns["code"] > 0), "code")


def _exchange_code(report: Report) -> Integers:
    """Return the bytes of each program's exchange code on all tiles; 0 where there is none."""
    data = report.dataset
    code = np.zeros(len(data.column("programs", "name")), dtype=np.int64)
    for tag in EXCHANGES:
        of_exchange = code_of_exchanges(report, tag)
        programs = np.flatnonzero(data.texts("programs", "type") == tag)
        operand = data.column("programs", OPERANDS[tag][0])[programs]
        valid = (operand >= 0) & (operand < len(of_exchange))
        code[programs[valid]] = np.maximum(of_exchange[operand[valid]], 0)
    return code


def code_of_exchanges(report: Report, tag: str) -> Integers:
    """Return the bytes of code of each exchange of a type on all tiles; -1 where it is not told."""
    data = report.dataset
    array = f"{OPERANDS[tag][1]}_code_bytes"
    if data.has(array):
        return code_if_counted(report, data.row_sums(array))
    code = np.full(len(moved_by_exchange(report, tag)[0]), -1)
    if not counts_code(report):
        return code
    if data.has("exchange_instructions"):
        names = ("program", "total")
        programs, totals = (data.column("exchange_instructions", name) for name in names)
        of_tag = data.texts("programs", "type")[programs] == tag
        operand = data.column("programs", OPERANDS[tag][0])[programs]
        recorded = of_tag & (operand >= 0) & (operand < len(code))
        code[operand[recorded]] = totals[recorded]
    return code


@analysis(
    "operation layer bytes:bytes variables:bytes vertex_state:bytes control_code:bytes "
    "exchange_code:bytes"
)
def memory_by_operation(report: Report) -> Columns:
    """Return what each operation takes on all tiles: variables, vertices and code, the most first.

    An operation is as in `cycles_by_operation`. `variables` are the bytes of its variables, which
    share memory when they are not live together; `vertex_state` of its compute sets; `control_code`
    and `exchange_code` of its programs (an exchange that several run counts for the first), -1
    where code was not counted. Code of vertices is shared by all, and left out. `bytes` is the sum.
    Raises NotRecordedError.
    """
    data = report.dataset
    of_program = operations(report)[:-1]
    of_variable = owners(
        report, *(data.column("variables", name) for name in ("name", "debug_context"))
    )
    words, place = np.unique(
        np.concatenate([of_program, of_variable]).astype(str), return_inverse=True
    )
    by_program, by_variable = place[: len(of_program)], place[len(of_program) :]
    count = len(words)
    parts = {
        "variables": summed(by_variable, data.column("variables", "bytes"), count),
        "vertex_state": summed(by_program, once_by_program(report, ("OnTileExecute",)), count),
        "control_code": summed(by_program, control_code_by_program(report), count),
        "exchange_code": summed(by_program, once_by_program(report, EXCHANGES), count),
    }
    total: Integers = np.sum([*parts.values()], axis=0)
    columns = {
        "operation": words.astype(object),
        "layer": [layer_of(word) for word in words.tolist()],
        "bytes": total,
        **{name: _if_counted(report, name, sizes) for name, sizes in parts.items()},
    }
    return largest_first(rows_of(columns, total > 0), "bytes")


def _if_counted(report: Report, part: str, sizes: Integers) -> Integers:
    return code_if_counted(report, sizes) if part in CODE_CATEGORIES else sizes


def control_code_by_program(report: Report) -> Integers:
    """Return the bytes of control code of each program; 0 where it is not told."""
    data = report.dataset
    if not data.has("control_code"):
        return np.zeros(len(data.column("programs", "name")), dtype=np.int64)
    names = ("program", "tile", "end_tile", "bytes")
    rows, first, end, sizes = (data.column("control_code", name) for name in names)
    return summed(rows, sizes * (end - first), len(data.column("programs", "name")))


def once_by_program(report: Report, tags: tuple[str, ...]) -> Integers:
    """Charge each compute set's state or exchange's code to the first program that runs it."""
    data = report.dataset
    charged = np.zeros(len(data.column("programs", "name")), dtype=np.int64)
    for tag in tags:
        sizes = _state(report) if tag == "OnTileExecute" else code_of_exchanges(report, tag)
        rows, programs = first_users(report, tag)
        valid = rows < len(sizes)
        charged[programs[valid]] = np.maximum(sizes[rows[valid]], 0)
    return charged


def first_users(report: Report, tag: str) -> tuple[Integers, Integers]:
    """Return the compute sets or exchanges that programs run, and the first program of each."""
    data = report.dataset
    programs = np.flatnonzero(data.texts("programs", "type") == tag)
    operand = data.column("programs", OPERANDS[tag][0])[programs]
    programs, operand = programs[operand >= 0], operand[operand >= 0]
    rows, first = np.unique(operand, return_index=True)
    return rows, programs[first]


def _state(report: Report) -> Integers:
    """Return the bytes of the vertices of each compute set."""
    data = report.dataset
    parts = (data.row_sums(f"memory_by_compute_set_{part}") for part in VERTEX_PARTS)
    return sum(parts, np.zeros(1, dtype=np.int64))
