"""Debug contexts: what is above one, and which of them stand for a software layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.programs import Integers

if TYPE_CHECKING:
    import pandas as pd

    from pva.report import Report


def above(report: Report, context: int) -> Integers:
    """Give the rows of a debug context and of those around it, the outermost first.

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


def contexts_frame(report: Report, rows: Integers) -> pd.DataFrame:
    """Describe debug contexts by their rows."""
    import pandas as pd

    table = {name: values[rows] for name, values in report.dataset.table("debug_contexts").items()}
    return pd.DataFrame(
        {
            "context": table["id"],
            "layer": table["layer"],
            "name": table["name"],
            "file": table["file"],
            "line": np.maximum(table["line"], 0),
            "function": table["function"],
            "json": table["json"],
        }
    )
