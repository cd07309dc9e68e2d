"""The tree of lowered programs: containers, what they decide by, and the leaves between.

The tags are those of the user guide's table of program classes (chapter "Profiling"): If becomes
SetLocalConsensusFromVar, Sync and If or IfElse; a Switch first tells its value to all tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulator.compiler.block_recording import BlockRecording
from simulator.compiler.building import Building, Part, sync, with_access
from simulator.compiler.executable import CompilerVariable, LoweredProgram
from simulator.compiler.lower_leaf import lower_leaf
from simulator.graph.program import (
    Block,
    Call,
    Execute,
    If,
    Program,
    Repeat,
    RepeatWhile,
    Switch,
)
from simulator.graph.program import Sequence as SequenceNode
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray

WORD = 4  # bytes of a program number, or of what a Switch decides by
Work = tuple[Program | list[Part], int]  # what to add, and under which row


class Tree:
    """The programs as they are added, each with its place in the tree.

    `sync_around` is the kind of sync before and after each compute set, "" for none; `recording`
    what lightweight profiling adds.
    """

    def __init__(
        self,
        building: Building,
        sync_around: str = "",
        recording: BlockRecording | None = None,
    ) -> None:
        self.parts: list[Part] = []
        self._sync_around = sync_around
        self._recording = recording
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
        top = len(self.parts)
        waiting: list[Work] = [(_branch(root), parent)]
        while waiting:
            node, above = waiting.pop()
            if isinstance(node, list):
                for part in node:
                    self.add(part, above)
            elif self._recording and (name := self._recording.options.recorded_name(node)):
                waiting += reversed(self._place_recorded(self._recording, node, name, above))
            else:
                waiting += reversed(self._place(node, above))
        return top

    def _place_recorded(
        self, recording: BlockRecording, node: Program, name: str, above: int
    ) -> Sequence[Work]:
        """Add a Block whose begin and end are recorded; one around what is none itself."""
        row = self.add(Part(LoweredProgram("Sequence", name, block=True)), above)
        self.add(recording.event(name, "blockBegin"), row)
        below = [(node.body, row)] if isinstance(node, Block) else self._place(node, row)
        return [*below, ([recording.event(name, "blockEnd")], row)]

    def _place(self, node: Program, above: int) -> Sequence[Work]:
        """Add the row of a container, and give what comes below it; or all rows of a leaf."""
        match node:
            case SequenceNode():
                row = self.add(Part(LoweredProgram("Sequence", node.name)), above)
                return [(child, row) for child in node.children]
            case Block():
                block = LoweredProgram("Sequence", node.name, block=True)
                return [(node.body, self.add(Part(block), above))]
            case Repeat():
                repeat = LoweredProgram("Repeat", node.name, count=node.count)
                return [(node.body, self.add(Part(repeat), above))]
            case Call():
                name = node.name or node.function.name
                call = LoweredProgram("Call", name, target=node.function.id)
                self.add(Part(call), above)
                return []
            case RepeatWhile() | If() | Switch():
                return self._place_choice(node, above)
            case _:
                return [(self._leaf(node), above)]

    def _place_choice(self, node: RepeatWhile | If | Switch, above: int) -> Sequence[Work]:
        """Add a container that decides at run time by a tensor."""
        if isinstance(node, RepeatWhile):
            loop = LoweredProgram("RepeatWhile", node.name, control=node)
            row = self.add(Part(loop), above)
            check = self.add(Part(LoweredProgram("Sequence")), row)
            consensus = self._consensus(node.name, node.predicate)
            return [(node.cond, check), (consensus, check), (_branch(node.body), row)]
        if isinstance(node, If):
            for part in self._consensus(node.name, node.predicate):
                self.add(part, above)
            bodies = [node.trueBody, node.falseBody]
            if isinstance(node.falseBody, SequenceNode) and not node.falseBody.children:
                bodies.pop()
            kind = "If" if len(bodies) == 1 else "IfElse"
        else:
            for part in self._announce(node.name, node.control):
                self.add(part, above)
            bodies = [*(body for _, body in node.cases), node.defaultCaseBody]
            kind = "Switch"
        row = self.add(Part(LoweredProgram(kind, node.name, control=node)), above)
        return [(_branch(body), row) for body in bodies]

    def _consensus(self, name: str, predicate: Tensor) -> list[Part]:
        """Let all tiles know whether the predicate, which one tile holds, is zero."""
        read = self._building.variables_at(predicate.begins * predicate.dtype.size)
        vote = with_access(Part(LoweredProgram("SetLocalConsensusFromVar", name)), [read])
        several = self._building.graph.target.num_ipus > 1
        return [vote, sync("External" if several else "Internal")]

    def _announce(self, name: str, control: Tensor) -> list[Part]:
        """Send what a Switch decides by to all tiles."""
        low = control.begins[:1] * control.dtype.size
        _, _, _, owner = self._building.owners(low, low + WORD)
        read = self._building.variables_at(low)
        received = f"<message:{control.describe().strip('<>')}>"
        name = f"{name}/switchControlBroadcast".strip("/")
        return broadcast_word(self._building, name, received, owner, low, read)

    def _leaf(self, node: Program) -> list[Part]:
        if node not in self._leaves:
            parts = _in_step(self._lowered(node), self._sync_around)
            carrier = _carrier(parts)
            parts = [
                replace(part, program=replace(part.program, action=node))
                if index == carrier
                else part
                for index, part in enumerate(parts)
            ]
            recording = self._recording
            self._leaves[node] = recording.around_copies(parts) if recording else parts
        return self._leaves[node]

    def _lowered(self, node: Program) -> list[Part]:
        if not isinstance(node, Execute):
            return lower_leaf(self._building, node)
        number = node.compute_set.id
        if number not in self._compute_sets:
            self._compute_sets[number] = lower_leaf(self._building, node)
        return self._compute_sets[number]


def broadcast_word(
    building: Building, name: str, received: str, owner: IntArray, low: IntArray, read: IntArray
) -> list[Part]:
    """Send four bytes (`low` in the arena) from their tile to all others, as `received`."""
    tiles = np.arange(building.graph.target.num_tiles, dtype=np.int64)
    others = tiles[tiles != owner[0]]
    if not len(others):
        return []
    size = np.full(len(others), WORD, dtype=np.int64)
    row = CompilerVariable(received, "controlId", others, size)
    written = np.array([building.add_variable(row)], dtype=np.int64)
    begin, source = np.full_like(others, low[0]), np.full_like(others, owner[0])
    return building.exchange(
        f"{name}/ExchangePre",
        begin,
        begin + WORD,
        source,
        others,
        reads=[read],
        writes=[written],
    )


def _branch(node: Program) -> SequenceNode:
    """Give a program that is one row: a Sequence, around it where needed."""
    if isinstance(node, SequenceNode):
        return node
    return SequenceNode(node, name=getattr(node, "name", ""))


def _in_step(parts: list[Part], kind: str) -> list[Part]:
    """Put syncs around the execution of each compute set; none without a kind."""
    if not kind:
        return parts
    return [
        step
        for part in parts
        for step in ([sync(kind), part, sync(kind)] if part.program.compute_set >= 0 else [part])
    ]


def _carrier(parts: Sequence[Part]) -> int:
    """Choose the program that carries the values of a node: the last that is not a sync."""
    works = [index for index, part in enumerate(parts) if part.program.type != "Sync"]
    return works[-1] if works else len(parts) - 1
