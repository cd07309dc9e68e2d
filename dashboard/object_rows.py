"""Which object (dashboard/objects.py) a row of a table is, so that a click opens the drawer."""

from __future__ import annotations

import numpy as np

from dashboard.components import Frame
from dashboard.store import Report
from pva.analysis.exchanges import KINDS
from pva.analysis.programs import Integers


def first_programs(report: Report, tag: str, column: str, rows: Integers) -> Integers:
    """Return the first program of a type that runs each compute set or exchange, -1 for none."""
    data = report.dataset
    programs = np.flatnonzero(data.texts("programs", "type") == tag)[::-1]
    operands = data.column("programs", column)[programs]
    found = np.full(max(int(rows.max(initial=0)), int(operands.max(initial=0))) + 1, -1)
    found[operands[operands >= 0]] = programs[operands >= 0]
    first: Integers = found[rows]
    return first


def exchange_objects(report: Report, frame: Frame) -> list[str | None]:
    """Return the programs of exchanges, each told by its `kind` and its row `exchange`."""
    found = np.full(len(frame), -1)
    for tag, kind in KINDS.items():
        mine = (frame["kind"] == kind).to_numpy()
        rows = frame["exchange"].to_numpy()[mine]
        found[mine] = first_programs(report, tag, "exchange", rows)
    return texts_of("program", found)


def texts_of(kind: str, rows: Integers) -> list[str | None]:
    """Return the objects of some rows, none for a row of -1."""
    return [f"{kind}:{row}" if row >= 0 else None for row in rows.tolist()]
