"""In how many stages the parts of a sum are added up, and what that takes.

Source: PopLibs lib/poplin/ConvReducePlan.cpp. A reduction of many parts goes by stages, so that
each tile receives fewer messages: of 16 parts or more by two, of 125 or more by three.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.reduction import reduce_add_cycles
from simulator.graph.target import Target
from simulator.graph.types import IntArray, Type

STAGES = ((125, 3), (16, 2), (2, 1), (0, 0))  # parts from which on there are so many stages
MOST_STAGES = STAGES[0][1]


def depths(parts: int) -> list[int]:
    """Give how many parts are left after each stage; the last leaves one."""
    stages = next(count for least, count in STAGES if parts >= least)
    return [*_between(parts, stages)[0], 1] if stages else []


def _between(parts: int, stages: int) -> tuple[list[int], float]:
    """Choose what intermediate stages leave so that a tile receives the fewest messages."""
    if stages == 1:
        return [], parts
    near = int(parts ** ((stages - 1) / stages))
    choices = []
    for left in (near, near + 1):
        rest, messages = _between(left, stages - 1)
        choices.append(([left, *rest], messages + parts / left))
    return min(choices, key=lambda choice: (choice[1], -choice[0][0]))


class Stage(NamedTuple):
    """For every number of parts from 0: the rows that a tile adds, the tiles that share outputs."""

    rows: IntArray
    sharing: IntArray


@lru_cache(maxsize=8)
def _table(most: int) -> tuple[Stage, ...]:
    rows = np.zeros((MOST_STAGES, most + 1), dtype=np.int64)
    sharing = np.ones((MOST_STAGES, most + 1), dtype=np.int64)
    for parts in range(2, most + 1):
        before = parts
        for number, left in enumerate(depths(parts)):
            rows[number, parts] = -(-before // left)
            sharing[number, parts] = parts // left
            before = left
    return tuple(Stage(*pair) for pair in zip(rows, sharing, strict=True))


def reduction_cost(
    target: Target, dtype: Type, made: Any, sums: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Give the cycles of exchanges, those of vertices and syncs, and the bytes a tile receives.

    `made` are the outputs of a part, `sums` the parts of each.
    """
    exchange, work, received = (np.zeros_like(made) for _ in range(3))
    add: Any = reduce_add_cycles(target, dtype)
    for rows, sharing in (
        (stage.rows[sums], stage.sharing[sums]) for stage in _table(target.tiles_per_ipu)
    ):
        share = ceil_div(made, sharing)
        size = share * rows * dtype.size
        one, two = add(share, 1), add(share, 2)  # which is linear in the rows
        cycles = one + (two - one) * (rows - 1) + 2 * target.getMaxIPUSyncDelay()
        exchange = exchange + ceil_div(size, target.exchange_bytes_per_cycle)
        work = work + np.where(rows > 0, cycles, 0)
        received = np.maximum(received, size)
    return exchange, work, received
