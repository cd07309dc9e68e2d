"""Columns of a page's table that an analysis declares: what they hold and mean comes from there.

    declared_columns(largest_exchanges, "name/name Exchange", "bytes_sent@150 Sent")

Each is `FIELD TITLE`; `/KIND` follows the field of a column without a unit that is no number, and
`@WIDTH` that of one that is not as wide as most, in pixels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from dashboard.elements.components import NAME_PIXELS, Column, Kind
from pva.analysis.columns import DECLARED
from pva.analysis.table import ANY, Declared

_SHOWN = re.compile(r"(?P<field>\w+)(/(?P<kind>\w+))?(@(?P<width>\d+))? (?P<title>.+)")
_KINDS: dict[str, Kind] = {
    "": "number",
    "bytes": "bytes",
    "bytes/cycle": "number",
    "cycles": "cycles",
    "flop": "number",
    "fraction": "share",
    "ns": "nanoseconds",
}
_CHANGES: dict[Kind, Kind] = {
    "number": "change",
    "bytes": "bytes change",
    "cycles": "cycles change",
    "nanoseconds": "nanoseconds change",
}
WIDTH = 130


def declared_columns(analysis: Callable[..., object], *shown: str) -> tuple[Column, ...]:
    """Return columns of the table of an analysis; raises ValueError for one that it has not."""
    declared = DECLARED[analysis.__name__]
    return tuple(_column(declared, text) for text in shown)


def _column(declared: Declared, text: str) -> Column:
    parts = _SHOWN.fullmatch(text)
    if parts is None or not {parts["field"], ANY} & set(declared.units):
        raise ValueError(f"{text!r}: there are the columns {', '.join(declared.units)}")
    field, width = parts["field"], int(parts["width"] or WIDTH)
    kind = cast(Kind, parts["kind"]) if parts["kind"] else _KINDS[declared.unit(field)]
    kind = _CHANGES[kind] if field == "change" else kind
    meaning = declared.meaning(field)
    least = width if kind == "name" and parts["width"] else NAME_PIXELS
    return Column(field, parts["title"], kind, width, meaning[:1].upper() + meaning[1:], least)
