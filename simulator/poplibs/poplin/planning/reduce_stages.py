"""In how many stages the parts of a sum are added up, and what that takes.

Source: PopLibs lib/poplin/ConvReducePlan.cpp. A reduction of many parts goes by stages, so that
each tile receives fewer messages: of 16 parts or more by two, of 125 or more by three.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.reduction import reduce_add
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray, Type

STAGES = ((125, 3), (16, 2), (2, 1), (0, 0))  # parts from which on there are so many stages
MAX_STAGES = STAGES[0][1]


def depths(parts: int) -> list[int]:
    """Return how many parts are left after each stage; the last leaves one."""
    stages = next(count for least, count in STAGES if parts >= least)
    return [*_between(parts, stages)[0], 1] if stages else []


def _between(parts: int, stages: int) -> tuple[list[int], float]:
    """Choose what intermediate stages leave so that a tile receives the fewest messages."""
    if stages == 1:
        return [], parts
    near = int(parts ** ((stages - 1) / stages))
    choices = []
    for parts_after in (near, near + 1):
        later_stages, messages = _between(parts_after, stages - 1)
        choices.append(([parts_after, *later_stages], messages + parts / parts_after))
    return min(choices, key=lambda choice: (choice[1], -choice[0][0]))


@lru_cache(maxsize=8)
def _rows(most: int) -> IntArray:
    """Return the rows that a tile adds in each stage, for every number of parts; 0 is no stage."""
    rows = np.zeros((MAX_STAGES, most + 1), dtype=np.int64)
    for parts in range(2, most + 1):
        before = parts
        for number, parts_after in enumerate(depths(parts)):
            if before > 1:
                rows[number, parts] = -(-before // parts_after)
                before = -(-before // int(rows[number, parts]))
    return rows


def reduction_cost(
    target: Target, dtype: Type, outputs: IntArray, sums: IntArray, out_type: Type
) -> tuple[IntArray, IntArray]:
    """Return the cycles of exchanges and those of vertices.

    `outputs` are those of a part, `sums` the parts of each. As in PopLibs
    (lib/poplin/ConvModel.cpp, addExchangeCycleEstimates; estimateConvReduceCycles), where no stage
    has a sync, and the outputs are exchanged once even where nothing is added.
    """
    rate = target.exchange_bytes_per_cycle
    exchange, sent = ceil_div(outputs * dtype.size, rate), outputs
    work = np.zeros_like(outputs)
    size = ceil_div(outputs, sums) * sums
    stages = [stage[sums] for stage in _rows(target.tiles_per_ipu)]
    for number, rows in enumerate(stages):
        some = rows > 0
        if not some.any():
            break  # no way to cut has this stage, or a later one
        if number:
            exchange = exchange + np.where(some, ceil_div(sent * dtype.size, rate), 0)
        sent, size = (ceil_div(elements, np.maximum(rows, 1)) for elements in (sent, size))
        added = reduce_add(size, rows, dtype, target, out_type)
        if out_type != dtype and number + 1 < len(stages):
            between = reduce_add(size, rows, dtype, target, dtype)
            added = np.where(stages[number + 1] == 0, added, between)
        work = work + np.where(some, added, 0)
    return exchange, work


def received_bytes(target: Target, dtype: Type, outputs: IntArray, sums: IntArray) -> IntArray:
    """Return the most bytes that a tile receives in a stage of what `reduction_cost` prices."""
    size = ceil_div(outputs, sums) * sums
    received: IntArray = np.zeros_like(outputs)
    for rows in (stage[sums] for stage in _rows(target.tiles_per_ipu)):
        if not rows.any():
            break
        size = ceil_div(size, np.maximum(rows, 1))
        received = np.maximum(received, size * rows * dtype.size)
    return received
