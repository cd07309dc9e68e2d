"""Rows of variables of equal names as one row, which a click opens and closes.

The names that are open stand in the address under `open`, each quoted, with commas between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import numpy as np

from dashboard.address import Address
from dashboard.components import Frame

KEY = "open"
CLOSED, OPEN, INSIDE = "▸", "▾", "    "  # before names, those of a group further to the right


def opened(state: Address) -> set[str]:
    """Return the names whose rows are all shown."""
    return {unquote(text) for text in state.text(KEY).split(",") if text}


def grouped(frame: Frame, steps: Sequence[str], names: set[str]) -> Frame:
    """Join the rows of equal names and categories, the largest change first, then the largest.

    `steps` are the columns of bytes; a row of several has no `variable`, and its name in `opens`.
    Those of `names` stand below the row of all.
    """
    import pandas as pd

    keys = ["name", "category"]
    sums = [name for name in (*steps, "share", "change") if name in frame]
    sizes = frame.groupby(keys, sort=False)["variable"].transform("size")
    alone = frame[sizes == 1].assign(opens=None)
    duplicates = frame[sizes > 1]
    if not len(duplicates):
        return frame.assign(opens=None)
    totals = duplicates.groupby(keys, sort=False)[sums].sum().reset_index()
    counts = duplicates.groupby(keys, sort=False).size().to_numpy()
    is_open = totals["name"].isin(names).to_numpy()
    marks = np.where(is_open, OPEN, CLOSED)
    words = [
        f"{mark} {name} ({count} of this name)"
        for mark, name, count in zip(marks, totals["name"], counts, strict=True)
    ]
    heads = totals.assign(opens=totals["name"], name=words, variable=None)
    result = pd.concat([alone.astype({"variable": object}), heads], ignore_index=True)
    order = np.lexsort((-result[list(steps)].max(axis=1), -result["change"].abs()))
    result = result.iloc[order]
    parts = []
    for row in range(len(result)):
        parts.append(result.iloc[row : row + 1])
        name = result["opens"].iloc[row]
        if name in names:
            inside = duplicates[duplicates["name"] == name]
            mine = inside["category"] == result["category"].iloc[row]
            parts.append(inside[mine].assign(name=INSIDE + name, opens=None))
    return pd.concat(parts, ignore_index=True) if names else result.reset_index(drop=True)
