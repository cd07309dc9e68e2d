"""Which parts of which variables a tensor is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simulator.graph.intervals import Interval, crossings, offsets_of, present, spread, touch
from simulator.graph.types import IntArray

if TYPE_CHECKING:
    from simulator.graph.element_view import ElementView


class VariableInterval(NamedTuple):
    """The elements [begin, end) of a flattened variable; `var` is its number in the graph."""

    var: int
    interval: Interval


class Parts(NamedTuple):
    """The parts of a tensor that lie together in one variable, in the order of the tensor.

    Elements [low, high) of the flattened tensor are the elements of the variable from `first`.
    """

    low: IntArray
    high: IntArray
    variable: IntArray
    first: IntArray


def parts_of(tensor: ElementView) -> Parts:
    """Cut the intervals of a tensor at variables."""
    size = tensor.dtype.size
    begins = tensor.begins * size
    ends = begins + tensor.lengths * size
    bounds, bound_ends = tensor.graph.variable_bounds()
    interval, variable = crossings(begins, ends, bounds, bound_ends)
    low = np.maximum(begins[interval], bounds[variable])
    high = np.minimum(ends[interval], bound_ends[variable])
    filled = high > low
    interval, variable, low, high = (x[filled] for x in (interval, variable, low, high))
    shift = (offsets_of(tensor.lengths)[:-1] - tensor.begins)[interval]
    return Parts(
        low // size + shift, high // size + shift, variable, (low - bounds[variable]) // size
    )


def contiguous_regions(tensor: ElementView) -> list[Interval]:
    """List the parts of the flattened tensor that lie together in one variable."""
    parts = parts_of(tensor)
    return list(map(Interval, parts.low.tolist(), parts.high.tolist()))


def variable_regions(tensor: ElementView) -> list[VariableInterval]:
    """List the parts of flattened variables that follow one another in a tensor."""
    parts = parts_of(tensor)
    ends = (parts.first + parts.high - parts.low).tolist()
    intervals = map(Interval, parts.first.tolist(), ends)
    return list(map(VariableInterval, parts.variable.tolist(), intervals))


def variables_of(tensor: ElementView) -> list[int]:
    """List the numbers of the variables that a tensor views, ascending."""
    size, (bounds, ends) = tensor.dtype.size, tensor.graph.variable_bounds()
    if not tensor.numElements():
        return []
    low, high = (byte * size for byte in tensor.extent())
    if high <= ends[first := int(np.searchsorted(bounds, low, side="right")) - 1]:
        return [first]
    begins, lengths = tensor.intervals()
    held = np.searchsorted(bounds, begins * size, side="right") - 1
    last = np.searchsorted(bounds, (begins + lengths) * size) - 1
    filled = lengths > 0
    numbers = present(spread(held[filled], (last - held + 1)[filled]))
    within: list[int] = numbers[ends[numbers] > bounds[numbers]].tolist()
    return within


def have_common_bytes(left: ElementView, right: ElementView) -> bool:
    """Tell whether two tensors view a byte of the same variable."""
    if left.graph.variables is not right.graph.variables or not len(right.begins):
        return False
    begins, others = left.begins * left.dtype.size, right.begins * right.dtype.size
    return touch(
        begins,
        begins + left.lengths * left.dtype.size,
        others,
        others + right.lengths * right.dtype.size,
    )
