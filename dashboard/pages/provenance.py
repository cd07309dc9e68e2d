"""How far each figure can be trusted, as the report says it."""

from __future__ import annotations

from dash import html

from dashboard.elements.components import Element, section
from dashboard.store import Report
from pva.analysis.whole_report.provenance import figure_quality

WORDS = {"estimate": "estimated", "exact": "exact", "measured": "measured"}


def badge(report: Report, item: str) -> Element:
    """Return a word: exact, estimated or measured, with the reason on hover."""
    for name, quality, reason in figure_quality(report):
        if name == item:
            words = WORDS.get(quality, quality)
            return html.Span(words, className=f"quality {quality}", title=reason)
    return None


def trust_section(report: Report) -> list[Element]:
    """Show all of it as a table, a row for each reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for item, quality, reason in figure_quality(report):
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
