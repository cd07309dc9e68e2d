"""Instrumentation: the counters that a program carries, what they cost, and what they measure.

A counter reads the tile's clock before and after what it measures and keeps the difference. That
is a word of 4 bytes: the low half of the clock is enough for what takes less than 2^32 cycles, and
no whole time stamps are kept. The guide (chapter "Profiling") says what is counted at each level
and where syncs stand; the sizes and cycles of a counter are estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulator.compiler.executable import Exchange, Lowered
from simulator.compiler.instrumentation import Instrumentation
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import VertexGroup

COUNTER_BYTES = 4  # a result
# Estimate: read the clock, read it again, subtract, make the address of the result, store.
COUNTER_INSTRUCTIONS = 5
INSTRUCTION_BYTES = 4
COUNTER_CODE_BYTES = COUNTER_INSTRUCTIONS * INSTRUCTION_BYTES
# The supervisor issues one a cycle while no worker runs; a worker's are cycles of its thread.
COUNTER_CYCLES = COUNTER_INSTRUCTIONS


def sync_around(instrumentation: Instrumentation, ipus: int) -> str:
    """Name the sync that stands before and after each compute set; "" for none.

    One tile of the device waits for the tiles of all IPUs, which internal syncs do not join; one
    tile of each IPU does not, which is why the level `ipu` needs no global syncs.
    """
    if not instrumentation.on_one_tile:
        return ""
    return "External" if instrumentation.compute == "device" and ipus > 1 else "Internal"


def measuring_tiles(instrumentation: Instrumentation, target: Target) -> IntArray:
    """List the tiles that measure for all others: the first of the device or of each IPU."""
    end = {"device": 1, "ipu": target.num_tiles}.get(instrumentation.compute, 0)
    return np.arange(0, end, target.tiles_per_ipu, dtype=np.int64)


def counted_vertices(
    instrumentation: Instrumentation, groups: Sequence[VertexGroup]
) -> Sequence[VertexGroup]:
    """Return the vertices with the cycles that they take when each counts its own."""
    if instrumentation.compute != "vertex":
        return groups
    return [replace(group, cycles=group.cycles + COUNTER_CYCLES) for group in groups]


def counter_cycles(instrumentation: Instrumentation, target: Target, lowered: Lowered) -> IntArray:
    """Return the cycles that counting adds to each compute set, by [compute set][tile].

    The cycles of counting vertices are in those of the vertices.
    """
    return COUNTER_CYCLES * _counting(instrumentation, target, lowered)


def counted_exchanges(exchanges: Sequence[Exchange], counted: bool) -> list[Exchange]:
    """Return exchanges with the cycles that they take when each of their tiles counts them."""
    if not counted:
        return list(exchanges)
    return [
        replace(exchange, cycles=exchange.cycles + COUNTER_CYCLES * (exchange.cycles > 0))
        for exchange in exchanges
    ]


def result_bytes(instrumentation: Instrumentation, target: Target, lowered: Lowered) -> IntArray:
    """Return the bytes by tile that hold what was counted."""
    words = _exchange_counters(instrumentation, target, lowered)
    if instrumentation.compute == "vertex":
        for group in lowered.groups:
            np.add.at(words, group.tile, 1)
    else:
        words += _counting(instrumentation, target, lowered).sum(axis=0)
    if instrumentation.compute == "device":
        words += 1  # the time at which each tile was ready; the measuring tile sees the last alone
    return COUNTER_BYTES * words


def counting_on(instrumentation: Instrumentation, target: Target, lowered: Lowered) -> IntArray:
    """Return as 0 or 1, by [compute set][tile], whether the tile has code that counts."""
    if instrumentation.compute == "vertex":
        return vertices_run(target, lowered)
    return _counting(instrumentation, target, lowered)


def vertices_run(target: Target, lowered: Lowered) -> IntArray:
    """Return as 0 or 1, by [compute set][tile], whether a tile runs vertices of a compute set."""
    runs = np.zeros((len(lowered.compute_sets), target.num_tiles), dtype=np.int64)
    for group in lowered.groups:
        runs[group.compute_set, group.tile] = 1
    return runs


def _counting(instrumentation: Instrumentation, target: Target, lowered: Lowered) -> IntArray:
    """Return as 0 or 1, by [compute set][tile], whether the tile's supervisor counts."""
    if instrumentation.compute == "tile":
        return vertices_run(target, lowered)
    counting = np.zeros((len(lowered.compute_sets), target.num_tiles), dtype=np.int64)
    counting[:, measuring_tiles(instrumentation, target)] = 1
    return counting


def _exchange_counters(
    instrumentation: Instrumentation, target: Target, lowered: Lowered
) -> IntArray:
    """Count by tile the exchanges that it takes part in and that are counted."""
    counters = np.zeros(target.num_tiles, dtype=np.int64)
    for exchanges, counted in (
        (lowered.global_exchanges, instrumentation.external_exchange),
        (lowered.host_exchanges, instrumentation.host_exchange),
    ):
        for exchange in exchanges if counted else ():
            counters += exchange.cycles > 0
    return counters
