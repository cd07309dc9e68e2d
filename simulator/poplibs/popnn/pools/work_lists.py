"""The constants that tell the workers of pooling vertices what to do, as PopLibs lays them out.

The items of a row are relative to its first output and input, which are kept apart, so that many
rows have equal lists. A tile keeps equal constants once (our reading of why they are kept apart).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.layers.pooling import coordinates
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_SHORT, Array, IntArray
from simulator.graph.vertices.vertex import Field, cut_field, cut_ranges
from simulator.poplibs.popnn.pools.parts import Boxes, Parts
from simulator.poplibs.popnn.pools.work import Items, Rows


@dataclass(frozen=True, slots=True, eq=False)
class WorkLists:
    """By piece: its rows, its different lists, and where the rows of each worker end.

    By row its first output and input (`bases`) and its `list`, which has `items` of `work`: offsets
    from the bases, and one less than the outputs. All count rows of channels in the part's boxes.
    """

    rows: IntArray
    lists: IntArray
    ends: Array
    bases: Array
    list: IntArray
    items: IntArray
    work: Array


def make_lists(parts: Parts, rows: Rows, items: Items, workers: int) -> WorkLists:
    """Lay out the work lists of every piece; `rows` are of the pieces' first parts."""
    first = parts.first
    box = rows.box[items.row]
    out = _offsets(items.sample, items.output, parts.out.begin[first], parts.out.sizes[first], box)
    source = _offsets(
        items.sample, items.input, parts.inputs.begin[first], parts.inputs.sizes[first], box
    )
    order = np.lexsort((items.length, source, out, items.row))
    row, out, source = items.row[order], out[order], source[order]
    used, head, counts = np.unique(row, return_index=True, return_counts=True)
    base = np.repeat(head, counts)
    worker = rows.box[used] * workers + rows.worker[used]
    by_worker = np.bincount(worker, minlength=len(first) * workers).reshape(-1, workers)
    less = items.length[order] - 1
    work = np.stack([out - out[base], source - source[base], less], axis=1).astype(np.uint16)
    which, distinct_rows = _different(rows.box[used], counts, work)
    return WorkLists(
        rows=by_worker.sum(axis=1),
        lists=np.bincount(rows.box[used][distinct_rows], minlength=len(first)),
        ends=np.cumsum(by_worker, axis=1).astype(np.uint16),
        bases=np.stack([out[head], source[head]], axis=1).astype(np.uint16),
        list=which,
        items=counts[distinct_rows],
        work=work[spread(head[distinct_rows], counts[distinct_rows])],
    )


def _different(piece: IntArray, counts: IntArray, work: Array) -> tuple[IntArray, IntArray]:
    """Return the different lists of each piece: the number of each row's, a row of each list."""
    table = np.zeros((len(counts), 2 + 3 * int(counts.max(initial=0))), dtype=np.int64)
    table[:, 0], table[:, 1] = piece, counts
    row = np.repeat(np.arange(len(counts)), counts)
    place = spread(np.zeros(len(counts), dtype=np.int64), counts)
    for column in range(3):
        table[row, 2 + 3 * place + column] = work[:, column]
    _, distinct_rows, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return which.reshape(-1), distinct_rows


def _offsets(
    sample: IntArray, at: IntArray, begins: IntArray, sizes: IntArray, box: IntArray
) -> IntArray:
    """Count rows of channels from the begin of the boxes to coordinates of the field."""
    offset = sample
    for dimension, coordinate in enumerate(at, 2):
        inside = coordinate - begins[box, dimension]
        offset = offset * sizes[box, dimension] + inside
    return offset


