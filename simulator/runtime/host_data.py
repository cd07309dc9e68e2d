"""The host's memory as arrays: any object with the buffer protocol, checked for type."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.graph.errors import HostAccessError
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, Type

RAW = (np.dtype("u1"), np.dtype("S1"))  # bytes, which may hold values of any type


def host_array(data: object, dtype: Type, label: str, *, writable: bool = False) -> Array:
    """View an object's memory as a flat array of a type, without a copy.

    Takes bytes, bytearray, memoryview, array.array, ctypes arrays, NumPy arrays and whatever NumPy
    can view (torch tensors of the host). Bytes may hold values of any type. Raises HostAccessError
    naming `label` for another type, gaps between the elements, or read-only memory to be written.
    """
    array = _viewed(data, label)
    if not array.flags.c_contiguous:
        raise HostAccessError(
            f"{label}: an array with gaps or of another order; a contiguous array is needed"
        )
    if writable and not array.flags.writeable:
        raise HostAccessError(f"{label}: the array is read-only; one that can be written is needed")
    flat = array.reshape(-1)
    if flat.dtype == dtype.numpy:
        return flat
    if flat.dtype not in RAW:
        raise HostAccessError(f"{label}: array of {flat.dtype}; one of {dtype} is needed")
    if flat.nbytes % dtype.size:
        raise HostAccessError(
            f"{label}: {flat.nbytes} bytes; a multiple of {dtype.size}, the size of {dtype}, is "
            "needed"
        )
    return flat.view(dtype.numpy)


def _viewed(data: Any, label: str) -> Array:
    if isinstance(data, np.ndarray):
        return data
    try:
        source = data if hasattr(data, "__array__") and not _has_buffer(data) else memoryview(data)
        return np.asarray(source)
    except (TypeError, ValueError, RuntimeError, BufferError):
        raise HostAccessError(
            f"{label}: {type(data).__name__} does not show its memory; an array or another object "
            "with the buffer protocol is needed"
        ) from None


def _has_buffer(data: Any) -> bool:
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def host_values(values: object, dtype: Type, label: str) -> object:
    """Return raw bytes as values of a type; anything else as it is."""
    raw = isinstance(values, bytes | bytearray | memoryview)
    return host_array(values, dtype, label) if raw else values


def copy_to_host(values: Array, tensor: Tensor, out: object, label: str) -> None:
    """Copy the values of a tensor to an array that holds them exactly, or to any host memory.

    Raises HostAccessError naming `label` for another type or size, or for read-only memory.
    """
    if not isinstance(out, np.ndarray):
        array = host_array(out, tensor.dtype, label, writable=True)
    elif not out.flags.writeable:
        raise HostAccessError(f"{label}: the array is read-only; one that can be written is needed")
    elif np.can_cast(values.dtype, out.dtype, "safe"):
        array = out
    else:
        raise HostAccessError(f"{label}: array of {out.dtype}; one of {tensor.dtype} is needed")
    if array.size != values.size:
        raise HostAccessError(
            f"{label}: array of {array.size} elements for {tensor.describe()} of {values.size}"
        )
    array[...] = values.reshape(array.shape)
