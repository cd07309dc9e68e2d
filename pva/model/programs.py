"""Programs of a report, their types, and visitors of them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import NotRecordedError
from pva.model.debug import DebugContext, context
from pva.model.graph import ComputeSet
from pva.model.variables import LoweredVariable, accessed
from pva.model.views import Item, Items, Numbers


class ProgramType(enum.Enum):
    """What a program does: the tags of the documents, a StreamCopy under its libpva name."""

    OnTileExecute = enum.auto()
    DoExchange = enum.auto()
    GlobalExchange = enum.auto()
    StreamCopyMid = enum.auto()
    CopySharedStructure = enum.auto()
    Sync = enum.auto()
    Sequence = enum.auto()
    Repeat = enum.auto()
    RepeatWhileTrue = enum.auto()
    RepeatWhileFalse = enum.auto()
    RepeatWhile = enum.auto()
    If = enum.auto()
    IfElse = enum.auto()
    SetLocalConsensusFromVar = enum.auto()
    Switch = enum.auto()
    WriteUndef = enum.auto()
    Call = enum.auto()
    StreamCopyBegin = enum.auto()
    StreamCopyEnd = enum.auto()
    SyncAns = enum.auto()
    Sans = enum.auto()
    OnEveryTileSwitch = enum.auto()
    # No compiled program is one of these: scripts may still compare with them.
    Copy = enum.auto()
    Execute = enum.auto()


# As libpva shows it: `<Type.Sync: 6>`.
ProgramType.__name__, ProgramType.__qualname__ = "Type", "Program.Type"
# By the codes of the column `type`: the type, and the method of visitors that is called.
TYPES = [
    ProgramType.__members__.get(tag, ProgramType.StreamCopyMid) for tag in schema.PROGRAM_TYPES
]
METHODS = [f"visit{kind.name}" for kind in TYPES]


class Program(Item):
    """One program."""

    __slots__ = ()
    _figures = ("type", "children")
    _method = ""  # of visitors, where the class tells it
    Type = ProgramType

    @property
    def _id(self) -> int:
        """Row in `compilation.programs`."""
        return self._row

    @property
    def type(self) -> ProgramType:
        """What the program does."""
        return TYPES[_code(self._data, self._row)]

    @property
    def name(self) -> str:
        """Debug name; of a sync without one its kind, "Internal" or "External"."""
        name = self._text("programs", "name")
        if name or self.type is not ProgramType.Sync:
            return name
        code = self._value("programs", "sync_type")
        return schema.SYNC_TYPES[code] if code else ""

    @property
    def children(self) -> Sequence[Program]:
        """Programs below this one, in order."""
        rows = self._data.rows_where("program_children", "program", self._row)
        return programs(self._data, self._data.column("program_children", "child")[rows].tolist())

    @property
    def vars(self) -> Sequence[LoweredVariable]:
        """What the variables that the program reads or writes have on tiles.

        Empty when access, or where variables lie, was not recorded.
        """
        return accessed(self._data, [self._row])

    @property
    def controlCodeByTile(self) -> Numbers:
        """Bytes of control code on each tile, that of its children included.

        Raises NotRecordedError.
        """
        return Numbers(_control_code(self._data, self._row))

    @property
    def debugContext(self) -> DebugContext | None:
        """Where it was made, when that was recorded."""
        if not self._data.has("debug_contexts"):
            return None
        return context(self._data, int(self._value("programs", "debug_context")))

    @property
    def count(self) -> int:
        """Times that a Repeat runs its body; -1 for others."""
        return int(self._value("programs", "count"))

    def _operand(self, column: str) -> int:
        """Return what the program works on, a row; raises NotRecordedError when it has none."""
        row = int(self._value("programs", column))
        if row < 0:
            program_class = f"program {self._row} ({self.type.name}) without {column}"
            raise NotRecordedError(
                self._data.name, program_class, "the report's writer did not tell it"
            )
        return row

    def accept(self, visitor: ProgramVisitor) -> None:
        """Call the visitor's method for this type of program, such as `visitDoExchange`."""
        getattr(visitor, self._method or METHODS[_code(self._data, self._row)])(self)


class OnTileExecuteProgram(Program):
    """A program that runs a compute set."""

    __slots__ = ()

    @property
    def computeset(self) -> ComputeSet:
        """The compute set that is run."""
        return ComputeSet(self._data, self._operand("compute_set"))


class ExchangeProgram(Program):
    """A program that moves data."""

    __slots__ = ()
    _lists = ""

    @property
    def estimatedCyclesByTile(self) -> Numbers:
        """How long each tile takes part, in cycles."""
        return self._by_tile("cycles")

    @property
    def codeBytesByTile(self) -> Numbers:
        """Bytes of code on each tile, which exchanges may share; raises NotRecordedError."""
        return self._by_tile("code_bytes")

    @property
    def bytesSentByTile(self) -> Numbers:
        """Bytes that each tile sends."""
        return self._by_tile("bytes_sent")

    @property
    def bytesReceivedByTile(self) -> Numbers:
        """Bytes that each tile receives."""
        return self._by_tile("bytes_received")

    def _by_tile(self, direction: str) -> Numbers:
        return Numbers(self._data.array(f"{self._lists}_{direction}")[self._operand("exchange")])


