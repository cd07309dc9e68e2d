"""The passes over intervals that `_kernels.c` has in C: there where it was built, else None.

What calls one has it in NumPy too, and both give the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.graph.types import IntArray

NUMBERS = np.dtype(np.int64)
compiled: Any = None

try:
    # For tests and comparisons: the two behave alike.
    if os.environ.get("SIMULATOR_KERNELS") != "0":
        from simulator.graph import _kernels  # type: ignore[attr-defined,unused-ignore]

        # One built from the source of another version is not used.
        compiled = _kernels if _kernels.INTERFACE == 7 else None
except ImportError:
    pass


def columns(name: str, *rows: IntArray, flags: int = 0) -> Sequence[Any]:
    """Run the kernel of this name; give its columns, the last `flags` of them true or false.

    Returns none where the kernel does not take what it is given.
    """
    kernel = getattr(compiled, name)
    try:
        results = kernel(*rows)
    except TypeError:  # other integers, or not at whole words: both are rare
        results = kernel(*(np.require(row, np.int64, "A") for row in rows))
    if results is None:
        return ()
    if not flags:
        return [np.frombuffer(result, NUMBERS) for result in results]
    last = len(results) - flags
    numbers = [np.frombuffer(result, NUMBERS) for result in results[:last]]
    return numbers + [np.frombuffer(result, np.bool_) for result in results[last:]]
