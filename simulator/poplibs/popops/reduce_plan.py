"""Whether partial results go through tiles in between, and which: the cheapest by the formulas."""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.reduction import lanes
from simulator.graph.intervals import ascending, kinds, present
from simulator.graph.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.reduce_regions import Partials, region_cycles


def tile_cycles(target: Target, dtype: Type, outs: IntArray, rows: IntArray) -> IntArray:
    """Estimate a stage whose busiest tile receives `rows` values for each of `outs` outputs.

    The exchange, the slowest of the workers, and one sync (PopLibs lib/popops/reduction/
    ReductionPlan.cpp). Workers share the outputs by vectors, and the rows of few outputs.
    """
    workers = target.workers
    exchange = ceil_div(outs * rows * dtype.size, target.exchange_bytes_per_cycle)
    vectors = ceil_div(outs, lanes(dtype))
    own = np.minimum(ceil_div(vectors, workers) * lanes(dtype), outs)
    parts = np.minimum(np.maximum(workers // np.maximum(vectors, 1), 1), rows)
    whole = region_cycles(own, rows, dtype)
    in_parts = region_cycles(own, ceil_div(rows, parts), dtype) + region_cycles(own, parts, dtype)
    compute = workers * np.minimum(whole, in_parts)
    total: IntArray = exchange + compute + target.getMaxIPUSyncDelay()
    return total


def chunk_size(target: Target, partials: Partials, out_tile: IntArray) -> int:
    """Choose how many partial results a tile in between reduces to one; 0 to go without.

    `out_tile` is the tile of each column's output.
    """
    counts = np.bincount(partials.column, minlength=len(out_tile))
    most = int(counts.max())
    if most < 4:
        return 0
    dtype = partials.values.dtype
    outs = np.bincount(out_tile).max()
    parts = np.arange(1, int(np.sqrt(most)) + 1, dtype=np.int64)
    sizes = np.unique(np.concatenate([parts, ceil_div(most, parts)]))
    sizes = sizes[(sizes > 1) & (sizes < most)]
    distinct, times = np.unique(counts, return_counts=True)
    chunks = (ceil_div(distinct[None, :], sizes[:, None]) * times).sum(axis=1)
    tiles = len(present(partials.tile))
    between = tile_cycles(target, dtype, ceil_div(chunks, tiles), sizes)
    after = tile_cycles(target, dtype, np.full_like(sizes, outs), ceil_div(most, sizes))
    straight = tile_cycles(target, dtype, outs.reshape(1), np.array([most]))
    best = int(np.argmin(between + after))
    return int(sizes[best]) if between[best] + after[best] < straight[0] else 0


def tiles_between(partials: Partials, size: int) -> IntArray:
    """Choose the tile in between for each partial result, of `size` of a column for each.

    They are spread over the tiles that hold partial results; neighbouring columns stay together.
    """
    order = ascending(partials.column * (int(partials.tile.max()) + 1) + partials.tile)
    counts = np.bincount(partials.column)
    used = counts[counts > 0]
    column, rank = partials.column[order], np.arange(len(order))
    rank -= np.repeat(np.cumsum(used) - used, used)
    here = counts[column]
    chunk = rank * ceil_div(here, size) // here
    _, number = kinds(chunk * len(counts) + column)
    tiles = present(partials.tile)
    result = np.empty(len(order), dtype=np.int64)
    result[order] = tiles[number * len(tiles) // (int(number.max()) + 1)]
    return result
