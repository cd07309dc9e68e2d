"""Rows of variables of equal names as one row, which a click opens and closes.

The names that are open stand in the address under `open`, each quoted, with commas between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from dashboard.address import Address
from dashboard.elements.components import Frame
from pva.analysis.memory.equal_names import joined_names

KEY = "open"
CLOSED, OPEN, INSIDE = "▸", "▾", "    "  # before names, those of a group further to the right


def opened(state: Address) -> set[str]:
    """Return the names whose rows are all shown."""
    return {unquote(text) for text in state.text(KEY).split(",") if text}


def grouped(frame: Frame, steps: Sequence[str], names: set[str]) -> Frame:
    """Join the rows of equal names and categories, those of `names` with their rows below them.

    `steps` are the columns of bytes; a row of several has no `variable`, and its name in `opens`.
    """
    joined = joined_names(frame, steps, names)
    is_group, name = joined["count"] > 1, joined["name"]
    marks = name.isin(names).map({True: OPEN, False: CLOSED})
    heads = marks + " " + name + " (" + joined["count"].astype(str) + " of this name)"
    words = name.where(~joined["inside"], INSIDE + name).where(~is_group, heads)
    opens = name.astype(object).where(is_group, None)
    return joined.assign(name=words, opens=opens).drop(columns=["count", "inside"])
