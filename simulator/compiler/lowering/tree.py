"""The tree of lowered programs: containers, what they decide by, and the leaves between.

The tags are those of the user guide's table of program classes (chapter "Profiling"): If becomes
SetLocalConsensusFromVar, Sync and If or IfElse; a Switch first tells its value to all tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from simulator.compiler.executable import CompilerVariable, LoweredProgram, WrittenProgram
from simulator.compiler.lowering.block_recording import BlockRecording
from simulator.compiler.lowering.leaf import lower_leaf
from simulator.compiler.lowering.merge_streams import Transaction, can_join, transaction_of
from simulator.compiler.lowering.reuse import Reuse
from simulator.compiler.lowering.state import Building, Part, consensus, sync
from simulator.compiler.lowering.tile_sets import apart
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
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray

WORD = 4  # bytes of a program number, or of what a Switch decides by
NOBODY = -1  # has written what the compiler adds


@dataclass(frozen=True, slots=True)
class Work:
    """What to add under which row: a program written inside another, or parts that one becomes.

    `written` is the row in `Tree.written` of the program around, or of that whose parts they are.
    `branch` says which part of a loop or choice it is: that is one row, in a Sequence if need be.
    """

    what: Program | list[Part]
    above: int
    written: int
    role: str = ""
    branch: bool = False


class Tree:
    """The programs as they are added, each with its place in the tree.

    `sync_around` is the kind of sync before and after each compute set, "" for none; `recording`
    what lightweight profiling adds; `tell_done` is told how many leaves are lowered. `written` are
    the user's programs at each place where one stands, and `origins` says by row which of them it
    was made of, NOBODY for the compiler's own.
    """

    def __init__(
        self,
        building: Building,
        sync_around: str = "",
        recording: BlockRecording | None = None,
        tell_done: Callable[[int], None] = lambda leaves: None,
    ) -> None:
        self.parts: list[Part] = []
        self.written: list[WrittenProgram] = []
        self.origins: list[int] = []
        self._sync_around = sync_around
        self._recording = recording
        self._tell_done = tell_done
        self._building = building
        self._reuse = Reuse(building)
        self._leaves: dict[Program, list[Part]] = {}
        self._compute_sets: dict[int, list[Part]] = {}
        # The last stream copies, and the row above and the number of rows when they were added.
        self._transaction: tuple[Transaction | None, tuple[int, int]] = (None, (-1, 0))
        self._behind: list[tuple[Part, int, int]] = []  # what comes behind them: row above, origin

    def add(self, part: Part, parent: int = -1, written: int = NOBODY) -> int:
        """Add a program under a parent, made of one that was written; give its row."""
        self._put_behind()
        return self._add_row(part, parent, written)

    def _add_row(self, part: Part, parent: int, written: int) -> int:
        row = len(self.parts)
        self.parts.append(part)
        self.origins.append(written)
        if parent >= 0:
            self.parts[parent].program.children.append(row)
        return row

    def grow(self, root: Program, parent: int) -> int:
        """Add a user's program with all below it, depth first, without recursion."""
        top = len(self.parts)
        waiting = [Work(root, parent, NOBODY, branch=True)]
        while waiting:
            work = waiting.pop()
            if isinstance(work.what, list):
                self._add_leaf(work.what, work.above, work.written)
            else:
                waiting += reversed(self._begin(work.what, work))
        self._put_behind()
        return top

    def _add_leaf(self, parts: list[Part], above: int, written: int) -> None:
        """Add all rows of a leaf; stream copies join those just before them.

        What puts the data of both into place on the device then comes behind them.
        """
        building, (last, place) = self._building, self._transaction
        mine = None if self._recording else transaction_of(building, parts)
        begin, end = 0, len(parts) - (mine.rest if mine else 0)
        if mine and last and place == (above, len(self.parts)) and can_join(building, last, mine):
            self._take_back_end(last.rest, above)
            begin, mine = 2, last.with_next(mine)
        else:
            self._put_behind()
        for part in parts[begin:end]:
            self._add_row(part, above, written)
        self._behind += [(part, above, written) for part in parts[end:]]
        self._transaction = mine, (above, len(self.parts))

    def _take_back_end(self, rest: int, above: int) -> None:
        """Remove the end of the last transaction, of which `rest` parts are to come behind it.

        The last copy carries the values then, so that the host is called in the order of copies.
        """
        copy, end, _ = self.parts[-3:]
        action = end.program.action
        for place in range(len(self._behind) - rest, len(self._behind)):
            part, row, written = self._behind[place]
            action = part.program.action if action is None else action
            without = replace(part, program=replace(part.program, action=None))
            self._behind[place] = without, row, written
        if action is not None:
            self.parts[-3] = replace(copy, program=replace(copy.program, action=action))
        del self.parts[-2:], self.origins[-2:], self.parts[above].program.children[-2:]

    def _put_behind(self) -> None:
        """Add the parts that come behind a transaction."""
        behind, self._behind = self._behind, []
        for part, above, written in behind:
            self._add_row(part, above, written)

    def _begin(self, node: Program, work: Work) -> Sequence[Work]:
        """Note a program as it was written, add its rows, and give what comes below."""
        written, above = len(self.written), work.above
        self.written.append(WrittenProgram(node, work.written, work.role))
        if work.branch and not isinstance(node, SequenceNode):
            around = LoweredProgram("Sequence", getattr(node, "name", ""))
            above = self.add(Part(around), above, written)
        if self._recording and (name := self._recording.options.recorded_name(node)):
            return self._place_recorded(self._recording, node, name, above, written)
        return self._place(node, above, written)

    def _place_recorded(
        self, recording: BlockRecording, node: Program, name: str, above: int, written: int
    ) -> Sequence[Work]:
        """Add a Block whose begin and end are recorded; one around what is none itself."""
        row = self.add(Part(LoweredProgram("Sequence", name, block=True)), above, written)
        self.add(recording.event(name, "blockBegin"), row, written)
        inside = [Work(node.body, row, written)] if isinstance(node, Block) else []
        below = inside or self._place(node, row, written)
        return [*below, Work([recording.event(name, "blockEnd")], row, written)]

    def _place(self, node: Program, above: int, written: int) -> Sequence[Work]:
        """Add the row of a container, and give what comes below it; or all rows of a leaf."""
        match node:
            case SequenceNode():
                row = self.add(Part(LoweredProgram("Sequence", node.name)), above, written)
                return [Work(child, row, written) for child in node.children]
            case Block():
                block = LoweredProgram("Sequence", node.name, block=True)
                return [Work(node.body, self.add(Part(block), above, written), written)]
            case Repeat():
                repeat = LoweredProgram("Repeat", node.name, count=node.count)
                return [Work(node.body, self.add(Part(repeat), above, written), written)]
            case Call():
                name = node.name or node.function.name
                call = LoweredProgram("Call", name, target=node.function.id)
                self.add(Part(call), above, written)
                return []
            case RepeatWhile():
                return self._place_loop(node, above, written)
            case If() | Switch():
                return self._place_choice(node, above, written)
            case _:
                return [Work(self._leaf(node), above, written)]

    def _place_loop(self, node: RepeatWhile, above: int, written: int) -> Sequence[Work]:
        """Add a loop that decides at run time by a tensor."""
        loop = LoweredProgram("RepeatWhile", node.name, control=node)
        row = self.add(Part(loop), above, written)
        check = self.add(Part(LoweredProgram("Sequence")), row, written)
        return [
            Work(node.cond, check, written, "condition"),
            Work(consensus(self._building, node.name, node.predicate), check, written),
            Work(node.body, row, written, "body", branch=True),
        ]

    def _place_choice(self, node: If | Switch, above: int, written: int) -> Sequence[Work]:
        """Add a container that chooses one of its branches at run time by a tensor."""
        if isinstance(node, If):
            before = consensus(self._building, node.name, node.predicate)
            bodies = [("true", node.trueBody), ("false", node.falseBody)]
            if isinstance(node.falseBody, SequenceNode) and not node.falseBody.children:
                bodies.pop()
            kind = "If" if len(bodies) == 1 else "IfElse"
        else:
            before = self._announce(node.name, node.control)
            bodies = [(f"case {value}", body) for value, body in node.cases]
            bodies.append(("default", node.defaultCaseBody))
            kind = "Switch"
        for part in before:
            self.add(part, above, written)
        choice = LoweredProgram(kind, node.name, control=node)
        row = self.add(Part(choice), above, written)
        return [Work(body, row, written, role, branch=True) for role, body in bodies]

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
            self._tell_done(len(self._leaves))
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
        building = self._building
        if not isinstance(node, Execute):
            return apart(building, lambda: lower_leaf(building, node))
        number = node.compute_set.id
        if number not in self._compute_sets:
            lower = partial(self._reuse.lower, number)
            self._compute_sets[number] = apart(building, lower, number)
        return self._compute_sets[number]


