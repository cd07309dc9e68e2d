"""Where values lie in the arena: they are gathered and scattered by the block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.graph.intervals import join, spread
from simulator.graph.types import Array, IntArray


@dataclass(frozen=True, slots=True)
class Places:
    """The elements of a typed view of the arena that are meant, in their order.

    They are a slice of it where they lie together; else they are cut into blocks, as long as they
    can be, and `numbers` are those of the blocks behind one another from `first` on.
    """

    values: Array
    first: int
    size: int
    block: int = 0
    numbers: IntArray | None = None

    def load(self) -> Array:
        """Copy the values out."""
        if self.numbers is None:
            return self.values[self.first : self.first + self.size].copy()
        taken: Array = self._blocks().take(self.numbers, axis=0)
        return taken.reshape(-1)

    def store(self, values: Any) -> None:
        """Copy values in: as many as there are places, or one for all."""
        if self.numbers is None:
            self.values[self.first : self.first + self.size] = values
            return
        wide = np.broadcast_to(np.asarray(values, dtype=self.values.dtype), (self.size,))
        # NumPy moves a block at once if it does not see the numbers in it.
        whole = np.dtype((np.void, self.block * wide.itemsize))
        target = self._blocks().reshape(-1).view(whole)
        target[self.numbers] = np.ascontiguousarray(wide).view(whole)

    def _blocks(self) -> Array:
        count = (len(self.values) - self.first) // self.block
        end = self.first + count * self.block
        return self.values[self.first : end].reshape(count, self.block)


def places_of(values: Array, begins: IntArray, lengths: IntArray) -> Places:
    """Return the places of intervals laid end to end, in a typed view of the arena."""
    begins, lengths = join(begins, lengths)
    if not len(begins):
        return Places(values, 0, 0)
    if len(begins) == 1:
        return Places(values, int(begins[0]), int(lengths[0]))
    block = _block(begins, lengths)
    numbers, counts = (begins, lengths) if block == 1 else (begins // block, lengths // block)
    if (counts != 1).any():
        numbers = spread(numbers, counts)
    return Places(values, int(begins[0]) % block, block * len(numbers), block, numbers)


def _block(begins: IntArray, lengths: IntArray) -> int:
    """Find the most elements of which all lengths, and ways from begin to begin, are multiples."""
    block = int(lengths.min())
    if (lengths != block).any():
        block = 1 if block == 1 else int(np.gcd.reduce(lengths))
    if block == 1 or not ((begins - begins[0]) % block).any():
        return block
    return int(np.gcd(block, np.gcd.reduce(begins - begins[0])))
