"""Vertices that write a register of their tile. No value of a tensor depends on what they write."""

from __future__ import annotations

import numpy as np

from simulator.graph.types import Array, IntArray
from simulator.graph.vertex import Codelet, Operands


def put_cycles(vertices: IntArray) -> IntArray:
    """14: it loads a word, changes the register and returns, as a seed's setting begins."""
    return np.full_like(vertices, 14)


def _nothing(operands: Operands) -> dict[str, Array]:
    del operands
    return {}


PUT = Codelet("popsys::PutSupervisorCSR", _nothing, True, 4, 20)
MODIFY = Codelet("popsys::ModifySupervisorCSR", _nothing, True, 8, 28)
