"""Vertices that write a register of their tile. No value of a tensor depends on what they write."""

from __future__ import annotations

import numpy as np

from simulator.codelets.vertex_type import VertexTypes, supervisor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Operands


def put_cycles(vertices: IntArray) -> IntArray:
    """14: it loads a word, changes the register and returns, as a seed's setting begins."""
    return np.full_like(vertices, 14)


def _nothing(operands: Operands) -> dict[str, Array]:
    del operands
    return {}


_SOURCE = "our estimate, as how setting a seed begins"
TYPES = VertexTypes(
    (
        supervisor("popsys::PutSupervisorCSR", "setVal", put_cycles, _SOURCE, (4, 20), exact=False),
        supervisor(
            "popsys::ModifySupervisorCSR",
            "clearVal setVal",
            put_cycles,
            _SOURCE,
            (8, 28),
            exact=False,
        ),
    )
)

PUT = TYPES.codelet("popsys::PutSupervisorCSR", _nothing)
MODIFY = TYPES.codelet("popsys::ModifySupervisorCSR", _nothing)
