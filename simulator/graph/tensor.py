"""A tensor: a view of intervals of elements in the arena that holds all variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.intervals import cut, from_elements, join, offsets_of, spread
from simulator.graph.types import IntArray, Type, checked_shape, element_count

if TYPE_CHECKING:
    from simulator.graph.graph import Graph

PythonSlice = slice  # Tensor has a method of that name
Index = int | PythonSlice


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A view of `shape` elements: interval i is `lengths[i]` elements from element `begins[i]`.

    Element e of a type of s bytes is the bytes [e*s, (e+1)*s) of the arena.
    """

    graph: Graph
    dtype: Type
    shape: tuple[int, ...]
    begins: IntArray
    lengths: IntArray

    def __repr__(self) -> str:
        return f"Tensor({self.describe()}: {self.dtype}{list(self.shape)})"

    def describe(self) -> str:
        """Name the variables that the tensor is made of."""
        names = self.graph.variable_names(self)
        return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")

    # Poplar's getters, under its names.
    def elementType(self) -> Type:
        return self.dtype

    def rank(self) -> int:
        return len(self.shape)

    def dim(self, dimension: int) -> int:
        return self.shape[self._checked_dimension(dimension)]

    def numElements(self) -> int:
        return element_count(self.shape)

    def isContiguous(self) -> bool:
        return len(self.begins) <= 1

    def getContiguousRegions(self) -> list[tuple[int, int]]:
        """List the parts [begin, end) of the flattened tensor that lie together in memory."""
        offsets = offsets_of(self.lengths).tolist()
        return list(zip(offsets[:-1], offsets[1:], strict=True))

    def elements(self) -> IntArray:
        """List the arena elements, in the tensor's shape."""
        return spread(self.begins, self.lengths).reshape(self.shape)

    def view(self, elements: IntArray) -> Tensor:
        """Make the tensor of these arena elements, in their shape."""
        begins, lengths = from_elements(elements.reshape(-1))
        return Tensor(self.graph, self.dtype, elements.shape, begins, lengths)

    def slice(
        self, begin: int | Sequence[int], end: int | Sequence[int], dimension: int = 0
    ) -> Tensor:
        """Take [begin, end) of one dimension, or of every dimension when both are lists."""
        if isinstance(begin, int) and isinstance(end, int):
            return self._slice_dimension(begin, end, self._checked_dimension(dimension))
        lows, highs = list(begin), list(end)  # type: ignore[arg-type]
        if len(lows) != self.rank() or len(highs) != self.rank():
            raise PoplarError(f"{self!r}: slice({lows}, {highs}) needs {self.rank()} numbers each")
        result = self
        for axis, (low, high) in enumerate(zip(lows, highs, strict=True)):
            result = result._slice_dimension(low, high, axis)
        return result

    def _slice_dimension(self, begin: int, end: int, axis: int) -> Tensor:
        size = self.shape[axis]
        if not 0 <= begin <= end <= size:
            raise PoplarError(
                f"{self!r}: slice [{begin}, {end}) of dimension {axis}; its size is {size}"
            )
        if begin == 0 and end == size:
            return self
        inner = element_count(self.shape[axis + 1 :])
        rows = element_count(self.shape[:axis])
        shape = (*self.shape[:axis], end - begin, *self.shape[axis + 1 :])
        if rows == 1 and begin < end and len(self.begins) == 1:
            # The common case, as programs add vertices one by one: one region out of one.
            first, length = self.begins + begin * inner, np.array([(end - begin) * inner])
            return Tensor(self.graph, self.dtype, shape, first, length)
        outer = np.arange(rows, dtype=np.int64) * (size * inner)
        low, high = outer + begin * inner, outer + end * inner
        begins, lengths, _ = cut(self.begins, self.lengths, low, high)
        return Tensor(self.graph, self.dtype, shape, *join(begins, lengths))

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        """Index or slice as in Python; steps other than 1 are taken element by element."""
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > self.rank():
            raise PoplarError(f"{self!r}: {len(parts)} indexes for {self.rank()} dimensions")
        result, axis = self, 0
        for part in parts:
            if isinstance(part, slice):
                result, axis = result._python_slice(part, axis), axis + 1
            else:
                result = result._pick(part, axis)
        return result

    def _python_slice(self, part: PythonSlice, axis: int) -> Tensor:
        low, high, step = part.indices(self.shape[axis])
        if step == 1:
            return self._slice_dimension(low, max(low, high), axis)
        return self.view(self.elements()[(*([slice(None)] * axis), part)])

    def _pick(self, index: int, axis: int) -> Tensor:
        size = self.shape[axis]
        if not -size <= index < size:
            raise PoplarError(f"{self!r}: index {index} of dimension {axis}; its size is {size}")
        picked = self._slice_dimension(index % size, index % size + 1, axis)
        return picked._reshaped((*self.shape[:axis], *self.shape[axis + 1 :]))

    def __len__(self) -> int:
        return self.dim(0)

    def reshape(self, shape: Sequence[int]) -> Tensor:
        sizes = checked_shape(shape, "reshape")
        if element_count(sizes) != self.numElements():
            raise PoplarError(
                f"{self!r}: cannot be reshaped to {list(sizes)}: "
                f"{self.numElements()} elements against {element_count(sizes)}"
            )
        return self._reshaped(sizes)

    def _reshaped(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.graph, self.dtype, shape, self.begins, self.lengths)

    def flatten(self) -> Tensor:
        return self.reshape((self.numElements(),))

    def transpose(self) -> Tensor:
        """Reverse the order of all dimensions."""
        return self.view(self.elements().transpose())

    def dimShuffle(self, permutation: Sequence[int]) -> Tensor:
        if sorted(permutation) != list(range(self.rank())):
            raise PoplarError(
                f"{self!r}: dimShuffle({list(permutation)}) is no order of its dimensions"
            )
        return self.view(self.elements().transpose(tuple(permutation)))

    def broadcast(self, count: int, dimension: int) -> Tensor:
        """Repeat the tensor `count` times along a dimension."""
        return concat([self] * count, self._checked_dimension(dimension))

    def expand(self, dimensions: Sequence[int]) -> Tensor:
        """Insert dimensions of size 1 before the given ones."""
        shape = list(self.shape)
        for dimension in sorted(dimensions, reverse=True):
            shape.insert(dimension, 1)
        return self.reshape(shape)

    def _checked_dimension(self, dimension: int) -> int:
        if not 0 <= dimension < self.rank():
            raise PoplarError(
                f"{self!r}: dimension {dimension} of a tensor of {self.rank()} dimensions"
            )
        return dimension


