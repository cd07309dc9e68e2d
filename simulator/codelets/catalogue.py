"""The library's vertex types as one table: fields, cycles, bytes, and where each formula is from.

`docs/vertex-costs.md` is made from it.
"""

from __future__ import annotations

from simulator.codelets.catalogue_broadcast import VECTORS
from simulator.codelets.catalogue_data import DATA
from simulator.codelets.catalogue_others import POPLIN, POPRAND, POPSYS, RUN_TIME
from simulator.codelets.catalogue_pooling import NORMS, POOLING
from simulator.codelets.catalogue_popnn import POPNN
from simulator.codelets.catalogue_popops import POPOPS
from simulator.codelets.vertex_cost import VertexCost

CATALOGUE: tuple[VertexCost, ...] = (
    POPOPS + VECTORS + POPLIN + POPNN + POOLING + NORMS + POPRAND + POPSYS + RUN_TIME + DATA
)


def rows_of(codelet: str) -> tuple[VertexCost, ...]:
    """Return the rows of a vertex type, by its name with or without its template."""
    name = codelet.partition("<")[0]
    return tuple(row for row in CATALOGUE if row.prefix.partition(",")[0] == name)


def source_of(codelet: str) -> str:
    """Name the source of a library vertex type's cost; empty for a type that is not listed."""
    rows = rows_of(codelet)
    return rows[0].source if rows else ""
