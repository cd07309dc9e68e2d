"""Instances beside each other: who took how long, and who compiled something else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.distributed.events import Instance, SeveralInstances
from pva.analysis.table import Columns, whole_numbers
from pva.data.graph_hash import graph_columns, graph_hash
from pva.errors import PvaError
from pva.report import Report

ORDER = 420  # of its analyses in the catalogue
NS = 1e9  # in a second
# The type of each column; None is of whole numbers that may be missing.
_COLUMNS = {"instance": "i8", "host": "O", "pid": None, "exit_code": None, "seconds": "f8",
            "runs": None, "cycles": None, "trace_seconds": "f8", "graph": "O",
            "problems": "i8"}  # fmt: skip
_DIFFERENCES = {"instance": "i8", "host": "O", "graph": "O", "differs": "?", "table": "O",
                "column": "O", "row": None, "value": "O", "most": "O"}  # fmt: skip


@analysis("instance host pid exit_code seconds:s runs cycles:cycles trace_seconds:s graph problems")
def instances(run: SeveralInstances) -> Columns:
    """Return what each instance did: a row for each, and what is not there is missing.

    Columns: instance, host, pid, exit_code, seconds (of its process), runs, cycles (of all runs of
    its reports), trace_seconds (its host trace lasts), graph (hash), problems (how many).
    """
    rows = [_totals(one) for one in run.instances]
    return _typed(rows, _COLUMNS)


@analysis("instance host graph differs table column row value most")
def equal_graphs(run: SeveralInstances) -> Columns:
    """Return which instances compiled something else than most, and the first difference.

    A row for each instance with a report. Columns: instance, host, graph (hash), differs; of the
    first difference table, column, row (missing where lengths differ), value, and `most`: that of
    the instances whose graph most have. Of as many of two graphs the first instance's counts.
    """
    hashed = [
        (one, one.reports[-1], _hash(one.reports[-1])) for one in run.instances if one.reports
    ]
    hashed = [entry for entry in hashed if entry[2]]
    counts = Counter(graph for *_, graph in hashed)
    usual = max(hashed, key=lambda entry: counts[entry[2]], default=None)
    rows = []
    for one, report, graph in hashed:
        row = {"instance": one.index, "host": one.host, "graph": graph, "differs": False}
        if usual is not None and graph != usual[2]:
            row |= {"differs": True, **_first_difference(report, usual[1])}
        rows.append(row)
    return _typed(rows, _DIFFERENCES)


def _typed(rows: list[dict[str, Any]], types: dict[str, str | None]) -> Columns:
    columns = {name: [row.get(name) for row in rows] for name in types}
    return {
        name: np.array(columns[name], dtype) if dtype else whole_numbers(columns[name])
        for name, dtype in types.items()
    }


def _totals(one: Instance) -> dict[str, object]:
    file, cycles = (
        one.file,
        [run_cycles for report in one.reports for run_cycles in _cycles(report)],
    )
    ended = file is not None and file.end is not None
    took = file.end.clock_ns - file.begin.clock_ns if file and file.end and ended else np.nan
    return {
        "instance": one.index, "host": one.host,
        "pid": file.pid if file else None, "exit_code": file.exit_code if file else None,
        "seconds": took / NS,
        "runs": len(cycles) if one.reports else None,
        "cycles": sum(cycles) if one.reports else None,
        "trace_seconds": np.nan if one.trace is None else one.trace.duration_ns / NS,
        "graph": _hash(one.reports[-1]) if one.reports else "", "problems": len(one.problems),
    }  # fmt: skip


def _cycles(report: Report) -> list[int]:
    if not report.dataset.has("runs"):
        return []
    return [max(int(cycles), 0) for cycles in report.dataset.column("runs", "cycles")]


def _hash(report: Report) -> str:
    try:
        return graph_hash(report.dataset)
    except PvaError:  # damaged: its tables are named where they are read
        return ""


def _first_difference(report: Report, usual: Report) -> dict[str, Any]:
    """Return the first column, and its first row, in which two graphs differ."""
    for table, column in dict.fromkeys((*graph_columns(usual.dataset),
                                        *graph_columns(report.dataset))):  # fmt: skip
        place = {"table": table, "column": column}
        mine, most = (one.dataset.has(table) for one in (report, usual))
        if mine != most:
            return place | {"value": _there(mine), "most": _there(most)}
        values, usual_values = (one.dataset.column(table, column) for one in (report, usual))
        if len(values) != len(usual_values):
            return place | {"value": f"{len(values)} rows", "most": f"{len(usual_values)} rows"}
        unequal = np.flatnonzero(
            (values != usual_values) & ~((values != values) & (usual_values != usual_values))
        )  # but for NaN
        if len(unequal):
            row = int(unequal[0])
            return place | {"row": row, "value": str(values[row]), "most": str(usual_values[row])}
    return {}


def _there(recorded: bool) -> str:
    return "recorded" if recorded else "not recorded"
