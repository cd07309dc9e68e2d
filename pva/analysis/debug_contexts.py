"""Debug contexts: what is above one, and which of them stand for a software layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.table import Arrays
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report


def above(report: Report, context: int) -> Integers:
    """Return the rows of a debug context and of those around it, the outermost first.

    Raises NotRecordedError.
    """
    data = report.dataset
    parents = data.column("debug_contexts", "parent")
    path: dict[int, None] = {}
    while context >= 0:
        rows = data.rows_where("debug_contexts", "id", context)
        if not len(rows) or int(rows[0]) in path:
            break
        path[int(rows[0])] = None
        context = int(parents[rows[0]])
    return np.array([*reversed(path)], dtype=np.int64)


def context_columns(report: Report, rows: Integers) -> Arrays:
    """Describe debug contexts by their rows."""
    table = {name: values[rows] for name, values in report.dataset.table("debug_contexts").items()}
    return {
        "context": table["id"],
        "layer": table["layer"],
        "name": table["name"],
        "file": table["file"],
        "line": np.maximum(table["line"], 0),
        "function": table["function"],
        "json": table["json"],
    }


def source_of(report: Report, context: int) -> tuple[str, int, str]:
    """Return file, line and function of the innermost context around one that names a place.

    An empty file and -1 where none does, or none was recorded.
    """
    if context < 0 or not report.dataset.has("debug_contexts"):
        return "", -1, ""
    contexts = context_columns(report, above(report, context))
    file, line, function = (contexts[name] for name in ("file", "line", "function"))
    places = np.flatnonzero(file != "")
    if not len(places):
        return "", -1, ""
    inner = places[-1]
    return str(file[inner]), int(line[inner]), str(function[inner])


def finding_source(report: Report, variable: int, name: str) -> tuple[str, int, str]:
    """Return file, line and function that a finding of `insights` is about, as `source_of` does.

    Those of its variable (-1: none), else of the first program of its name ("": none).
    """
    data = report.dataset
    if variable >= 0:
        return source_of(report, int(data.column("variables", "debug_context")[variable]))
    rows = np.flatnonzero(np.asarray(data.column("programs", "name")) == name) if name else ()
    contexts = (int(data.column("programs", "debug_context")[row]) for row in rows[:1])
    return next((source_of(report, context) for context in contexts), ("", -1, ""))