class DoExchangeProgram(ExchangeProgram):
    """An exchange between the tiles of an IPU."""

    __slots__ = ()
    _lists = "exchange"


class GlobalExchangeProgram(ExchangeProgram):
    """An exchange between IPUs."""

    __slots__ = ()
    _lists = "external_exchange"


class StreamCopyMidProgram(ExchangeProgram):
    """An exchange with the host."""

    __slots__ = ()
    _lists = "host_exchange"


class StreamCopyBeginProgram(Program):
    """The begin of an exchange with the host."""

    __slots__ = ()


class StreamCopyEndProgram(Program):
    """The end of an exchange with the host."""

    __slots__ = ()


class CopySharedStructureProgram(Program):
    """A copy of a shared structure, as of a host exchange's packets."""

    __slots__ = ()


class SequenceProgram(Program):
    """Programs that run one after another."""

    __slots__ = ()


class RepeatProgram(Program):
    """A program that runs `count` times."""

    __slots__ = ()


class RepeatWhileTrueProgram(Program):
    """A program that runs while a condition holds."""

    __slots__ = ()


class RepeatWhileFalseProgram(Program):
    """A program that runs while a condition does not hold."""

    __slots__ = ()


class RepeatWhileProgram(Program):
    """A program that runs while a condition, found by another, holds."""

    __slots__ = ()


class IfProgram(Program):
    """A program that runs if a condition holds."""

    __slots__ = ()


class IfElseProgram(Program):
    """Two programs, of which a condition chooses one."""

    __slots__ = ()


class SetLocalConsensusFromVarProgram(Program):
    """A vote of each tile on a condition."""

    __slots__ = ()


class SwitchProgram(Program):
    """Programs, of which a number chooses one."""

    __slots__ = ()


class OnEveryTileSwitchProgram(Program):
    """Programs, of which each tile chooses one."""

    __slots__ = ()


class WriteUndefProgram(Program):
    """A mark that what a variable held is not needed any more."""

    __slots__ = ()


class CallProgram(Program):
    """A call of a function, whose program is no child of it."""

    __slots__ = ()

    @property
    def target(self) -> Program:
        """The program that is called."""
        programs = self._data.column("function_programs", "program")
        return program(self._data, int(programs[self._operand("target")]))


_CLASSES = (
    OnTileExecuteProgram, DoExchangeProgram, GlobalExchangeProgram, StreamCopyBeginProgram,
    StreamCopyMidProgram, StreamCopyEndProgram, CopySharedStructureProgram, SequenceProgram,
    RepeatProgram, RepeatWhileTrueProgram, RepeatWhileFalseProgram, RepeatWhileProgram, IfProgram,
    IfElseProgram, SetLocalConsensusFromVarProgram, SwitchProgram, OnEveryTileSwitchProgram,
    WriteUndefProgram, CallProgram,
)  # fmt: skip
_CLASS_OF_TYPE = {
    program_class.__name__.removesuffix("Program"): program_class for program_class in _CLASSES
}
for _class in _CLASSES:
    _class._method = f"visit{_class.__name__.removesuffix('Program')}"
# By the codes of the column `type`; syncs are of no class of their own, as in libpva.
CLASSES: Sequence[type[Program]] = [_CLASS_OF_TYPE.get(kind.name, Program) for kind in TYPES]


class ProgramVisitor:
    """Derive from this and define methods such as `visitOnTileExecute(self, program)`.

    There is one for each member of `Program.Type`; those that are not defined do nothing.
    """


def _nothing(self: ProgramVisitor, program: Program) -> None:
    """Do nothing."""


for _member in ProgramType:
    setattr(ProgramVisitor, f"visit{_member.name}", _nothing)


def program(data: Dataset, row: int) -> Program:
    """Make the view of a program, of the class of its type.

    Raises NotRecordedError for the row -1, by which a step says that it does not tell.
    """
    if row < 0:
        raise NotRecordedError(data.name, "a step without a program", "its writer did not tell it")
    return CLASSES[_code(data, row)](data, row)


def programs(data: Dataset, rows: range | list[int]) -> Items[Program]:
    """Make views of programs on access."""
    if not len(rows):
        return Items(rows, partial(program, data))
    code = data.column("programs", "type").item
    return Items(rows, lambda row: CLASSES[code(row)](data, row))


def _code(data: Dataset, row: int) -> int:
    return data.column("programs", "type").item(row)  # type: ignore[no-any-return]


def _control_code(data: Dataset, row: int) -> npt.NDArray[np.int64]:
    """Add up by tile the control code of a program and of all below it, each once."""
    mine = data.rows_among("control_code", "program", _below(data, row))
    changes = np.zeros(data.of_replica("num_tiles") + 1, dtype=np.int64)
    sizes = data.column("control_code", "bytes")[mine]
    for column, sign in (("tile", 1), ("end_tile", -1)):
        places = data.column("control_code", column)[mine]
        np.add.at(changes, np.clip(places, 0, len(changes) - 1), sign * sizes)
    return changes.cumsum()[:-1]


def _below(data: Dataset, row: int) -> npt.NDArray[np.int64]:
    """Return a program and all below it, level by level."""
    program_class = level = np.array([row])
    while True:
        rows = data.rows_among("program_children", "program", level)
        level = np.setdiff1d(data.column("program_children", "child")[rows], program_class)
        if not len(level):
            return program_class
        program_class = np.union1d(program_class, level)
