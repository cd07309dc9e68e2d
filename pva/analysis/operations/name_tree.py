"""Cycles, code and memory by layer of names: a tree of the parts between their slashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import elapsed, labels, summed
from pva.analysis.columns import analysis
from pva.analysis.memory.code import code_by_program
from pva.analysis.memory.placement import live_at_peak_truths
from pva.analysis.table import Columns, rows_of
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 300  # of its analyses in the catalogue
OUTERMOST = -1


@analysis("path parent total:cycles own:cycles")
def cycles_by_name(report: Report) -> Columns:
    """Return the cycles of the layers of programs' names in the recorded runs, as a tree.

    A row is a name, or what names share up to a slash: `path`, which lies in the row `parent` (-1
    for none, never behind the row). `total` is by how many cycles its steps made the runs longer,
    of which `own` is without those in it. The `own` of all rows add up to the cycles of the steps.
    Raises NotRecordedError.
    """
    data = report.dataset
    programs, count = data.column("steps", "program"), len(data.column("programs", "name"))
    owner = np.where((programs >= 0) & (programs < count), programs, count)
    spent = summed(owner, elapsed(report), count + 1)
    return tree_of(labels(report, np.arange(count + 1)).tolist(), spent)


@analysis("path parent total:bytes own:bytes")
def code_by_name(report: Report) -> Columns:
    """Return what code the layers of the names of programs have, on all tiles, and what is in them.

    Rows are those of `cycles_by_name`, in bytes of control code and of exchange code; that of an
    exchange which several programs run counts once, with the first of them. Code of vertices is of
    no program. Raises NotRecordedError, also where code was not counted.
    """
    code = code_by_program(report).arrays
    code = rows_of(code, np.argsort(code["program"], kind="stable"))
    data = report.dataset
    exchange = data.column("programs", "exchange")[code["program"]]
    keys = [f"{tag} {row}" for tag, row in zip(code["type"], exchange.tolist(), strict=True)]
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(np.array(keys, dtype=str), return_index=True)[1]] = True
    sizes = code["control_code"] + code["exchange_code"] * first
    return tree_of(code["name"].tolist(), sizes)


@analysis("path parent total:bytes own:bytes")
def memory_by_name(report: Report) -> Columns:
    """Return what the layers of the names of variables take at the peak, and what is in them.

    Rows are those of `cycles_by_name`, in bytes of the variables that are live at the peak, the
    always-live among them. Raises NotRecordedError.
    """
    data = report.dataset
    names, sizes = (data.column("variables", name) for name in ("name", "bytes"))
    live = live_at_peak_truths(report)
    return tree_of(names[live].tolist(), sizes[live])


def tree_of(names: Sequence[str], values: Integers) -> Columns:
    """Lay names out as a tree by their slashes, with the value of each and of what is in it."""
    unique, place = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    sums = summed(place, values, len(unique))
    rows: dict[str, int] = {}
    parents: list[int] = []
    at = []
    for name in unique[sums != 0].tolist():
        parts, parent = name.split("/"), OUTERMOST
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if path not in rows:
                rows[path] = len(parents)
                parents.append(parent)
            parent = rows[path]
        at.append(parent)
    parent_of = np.array(parents, dtype=np.int64)
    own_values = np.zeros(len(parents), dtype=np.int64)
    own_values[at] = sums[sums != 0]
    total = totals(parent_of, own_values)
    return {"path": list(rows), "parent": parent_of, "total": total, "own": own_values}


def totals(parent: Integers, values: Integers) -> Integers:
    """Add up what is in each row of a tree; parents stand before what is in them."""
    total = values.copy()
    depth = depths_of(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        np.add.at(total, parent[rows], total[rows])
    return total


def depths_of(parent: Integers) -> Integers:
    """Return how many rows each row of a tree lies in."""
    depth = np.zeros(len(parent), dtype=np.int64)
    above = parent.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], OUTERMOST)
    return depth
