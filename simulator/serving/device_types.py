"""Types of clients that a device holds in others: it has numbers of 32 bits at most, and no BF16.

Whole numbers that do not fit are refused, FP64 and outputs of BF16 are rounded to the nearest.
"""

from __future__ import annotations

import numpy as np

from simulator.graph.types import Array
from simulator.serving.triton_messages.tensors import DATATYPES, TensorError

HELD = {"INT64": "<i4", "UINT64": "<u4", "FP64": "<f4", "BF16": "<f4"}
UPPER = np.uint32(16)  # bits of FP32 below those of BF16


def is_held(datatype: str, dtype: np.dtype[np.generic]) -> bool:
    """Return whether a type of clients is this one on the device, or held in it."""
    return dtype.newbyteorder("<") in (DATATYPES[datatype][1], HELD.get(datatype))


def to_device(name: str, datatype: str, array: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return an array as the device holds it; raises TensorError for a number that does not fit."""
    if datatype == "BF16":
        return (array.astype(np.uint32) << UPPER).view(np.float32).reshape(array.shape)
    if datatype not in HELD or array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        held = array.astype(dtype)
    if datatype == "FP64":
        lost = array[np.isinf(held) & np.isfinite(array)]
    else:
        lost = array[held != array]
    if lost.size:
        raise TensorError(f"input {name!r}: value {lost.flat[0]}; the device holds 32 bits")
    return held


def to_client(datatype: str, array: Array) -> Array:
    """Return what the device gives in the type of a client."""
    if datatype != "BF16":
        return array.astype(DATATYPES[datatype][1], copy=False)
    bits = np.ascontiguousarray(array).view(np.uint32)
    odd = (bits >> UPPER) & np.uint32(1)  # halfway between two it is the even one
    upper = ((bits + np.uint32(0x7FFF) + odd) >> UPPER).astype(np.uint16)
    quiet = (bits >> UPPER).astype(np.uint16) | np.uint16(0x40)
    return np.where(np.isnan(array), quiet, upper)
