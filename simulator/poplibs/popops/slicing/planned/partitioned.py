"""Tensors laid out part after part, so that each part lies together in memory.

As in PopLibs lib/poputil/Util.cpp (createPartitionableTensor): each dimension is split into parts
of as many indexes, of which the last may be smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.geometry.intervals import join
from simulator.graph.geometry.strides import Strides, stepped
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type, element_count


@dataclass(frozen=True, slots=True)
class Partition:
    """A shape, and into how many parts each of its dimensions is split."""

    shape: tuple[int, ...]
    splits: tuple[int, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the indexes of each dimension that a whole part has."""
        sizes = zip(self.shape, self.splits, strict=True)
        return tuple(max(ceil_div(size, split), 1) for size, split in sizes)

    @property
    def parts(self) -> tuple[int, ...]:
        """Return how many parts of each dimension are not empty."""
        return tuple(ceil_div(n, step) for n, step in zip(self.shape, self.steps, strict=True))

    def bounds(self, dimension: int) -> IntArray:
        """Return the bounds of the parts of a dimension."""
        first = np.arange(self.parts[dimension] + 1, dtype=np.int64) * self.steps[dimension]
        return np.minimum(first, self.shape[dimension])

    def starts(self) -> IntArray:
        """Return where each part begins in memory, [part of dimension 0][of dimension 1]..."""
        return self._starts([self.bounds(axis)[:-1] for axis in range(len(self.shape))])

    def _starts(self, first: list[IntArray]) -> IntArray:
        """Return where the parts begin that hold each combination of indexes; these begin parts."""
        start: IntArray = np.zeros((1,) * len(self.shape), dtype=np.int64)
        before: IntArray = np.ones_like(start)  # elements of the dimensions so far, in their part
        for axis, begins in enumerate(first):
            along = _along(begins, axis, len(self.shape))
            lengths = np.minimum(self.shape[axis] - along, self.steps[axis])
            start = start + before * along * prod(self.shape[axis + 1 :])
            before = before * lengths
        return start

    def places(self) -> tuple[IntArray, IntArray]:
        """Return the intervals of memory of all elements, in the order of the tensor."""
        rank, last = len(self.shape), len(self.shape) - 1
        indexes = [np.arange(size, dtype=np.int64) for size in self.shape[:-1]]
        first = [index // step * step for index, step in zip(indexes, self.steps, strict=False)]
        start = self._starts([*first, self.bounds(last)[:-1]])
        lengths = _along(np.diff(self.bounds(last)), last, rank)
        inner: IntArray = lengths  # elements of a part behind the dimension
        for axis in reversed(range(last)):
            within = _along(indexes[axis] - first[axis], axis, rank)
            start = start + within * inner
            sizes = np.minimum(self.shape[axis] - first[axis], self.steps[axis])
            inner = inner * _along(sizes, axis, rank)
        return start.reshape(-1), np.broadcast_to(lengths, start.shape).reshape(-1)

    def _intervals(self) -> tuple[IntArray, IntArray]:
        """Return the intervals of memory as tensors have them: joined where they follow."""
        begins, lengths = self.places()
        if (begins[1:] == begins[:-1] + lengths[:-1]).any():
            return join(begins, lengths)
        return begins, lengths

    def at(self, first: int) -> Strides | tuple[IntArray, IntArray]:
        """Return the places of a tensor whose memory begins at an element."""
        if all(size % step == 0 for size, step in zip(self.shape, self.steps, strict=True)):
            return stepped(first, self._loops())
        begins, lengths = self._intervals()
        return begins + first, lengths

    def _loops(self) -> list[tuple[int, int]]:
        """Return the loops over the elements of equal parts: by dimension, two each."""
        counts = (*self.parts, *self.steps)  # in the order of memory, the outermost first
        steps = [prod(counts[place + 1 :]) for place in range(len(counts))]
        pairs = list(zip(counts, steps, strict=True))
        rank = len(self.shape)
        return [pair for axis in range(rank) for pair in (pairs[axis], pairs[rank + axis])]

    def first_element(self, tensor: Tensor) -> int | None:
        """Return the first element of a tensor that lies in memory part after part, else None."""
        if tensor.shape != self.shape or not tensor.numElements():
            return None
        if isinstance(tensor.places, Strides):
            first = tensor.places.first
            places = self.at(first)
            if isinstance(places, Strides):
                return first if places == tensor.places else None
        begins, lengths = self._intervals()
        starts, counts = tensor.intervals()
        if len(begins) != len(starts) or not np.array_equal(lengths, counts):
            return None
        first = int(starts[0])
        return first if np.array_equal(starts - first, begins) else None


def _along(values: IntArray, axis: int, rank: int) -> IntArray:
    """Lay values along one of several dimensions."""
    return values.reshape([-1 if place == axis else 1 for place in range(rank)])


def add_partitioned(
    graph: Graph, dtype: Type, partition: Partition, name: str
) -> tuple[Tensor, Tensor]:
    """Add a variable; give the tensor, and its elements in the order of memory: part after part."""
    memory = graph.addVariable(dtype, [element_count(partition.shape)], name)
    if not memory.numElements():
        return memory.reshape(partition.shape), memory
    intervals = partition.at(int(memory.begins[0]))
    return Tensor(graph, dtype, partition.shape, intervals), memory
