"""What an engine says in the log of the programs that it compiles and runs.

DEBUG has the figures of the graph, TRACE a line for each tile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.compiler.executable import Exchange, Executable
from simulator.graph.types import IntArray
from simulator.logging import enabled, log
from simulator.runtime.run import RunRecord, cycles_of

MODULE = "ENGINE"
# What tiles spend cycles on, and the types of steps that are counted as each.
ACTIVITIES = "%d cycles of compute, %d of exchange, %d of exchange between IPUs, %d with the host"
TYPES = {"OnTileExecute": 0, "DoExchange": 1, "GlobalExchange": 2, "StreamCopy": 3}


def log_executable(executable: Executable) -> None:
    """Log the figures of a compiled program."""
    if not enabled("PO", "DEBUG", MODULE):
        return
    log("PO", MODULE, "DEBUG", "\n".join([*_counts(executable), *_memory(executable)]))
    if not enabled("PO", "TRACE", MODULE):
        return
    columns = executable.memory.by_tile
    every = np.ones(len(executable.lowered.programs), dtype=np.int64)
    _log_tiles(
        f"tile %d: %d B of memory with gaps, %d B over; each program once: {ACTIVITIES}",
        columns["total_including_gaps"],
        columns["overflowed"],
        *_cycles_by_tile(executable, every),
    )


def log_run(executable: Executable, record: RunRecord) -> None:
    """Log what a run took."""
    if not enabled("PO", "DEBUG", MODULE):
        return
    steps = f"{len(record.steps):,} steps, " if len(record.steps) else ""
    log("PO", MODULE, "DEBUG", f"{record.name}: {steps}{record.cycles:,} cycles")
    if len(record.steps) and enabled("PO", "TRACE", MODULE):
        times = np.bincount(record.steps, minlength=len(executable.lowered.programs))
        _log_tiles(
            f"tile %d: {ACTIVITIES}",
            *_cycles_by_tile(executable, times),
        )


def overflow(executable: Executable) -> str:
    """Return how much more memory the program needs than there is; empty when it fits."""
    over = executable.memory.by_tile["overflowed"]
    if not over.any():
        return ""
    tile, limit = int(over.argmax()), executable.graph.target.bytes_per_tile
    return (
        f"out of memory on {int((over > 0).sum())} tile(s): tile {tile} needs "
        f"{int(over[tile]):,} bytes more than its {limit:,}"
    )


def _counts(executable: Executable) -> list[str]:
    lowered, graph = executable.lowered, executable.graph
    vertices = sum(map(len, lowered.groups))
    return [
        f"{len(graph.variables):,} variables of the graph, {len(lowered.variables):,} of the "
        f"compiler, {len(executable.pieces.variable):,} pieces on tiles",
        f"{len(lowered.compute_sets):,} compute sets, {vertices:,} vertices of "
        f"{len(executable.vertex_types):,} types, {executable.edges:,} edges",
        f"{len(lowered.programs):,} programs, {len(executable.liveness.program):,} liveness steps",
        *(_totals(kind, exchanges) for kind, exchanges in _exchanges(executable).items()),
    ]


def _memory(executable: Executable) -> list[str]:
    memory, live = executable.memory, executable.liveness
    total = memory.by_tile["total_including_gaps"]
    return [
        f"memory: {int(total.sum()):,} B with gaps; most on tile {int(total.argmax())}: "
        f"{int(total.max()):,} B of {executable.graph.target.bytes_per_tile:,}",
        f"always live: {int(memory.always_live.sum()):,} B; besides at most "
        f"{int(live.bytes.max(initial=0)):,} B",
    ]


def _totals(kind: str, exchanges: Sequence[Exchange]) -> str:
    sent = sum(int(exchange.sent.sum()) for exchange in exchanges)
    received = sum(int(exchange.received.sum()) for exchange in exchanges)
    return f"{len(exchanges):,} {kind} exchanges: {sent:,} B sent, {received:,} B received"


def _exchanges(executable: Executable) -> dict[str, Sequence[Exchange]]:
    lowered = executable.lowered
    return {
        "internal": lowered.exchanges,
        "global": lowered.global_exchanges,
        "host": lowered.host_exchanges,
    }


def _cycles_by_tile(executable: Executable, times: IntArray) -> IntArray:
    """Return the cycles of each activity by tile when programs run so many times."""
    programs = executable.lowered.programs
    totals = np.zeros((len(TYPES), executable.graph.target.num_tiles), dtype=np.int64)
    for row in np.flatnonzero(times).tolist():
        if programs[row].type in TYPES:
            cycles = cycles_of(executable, programs[row])
            totals[TYPES[programs[row].type]] += times[row] * cycles
    return totals


def _log_tiles(line: str, *columns: IntArray) -> None:
    """Write a line for each tile: its number and its value of each column."""
    tiles = len(columns[0])
    values = np.stack([np.arange(tiles), *columns], axis=1)
    text = "\n".join([line] * tiles) % tuple(values.reshape(-1).tolist())
    log("PO", MODULE, "TRACE", text)
