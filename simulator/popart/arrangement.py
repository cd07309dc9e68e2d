"""Weights go to and from the device in the order of its memory; the host arranges them.

Otherwise each tile would get its part of a weight in as many scraps as it has rows.
"""

from __future__ import annotations

import numpy as np

from simulator.graph.intervals import join, offsets_of, spread
from simulator.graph.strides import Strides, listed
from simulator.graph.tensor import Tensor
from simulator.graph.types import Array, IntArray


def in_memory_order(tensor: Tensor) -> Tensor:
    """Give a flat view of a tensor that goes up in memory."""
    places = tensor.places
    upward = places.ascending() if isinstance(places, Strides) else None
    if upward is None:
        begins, lengths = tensor.intervals()
        order = np.argsort(begins, kind="stable")
        return tensor.at((tensor.numElements(),), listed(*join(begins[order], lengths[order])))
    return tensor.at((tensor.numElements(),), upward)


def arranged(tensor: Tensor, values: Array) -> Array:
    """Put a tensor's flat values, once or several times, into the order of its memory."""
    size, places = _blocks(tensor)
    return values.reshape(-1, len(places), size)[:, places].reshape(-1)


def restored(tensor: Tensor, values: Array) -> Array:
    """Put flat values that are in the order of a tensor's memory into its own."""
    size, places = _blocks(tensor)
    found = np.empty_like(values)
    found.reshape(-1, len(places), size)[:, places] = values.reshape(-1, len(places), size)
    return found


def _blocks(tensor: Tensor) -> tuple[int, IntArray]:
    """Give the size of blocks that stay whole, and the block at each place of the memory."""
    begins, lengths = tensor.intervals()
    size = int(np.gcd.reduce(lengths))
    order = np.argsort(begins, kind="stable")
    first, count = offsets_of(lengths)[:-1] // size, lengths // size
    return size, spread(first[order], count[order])
