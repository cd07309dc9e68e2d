"""What a vertex type is: declared once, beside its code, from which its codelets are made.

A module that computes vertices has a table `TYPES` of them; `catalogue` collects all tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Apart, Codelet, Operands, VertexGroup

# Files of PopLibs that formulas are from.
POPOPS_CYCLES = "PopLibs lib/popops/popopsCycleEstimators.cpp"
POPOPS_ESTIMATES = "PopLibs lib/popops/PerformanceEstimation.cpp"
POPNN_CYCLES = "PopLibs lib/popnn/popnnCycleEstimators.cpp"
POPNN_ESTIMATES = "PopLibs lib/popnn/PerformanceEstimation.hpp"
POPLIN_CYCLES = "PopLibs lib/poplin/poplinCycleEstimators.cpp"
POPLIN_ESTIMATES = "PopLibs lib/poplin/PerformanceEstimation.hpp"
# State and code of an element-wise vertex: of one region (1D), and of several (2D).
ONE_REGION, SEVERAL_REGIONS = (16, 150), (24, 170)


@dataclass(frozen=True, slots=True)
class VertexType:
    """A vertex type of the libraries, and what one vertex of it costs.

    `name` is PopLibs', with what stands between < and > of its template. `cycles` takes arrays, one
    number for each vertex (where its docstring says so, for each region), and gives the cycles of
    each vertex: of the whole tile for a `supervisor`, else of one worker. Keyword arguments after
    the arrays are the same for all vertices. `exact` says that the public source's formula is
    restated, or that its figure was observed; else the formula is ours. `state_bytes`, without
    edges, and `code_bytes` are estimates in every row. Of the pointers to edges `scaled` are of two
    bytes where the machine has such (PopLibs' codelets, SCALED_PTR32 and SCALED_PTR64).
    """

    name: str
    fields: tuple[str, ...]
    cycles: Callable[..., Any]
    source: str
    state_bytes: int
    code_bytes: int
    supervisor: bool = False
    exact: bool = True
    scaled: int = 0

    @property
    def prefix(self) -> str:
        """Return the name without its template."""
        return self.name.partition("<")[0]

    @property
    def formula(self) -> str:
        """Return the formula in words: the first line of the docstring of `cycles`."""
        function = getattr(self.cycles, "func", self.cycles)
        return (inspect.getdoc(function) or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class VertexTypes:
    """The vertex types of a module, and the codelets that are made of them."""

    types: tuple[VertexType, ...]

    def __getitem__(self, name: str) -> VertexType:
        """Return the type of a vertex by its name, with or without its template.

        Of types that differ in the end of their templates it is the one that ends alike. Raises
        KeyError for a name that is not declared: such a vertex has no source of its cost.
        """
        prefix, last = name.partition("<")[0], name.rpartition(",")[2]
        same = [one for one in self.types if one.prefix.partition(",")[0] == prefix]
        if not same:
            raise KeyError(f"vertex {name}: no type is declared for it; its cost needs a source")
        return next((one for one in same if one.name.rpartition(",")[2] == last), same[0])

    def codelet(
        self,
        name: str,
        compute: Callable[[Operands], dict[str, Array]],
        flops: Callable[[VertexGroup], IntArray] | None = None,
        *,
        more_code: int = 0,
        kind: Literal["library", "copy"] = "library",
        reads_clock: bool = False,
        apart: Apart = "",
    ) -> Codelet:
        """Return a codelet of a declared type; its code may have bytes more than the type's."""
        declared = self[name]
        return Codelet(
            name,
            compute,
            declared.supervisor,
            declared.state_bytes,
            declared.code_bytes + more_code,
            flops,
            kind,
            reads_clock,
            apart,
            scaled=declared.scaled,
        )


def worker(
    name: str,
    fields: str,
    cycles: Callable[..., object],
    source: str,
    sizes: tuple[int, int],
    *,
    exact: bool = True,
    scaled: int = 0,
) -> VertexType:
    """Declare a worker: `fields` are separated by spaces, `sizes` are state and code."""
    names = tuple(fields.split())
    return VertexType(name, names, cycles, source, *sizes, exact=exact, scaled=scaled)


def supervisor(
    name: str,
    fields: str,
    cycles: Callable[..., object],
    source: str,
    sizes: tuple[int, int],
    *,
    exact: bool = True,
) -> VertexType:
    """Declare a supervisor vertex, with the same arguments."""
    return replace(worker(name, fields, cycles, source, sizes, exact=exact), supervisor=True)
