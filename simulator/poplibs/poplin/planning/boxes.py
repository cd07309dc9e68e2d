"""Boxes of multi-dimensional tensors as ranges of their flattened elements, many at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import IntArray


class Rows(NamedTuple):
    """The ranges [begin, end) that boxes are made of, box by box; box b has `counts[b]` of them."""

    begin: IntArray
    end: IntArray
    counts: IntArray


def rows_of_boxes(shape: tuple[int, ...], low: IntArray, high: IntArray) -> Rows:
    """Cut boxes [low, high) of a tensor of a shape into its contiguous rows, in their order.

    `low` and `high` are [box][dimension].
    """
    sizes, low, high = _without_full_ends(shape, low, high)
    boxes = len(low)
    box, base = np.arange(boxes, dtype=np.int64), np.zeros(boxes, dtype=np.int64)
    for axis, size in enumerate(sizes[:-1]):
        counts = (high - low)[box, axis]
        number = spread(low[box, axis], counts)
        box = np.repeat(box, counts)
        base = (np.repeat(base, counts) + number) * sizes[axis + 1]
        assert size >= 0
    begin, end = base + low[box, -1], base + high[box, -1]
    return Rows(begin, end, np.bincount(box, minlength=boxes))


def _without_full_ends(
    shape: tuple[int, ...], low: IntArray, high: IntArray
) -> tuple[list[int], IntArray, IntArray]:
    """Join the last dimensions as long as every box takes all of the last one."""
    sizes = list(shape)
    while len(sizes) > 1 and (low[:, -1] == 0).all() and (high[:, -1] == sizes[-1]).all():
        last = sizes.pop()
        sizes[-1] *= last
        low, high = low[:, :-1].copy(), high[:, :-1].copy()
        low[:, -1] *= last
        high[:, -1] *= last
    return sizes, low, high


def volumes(low: IntArray, high: IntArray) -> IntArray:
    """Count the elements of boxes."""
    result: IntArray = np.prod(high - low, axis=1)
    return result


def joined(rows: Rows) -> Rows:
    """Join rows of a box that follow one another."""
    if not len(rows.begin):
        return rows
    first = np.ones(len(rows.begin), dtype=bool)
    first[1:] = rows.begin[1:] != rows.end[:-1]
    first[offsets_of(rows.counts)[:-1][rows.counts > 0]] = True
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(first)) - 1
    box = np.repeat(np.arange(len(rows.counts)), rows.counts)[heads]
    return Rows(rows.begin[heads], rows.end[tails], np.bincount(box, minlength=len(rows.counts)))
