"""Lightweight profiling, as the compiler adds it to a program: what records Blocks, and its room.

One tile of each IPU keeps in a buffer when each Block began and ended. The code for that is a
vertex of a compute set of its own, so that all it costs is in the figures of the report. The host
reads the buffer, by a stream copy BlockFlush before each of its copies and at the end of a run, or
else when a run has ended. Sizes and cycles are estimates: Poplar's are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.codelets.system.clock import RECORD_BLOCK, record_cycles
from simulator.compiler.executable import CompilerVariable, LoweredProgram
from simulator.compiler.instrumentation import EVENT_BYTES, BlockOptions
from simulator.compiler.lowering.state import Building, Part, sync, with_access
from simulator.compiler.lowering.stream import in_phases, stream_copy
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import Target
from simulator.graph.program import Program
from simulator.graph.types import IntArray
from simulator.graph.validation.programs import all_nodes
from simulator.graph.vertices.vertex import VertexGroup

# Estimate. Before the events: how many there are, when the first was dropped, when the last flush
# began and ended (8 bytes each), and a bit for each open Block, 64 of them: was its begin kept?
HEADER_BYTES = 40
FLUSH = "BlockFlush"
RECORDER = "BlockRecorder"


@dataclass(frozen=True, slots=True, eq=False)
class BlockRecording:
    """What is added to a program whose Blocks are recorded."""

    options: BlockOptions
    compute_set: int
    buffer: IntArray  # the number of the variable
    flush: list[Part]  # the phases of a stream copy, or none

    def event(self, name: str, event: str) -> Part:
        """Record an event; LoweredProgram names them."""
        program = LoweredProgram(
            "OnTileExecute", f"{name}/{event}", compute_set=self.compute_set, event=event
        )
        return with_access(Part(program), [], [self.buffer], np.zeros(1, dtype=bool))

    def around_copies(self, parts: Sequence[Part]) -> list[Part]:
        """Record each phase of a copy with the outside, and flush where the host waits anyway.

        A copy lasts until the internal syncs after it, as most tiles have no other part in it. The
        host waits before its copies and at an external sync by itself; it has no part in the
        external syncs of exchanges between IPUs, nor in remote buffers.
        """
        result: list[Part] = []
        ending: list[Part] = []
        for before, part in zip([*parts[:1], *parts], parts, strict=False):
            program = part.program
            if program.sync_type != "Internal":
                result += ending
                ending = []
            if program.type.startswith("StreamCopy"):
                result += self.flush * (before.program.sync_type == "External")
                result.append(self.event(program.name, "copyBegin"))
                ending = [self.event(program.name, "copyEnd")]
            result.append(part)
        alone = len(parts) == 1 and parts[0].program.sync_type == "External"
        return [*result, *ending, *self.flush * alone]

    def at_the_end(self) -> list[Part]:
        """Flush at the end of a run, with the syncs of a stream copy."""
        if not self.flush:
            return []
        return [sync("External"), *self.flush, sync("Internal"), sync("Internal")]


def start_recording(
    building: Building, programs: Sequence[Program], options: BlockOptions
) -> BlockRecording | None:
    """Add the buffer and the vertices that fill it; None when no program is recorded.

    A CPU has no clock to record. Raises PoplarError for a tile that is not there or a buffer that
    holds no event.
    """
    graph = building.graph
    if not options.wanted or graph.target.target_type == "CPU":
        return None
    _check(options, graph.target)
    nodes = all_nodes(graph, [*programs, *(program for _, program in graph.functions)])
    if not any(map(options.recorded_name, nodes)):
        return None
    tiles = recording_tiles(options, graph.target)
    size = np.full_like(tiles, HEADER_BYTES + options.buffer_bytes)
    buffer = CompilerVariable(
        "<blockBuffer>", "instrumentationResults", tiles, size, always_live=True
    )
    number = np.array([building.add_variable(buffer)], dtype=np.int64)
    building.compute_sets.append(RECORDER)
    compute_set = len(building.compute_sets) - 1
    cycles = record_cycles(tiles)
    building.groups.append(VertexGroup(compute_set, RECORD_BLOCK, tiles, {}, {}, cycles))
    flush: list[Part] = []
    if options.implicit_flush:
        # What a stream copy moves is fixed when it is compiled: all of the buffer, full or not.
        copy = stream_copy(building, FLUSH, tiles, size, False)
        flush = in_phases(with_access(Part(replace(copy.program, event="flush")), [number]))
    return BlockRecording(options, compute_set, number, flush)


def recording_tiles(options: BlockOptions, target: Target) -> IntArray:
    """List the tiles that record: the same one of each IPU."""
    return options.tile + np.arange(0, target.num_tiles, target.tiles_per_ipu, dtype=np.int64)


def _check(options: BlockOptions, target: Target) -> None:
    if options.tile >= target.tiles_per_ipu:
        raise PoplarError(
            f"profiler.blocks.tile is {options.tile}; each IPU has tiles 0 to "
            f"{target.tiles_per_ipu - 1}"
        )
    if options.capacity < 1:
        raise PoplarError(
            f"profiler.blocks.bufferSize is {options.buffer_bytes}; an event takes "
            f"{EVENT_BYTES} bytes"
        )
