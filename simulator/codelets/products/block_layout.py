"""In which order the elements of a block lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from simulator.graph.types import Array


@dataclass(frozen=True, slots=True)
class Layout:
    """Dimensions in the order in which they lie in memory, the innermost last.

    One of them may be cut into groups of `group`: the groups stand where the dimension stands in
    `order`, the elements of a group lie together, innermost of all.
    """

    order: tuple[int, ...]
    grouped: int = -1
    group: int = 1

    def sizes(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes in memory's order of a block whose sizes are given by dimension."""
        if self.grouped < 0:
            return tuple(sizes[axis] for axis in self.order)
        outer = (sizes[a] // (self.group if a == self.grouped else 1) for a in self.order)
        return (*outer, self.group)

    def permutation(self) -> tuple[int, ...]:
        """Return the place in memory's order of each dimension, groups before their elements."""
        places: list[int] = []
        for axis in range(len(self.order)):
            places.append(self.order.index(axis))
            if axis == self.grouped:
                places.append(len(self.order))
        return tuple(places)

    def unpack(self, values: Array, sizes: tuple[int, ...]) -> Array:
        """Return blocks of a size, a row of values each, as an array [block][dimension]..."""
        count = len(values)
        in_memory, order, _, _ = _moves(self, sizes)
        return values.reshape(count, *in_memory).transpose(order).reshape(count, *sizes)

    def pack(self, blocks: Array) -> Array:
        """Return the elements of an array [block][dimension]... in memory's order."""
        count, *sizes = blocks.shape
        _, _, split, back = _moves(self, tuple(sizes))
        return blocks.reshape(count, *split).transpose(back).reshape(-1)


class _Moves(NamedTuple):
    """How blocks of a size are moved: from memory by dimension, and split by groups and back.

    The axes of both orders count the blocks as the first.
    """

    in_memory: tuple[int, ...]
    order: tuple[int, ...]
    split: tuple[int, ...]
    back: tuple[int, ...]


@cache
def _moves(layout: Layout, sizes: tuple[int, ...]) -> _Moves:
    split: list[int] = []
    for axis, size in enumerate(sizes):
        grouped = axis == layout.grouped
        split += [size // layout.group, layout.group] if grouped else [size]
    place = layout.permutation()
    back = sorted(range(len(place)), key=place.__getitem__)
    orders = ((0, *(axis + 1 for axis in axes)) for axes in (place, back))
    return _Moves(layout.sizes(sizes), next(orders), tuple(split), next(orders))
