"""The profile summary: what `printProfileSummary` prints."""

from pva.summary.layout import printable, use_colours
from pva.summary.profile_summary import execution_summary, graph_summary, profile_summary

__all__ = ["execution_summary", "graph_summary", "printable", "profile_summary", "use_colours"]
