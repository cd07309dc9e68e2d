"""How far each figure can be trusted, as the report says it."""

from __future__ import annotations

from dash import html

from dashboard.components import Element, section
from dashboard.store import Report

WORDS = {"estimate": "estimated", "exact": "exact", "measured": "measured"}


def rows(report: Report) -> list[tuple[str, str, str]]:
    """List item, quality and reason of what is there; nothing when the report does not say."""
    data = report.dataset
    if not data.has("provenance"):
        return []
    columns = (data.column("provenance", name) for name in ("item", "quality", "reason"))
    return [
        (str(item), str(quality), str(reason))
        for item, quality, reason in zip(*columns, strict=True)
        if data.has(str(item))
    ]


def badge(report: Report, item: str) -> Element:
    """Find in a word whether a figure is exact, estimated or measured, with the reason on hover."""
    for name, quality, reason in rows(report):
        if name == item:
            words = WORDS.get(quality, quality)
            return html.Span(words, className=f"quality {quality}", title=reason)
    return None


def trust_section(report: Report) -> list[Element]:
    """Show all of it as a table, a row for each reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for item, quality, reason in rows(report):
        together.setdefault((quality, reason), []).append(item.replace("_", " "))
    entries = [
        html.Tr(
            [
                html.Th(reason, scope="row"),
                html.Td(html.Span(WORDS.get(quality, quality), className=f"quality {quality}")),
                html.Td(", ".join(items)),
            ]
        )
        for (quality, reason), items in together.items()
    ]
    if not entries:
        return []
    grid = html.Table(html.Tbody(entries), className="facts trust")
    return [section("How far to trust the figures", grid, folds="trust")]
