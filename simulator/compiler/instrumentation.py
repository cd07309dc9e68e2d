"""What is counted while a program runs, as the options of an engine say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from simulator.graph.program import Block, Call, Program, children_of
from simulator.graph.program import Sequence as SequenceNode

# Estimate. An event is 8 bytes, one store: 15 bits for the Block, one for begin or end, 48 of the
# clock, which last for two days; 32 bits of it pass in three seconds.
EVENT_BYTES = 8


@dataclass(frozen=True, slots=True)
class BlockOptions:
    """The options `profiler.blocks.*` and `profiler.programs.filter`; without a filter none is on.

    The filters are regular expressions, found anywhere in a name.
    """

    blocks: str = ""
    programs: str = ""
    tile: int = 0
    buffer_bytes: int = 1000
    implicit_flush: bool = True

    @property
    def wanted(self) -> bool:
        """Return whether anything may be recorded."""
        return bool(self.blocks or self.programs)

    @property
    def capacity(self) -> int:
        """Return the number of events that the buffer holds."""
        return self.buffer_bytes // EVENT_BYTES

    def recorded_name(self, node: Program) -> str:
        """Return the name under which a program is recorded; empty when it is not."""
        name = name_of(node)
        if not name or (isinstance(node, SequenceNode) and _is_branch(node)):
            return ""
        hit = self.programs and re.search(self.programs, name)
        if isinstance(node, Block):
            hit = hit or (self.blocks and re.search(self.blocks, name))
        return name if hit else ""


def name_of(node: Program) -> str:
    """Name a program: its own name, or that of the function that it calls."""
    name = str(getattr(node, "name", ""))
    return name or node.function.name if isinstance(node, Call) else name


def _is_branch(node: SequenceNode) -> bool:
    """Return whether a Sequence is around one program of its name, which is that program."""
    return [name_of(child) for child in children_of(node)] == [node.name]


@dataclass(frozen=True, slots=True)
class Instrumentation:
    """What is counted.

    compute             of compute sets: "" for nothing, else the level: tile, vertex, device, ipu
    external_exchange   exchanges between IPUs
    host_exchange       exchanges with the host
    blocks              begin and end of Blocks
    """

    compute: str = ""
    external_exchange: bool = False
    host_exchange: bool = False
    blocks: BlockOptions = BlockOptions()

    @property
    def on_one_tile(self) -> bool:
        """Return whether one tile measures for all: what it measures must begin and end in step."""
        return self.compute in ("device", "ipu")


NO_INSTRUMENTATION = Instrumentation()


def instrumentation_of(options: Mapping[str, bool | int | str]) -> Instrumentation:
    """Return what the engine's options ask for."""
    level = str(options["debug.computeInstrumentationLevel"])
    return Instrumentation(
        compute=level if options["debug.instrumentCompute"] else "",
        external_exchange=bool(options["debug.instrumentExternalExchange"]),
        host_exchange=bool(options["debug.instrumentHostExchange"]),
        blocks=BlockOptions(
            blocks=str(options["profiler.blocks.filter"]),
            programs=str(options["profiler.programs.filter"]),
            tile=int(options["profiler.blocks.tile"]),
            buffer_bytes=int(options["profiler.blocks.bufferSize"]),
            implicit_flush=bool(options["profiler.blocks.implicitFlush"]),
        ),
    )
