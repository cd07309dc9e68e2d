"""The vertex by which single workers transpose; its cycles are in `transpose_cycles`."""

from __future__ import annotations

from dataclasses import replace

from simulator.codelets.convolution import transpose_codelet
from simulator.graph.types import Type
from simulator.graph.vertex import Codelet


def transpose_worker_codelet(dtype: Type, rows: int, columns: int) -> Codelet:
    """Return the worker that transposes matrices of its field `in`, each an edge of its own."""
    whole = transpose_codelet(dtype, rows, columns)
    name = f"popops::Transpose2D<{dtype}>"
    return replace(whole, name=name, supervisor=False, state_bytes=16, code_bytes=150)
