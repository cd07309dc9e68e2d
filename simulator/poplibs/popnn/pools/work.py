"""How the workers of tiles share the outputs of a pooling: in rows of the innermost dimension.

PopLibs lib/popnn/PoolVertices.cpp. The outputs of a tile, sample by sample and row by row, are cut
into six equal parts; a part that goes over several rows is cut where a row ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.geometry.intervals import offsets_of, present, spread
from simulator.graph.types import IntArray
from simulator.poplibs.popnn.pools.windows import NOWHERE, Window


class Work(NamedTuple):
    """What the workers of boxes have to do, [box][worker]: rows, items, outputs of all items."""

    rows: IntArray
    items: IntArray
    elements: IntArray


class Rows(NamedTuple):
    """Runs of outputs: `length` from `first` of row `row` of a box, for a worker of it."""

    box: IntArray
    worker: IntArray
    row: IntArray
    first: IntArray
    length: IntArray


def share_rows(sizes: IntArray, workers: int) -> Rows:
    """Share boxes of outputs, [box][sample, dimensions of the field], among workers."""
    width, total = sizes[:, -1], sizes.prod(axis=1)
    lines = np.where(total > 0, sizes[:, :-1].prod(axis=1), 0)
    base = offsets_of(total)
    owner = np.repeat(np.arange(len(sizes)), lines)
    line = spread(np.zeros(len(sizes), dtype=np.int64), lines)
    row_starts = base[owner] + line * width[owner]
    parts = base[:-1, None] + np.arange(workers) * total[:, None] // workers
    starts = present(np.concatenate([row_starts, parts[total > 0].reshape(-1)]))
    box = np.searchsorted(base, starts, side="right") - 1
    place = starts - base[box]
    worker = ((place + 1) * workers - 1) // total[box]
    length = np.diff(starts, append=base[-1])
    return Rows(box, worker, place // width[box], place % width[box], length)


def _by_worker(rows: Rows, weights: IntArray, boxes: int, workers: int) -> IntArray:
    total = np.bincount(rows.box * workers + rows.worker, weights, minlength=boxes * workers)
    return total.astype(np.int64).reshape(boxes, workers)


def planned_work(sizes: IntArray, positions: int, dilation: int, workers: int) -> Work:
    """Count what workers do when every position of the kernel has an input; the planner's way."""
    rows = share_rows(sizes, workers)
    lines = _by_worker(rows, np.ones_like(rows.box), len(sizes), workers)
    outputs = _by_worker(rows, ceil_div(rows.length, dilation), len(sizes), workers)
    return Work(lines, positions * lines, positions * outputs)


class Items(NamedTuple):
    """The work list: for each row, by its number, an item a position of the kernel with inputs.

    `output` and `input` are the coordinates in the field of the first output and its input,
    [dimension][item].
    """

    row: IntArray
    sample: IntArray
    output: IntArray
    input: IntArray
    length: IntArray


def work_list(rows: Rows, windows: Sequence[Window], sizes: IntArray, begins: IntArray) -> Items:
    """List the items of rows of boxes that have `sizes` and begin at the field's `begins`."""
    kernel = tuple(window.kernel for window in windows)
    position = np.indices(kernel).reshape(len(kernel), -1)
    sample, outer = _outer_coordinates(rows, sizes, begins)
    low = begins[rows.box, -1] + rows.first
    first, counts = _runs(windows[-1], low, low + rows.length)
    is_used = counts[position[-1]].T > 0  # [row][position of the whole kernel]
    for window, at, place in zip(windows[:-1], outer, position[:-1], strict=True):
        is_used &= window.input_of()[place][:, at].T != NOWHERE
    row, which = np.nonzero(is_used)
    place = position[:, which]
    output = np.stack([*(at[row] for at in outer), first[place[-1], row]])
    read = [w.input_of()[k, at] for w, k, at in zip(windows, place, output, strict=True)]
    return Items(row, sample[row], output, np.stack(read), counts[place[-1], row])


def _outer_coordinates(
    rows: Rows, sizes: IntArray, begins: IntArray
) -> tuple[IntArray, list[IntArray]]:
    """Take the number of a row apart: the sample, and the field's outer coordinates."""
    remainder, outer = rows.row, []
    for dimension in reversed(range(sizes.shape[1] - 2)):
        size = sizes[rows.box, dimension + 1]
        outer.append(begins[rows.box, dimension] + remainder % size)
        remainder = remainder // size
    return remainder, outer[::-1]


def _runs(window: Window, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first of the outputs [low, high) with an input and their number, by position."""
    used = window.input_of() != NOWHERE
    before = np.zeros((window.kernel, window.outputs + 1), dtype=np.int64)
    np.cumsum(used, axis=1, out=before[:, 1:])
    places = np.where(used, np.arange(window.outputs), window.outputs)
    following = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
    return following[:, low], before[:, high] - before[:, low]


def counted_work(items: Items, rows: Rows, boxes: int, workers: int) -> Work:
    """Count the rows that have items, their items, and the outputs of these."""
    lines = np.zeros(len(rows.box), dtype=np.int64)
    lines[items.row] = 1
    count = np.bincount(items.row, minlength=len(rows.box))
    outputs = np.bincount(items.row, items.length, minlength=len(rows.box))
    return Work(*(_by_worker(rows, column, boxes, workers) for column in (lines, count, outputs)))