def list_fields(
    graph: Graph, lists: WorkLists, piece: IntArray, tiles: IntArray, name: str
) -> dict[str, Field]:
    """Add the constants of every part, each on its tile, and join them to the vertices."""
    workers = lists.ends.shape[1]
    part = np.arange(len(piece), dtype=np.int64)
    starts = _constant(graph, lists.ends[piece], f"{name}/ContextStartPos")
    low, high = part * workers, (part + 1) * workers
    graph.map_ranges(starts, low, high, tiles)
    fields = {"startPos": cut_field("startPos", "input", starts, low, high)}
    rows = lists.rows[piece]
    if rows.any():
        row = spread(offsets_of(lists.rows)[:-1][piece], rows)
        bases = _constant(graph, lists.bases[row], f"{name}/OffsetBase")
        ends = 2 * offsets_of(rows)
        graph.map_ranges(bases, ends[:-1], ends[1:], tiles)
        fields["offsetBase"] = cut_field("offsetBase", "input", bases, ends[:-1], ends[1:])
        fields["workList"] = _work_field(graph, lists, piece, tiles, f"{name}/worklist")
    return fields


def _work_field(
    graph: Graph, lists: WorkLists, piece: IntArray, tiles: IntArray, name: str
) -> Field:
    """Add the different lists of every part, and join each row to its own."""
    count, rows = lists.lists[piece], lists.rows[piece]
    first = offsets_of(lists.lists)[:-1]
    number = spread(first[piece], count)
    items = lists.items[number]
    work = _constant(graph, lists.work[spread(offsets_of(lists.items)[:-1][number], items)], name)
    bounds = 3 * offsets_of(items)
    graph.map_ranges(work, bounds[:-1], bounds[1:], np.repeat(tiles, count))
    row = spread(offsets_of(lists.rows)[:-1][piece], rows)
    place = np.repeat(offsets_of(count)[:-1] - first[piece], rows) + lists.list[row]
    low, high = bounds[place], bounds[place + 1]
    return cut_ranges("workList", "input", work, low, high, rows, as_rows=True)


@dataclass(frozen=True, slots=True, eq=False)
class DivisorLists:
    """Runs of outputs with one divisor: begin, length and divisor [run], and [box][worker] runs."""

    runs: Array
    counts: IntArray


def divisor_lists(boxes: Boxes, used: IntArray, workers: int) -> DivisorLists:
    """Share the outputs of boxes, [group, sample, field...], among workers; `used` by field."""
    sizes = boxes.sizes[:, 1:]
    box, (_, *at) = coordinates(sizes)
    places = tuple(boxes.begin[box, d] + place for d, place in enumerate(at, 2))
    divisor = used[places]
    total = sizes.prod(axis=1)
    place = spread(np.zeros(len(total), dtype=np.int64), total)
    worker = ((place + 1) * workers - 1) // total[box]
    change = np.diff(np.stack([box, worker, divisor]), axis=1, prepend=-1).any(axis=0)
    first = np.flatnonzero(change)
    length = np.diff(first, append=len(box))
    some = divisor[first] > 0
    first, length = first[some], length[some]
    runs = np.stack([place[first], length, divisor[first]], axis=1)
    owner = box[first] * workers + worker[first]
    return DivisorLists(runs.astype(np.uint16), np.bincount(owner, minlength=len(total) * workers))


def divisor_field(graph: Graph, lists: DivisorLists, tiles: IntArray, name: str) -> Field:
    """Add the constants of scaling vertices, a row a worker."""
    runs = _constant(graph, lists.runs, f"{name}/worklist")
    bounds = 3 * offsets_of(lists.counts)
    workers = len(lists.counts) // len(tiles)
    graph.map_ranges(runs, bounds[:-1], bounds[1:], np.repeat(tiles, workers))
    rows = np.full(len(tiles), workers, dtype=np.int64)
    return cut_ranges("scaleWorklist", "input", runs, bounds[:-1], bounds[1:], rows, as_rows=True)


def _constant(graph: Graph, values: Array, name: str) -> Tensor:
    return graph.addConstant(UNSIGNED_SHORT, values.shape, values, name).flatten()
