"""What each library of PopLibs offers to bring its vertices into a graph."""

from __future__ import annotations

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph


def addCodelets(graph: Graph) -> None:
    """Let a graph use the library; here every graph knows its vertices already.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> popops.addCodelets(Trial().graph)
    """
    if not isinstance(graph, Graph):
        raise PoplarError(f"addCodelets: needs a graph, not {graph!r}")
