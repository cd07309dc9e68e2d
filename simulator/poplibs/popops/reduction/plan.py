"""How many stages a reduction has, and which tiles reduce what: PopLibs' rules.

Source: PopLibs lib/popops/reduction/ReductionPlan.cpp and ReductionStages.cpp of March 2021.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.codelets.products.reduction import REAL, REDUCTIONS, lanes
from simulator.graph.geometry.intervals import ascending, present
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type
from simulator.poplibs.popops.reduction.regions import Partials, region_cycles

LEAST_PER_STAGE = 64  # values an output, or of a block, for which a stage in between is added
SPREAD = 2654435761  # 2^32 / golden ratio, with which PopLibs begins the hash for the first tile


def tile_cycles(target: Target, dtype: Type, outs: IntArray, rows: IntArray) -> IntArray:
    """Estimate a stage whose busiest tile receives `rows` values for each of `outs` outputs.

    The exchange, the slowest of the workers, and one sync (PopLibs lib/popops/reduction/
    ReductionPlan.cpp). Workers share the outputs by vectors, and the rows of few outputs.
    """
    workers = target.workers
    exchange = ceil_div(outs * rows * dtype.size, target.exchange_bytes_per_cycle)
    vectors = ceil_div(outs, lanes(dtype))
    outs_of_worker = np.minimum(ceil_div(vectors, workers) * lanes(dtype), outs)
    parts = np.minimum(np.maximum(workers // np.maximum(vectors, 1), 1), rows)
    one_pass = region_cycles(outs_of_worker, rows, dtype)
    in_parts = region_cycles(outs_of_worker, ceil_div(rows, parts), dtype) + region_cycles(
        outs_of_worker, parts, dtype
    )
    compute = workers * np.minimum(one_pass, in_parts)
    total: IntArray = exchange + compute + target.getMaxIPUSyncDelay()
    return total


def grain_of(dtype: Type, operation: str) -> int:
    """Return the outputs that stay together: a vector, of sums two (findGrainSizeForOp)."""
    sums = operation in ("ADD", "SQUARE_ADD")
    return (1 + sums) * lanes(dtype)


def needs_stage_between(target: Target, partials: Partials, columns: int) -> bool:
    """Return whether the partial results of `columns` outputs are reduced on tiles in between.

    They are where there are more than 64 an output, unless they fill most tiles and come from few
    for each output (calculateNextStep).
    """
    sources = int(np.bincount(partials.column).max())
    are_few = sources < 2 * np.sqrt(target.tiles_per_ipu)
    if are_few and len(present(partials.tile)) > target.tiles_per_ipu * 3 // 4:
        return False
    return len(partials.column) > columns * LEAST_PER_STAGE


def tiles_between(target: Target, partials: Partials, columns: int, operation: str) -> IntArray:
    """Choose the tile in between of each partial result.

    Outputs are cut into pieces that have partial results on the same tiles and are few grains
    wide, the rows of a piece into blocks, and each block goes to the next tile (calculateSplit,
    intermediateToIntermediate). PopLibs goes round all tiles from one that a hash of the shapes
    chooses; here round those that hold partial results.
    """
    grain = grain_of(partials.values.dtype, operation)
    edges = _edges(target, partials, columns, grain)
    counts = np.bincount(partials.column, minlength=columns)
    rows = counts[edges[:-1]]
    rows_of_block = _rows_of_block(target, rows, np.diff(edges), len(partials.column))
    blocks = ceil_div(rows, rows_of_block)
    order = ascending(partials.column * (int(partials.tile.max()) + 1) + partials.tile)
    before = np.cumsum(counts) - counts
    column = partials.column[order]
    piece = np.searchsorted(edges, column, side="right") - 1
    block = (np.cumsum(blocks) - blocks)[piece]
    block += (np.arange(len(order)) - before[column]) // rows_of_block[piece]
    tiles = present(partials.tile)
    first = 0 if len(rows) == 1 else (len(order) * columns * SPREAD >> 16) % len(tiles)
    result = np.empty(len(order), dtype=np.int64)
    result[order] = tiles[(first + block) % len(tiles)]
    return result


def _edges(target: Target, partials: Partials, columns: int, grain: int) -> IntArray:
    """Return where the pieces of outputs begin, and the number of all outputs behind the last."""
    key = np.sort(partials.tile * columns + partials.column)
    column = key % columns
    heads = np.append(True, (np.diff(key) != 1) | (column[1:] == 0))
    alike = present(np.concatenate([column[heads], column[np.roll(heads, -1)] + 1]))
    average = max(int(np.sqrt(len(key) // columns)), 1)
    wide = max(int(np.diff(alike).min()) // grain // average, 1)
    grains = ceil_div(columns, grain)
    most = max(min(grains // wide, target.num_tiles), 1)
    bounds = even_bounds(grains, ceil_div(grains, ceil_div(grains, most))) * grain
    edges: IntArray = present(np.concatenate([alike, np.minimum(bounds, columns)]))
    return edges


def _rows_of_block(target: Target, rows: IntArray, outs: IntArray, values: int) -> IntArray:
    """Return the rows of the blocks of each piece: as many blocks as share the values evenly.

    A block has at least 64 values and two rows.
    """
    ideal = max(values // target.num_tiles, 1)
    blocks = np.maximum(rows * outs // ideal, 1)
    blocks = np.where(
        rows * outs // blocks < LEAST_PER_STAGE, rows * outs // LEAST_PER_STAGE, blocks
    )
    blocks = np.maximum(blocks, 1)
    blocks = np.maximum(np.where(rows // blocks < 2, rows // 2, blocks), 1)
    rows_of_block: IntArray = np.maximum(ceil_div(rows, blocks), 2)
    return rows_of_block


def parts_of_rows(
    outs: IntArray, rows: IntArray, tile: IntArray, workers: int, out_type: Type, operation: str
) -> IntArray:
    """Choose into how many parts the rows of each region are cut, so that no worker is idle.

    `outs`, `rows` and `tile` are by region, sorted by tile. On tiles with fewer regions than
    workers the slowest region gets one part more, as long as PopLibs' rough price of it, which is
    30 or (in parts) 60 and a cycle a vector, falls and no part gets fewer than two rows
    (splitTwoStageReductionsBetweenWorkers).
    """
    parts = np.ones_like(rows)
    heads = np.flatnonzero(np.append(True, np.diff(tile) != 0))
    number = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(tile))))
    free = workers - np.diff(np.append(heads, len(tile)))
    work = ceil_div(outs * rows, _values_a_cycle(outs, out_type, operation))
    price = 30 + work
    most = np.minimum(rows // 2, price // 4)
    alone = np.maximum.reduceat(price, heads)
    waiting = free > 0
    for _ in range(workers):
        slowest = np.maximum.reduceat(price, heads)
        is_slowest = np.flatnonzero(price == slowest[number])
        at = is_slowest[np.searchsorted(number[is_slowest], np.arange(len(heads)))]
        one_more = parts[at] + 1
        after = 60 + work[at] // one_more
        waiting &= (free > 0) & (one_more < most[at]) & (after < price[at])
        if not waiting.any():
            break
        parts[at[waiting]], price[at[waiting]] = one_more[waiting], after[waiting]
        free = free - waiting
    gains = np.maximum.reduceat(price, heads) < alone
    parts = np.where(gains[number], parts, 1)
    in_parts = np.minimum(rows // 2, ceil_div(rows, ceil_div(rows, parts)))
    parts_chosen: IntArray = np.where((parts > 1) & (rows > 3), in_parts, 1)
    return parts_chosen


def _values_a_cycle(outs: IntArray, out_type: Type, operation: str) -> IntArray:
    """Return PopLibs' rough number of values that a worker reduces in a cycle (opsPerCycle)."""
    width = lanes(out_type) * (1 + (out_type in REAL and REDUCTIONS[operation].scales))
    divides = np.gcd(outs, width)
    return np.where(width % outs == 0, width, divides)
