"""From the user's program to the machine's: syncs, exchanges, copies on tiles, compute sets.

The control program around the user's, its order and its names follow the user guide's profile
sample (chapter "Profiling": liveness and steps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulator.compiler.building import Building, Part, sync, with_access
from simulator.compiler.executable import Access, CompilerVariable, Lowered, LoweredProgram
from simulator.compiler.lower_copy import lower_copy, lower_stream, stream_copy
from simulator.compiler.lower_execute import lower_compute_set
from simulator.graph.graph import Graph
from simulator.graph.program import (
    Copy,
    Execute,
    PrintTensor,
    Program,
    Repeat,
    Sync,
    WriteUndef,
)
from simulator.graph.program import Sequence as SequenceNode
from simulator.graph.streams import Stream
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray

WORD = 4  # bytes of a program number


def lower(graph: Graph, programs: Sequence[Program]) -> Lowered:
    """Lower the programs that were given to the engine, under one control program."""
    building = Building.start(graph)
    tree = _Tree(building)
    control = tree.add(Part(LoweredProgram("Sequence")))
    for part in _preamble(building, len(programs)):
        tree.add(part, control)
    switch = tree.add(Part(LoweredProgram("Switch")), control)
    user = [tree.grow(program, switch) for program in programs]
    return Lowered(
        programs=[part.program for part in tree.parts],
        user_programs=user,
        compute_sets=building.compute_sets,
        groups=building.groups,
        exchanges=building.exchanges,
        host_exchanges=building.host_exchanges,
        variables=building.variables,
        access=_access(tree.parts),
    )


def _preamble(building: Building, programs: int) -> list[Part]:
    """Fetch the number of the program to run from the host, and tell it to all tiles."""
    first = np.zeros(1, dtype=np.int64)
    others = np.arange(1, building.graph.target.num_tiles, dtype=np.int64)
    word = first + WORD

    def variable(name: str, tile: IntArray) -> IntArray:
        size = np.full(len(tile), WORD, dtype=np.int64)
        row = CompilerVariable(name, "controlId", tile, size)
        return np.array([building.add_variable(row)], dtype=np.int64)

    state, number = variable("<anon>", first), variable("programId", first)
    received = variable("broadcastProgramId", others)
    wake = stream_copy(building, "", first, word, True)
    fetch = stream_copy(building, "", first, 2 * word, True)
    wait, broadcast = building.exchange(
        f"switchControlBroadcast{programs}/ExchangePre",
        np.zeros(len(others), dtype=np.int64),
        np.full(len(others), WORD, dtype=np.int64),
        np.zeros(len(others), dtype=np.int64),
        others,
    )
    internal = sync("Internal")
    return [
        sync("External"), with_access(wake, [], [state]), internal, internal,
        sync("External"), with_access(fetch, [state], [state, number]), internal, internal,
        wait, with_access(broadcast, [number], [received]),
    ]  # fmt: skip


class _Tree:
    """The programs as they are added, each with its place in the tree."""

    def __init__(self, building: Building) -> None:
        self.parts: list[Part] = []
        self._building = building
        self._leaves: dict[Program, list[Part]] = {}
        self._compute_sets: dict[int, list[Part]] = {}

    def add(self, part: Part, parent: int = -1) -> int:
        """Add a program under a parent; give its row."""
        row = len(self.parts)
        program = replace(part.program, children=[])
        self.parts.append(replace(part, program=program))
        if parent >= 0:
            self.parts[parent].program.children.append(row)
        return row

    def grow(self, root: Program, parent: int) -> int:
        """Add a user's program with all below it, depth first, without recursion."""
        top = self.add(Part(LoweredProgram("Sequence", getattr(root, "name", ""))), parent)
        first = root.children if isinstance(root, SequenceNode) else [root]
        waiting = [(child, top) for child in reversed(first)]
        while waiting:
            node, above = waiting.pop()
            if isinstance(node, SequenceNode):
                row = self.add(Part(LoweredProgram("Sequence", node.name)), above)
                waiting += [(child, row) for child in reversed(node.children)]
            elif isinstance(node, Repeat):
                repeat = LoweredProgram("Repeat", node.name, count=node.count)
                waiting.append((node.body, self.add(Part(repeat), above)))
            else:
                for part in self._leaf(node):
                    self.add(part, above)
        return top

    def _leaf(self, node: Program) -> list[Part]:
        if node not in self._leaves:
            parts = self._lower_leaf(node)
            carrier = _carrier(parts)
            self._leaves[node] = [
                replace(part, program=replace(part.program, action=node))
                if index == carrier
                else part
                for index, part in enumerate(parts)
            ]
        return self._leaves[node]

    def _lower_leaf(self, node: Program) -> list[Part]:
        building = self._building
        match node:
            case Execute():
                number = node.compute_set.id
                if number not in self._compute_sets:
                    self._compute_sets[number] = lower_compute_set(building, number)
                return self._compute_sets[number]
            case Copy(src=Stream() as stream, dst=Tensor() as tensor):
                return lower_stream(building, node.name or stream.handle, tensor, True)
            case Copy(src=Tensor() as tensor, dst=Stream() as stream):
                return lower_stream(building, node.name or stream.handle, tensor, False)
            case Copy(src=Tensor() as source, dst=Tensor() as destination):
                name = node.name or f"{destination.describe()}/Copy"
                return lower_copy(building, name, source, destination)
            case PrintTensor():
                return lower_stream(building, node.name, node.tensor, False)
            case WriteUndef():
                size = node.tensor.dtype.size
                begins, lengths = node.tensor.begins * size, node.tensor.lengths * size
                ids, whole = building.whole(building.variables_at(begins), lengths)
                undefined = Part(LoweredProgram("WriteUndef", node.name))
                return [with_access(undefined, [], [ids], whole)]
            case Sync():
                return [sync("External" if node.external else "Internal")]
            case _:
                raise TypeError(f"no lowering for {type(node).__name__}")


def _carrier(parts: Sequence[Part]) -> int:
    """Choose the program that carries the values of a node: the last that is not a sync."""
    works = [index for index, part in enumerate(parts) if part.program.type != "Sync"]
    return works[-1] if works else len(parts) - 1


def _access(parts: Sequence[Part]) -> Access:
    """Lay the accesses of all programs end to end, the reads of each before its writes."""
    reads = np.array([len(part.reads) for part in parts], dtype=np.int64)
    writes = np.array([len(part.writes) for part in parts], dtype=np.int64)
    program = np.repeat(np.arange(len(parts), dtype=np.int64), reads + writes)
    write = np.repeat(np.tile([False, True], len(parts)), np.stack([reads, writes], 1).reshape(-1))
    whole = np.zeros(len(program), dtype=bool)
    whole[write] = np.concatenate([part.whole for part in parts])
    variable = np.concatenate([values for part in parts for values in (part.reads, part.writes)])
    return Access(program, variable, write, whole)
