"""What an exchange costs: bytes, cycles and code of every tile.

Estimates. Receiving takes a cycle for each four bytes, half of it where both tiles of an exchange
bus receive the same; each fragment takes instructions of its own, which run beside the payload.
Before the first word there is a latency, which grows with the number of the tile that receives.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pva.schema import EXCHANGE_INSTRUCTIONS
from simulator.compiler.executable import Exchange
from simulator.compiler.flows import flows, group_borders, group_of_tiles
from simulator.graph import kernels
from simulator.graph.geometry.intervals import ascending, distinct
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray

# The latency of a machine is a fit of two printed steps of the user guide's sample: a word from
# tile 0 to all 1,216 takes 120 cycles on the slowest of them and 86.6 % of it in the mean; 512
# bytes to each of tiles 0 to 391, which pairs receive alike and so in 64 cycles, take 169 and
# 86.6 %. Latencies of tile 0, of a bend and of the last tile, with straight lines between, and the
# place of the bend: four numbers for four figures. A model without relative sync delays has the
# latency of tile 0 everywhere: so the matrix-vector tutorial, whose figures gave none of the
# numbers, takes its 5,071 cycles exactly.
INSTRUCTION_BYTES = 4
# Issue slots of a fragment. One, as words of many sources arrive back to back: two would put the
# matrix-vector tutorial (200 words from 200 tiles) 11 % above its published 5,071 cycles.
RECEIVE_SLOTS, SEND_SLOTS = 1, 1
# Instructions by kind, our reading of the guide's list of kinds, as many as the slots above: of a
# received fragment, whose sender is selected (PopLibs counts four bytes of code for it as well,
# lib/popops/DynamicSlice.cpp, mExchangeCodeBytes); of one that does not follow the one before it in
# memory; of a tile that receives, which waits for the first and selects none at the end; of a sent
# fragment; of a tile that sends, which waits for its turn.
INSTRUCTIONS = (
    {"receiveMux": 1},
    {"receiveAddress": 1},
    {"delay": 1, "receiveMux": 1},
    {"send": 1},
    {"delay": 1},
)
KINDS = EXCHANGE_INSTRUCTIONS[:-1]  # the last is the sum of all
# Bytes of code, [row of INSTRUCTIONS][kind].
CODE_BYTES = INSTRUCTION_BYTES * np.array(
    [[row.get(kind, 0) for kind in KINDS] for row in INSTRUCTIONS]
)
# Fit of the printed stream copies of 4 and 8 bytes, 7 and 9 cycles: five, and two a word of the
# first packet of a tile. Larger ones take as long as the link needs.
HOST_LATENCY, HOST_WORD_CYCLES = 5, 2
WORD = 4  # bytes


def exchange_cost(
    target: Target,
    source: IntArray,
    destination: IntArray,
    size: IntArray,
    begin: IntArray,
    *,
    in_rows: bool = False,
    count: IntArray | None = None,
) -> Exchange:
    """Cost an internal exchange of fragments of `size` bytes; `in_rows`: into a row of each tile.

    `count`: the fragments that each row stands for, where no byte comes twice; else each is one.
    The same bytes (`begin` in the arena) from one tile to many are sent once: a multicast. What one
    tile receives several times, as of a broadcast tensor, is sent as often.
    """
    if count is None and kernels.compiled:
        return _in_one_pass(target, source, destination, size, begin, in_rows)
    tiles, bus = target.num_tiles, target.getTilesPerSharedExchangeBus()
    if count is None:
        traffic = _sorted_out(source, destination, size, begin, tiles, bus)
    else:
        traffic = _traffic_of_fragments(source, destination, size, count, tiles, bus)
    sent, received, send_count, receive_count, shared = traffic
    arriving = received - np.repeat(shared - shared // bus, bus)[:tiles]
    payload = -(-np.maximum(sent, arriving) // target.exchange_bytes_per_cycle)
    control = np.maximum(RECEIVE_SLOTS * receive_count, SEND_SLOTS * send_count)
    active = (sent > 0) | (received > 0)
    cycles = np.where(active, _latency(target) + np.maximum(payload, control), 0)
    receivers, senders = receive_count > 0, send_count > 0
    places = receivers if in_rows else receive_count
    counts = np.stack([receive_count, places, receivers, send_count, senders])
    code = CODE_BYTES.sum(axis=1) @ counts
    moved = flows(target, source, destination, size)
    return Exchange(sent, received, cycles, _by_kind(counts.sum(axis=1)), code, moved)


def _by_kind(counts: IntArray) -> tuple[int, ...]:
    """Return the bytes of code by kind, and their sum, of so many of each row of INSTRUCTIONS."""
    kinds = (counts @ CODE_BYTES).tolist()
    return (*kinds, sum(kinds))


def _in_one_pass(
    target: Target,
    source: IntArray,
    destination: IntArray,
    size: IntArray,
    begin: IntArray,
    in_rows: bool,
) -> Exchange:
    """Cost an exchange by the kernel, of fragments in the order of what is received."""
    bus, rate = target.getTilesPerSharedExchangeBus(), target.exchange_bytes_per_cycle
    groups = len(group_borders(target)) - 1
    priced = _latency(target), group_of_tiles(target), _rules(bus, rate, in_rows, groups)
    columns = kernels.columns("exchange", source, destination, size, begin, *priced)
    if not columns:
        order = np.lexsort((begin, destination))
        rows = (column[order] for column in (source, destination, size, begin))
        columns = kernels.columns("exchange", *rows, *priced)
    sent, received, cycles, code, counts, moved = columns
    moved = moved.reshape(groups, groups)
    return Exchange(sent, received, cycles, _by_kind(counts), code, moved)


@lru_cache(16)
def _rules(bus: int, bytes_per_cycle: int, in_rows: bool, groups: int) -> IntArray:
    """Return the numbers by which the kernel prices what it counts, in its order."""
    code = CODE_BYTES.sum(axis=1).tolist()
    return np.array([bus, bytes_per_cycle, in_rows, RECEIVE_SLOTS, SEND_SLOTS, *code, groups])


def host_exchange_cost(target: Target, tile: IntArray, size: IntArray, to_device: bool) -> Exchange:
    """Cost an exchange with the host: the link is shared, so all active tiles take as long."""
    tiles = target.num_tiles
    moved = _sum(tile, size, tiles)
    nothing = np.zeros(tiles, dtype=np.int64)
    total = int(moved.sum())
    link = -(-total * target.clock_frequency // target.host_bytes_per_second)
    first_packet = min(int(moved.max(initial=0)), target.host_packet_bytes)
    words = HOST_WORD_CYCLES * -(-first_packet // WORD)
    cycles = np.where(moved > 0, HOST_LATENCY + max(link, words), 0)
    packets = -(-moved // target.host_packet_bytes)
    code = 2 * INSTRUCTION_BYTES * packets  # a request and a wait a packet
    sent, received = (nothing, moved) if to_device else (moved, nothing)
    return Exchange(sent, received, cycles, code=code)


def repetition(destination: IntArray, begin: IntArray) -> IntArray:
    """Count for each fragment how many before it brought the same bytes to the same tile."""
    stride = int(begin.max(initial=0)) + 1
    order = ascending(destination * stride + begin)
    tile, byte = destination[order], begin[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (tile[1:] != tile[:-1]) | (byte[1:] != byte[:-1])
    places = np.arange(len(order), dtype=np.int64)
    result = np.empty(len(order), dtype=np.int64)
    result[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return result


def _traffic_of_fragments(
    source: IntArray, destination: IntArray, size: IntArray, count: IntArray, tiles: int, bus: int
) -> tuple[IntArray, ...]:
    """Do what `_sorted_out` does of rows that stand for `count` fragments, each byte in one."""
    sent, received = _sum(source, size, tiles), _sum(destination, size, tiles)
    shared = np.zeros(-(-tiles // bus), dtype=np.int64)
    return sent, received, _sum(source, count, tiles), _sum(destination, count, tiles), shared


def _sorted_out(
    source: IntArray, destination: IntArray, size: IntArray, begin: IntArray, tiles: int, bus: int
) -> tuple[IntArray, ...]:
    """Return what each tile sends and receives, in bytes and fragments, and what buses share.

    That are the bytes that take each tile no time of its own, as its whole bus receives them alike:
    they come in over the lanes of all tiles of the bus. That what is sent has one lane all the
    same is our reading: a tile that shares its operands sends no more in a cycle than that.
    """
    again = repetition(destination, begin)
    sends, _ = distinct(source, begin, size, again)
    sender = source[sends]
    heads, counts = distinct(destination // bus, begin, size, again)
    alike = heads[counts == bus]
    return (
        _sum(sender, size[sends], tiles),
        _sum(destination, size, tiles),
        np.bincount(sender, minlength=tiles),
        np.bincount(destination, minlength=tiles),
        _sum(destination[alike] // bus, size[alike], -(-tiles // bus)),
    )


def _latency(target: Target) -> IntArray:
    """Return the cycles before a tile's first word; tiles of a larger part share a line."""
    in_line = bool(target.relative_sync_delay.any())
    line = target.exchange_latency_tiles, target.exchange_latency
    return _latencies(target.num_tiles, target.tiles_per_ipu, in_line, *line)


@lru_cache(8)
def _latencies(
    tiles: int,
    tiles_per_ipu: int,
    in_line: bool,
    places: tuple[int, ...],
    cycles: tuple[float, ...],
) -> IntArray:
    span = max(tiles_per_ipu - 1, places[-1])
    place = np.arange(tiles) % tiles_per_ipu * places[-1] / span * in_line
    result: IntArray = np.rint(np.interp(place, places, cycles)).astype(np.int64)
    return result


def _sum(tile: IntArray, size: IntArray, tiles: int) -> IntArray:
    return np.bincount(tile, weights=size, minlength=tiles).astype(np.int64)
