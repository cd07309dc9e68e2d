"""How a matrix product is divided over the tiles: the split with the fewest estimated cycles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from simulator.codelets.convolution_cycles import conv_cycles, input_group
from simulator.codelets.costs import ceil_div, even_bounds
from simulator.codelets.reduction import reduce_add_cycles
from simulator.graph.errors import PoplarError
from simulator.graph.target import Target
from simulator.graph.types import IntArray, Type

USABLE_MEMORY = 0.6  # of a tile; the rest is for code, stack and other variables


@dataclass(frozen=True, slots=True)
class Plan:
    """A division of [m, k] x [k, n]; `swapped` computes the transposed product instead.

    `m`, `n` and `k` are of the product that is computed (after swapping), in `m_splits` parts of
    rows, `n_splits` parts of whole groups of outputs, `k_splits` parts of whole groups of inputs.
    `block_bytes` are the operands and the result of the largest block; if they do not fit into what
    a tile has for them, no plan does.
    """

    swapped: bool
    m: int
    n: int
    k: int
    m_splits: int
    n_splits: int
    k_splits: int
    units: int
    group: int
    cycles: int
    block_bytes: int
    fits: bool

    @property
    def vertices(self) -> int:
        """Count the blocks."""
        return self.m_splits * self.n_splits * self.k_splits

    def row_bounds(self) -> IntArray:
        """Give the bounds of the parts of the rows."""
        return even_bounds(self.m, self.m_splits)

    def output_bounds(self) -> IntArray:
        """Give the bounds of the parts of the outputs."""
        return _group_bounds(self.n, self.units, self.n_splits)

    def input_bounds(self) -> IntArray:
        """Give the bounds of the parts of the summed dimension."""
        return _group_bounds(self.k, self.group, self.k_splits)


def _group_bounds(size: int, group: int, parts: int) -> IntArray:
    return np.minimum(even_bounds(ceil_div(size, group), parts) * group, size)


@lru_cache(maxsize=256)
def plan_product(target: Target, dtype: Type, m: int, k: int, n: int) -> Plan:
    """Find the best division of a product [m, k] x [k, n], in either orientation."""
    if min(m, k, n) < 1:
        raise PoplarError(f"matMul: [{m}, {k}] x [{k}, {n}]; sizes must be at least 1")
    straight = _best(target, dtype, m, k, n, swapped=False)
    crossed = _best(target, dtype, n, k, m, swapped=True)
    return min(straight, crossed, key=lambda plan: (not plan.fits, plan.cycles))


def _candidates(size: int, most: int) -> IntArray:
    """List the part counts up to `most` that differ in the size of the largest part."""
    parts = np.arange(1, min(size, most) + 1, dtype=np.int64)
    _, first = np.unique(ceil_div(size, parts), return_index=True)
    distinct: IntArray = parts[np.sort(first)]
    return distinct


def _best(target: Target, dtype: Type, m: int, k: int, n: int, *, swapped: bool) -> Plan:
    units, group = target.getNumConvUnits(dtype, dtype), input_group(target, dtype)
    tiles = target.tiles_per_ipu
    splits = np.meshgrid(
        _candidates(m, tiles),
        _candidates(ceil_div(n, units), tiles),
        _candidates(ceil_div(k, group), tiles),
        indexing="ij",
    )
    fits = splits[0] * splits[1] * splits[2] <= tiles
    ms, ns, ks = (split[fits] for split in splits)
    positions = ceil_div(m, ms)
    outputs = np.minimum(ceil_div(ceil_div(n, units), ns) * units, n)
    inputs = np.minimum(ceil_div(ceil_div(k, group), ks) * group, k)
    cycles = _estimate(target, dtype, (m, n), (ms, ns, ks), (positions, outputs, inputs))
    held = (positions * inputs + inputs * outputs + positions * outputs) * dtype.size
    too_big = held > USABLE_MEMORY * target.bytes_per_tile
    best = int(np.lexsort((ms * ns * ks, np.where(too_big, held, cycles), too_big))[0])
    return Plan(
        swapped=swapped,
        m=m,
        n=n,
        k=k,
        m_splits=int(ms[best]),
        n_splits=int(ns[best]),
        k_splits=int(ks[best]),
        units=units,
        group=group,
        cycles=int(cycles[best]),
        block_bytes=int(held[best]),
        fits=not too_big[best],
    )


def _estimate(
    target: Target,
    dtype: Type,
    size: tuple[int, int],
    splits: tuple[Any, Any, Any],
    block: tuple[Any, Any, Any],
) -> IntArray:
    """Add up exchange of operands, product, exchange of partial results and reduction."""
    m, n = size
    ms, ns, ks = splits
    positions, outputs, inputs = block
    received = (positions * inputs + inputs * outputs) * dtype.size
    exchange = ceil_div(received, target.exchange_bytes_per_cycle)
    compute = conv_cycles(target, dtype, positions, outputs, inputs)
    outs = ceil_div(ceil_div(m * n, ms * ns * ks), 4) * 4
    reduce_exchange = ceil_div(outs * ks * dtype.size, target.exchange_bytes_per_cycle)
    add = reduce_add_cycles(target, dtype)
    # ReduceAdd is linear in the number of rows: two evaluations give every one.
    one, two = add(outs, 1), add(outs, 2)
    reduction = reduce_exchange + one + (two - one) * (ks - 1) + target.getMaxIPUSyncDelay()
    total: IntArray = exchange + compute + np.where(ks > 1, reduction, 0)
    return total
