"""Cycles of the pooling vertices, as in PopLibs lib/popnn/PerformanceEstimation.hpp.

A vertex pools a box of the field for some groups of channels. Its six workers share the outputs; of
a worker's outputs those that lie in one row are a row of its work list, with an item for each
position of the kernel: a run of outputs with that position's inputs. Formulas give the cycles of
the tile if a worker has `rows` with `items` of together `elements` outputs, and sets `initialised`
vectors of each group before; a tile takes those of its slowest worker. `vectors` are the 64-bit
words of a group's channels, each of which is a pass over every item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray

WORKERS = 6  # unless a target has others
SUPERVISOR = 7 + 6  # the call and its return
ITEM, ROW = 23, 15  # of the loops over the items of a row, and over the rows
SCALING_CYCLES = 10


class Unpacking(NamedTuple):
    """Cycles that a worker takes to unpack a pointer: to data, start positions, work lists."""

    data: int
    starts: int
    lists: int


# On Mk1 pointers are scaled, on later machines whole, and their lists of offsets take longer. The
# planner takes 2 of all. PopLibs lib/poplibs_support/cyclesTables.hpp.
UNPACKING, LATER_UNPACKING = Unpacking(1, 2, 2), Unpacking(0, 0, 5)
PLANNED_UNPACKING = Unpacking(2, 2, 2)
WHOLE_POINTER = 4  # bytes


class _Kind(NamedTuple):
    """What differs: to begin, pointers to data, each further group, each pass and its outputs."""

    begin: int
    pointers: int
    group: int
    run: int
    output: int


_MAX = _Kind(1, 0, 4, 4, 3)
_SUM = _Kind(2, 0, 4, 5, 3)
_GRADIENT = _Kind(7, 2, 6, 7, 5)


class Worker(NamedTuple):
    """What a worker has to do; all arrays broadcast."""

    rows: IntArray
    items: IntArray
    elements: IntArray
    initialised: IntArray
    vectors: IntArray
    groups: IntArray


def max_pooling(
    rows: IntArray,
    items: IntArray,
    elements: IntArray,
    initialised: IntArray,
    vectors: IntArray,
    groups: IntArray,
    unpacking: Unpacking = UNPACKING,
    workers: int = WORKERS,
) -> IntArray:
    """13 + W*(40 + 15 a row + 25 an item + 4 + 3n for a vector of an item of n + initialisation).

    To initialise takes 4 and a cycle a vector, for each group of channels; without rows it is all,
    beside 27. A further group adds 6 to an item of n outputs.
    """
    work = Worker(rows, items, elements, initialised, vectors, groups)
    return _pooling(work, unpacking, _MAX, workers)


def sum_pooling(
    rows: IntArray,
    items: IntArray,
    elements: IntArray,
    initialised: IntArray,
    vectors: IntArray,
    groups: IntArray,
    unpacking: Unpacking = UNPACKING,
    workers: int = WORKERS,
) -> IntArray:
    """As max pooling, but a cycle more to begin, and 5 + 3n a vector."""
    work = Worker(rows, items, elements, initialised, vectors, groups)
    return _pooling(work, unpacking, _SUM, workers)


def max_pooling_gradient(
    rows: IntArray,
    items: IntArray,
    elements: IntArray,
    initialised: IntArray,
    vectors: IntArray,
    groups: IntArray,
    unpacking: Unpacking = UNPACKING,
    workers: int = WORKERS,
) -> IntArray:
    """As max pooling, but 8 more to begin, 2 more a further group, and 5 + 5n a vector."""
    work = Worker(rows, items, elements, initialised, vectors, groups)
    return _pooling(work, unpacking, _GRADIENT, workers)


# By what a pooling gives: of a maximum also its gradient, and the scale of that.
COSTS: dict[str, Callable[..., IntArray]] = {
    "max": max_pooling,
    "sum": sum_pooling,
    "average": sum_pooling,
    "maxGradient": max_pooling_gradient,
    "maxScale": max_pooling,
}


def selective_scaling(vertices: IntArray) -> IntArray:
    """10 for each of an array of vertices, a worker: the source's own placeholder."""
    return np.full_like(vertices, SCALING_CYCLES)


def unpacking_of(target: Target) -> Unpacking:
    """Return what unpacking takes on a target."""
    return UNPACKING if target.scaled_pointer_bytes < WHOLE_POINTER else LATER_UNPACKING


def initial_shares(outputs: IntArray, vectors: IntArray | int, workers: int = WORKERS) -> IntArray:
    """Return the vectors of a group that each worker initialises, [...][worker]."""
    share = outputs * vectors // workers
    # The source compares the worker's number with an unsigned difference, which may be below 0.
    remainder = (outputs - share * workers)[..., None]
    return share[..., None] + ((remainder < 0) | (np.arange(workers) < remainder))


def _pooling(work: Worker, unpacking: Unpacking, kind: _Kind, workers: int) -> IntArray:
    group, passes = work.groups, work.groups * work.vectors
    begin = 17 + unpacking.data + (4 + work.initialised) * group + 6 + unpacking.starts
    pointers = kind.begin + kind.pointers * unpacking.data
    started = 2 + pointers + 3 + 2 + 2 * unpacking.lists + 1
    loops = ROW * work.rows + (ITEM + 2 * group + kind.group * (group - 1)) * work.items
    # The work list holds one less than the outputs of an item.
    runs = passes * ((3 + kind.run - kind.output) * work.items + kind.output * work.elements)
    cycles = begin + np.where(work.rows > 0, started + loops + runs, 0) + 1
    result: IntArray = SUPERVISOR + workers * cycles
    return result
