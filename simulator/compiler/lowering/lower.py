"""From the user's program to the machine's: syncs, exchanges, copies on tiles, compute sets.

The control program around the user's, its order and its names follow the user guide's profile
sample (chapter "Profiling": liveness and steps).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pva.progress import part_of
from simulator.compiler.executable import Access, CompilerVariable, Lowered, LoweredProgram
from simulator.compiler.instrument import sync_around
from simulator.compiler.instrumentation import NO_INSTRUMENTATION, Instrumentation
from simulator.compiler.lowering.block_recording import start_recording
from simulator.compiler.lowering.merge_streams import share_transactions
from simulator.compiler.lowering.state import Building, Part, with_access
from simulator.compiler.lowering.stream import host_copy, stream_copy
from simulator.compiler.lowering.tree import WORD, Tree, broadcast_word
from simulator.graph.graph import Graph
from simulator.graph.program import Program, children_of
from simulator.graph.tile_sets import io_tiles
from simulator.graph.types import IntArray


def lower(
    graph: Graph,
    programs: Sequence[Program],
    instrumentation: Instrumentation = NO_INSTRUMENTATION,
    *,
    prefetch: bool = False,
) -> Lowered:
    """Lower the programs that were given to the engine, under one control program."""
    bodies = [program for _, program in graph.functions]
    # One tile measures for all others: then none goes its own way.
    apart = None if instrumentation.on_one_tile else io_tiles(graph, [*programs, *bodies])
    building = Building.start(graph, apart, prefetch=prefetch)
    recording = start_recording(building, programs, instrumentation.blocks)
    around = sync_around(instrumentation, graph.target.num_ipus)
    with part_of("compiling", _leaves([*programs, *bodies])) as tell_done:
        tree = Tree(building, around, recording, tell_done)
        control = tree.add(Part(LoweredProgram("Sequence")))
        for part in _preamble(building, len(programs)):
            tree.add(part, control)
        # Where tiles are apart, each goes its own way: none waits for the others to choose.
        kind = "OnEveryTileSwitch" if building.io_tiles.any() else "Switch"
        switch = tree.add(Part(LoweredProgram(kind)), control)
        user = [tree.grow(program, switch) for program in programs]
        for part in recording.at_the_end() if recording else ():
            tree.add(part, control)
        functions = [tree.grow(program, -1) for program in bodies]
    parts, host_exchanges = share_transactions(tree.parts, building.host_exchanges)
    return Lowered(
        programs=[part.program for part in parts],
        user_programs=user,
        functions=functions,
        compute_sets=building.compute_sets,
        groups=building.groups,
        exchanges=building.exchanges,
        global_exchanges=building.global_exchanges,
        host_exchanges=host_exchanges,
        variables=building.variables,
        access=_access(parts),
        written=tree.written,
        origins=tree.origins,
        io_tiles=building.io_tiles,
    )


def _leaves(roots: Sequence[Program]) -> int:
    """Count the programs that hold no others, each once."""
    seen: set[int] = set()
    leaves, waiting = 0, list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            below = children_of(node)
            waiting += below
            leaves += not below
    return leaves


def _preamble(building: Building, programs: int) -> list[Part]:
    """Fetch the number of the program to run from the host, and tell it to all tiles."""
    first = np.zeros(1, dtype=np.int64)
    word = first + WORD

    def variable(name: str) -> IntArray:
        row = CompilerVariable(name, "controlId", first, word)
        return np.array([building.add_variable(row)], dtype=np.int64)

    state, number = variable("<anon>"), variable("programId")
    wake = with_access(stream_copy(building, "", first, word, True), [], [state])
    fetch = stream_copy(building, "", first, 2 * word, True)
    fetch = with_access(fetch, [state], [state, number])
    name = f"switchControlBroadcast{programs}"
    return [
        *host_copy(wake),
        *host_copy(fetch),
        *broadcast_word(building, name, "broadcastProgramId", first, first, number),
    ]


def _access(parts: Sequence[Part]) -> Access:
    """Lay the accesses of all programs end to end, the reads of each before its writes."""
    reads = np.array([len(part.reads) for part in parts], dtype=np.int64)
    writes = np.array([len(part.writes) for part in parts], dtype=np.int64)
    program = np.repeat(np.arange(len(parts), dtype=np.int64), reads + writes)
    write = np.repeat(np.tile([False, True], len(parts)), np.stack([reads, writes], 1).reshape(-1))
    kills = np.zeros(len(program), dtype=bool)
    kills[write] = np.concatenate([part.whole for part in parts])
    variable = np.concatenate([values for part in parts for values in (part.reads, part.writes)])
    return Access(program, variable, write, kills)
