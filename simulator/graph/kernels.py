"""The passes over intervals that `_kernels.c` has in C: there where it was built, else None.

What calls one has it in NumPy too, and both give the same.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from simulator.graph.types import IntArray

compiled: Any = None

try:
    # For tests and comparisons: the two behave alike.
    if os.environ.get("SIMULATOR_KERNELS") != "0":
        from simulator.graph import _kernels  # type: ignore[attr-defined,unused-ignore]

        # One built from the source of another version is not used.
        compiled = _kernels if _kernels.INTERFACE == 3 else None
except ImportError:
    pass


def columns(name: str, *rows: IntArray, flags: int = 0) -> tuple[Any, ...]:
    """Run the kernel of this name; give its columns, the last `flags` of them true or false.

    Returns none where the kernel does not take what it is given.
    """
    results = getattr(compiled, name)(*(row.astype(np.int64, copy=False) for row in rows)) or ()
    last = len(results) - flags
    return tuple(
        np.frombuffer(result, dtype=np.int64 if place < last else np.bool_)
        for place, result in enumerate(results)
    )
