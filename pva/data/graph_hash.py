"""The identity of a compiled graph: equal programs on equal machines have equal hashes.

It covers what was compiled, not when, where or with which options of the report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.data.dataset import Dataset

# In the order in which a difference is looked for: what is compiled before what follows from it.
TABLES = ("target", "graph", "vertex_types", "compute_sets", "compute_set_vertices", "variables",
          "programs", "program_children", "control_programs", "function_programs",
          "memory_by_tile")  # fmt: skip
PLACES = ("debug_context",)  # columns that speak of source files, whose paths differ by host


def graph_hash(data: Dataset) -> str:
    """Return the hash of a report's compiled graph, empty when none was recorded."""
    total = hashlib.sha256()
    recorded = False
    for table, column in graph_columns(data):
        recorded = True
        values = data.column(table, column)
        total.update(f"{table}.{column} {len(values)}\n".encode())
        total.update(_bytes(values))
    return total.hexdigest() if recorded else ""


def graph_columns(data: Dataset) -> Iterator[tuple[str, str]]:
    """List the columns that a graph's identity is made of, as far as they were recorded."""
    for table in filter(data.has, TABLES):
        names = [column.name for column in schema.TABLE[table].columns]
        yield from ((table, name) for name in names if name not in PLACES)


def _bytes(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bytes:
    """Return the same bytes for the same values, in whatever width they were stored."""
    if values.dtype.kind in "iub":
        return np.ascontiguousarray(values, "<i8").tobytes()
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values, "<f8").tobytes()
    return "\0".join(map(str, values.tolist())).encode(errors="surrogatepass")
