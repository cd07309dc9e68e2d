"""Cycles of convolutions, matrix products and dot products, of the whole tile.

Source: PopLibs lib/poplin/PerformanceEstimation.hpp of March 2021 (8dcde1ec), whose figures were
published, and for `conv_cycles` of April 2019. Later forms take a few cycles less. Arguments are
arrays by vertex: `positions` are the output positions that the six workers share as evenly as can
be, one row each. A group of channels is what one pass takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.machine.target import Target
from simulator.graph.types import FLOAT, HALF, IntArray, Type

WHOLE_ROW = 1 << 40  # a width that all positions fit into
NX1_RETAINED = 6  # cycles that a worker saves by keeping its state
RETAINED_1X1 = 10, 2  # the same, of halves into floats: in the first pass, in the others
WEIGHT_SHUFFLE = {4: 60, 2: 46, 1: 15}  # supervisor's, by the rows of a filter loaded at once


def input_group(target: Target, dtype: Type) -> int:
    """Return the input channels that one pass of the matrix unit takes."""
    return target.getWeightsPerConvUnit(dtype)


def weight_loads(target: Target, dtype: Type, partials: Type, units: int = 0) -> int:
    """Return the cycles to load the weights of one pass of so many units; 0 for all."""
    weights = (units or target.getNumConvUnits(dtype, partials)) * input_group(target, dtype)
    return weights * dtype.size // target.getConvUnitCoeffLoadBytesPerCycle()


def _busiest(
    worker: Callable[[IntArray], IntArray], positions: IntArray, workers: int, tag: int
) -> IntArray:
    """Return a pass: the slowest worker, or the fastest and the supervisor's next call."""
    slowest, fastest = worker(ceil_div(positions, workers)), worker(positions // workers)
    busiest: IntArray = np.maximum(workers * slowest, workers * fastest + tag)
    return busiest


def _worker_2019(positions: IntArray, zeroing: bool) -> IntArray:
    extra = 2 + 8 * positions if zeroing else 0
    return np.where(positions == 0, 28, 50 + extra + 8 * np.maximum(positions - 3, 0))


def conv_cycles(
    target: Target, dtype: Type, positions: IntArray, outputs: IntArray, inputs: IntArray
) -> IntArray:
    """50 + 11 + 10 + the passes of ConvPartial1x1Out in 2019: exact on the guide's sample.

    For a block of `positions` x `inputs` times `inputs` x `outputs`: every group of inputs but the
    last accumulates, 13 + groups of outputs * (18 + 6 + loads + workers), the last one zeroes. Its
    constants are those of floats.
    """
    out_groups = ceil_div(outputs, target.getNumConvUnits(dtype, dtype))
    in_groups = ceil_div(inputs, input_group(target, dtype))
    call = 18 + 6 + weight_loads(target, dtype, dtype)
    workers = target.workers
    add = _busiest(lambda k: _worker_2019(k, False), positions, workers, 14)
    zero = _busiest(lambda k: _worker_2019(k, True), positions, workers, 14)
    accumulate = 13 + out_groups * (call + add)
    cycles: IntArray = 50 + 11 + (in_groups - 1) * accumulate + 10 + out_groups * (call + zero)
    return cycles


def _common_path(dtype: Type, partials: Type, units: int) -> bool:
    """Return whether halves go through the loop that zeroes in the matrix unit."""
    return partials == FLOAT or (dtype == HALF and units == 16)


def _worker_1x1(k: IntArray, zeroing: bool, dtype: Type, partials: Type, units: int) -> IntArray:
    """Cycles of a worker with k positions in ConvPartial1x1Out; lines 321-416."""
    position_cycles = 8 if dtype == FLOAT and units == 16 else 4 if partials == FLOAT else 2
    zero = (2 + position_cycles * k) * zeroing
    further = np.maximum(k - 3, 0) * (8 if dtype == FLOAT else 4)
    kinds = [k == 0, k == 1, k == 2]
    if dtype == FLOAT:
        return np.select(kinds, [np.full_like(k, 24), 47 + zero, 46 + zero], 46 + zero + further)
    if _common_path(dtype, partials, units):
        last = 2 if zeroing else 4
        fixed = [np.full_like(k, cycles + last) for cycles in (20, 31, 40)]
        return np.select(kinds, fixed, 36 + last + further) - RETAINED_1X1[0]
    return np.select(kinds, [np.full_like(k, 24), 39 + zero, 40 + zero], 41 + zero + further)


def conv_1x1(
    positions: IntArray,
    groups: IntArray,
    in_groups: IntArray,
    out_groups: IntArray,
    dtype: Type,
    partials: Type,
    target: Target,
    units: int = 0,
) -> IntArray:
    """50 + retained state + groups * (a zeroing pass + in_groups - 1 others): ConvPartial1x1Out.

    Lines 321-416, 435-471. A group of outputs is one pass.
    """
    units, workers = units or target.getNumConvUnits(dtype, partials), target.workers
    keeps = dtype == HALF and _common_path(dtype, partials, units)
    first, second = RETAINED_1X1 if keeps else (0, 0)
    loads = weight_loads(target, dtype, partials, units)
    worker = partial(_worker_1x1, dtype=dtype, partials=partials, units=units)
    add, zero = (
        _busiest(partial(worker, zeroing=zeroing), positions, workers, 14)
        for zeroing in (False, True)
    )
    add_pass = 15 + 1 + out_groups * (19 + 6 + loads + add)
    last = 10 + 1 + out_groups * (19 + 7 + loads + zero)
    retained = workers * (first + second * (in_groups * groups - 1))
    cycles: IntArray = 50 + retained + groups * (12 + (in_groups - 1) * add_pass + last)
    return cycles


def zero_partials(elements: IntArray, passes: IntArray, dtype: Type, target: Target) -> IntArray:
    """W * passes * (5 + a cycle a vector of a worker's share of the elements)."""
    share = ceil_div(ceil_div(elements, target.workers), target.getVectorWidth(dtype))
    return target.workers * passes * (5 + share)


def _rows_met(positions: IntArray, width: IntArray | int, workers: int) -> IntArray:
    """Count the rows of `width` that a worker's share of the positions lies in, at most.

    Workers share the rows evenly, in parts where they must: what is over after whole rows lies in
    one row if it divides the workers, else some have it in two.
    """
    full_rows, over = np.divmod(ceil_div(positions, width), workers)
    apart = np.where(workers % np.maximum(over, 1) == 0, 1, 2)
    rows: IntArray = full_rows + np.where(over > 0, apart, 0)
    return rows


def _worker_nx1(k: IntArray, rows: IntArray, dtype: Type, partials: Type) -> IntArray:
    """Cycles of a worker with k positions in so many rows, each of which keeps its state."""
    one, two, three, step = (33, 44, 45, 8) if dtype == FLOAT else (29, 33, 34, 4)
    rows = np.clip(rows, 1, np.maximum(k, 1))
    row_positions = k // rows
    kinds = [row_positions == 0, row_positions == 1, row_positions == 2]
    fixed = [np.full_like(k, cycles) for cycles in (17, one, two)]
    row = rows * (np.select(kinds, fixed, three) - NX1_RETAINED)
    further = step * np.maximum(k - 3 * rows, 0) * (row_positions > 2)
    cycles: IntArray = 17 + (partials != FLOAT) + row + further
    return cycles


def conv_nx1(
    positions: IntArray,
    kernel: IntArray,
    groups: IntArray,
    in_groups: IntArray,
    out_groups: IntArray,
    dtype: Type,
    partials: Type,
    target: Target,
    rows: int = 1,
    width: IntArray | int = WHOLE_ROW,
) -> IntArray:
    """103 + zeroing + groups * (16 + in * (14 + out * (14 + inner))): ConvPartialnx1.

    Lines 495-590. `kernel` counts the steps over a kernel, `rows` are the rows of the
    filter that are loaded at once (1, 2 or 4); `inner` loads weights for each step and lets the
    workers go over their positions, which lie in rows of `width`.
    """
    units, workers = target.getNumConvUnits(dtype, partials), target.workers
    loads = weight_loads(target, dtype, partials)
    if rows == 4 and target.getConvUnitCoeffLoadBytesPerCycle() > 8:
        loads *= 2  # shuffled data cannot be loaded in 128 bits
    step = loads + WEIGHT_SHUFFLE.get(rows, 20 * rows) + 3
    max_rows = _rows_met(positions, width, workers)
    work = _busiest(lambda k: _worker_nx1(k, max_rows, dtype, partials), positions, workers, 9)
    inner = 14 + kernel * (17 - 5 + step + work)
    retained = NX1_RETAINED + (9 if partials == FLOAT else 10)
    clear = groups * (out_groups * 17 + (out_groups - 1) * 6 + 1) + (groups - 1) * 6 + 1
    clear = clear + zero_partials(positions * units, groups * out_groups, partials, target)
    loops = groups * (16 + in_groups * (14 + out_groups * (14 + inner)))
    cycles: IntArray = 103 + workers * retained + clear + loops
    return cycles


def dense_dot(n: IntArray, dtype: Type, partials: Type) -> IntArray:
    """7 + n of an even number of floats, 7 + 2n of an odd one; lines 53-95.

    Halves into floats: 7 + n/4 of whole vectors, else 7 + n. Halves into halves go two outputs at
    a time: 11 + n/4, else 12 + n, for both.
    """
    if dtype == FLOAT:
        cycles: IntArray = 7 + n * (1 + n % 2)
        return cycles
    aligned, part = (7, 7) if partials == FLOAT else (11, 12)
    return np.where(n % 4 == 0, aligned + n // 4, part + n)


def tutorial_dot(n: IntArray) -> IntArray:
    """5 + (n + 1)/2 rounded down, a worker: the estimate that tutorial 7's own codelets give."""
    return 5 + (n + 1) // 2


def conv_hmac(
    positions: IntArray,
    kernel: IntArray,
    inputs: IntArray,
    outputs: IntArray,
    groups: IntArray,
    in_groups: IntArray,
    out_groups: IntArray,
    dtype: Type,
    partials: Type,
    target: Target,
) -> IntArray:
    """58 (half: 63) + groups * (23 + in * (15 + out * (10 + inner))): ConvPartialHorizontalMac.

    Lines 109-202. Every position of a worker takes 7 + `outputs` dot products over `inputs`
    channels (half partials: two outputs at once), for each step of the kernel.
    """
    pairs = outputs if partials == FLOAT else outputs // 2
    dot_cycles = 7 + pairs * dense_dot(inputs, dtype, partials)

    def worker(k: IntArray) -> IntArray:
        row = np.where(k == 0, 7, 19 + k * dot_cycles)
        cycles: IntArray = 16 + kernel * (16 + row)
        return cycles

    inner = target.workers * worker(ceil_div(positions, target.workers))
    start = (58 if dtype == FLOAT else 63) + target.workers * (9 if partials == FLOAT else 10)
    zero = zero_partials(positions * outputs, groups * out_groups, partials, target)
    total: IntArray = start + zero + groups * (23 + in_groups * (15 + out_groups * (10 + inner)))
    return total


def outer_product(width: IntArray, outputs: IntArray, out_group: int, dtype: Type) -> IntArray:
    """25 + groups * (11 (half: 10) + width * a step), a worker: OuterProduct; lines 856-899.

    `width` numbers are multiplied by the `outputs` of each group of channels.
    """
    single = dtype == FLOAT
    least, vector = (6, 2) if single else (12, 4)
    fast = out_group >= least and out_group % vector == 0 and out_group // vector + 1 < 512
    slow = 2 * out_group if single else 5 * out_group // 2
    step = 6 + (out_group - least) // vector if fast else 10 + slow
    groups = ceil_div(outputs, out_group)
    cycles: IntArray = 25 + groups * (11 - (not single) + width * step)
    return cycles


def conv_vmac(
    positions: IntArray,
    kernel: IntArray,
    groups: IntArray,
    in_groups: IntArray,
    partials: Type,
    target: Target,
    rows: Any = 1,
) -> IntArray:
    """100 + groups * (zeroing + 32 + in * (24 + inner) + reduction): ConvPartialVerticalMac.

    Lines 204-301; halves, four channel groups at once. Every worker goes along the `kernel`
    elements of each of `rows` rows of the kernel for each of its positions and keeps partials of
    its own, which are then added up. Workers share a position's rows where there are some over.
    Half partials came later, and have the cycles that they had then (76 + ..., lines 246-395).
    """
    workers, single = target.workers, partials == FLOAT
    split = workers // np.gcd(workers, positions)  # parts of a row
    full_positions, part = np.divmod(positions * split // workers, split)
    products = full_positions * kernel + part * ceil_div(kernel, split)
    row_cycles = (18 if single else 11) * (full_positions + part) + 2 * products
    inner = workers * ((6 if single else 18) + np.ceil(rows * row_cycles).astype(np.int64))
    elements = positions * 4
    zero = 4 + (elements if single else ceil_div(elements, 4))
    one = 7 + 2 * single + (2 if single else 1) * (workers - 1)
    reduction = 10 + one * ceil_div(elements, workers) // 4
    start = 61 + (13 + 26 if single else 14 + 1)
    cycles: IntArray = start + groups * (zero + 32 + in_groups * (24 + inner) + reduction)
    return cycles


def _slic_row(n: Any, zeroing: bool, narrow: bool, stride: int) -> Any:
    """Cycles of a pass of the SLIC engine over n positions at an output stride of 1 or 2."""
    if stride == 2:
        return np.where(n < 3, np.where(n > 1, 15, 13), 9 + 2 * n)
    short_pass = np.where(n > 1, 13 + n, 13) if zeroing else np.where(n > 1, 17 + n, 13)
    many = 10 + n + (3 if narrow and not zeroing else 0)
    return np.where(n < (6 if narrow else 5), short_pass, many)


def conv_slic(
    positions: IntArray,
    kernels: IntArray,
    groups: IntArray,
    channels: int,
    partials: Type,
    target: Target,
    stride: int = 1,
    width: IntArray | int = WHOLE_ROW,
) -> IntArray:
    """28 + weight loads and a pass of the workers for every sub-kernel: ConvPartial1x4SLIC.

    Lines 592-785; halves, kernels of width 4, an output stride of 1 or 2, positions in rows of
    `width`. `kernels` counts the sub-kernels, `channels` (1, 2 or 4) those of a group; 4 / channels
    groups go at once. On 8 units with half partials it is a codelet of its own with two outputs,
    merged at the end.
    """
    workers, units = target.workers, target.getNumConvUnits(HALF, partials)
    narrow = units == 8 and partials == HALF
    passes = 1 if units == 16 else 2
    single = partials == FLOAT

    def inner(zeroing: bool) -> IntArray:
        share = ceil_div(positions, workers)
        rows = np.clip(_rows_met(positions, width, workers), 1, np.maximum(share, 1))
        row = _slic_row(share / rows, zeroing, narrow, stride) - single
        row_cycles = (9 if narrow else 10) + zeroing + 3 * single + passes * row
        worker = 17 + np.ceil(rows * row_cycles).astype(np.int64) + 2 * narrow
        merge = 2 + 2 * positions if narrow and zeroing else 0
        cycles: IntArray = workers * worker + merge
        return cycles

    rearrange = 12 if channels == 2 else 10
    load = 16 + (18 if channels == 4 else 21 + rearrange * workers)
    body = load + (16 if narrow else 20)
    start, group = (25, 12) if narrow else (28, 15)
    # As in the source, the loop over sub-kernels is counted once, not for each group.
    loops = group * groups + 6 * (groups - 1) + 1 + body * kernels + 6 * (kernels - 1) + 1
    return start + loops + groups * (inner(True) + (kernels - 1) * inner(False))
