"""Weights go to and from the device in the order of its memory; the host arranges them.

Otherwise each tile would get its part of a weight in as many scraps as it has rows.
"""

from __future__ import annotations

import numpy as np

from simulator.graph.geometry.intervals import join, offsets_of, spread
from simulator.graph.geometry.strides import Strides, listed
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray


def in_memory_order(tensor: Tensor) -> Tensor:
    """Return a flat view of a tensor that goes up in memory."""
    places = tensor.places
    upward = places.ascending() if isinstance(places, Strides) else None
    if upward is None:
        begins, lengths = tensor.intervals()
        order = np.argsort(begins, kind="stable")
        return tensor.at((tensor.numElements(),), listed(*join(begins[order], lengths[order])))
    return tensor.at((tensor.numElements(),), upward)


def arranged(tensor: Tensor, values: Array, out: Array | None = None) -> Array:
    """Put a tensor's flat values, once or several times, into the order of its memory."""
    result = np.empty_like(values) if out is None else out
    sizes, order = _dimensions(tensor)
    if order is not None:
        upward = values.reshape(-1, *sizes).transpose(order)
        result.reshape(upward.shape)[...] = upward
        return result
    size, places = _blocks(tensor)
    result.reshape(-1, len(places), size)[...] = values.reshape(-1, len(places), size)[:, places]
    return result


def restored(tensor: Tensor, values: Array) -> Array:
    """Put flat values that are in the order of a tensor's memory into its own."""
    result = np.empty_like(values)
    sizes, order = _dimensions(tensor)
    if order is not None:
        upward = result.reshape(-1, *sizes).transpose(order)
        upward[...] = values.reshape(upward.shape)
        return result
    size, places = _blocks(tensor)
    result.reshape(-1, len(places), size)[:, places] = values.reshape(-1, len(places), size)
    return result


def _dimensions(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return dimensions of a tensor's elements, and their order in memory behind one of tensors.

    The order is None where the memory's is no order of dimensions.
    """
    places = tensor.places
    if not isinstance(places, Strides) or places.ascending() is None:
        return (), None
    steps = [step for _, step in places.loops]
    order = sorted(range(len(steps)), key=lambda number: -steps[number])
    return tuple(times for times, _ in places.loops), (0, *(number + 1 for number in order))


def _blocks(tensor: Tensor) -> tuple[int, IntArray]:
    """Return the size of blocks that stay whole, and the block at each place of the memory."""
    begins, lengths = tensor.intervals()
    size = int(np.gcd.reduce(lengths))
    order = np.argsort(begins, kind="stable")
    first, count = offsets_of(lengths)[:-1] // size, lengths // size
    return size, spread(first[order], count[order])
