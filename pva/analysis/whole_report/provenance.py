"""How far each figure of a report can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pva.report import Report


class Quality(NamedTuple):
    """An item, such as a table or array, whether it is exact, estimate or measured, and why."""

    item: str
    quality: str
    reason: str


def figure_quality(report: Report) -> list[Quality]:
    """Return the quality of every item that the report has; nothing if it does not tell."""
    data = report.dataset
    if not data.has("provenance"):
        return []
    columns = (data.column("provenance", name).tolist() for name in Quality._fields)
    return [row for row in map(Quality, *columns) if data.has(row.item)]
