"""Cycles of vertices that sort. Source: PopLibs lib/popops/popopsCycleEstimators.cpp."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.cycles import heap_sort
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type

Values = Literal["none", "moved", "compared"]
"""What goes with a key: nothing, a value, or a value that decides between equal keys."""


class _Loops(NamedTuple):
    """Cycles of a worker: an element and the first, a run and the first, a list entry, the rest."""

    element: int
    first_element: int
    run: int
    first_run: int
    entry: int
    start: int


# CompareAndSwapKeyValueCycleEstimate: of float keys, and of int and unsigned int.
_FLOATS: dict[Values, _Loops] = {
    "none": _Loops(13, 13, 13, 3, 17, 40),
    "moved": _Loops(11, 8, 11, 11, 4, 23),
    "compared": _Loops(25, 25, 24, 6, 30, 45),
}
_INTS: dict[Values, _Loops] = {
    "none": _Loops(12, 12, 17, 3, 22, 42),
    "moved": _Loops(17, 17, 22, 5, 30, 43),
    "compared": _Loops(27, 27, 25, 7, 30, 49),
}


def heap_sort_key_value(n: IntArray) -> IntArray:
    """16 * (19 n floor(log2 n) + 6n + 2), a worker: twice what keys alone take."""
    return 2 * heap_sort(n)


def compare_and_swap(
    comparisons: IntArray, runs: IntArray, values: Values, dtype: Type, target: Target
) -> IntArray:
    """19 + W * (60 + 13 a comparison + 13 a further run) of float keys alone, of the tile.

    A worker does a share of the comparisons, in so many runs of neighbours. Int keys take
    67 + 12 + 17; with a value 35 + 11 + 11 (int 78 + 17 + 22); where values decide between equal
    keys 81 + 25 + 24 (int 86 + 27 + 25). All pairs are taken to be swapped, and a worker to have
    one entry in its list of work.
    """
    loops = (_FLOATS if dtype == FLOAT else _INTS)[values]
    share = ceil_div(comparisons, target.workers)
    worker = loops.start + loops.entry + loops.first_element + (share - 1) * loops.element
    worker += loops.first_run + (runs - 1) * loops.run
    cycles: IntArray = 19 + target.workers * worker
    return cycles


def normalise_image(pixels: IntArray, dtype: Type, target: Target) -> IntArray:
    """W * (52 + 17 a pixel of a worker) of floats, 11 of halves, 29 + 8 of unsigned char; the tile.

    The first worker has one pixel more without being charged for it.
    """
    start, pixel_cycles = {FLOAT: (52, 17), HALF: (52, 11)}.get(dtype, (29, 8))
    share, remainder = pixels // target.workers, pixels % target.workers
    return np.asarray(target.workers * (start + pixel_cycles * (share + (remainder > 1))))
