"""Where values lie in the arena: they are gathered and scattered by the block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.graph.geometry.intervals import join, spread
from simulator.graph.types import Array, IntArray


@dataclass(frozen=True, slots=True)
class Places:
    """The elements of a typed view of the arena that are meant, in their order.

    Where they lie together, `values` is the slice of them. Else they are cut into blocks, as long
    as they can be: `values` has a row for each block of the arena, `numbers` are the rows that are
    meant, and `records` has the bytes of each row as one item.
    """

    values: Array
    size: int
    numbers: IntArray | None = None
    records: Array | None = None

    def load(self) -> Array:
        """Copy the values out."""
        if self.numbers is None:
            return self.values.copy()
        return self.values.take(self.numbers, axis=0).reshape(-1)

    def store(self, values: object) -> None:
        """Copy values in: as many as there are places, or one for all."""
        if self.records is None:
            self.values[:] = values
            return
        wide = np.asarray(values, dtype=self.values.dtype)
        if wide.shape != (self.size,):
            wide = np.broadcast_to(wide, (self.size,))
        # NumPy moves a block at once if it does not see the numbers in it.
        self.records[self.numbers] = np.ascontiguousarray(wide).view(self.records.dtype)


def places_of(values: Array, begins: IntArray, lengths: IntArray) -> Places:
    """Return the places of intervals laid end to end, in a typed view of the arena."""
    begins, lengths = join(begins, lengths)
    if len(begins) <= 1:
        first, size = (int(begins[0]), int(lengths[0])) if len(begins) else (0, 0)
        return Places(values[first : first + size], size)
    block = _block(begins, lengths)
    numbers, counts = (begins, lengths) if block == 1 else (begins // block, lengths // block)
    if (counts != 1).any():
        numbers = spread(numbers, counts)
    first = int(begins[0]) % block
    count = (len(values) - first) // block
    together = values[first : first + count * block]
    records = together.view(np.dtype((np.void, block * values.itemsize)))
    return Places(together.reshape(count, block), block * len(numbers), numbers, records)


def _block(begins: IntArray, lengths: IntArray) -> int:
    """Return the largest number that divides all lengths and all distances between begins."""
    block = int(lengths.min())
    if (lengths != block).any():
        block = 1 if block == 1 else int(np.gcd.reduce(lengths))
    if block == 1 or not ((begins - begins[0]) % block).any():
        return block
    return int(np.gcd(block, np.gcd.reduce(begins - begins[0])))