def broadcast_word(
    building: Building, name: str, received: str, owner: IntArray, low: IntArray, read: IntArray
) -> list[Part]:
    """Send four bytes (`low` in the arena) from their tile to all others, as `received`."""
    tiles = np.arange(building.graph.target.num_tiles, dtype=np.int64)
    receivers = tiles[tiles != owner[0]]
    if not len(receivers):
        return []
    size = np.full(len(receivers), WORD, dtype=np.int64)
    row = CompilerVariable(received, "controlId", receivers, size)
    written = np.array([building.add_variable(row)], dtype=np.int64)
    begin, source = np.full_like(receivers, low[0]), np.full_like(receivers, owner[0])
    return building.exchange(
        f"{name}/ExchangePre",
        begin,
        begin + WORD,
        source,
        receivers,
        reads=[read],
        writes=[written],
    )


def _in_step(parts: list[Part], kind: str) -> list[Part]:
    """Put syncs around the execution of each compute set; none without a kind."""
    if not kind:
        return parts
    return [
        step
        for part in parts
        for step in (
            [sync(kind, part.program.tile_set), part, sync(kind, part.program.tile_set)]
            if part.program.compute_set >= 0
            else [part]
        )
    ]


def _carrier(parts: Sequence[Part]) -> int:
    """Choose the program that carries the values of a node: the last that is not a sync."""
    works = [index for index, part in enumerate(parts) if part.program.type != "Sync"]
    return works[-1] if works else len(parts) - 1
