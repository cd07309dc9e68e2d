"""The parts of a planned pooling: which box of the outputs each computes, and of what inputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from simulator.graph.geometry.intervals import spread
from simulator.graph.types import IntArray
from simulator.poplibs.popnn.pools.plan import Partition
from simulator.poplibs.popnn.pools.windows import PoolShape


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Ranges [low, high) of a flattened tensor, and how many of the next ones each part has."""

    low: IntArray
    high: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Boxes of a tensor [group][sample][field...][channel]: [box][dimension] but the last."""

    begin: IntArray
    end: IntArray

    @property
    def sizes(self) -> IntArray:
        return self.end - self.begin

    def ranges(self, shape: tuple[int, ...]) -> Ranges:
        """Return the ranges that the boxes are in a tensor of this shape."""
        sizes = self.sizes
        counts = np.where(sizes[:, -1] > 0, sizes[:, :-1].prod(axis=1), 0)
        box = np.repeat(np.arange(len(sizes)), counts)
        remainder = spread(np.zeros(len(sizes), dtype=np.int64), counts)
        place, stride = np.zeros(len(box), dtype=np.int64), prod(shape[-2:])
        for dimension in reversed(range(len(shape) - 2)):
            size = sizes[box, dimension]
            place += (self.begin[box, dimension] + remainder % size) * stride
            remainder, stride = remainder // size, stride * shape[dimension]
        low = place + self.begin[box, -1] * shape[-1]
        return Ranges(low, low + sizes[box, -1] * shape[-1], counts)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """All parts, by sample, group and field; those of one `piece` differ only in their groups.

    `first` is one part of each piece.
    """

    out: Boxes
    inputs: Boxes
    piece: IntArray
    first: IntArray


def _bounds(total: int, parts: int, index: IntArray) -> tuple[IntArray, IntArray]:
    """Return the index-th of so many even parts."""
    return index * total // parts, (index + 1) * total // parts


def cut_into_parts(shape: PoolShape, partition: Partition) -> Parts:
    """List the parts of a partition."""
    counts = (partition.batch, partition.groups, *partition.field)
    batch, group, *field = np.indices(counts).reshape(len(counts), -1).astype(np.int64)
    groups = -(-shape.channels // partition.group_channels)
    outer = [
        _bounds(groups, partition.groups, group),
        _bounds(shape.batch, partition.batch, batch),
    ]
    outputs = [
        _bounds(window.outputs, parts, index)
        for window, parts, index in zip(shape.windows, partition.field, field, strict=True)
    ]
    inputs = [
        window.input_range(*bounds) for window, bounds in zip(shape.windows, outputs, strict=True)
    ]
    pieces = prod(partition.field)
    within = np.arange(len(group), dtype=np.int64) % pieces
    return Parts(
        out=_boxes([*outer, *outputs]),
        inputs=_boxes([*outer, *inputs]),
        piece=batch * pieces + within,
        first=np.flatnonzero(group == 0),
    )


def _boxes(bounds: list[tuple[IntArray, IntArray]]) -> Boxes:
    begins, ends = zip(*bounds, strict=True)
    return Boxes(np.stack(begins, axis=1), np.stack(ends, axis=1))
