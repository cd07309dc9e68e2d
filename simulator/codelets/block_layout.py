"""In which order the elements of a block lie in memory."""

from __future__ import annotations

from dataclasses import dataclass

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
        blocks = values.reshape(count, *self.sizes(sizes))
        ordered = blocks.transpose(0, *(place + 1 for place in self.permutation()))
        return ordered.reshape(count, *sizes)

    def pack(self, blocks: Array) -> Array:
        """Return the elements of an array [block][dimension]... in memory's order."""
        count, *sizes = blocks.shape
        split: list[int] = []
        for axis, size in enumerate(sizes):
            split += [size // self.group, self.group] if axis == self.grouped else [size]
        place = self.permutation()
        back = sorted(range(len(place)), key=place.__getitem__)
        ordered = blocks.reshape(count, *split).transpose(0, *(axis + 1 for axis in back))
        return ordered.reshape(-1)
