"""Which parts of which variables a tensor is made of."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from simulator.graph import kernels
from simulator.graph.geometry.intervals import Interval, crossings, offsets_of, touch
from simulator.graph.tensors.arena import Arena
from simulator.graph.types import BoolArray, IntArray, Type


class Elements(Protocol):
    """Elements of an arena: intervals of `lengths` elements from `begins`, of one type."""

    @property
    def graph(self) -> Arena: ...
    @property
    def dtype(self) -> Type: ...
    @property
    def begins(self) -> IntArray: ...
    @property
    def lengths(self) -> IntArray: ...
    def intervals(self) -> tuple[IntArray, IntArray]: ...
    def numElements(self) -> int: ...
    def extent(self) -> tuple[int, int]: ...


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


def parts_of(tensor: Elements) -> Parts:
    """Cut the intervals of a tensor at variables."""
    bounds = tensor.graph.variable_bounds()
    parts = Parts(*pieces_of(*tensor.intervals(), *bounds, tensor.dtype.size))
    filled = parts.high > parts.low
    return parts if filled.all() else Parts(*(column[filled] for column in parts))


def pieces_of(
    begins: IntArray, lengths: IntArray, piece_begins: IntArray, piece_ends: IntArray, size: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut the intervals of a tensor at pieces of bytes; an element has `size` of them.

    Gives the positions [low, high) of the flattened tensor that lie together in a piece, the piece,
    and how many elements behind its begin the first of them is.
    """
    if kernels.compiled:
        sizes = np.array([size])
        columns = kernels.columns("parts", begins, lengths, piece_begins, piece_ends, sizes)
        low, high, piece, first = columns
        return low, high, piece, first
    begin, end = begins * size, (begins + lengths) * size
    interval, piece = crossings(begin, end, piece_begins, piece_ends)
    low = np.maximum(begin[interval], piece_begins[piece])
    high = np.minimum(end[interval], piece_ends[piece])
    shift = (offsets_of(lengths)[:-1] - begins)[interval]
    first = (low - piece_begins[piece]) // size
    return low // size + shift, high // size + shift, piece, first


def contiguous_regions(tensor: Elements) -> list[Interval]:
    """List the parts of the flattened tensor that lie together in one variable."""
    parts = parts_of(tensor)
    return list(map(Interval, parts.low.tolist(), parts.high.tolist()))


def sorted_regions(
    tensor: Elements, within: list[tuple[int, int]] | None = None, *, without_aliases: bool = False
) -> list[list[Interval]]:
    """List parts of a flattened tensor, in the order of memory; those that follow there together.

    `within` are the parts of the tensor that count. `without_aliases` leaves out what has come.
    """
    parts = parts_of(tensor)
    low, high, variable, first = parts
    if within is not None:
        ends = np.array(sorted(within), np.int64).reshape(-1, 2)
        part, piece = crossings(low, high, ends[:, 0].copy(), ends[:, 1].copy())
        begin = np.maximum(low[part], ends[piece, 0])
        first, variable = first[part] + begin - low[part], variable[part]
        low, high = begin, np.minimum(high[part], ends[piece, 1])
    order = np.lexsort((low, first, variable))
    low, high, variable, first = (column[order] for column in (low, high, variable, first))
    groups: list[list[Interval]] = []
    last, end = -1, -1
    columns = (low.tolist(), high.tolist(), variable.tolist(), first.tolist())
    for begin_at, end_at, owner, place in zip(*columns, strict=True):
        length, skipped = end_at - begin_at, 0
        if without_aliases and owner == last:
            skipped = min(max(end - place, 0), length)
        if skipped == length:
            continue
        interval = Interval(begin_at + skipped, end_at)
        if owner == last and place + skipped == end:
            groups[-1].append(interval)
        else:
            groups.append([interval])
        last, end = owner, max(place + length, end if owner == last else -1)
    return groups


def variable_regions(tensor: Elements) -> list[VariableInterval]:
    """List the parts of flattened variables that follow one another in a tensor."""
    parts = parts_of(tensor)
    ends = (parts.first + parts.high - parts.low).tolist()
    intervals = map(Interval, parts.first.tolist(), ends)
    return list(map(VariableInterval, parts.variable.tolist(), intervals))


def variables_of(tensor: Elements) -> list[int]:
    """List the numbers of the variables that a tensor views, ascending."""
    size, (bounds, ends) = tensor.dtype.size, tensor.graph.variable_bounds()
    if not tensor.numElements():
        return []
    low, high = (byte * size for byte in tensor.extent())
    if high <= ends[first := int(np.searchsorted(bounds, low, side="right")) - 1]:
        return [first]
    within: list[int] = variables_met(tensor.graph, *tensor.intervals(), size).tolist()
    return within


def variables_met(graph: Arena, begins: IntArray, lengths: IntArray, size: int) -> IntArray:
    """Return the variables that intervals of elements of `size` bytes touch, ascending."""
    bounds, ends = graph.variable_bounds()
    return np.flatnonzero(met(begins, lengths, bounds, ends, size))


def met(
    begins: IntArray, lengths: IntArray, piece_begins: IntArray, piece_ends: IntArray, size: int
) -> BoolArray:
    """Return for each piece of bytes whether an interval of elements of `size` has one of them."""
    result: BoolArray
    if kernels.compiled:
        columns = (begins, lengths, piece_begins, piece_ends, np.array([size]))
        (result,) = kernels.columns("met", *columns, flags=1)
        return result
    filled = lengths > 0
    begin, end = (begins * size)[filled], ((begins + lengths) * size)[filled]
    result = np.zeros(len(piece_begins), dtype=bool)
    result[crossings(begin, end, piece_begins, piece_ends)[1]] = True
    return result & (piece_ends > piece_begins)


def have_common_bytes(left: Elements, right: Elements) -> bool:
    """Return whether two tensors view a byte of the same variable."""
    if left.graph.variables is not right.graph.variables or not len(right.begins):
        return False
    begins, other_begins = left.begins * left.dtype.size, right.begins * right.dtype.size
    return touch(
        begins,
        begins + left.lengths * left.dtype.size,
        other_begins,
        other_begins + right.lengths * right.dtype.size,
    )
