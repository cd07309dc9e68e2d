"""The arena: the bytes of all variables at run time, read and written through tensors."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable

import numpy as np

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, Type, checked_values
from simulator.graph.vertices.vertex import Field
from simulator.runtime.places import Places, places_of


class Storage:
    """The values of all variables of a replica: zero at first, constants at their values."""

    def __init__(self, graph: Graph, replica: int = 0) -> None:
        words = -(-graph.arena_bytes // 8)
        try:
            self._pages = mmap.mmap(-1, max(words * 8, 1))  # zero, and without memory until then
            self.arena = np.frombuffer(self._pages, np.uint8, words * 8)
        except (MemoryError, OSError):
            raise PoplarError(
                f"Engine: the variables take {graph.arena_bytes:,} bytes; the host has not so much"
            ) from None
        self._views: dict[Type, Array] = {}
        for variable in graph.variables:
            if variable.values is not None:
                raw = np.ascontiguousarray(variable.values).view(np.uint8)
                self.arena[variable.offset : variable.offset + variable.bytes] = raw
        for number in graph.replication_indexes:
            self.write(number, replica + np.arange(number.numElements()), number.describe())
        for tensor, values in graph.initial_values:
            self.write(tensor, values, f"initial value of {tensor.describe()}")

    def discard(self, parts: Iterable[tuple[int, int]]) -> None:
        """Free the memory of bytes [begin, end) that nothing needs: they may be anything."""
        if sys.platform != "linux":  # the others keep pages until they are short of them
            return
        for begin, end in parts:
            first, last = -(-begin // mmap.PAGESIZE), end // mmap.PAGESIZE
            if first < last:
                size = (last - first) * mmap.PAGESIZE
                self._pages.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, size)

    def view(self, dtype: Type) -> Array:
        """Return the whole arena as elements of a type."""
        if dtype not in self._views:
            self._views[dtype] = self.arena.view(dtype.numpy)
        return self._views[dtype]

    def places(self, of: Tensor | Field) -> Places:
        """Return where the elements of a tensor or of a group's field lie."""
        return places_of(self.view(of.dtype), of.begins, of.lengths)

    def read(self, tensor: Tensor) -> Array:
        """Copy a tensor's values out, in its shape."""
        return self.places(tensor).load().reshape(tensor.shape)

    def write(self, tensor: Tensor, values: object, subject: str) -> None:
        """Copy values into a tensor; HostAccessError names `subject` when they do not fit."""
        array = checked_values(values, tensor.dtype, subject, HostAccessError)
        if array.size != tensor.numElements():
            raise HostAccessError(
                f"{subject}: {array.size} values for {tensor.describe()} of "
                f"{tensor.numElements()} elements"
            )
        self.places(tensor).store(array.reshape(-1))
