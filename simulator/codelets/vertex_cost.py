"""What a row of the catalogue of vertex types says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VertexCost:
    """A vertex type of the libraries, and what one vertex of it costs.

    `name` is PopLibs', with what stands between < and > of its template. `cycles` takes arrays, one
    number for each vertex (where its docstring says so, for each region), and gives the cycles of
    each vertex: of the whole tile for a `supervisor`, else of one worker. Keyword arguments after
    the arrays are the same for all vertices. `exact` says that the public source's formula is
    restated, or that its figure was observed; else the formula is ours. `state_bytes`, without
    edges, and `code_bytes` are estimates in every row.
    """

    name: str
    fields: tuple[str, ...]
    cycles: Callable[..., Any]
    source: str
    state_bytes: int
    code_bytes: int
    supervisor: bool = False
    exact: bool = True

    @property
    def prefix(self) -> str:
        """Return the name without its template."""
        return self.name.partition("<")[0]

    @property
    def formula(self) -> str:
        """Return the formula in words: the first line of the docstring of `cycles`."""
        function = getattr(self.cycles, "func", self.cycles)
        return (inspect.getdoc(function) or "").partition("\n")[0]


def row(
    name: str,
    fields: str,
    cycles: Callable[..., Any],
    source: str,
    sizes: tuple[int, int],
    *,
    exact: bool = True,
) -> VertexCost:
    """Make the row of a worker: `fields` are separated by spaces, `sizes` are state and code."""
    return VertexCost(name, tuple(fields.split()), cycles, source, *sizes, exact=exact)


def supervisor(
    name: str,
    fields: str,
    cycles: Callable[..., Any],
    source: str,
    sizes: tuple[int, int],
    *,
    exact: bool = True,
) -> VertexCost:
    """Make the row of a supervisor vertex."""
    return VertexCost(name, tuple(fields.split()), cycles, source, *sizes, True, exact)