def concat(tensors: Sequence[Tensor], dimension: int = 0) -> Tensor:
    """Lay tensors one after another along a dimension."""
    if not tensors:
        raise PoplarError("concat: needs at least one tensor")
    first = tensors[0]
    for other in tensors[1:]:
        if other.dtype != first.dtype or not _stackable(first, other, dimension):
            raise PoplarError(f"concat of {first!r} and {other!r} along dimension {dimension}")
    if dimension == 0:
        shape = (sum(tensor.dim(0) for tensor in tensors), *first.shape[1:])
        begins = np.concatenate([tensor.begins for tensor in tensors])
        lengths = np.concatenate([tensor.lengths for tensor in tensors])
        return Tensor(first.graph, first.dtype, shape, *join(begins, lengths))
    return first.view(np.concatenate([tensor.elements() for tensor in tensors], axis=dimension))


def _stackable(left: Tensor, right: Tensor, dimension: int) -> bool:
    def rest(tensor: Tensor) -> tuple[int, ...]:
        return (*tensor.shape[:dimension], *tensor.shape[dimension + 1 :])

    return left.rank() == right.rank() > dimension >= 0 and rest(left) == rest(right)


def broadcast_to(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """View a tensor in a larger shape by NumPy's broadcasting rules."""
    if tensor.shape == shape:
        return tensor
    try:
        elements = np.broadcast_to(tensor.elements(), shape)
    except ValueError:
        raise PoplarError(f"{tensor!r} does not broadcast to {list(shape)}") from None
    return tensor.view(elements)
