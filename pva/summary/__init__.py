"""The profile summary: what `printProfileSummary` prints."""

from pva.summary.layout import is_terminal, printable, use_colours
from pva.summary.profile_summary import (
    execution_summary,
    execution_texts,
    graph_summary,
    graph_texts,
    profile_summary,
    profile_texts,
)

__all__ = [
    "execution_summary",
    "execution_texts",
    "graph_summary",
    "graph_texts",
    "is_terminal",
    "printable",
    "profile_summary",
    "profile_texts",
    "use_colours",
]
