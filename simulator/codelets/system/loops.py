"""The vertex that counts a loop. Source: PopLibs lib/popops/codelets/ForLoopCounter.cpp."""

from __future__ import annotations

import numpy as np

from simulator.codelets.system import copies
from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.types import BOOL, Array, Type
from simulator.graph.vertices.vertex import Codelet, Operands

TYPES = VertexTypes(
    (
        worker(
            "popops::ForLoopCounter<type>",
            "count limit increment comparisonResult",
            copies.loop_counter,
            "our estimate, from the C++ codelet of PopLibs",
            (16, 60),
            exact=False,
        ),
    )
)


def for_loop_counter(dtype: Type) -> Codelet:
    """Return popops::ForLoopCounter: it adds `increment` to `count` and compares with `limit`."""

    def compute(operands: Operands) -> dict[str, Array]:
        arrays = operands.arrays
        # As on the machine: counts wrap around, and the sign of the difference decides.
        count = arrays["count"] + arrays["increment"]
        difference = (arrays["limit"] - count).view(np.int32)
        step = arrays["increment"].view(np.int32)
        goes_on = np.where(step > 0, difference > 0, (step < 0) & (difference < 0))
        return {"count": count, "comparisonResult": goes_on.astype(BOOL.numpy)}

    return TYPES.codelet(f"popops::ForLoopCounter<{dtype}>", compute)
