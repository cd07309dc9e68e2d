"""Programs of a report, their types, and visitors of them."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.model.graph import ComputeSet
from pva.model.variables import LoweredVariable
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


OTHER_NAMES = {"StreamCopy": ProgramType.StreamCopyMid}


class Program(Item):
    """One program; `name` of a sync without one tells its kind."""

    __slots__ = ()
    Type = ProgramType

    @property
    def _id(self) -> int:
        """Row in `compilation.programs`."""
        return self._row

    @property
    def type(self) -> ProgramType:
        """What the program does."""
        tag = _tag(self._data, self._row)
        return OTHER_NAMES.get(tag) or ProgramType[tag]

    @property
    def name(self) -> str:
        """Debug name."""
        name = self._text("programs", "name")
        if name or self.type is not ProgramType.Sync:
            return name
        return f"{schema.SYNC_TYPES[self._value('programs', 'sync_type')]} Sync"

    @property
    def children(self) -> Sequence[Program]:
        """Programs below this one, in order."""
        rows = self._data.rows_where("program_children", "program", self._row)
        return programs(self._data, self._data.column("program_children", "child")[rows].tolist())

    @property
    def vars(self) -> Sequence[LoweredVariable]:
        """Variables that the program reads or writes; empty when access was not recorded."""
        if not self._data.has("access"):
            return []
        mine = self._data.rows_where("access", "program", self._row)
        rows = np.unique(self._data.column("access", "variable")[mine]).tolist()
        return Items(rows, lambda row: LoweredVariable(self._data, row))

    @property
    def count(self) -> int:
        """Times that a Repeat runs its body; -1 for others."""
        return int(self._value("programs", "count"))

    def accept(self, visitor: ProgramVisitor) -> None:
        """Call the visitor's method for this type of program, such as `visitDoExchange`."""
        getattr(visitor, f"visit{self.type.name}")(self)


class OnTileExecuteProgram(Program):
    """A program that runs a compute set."""

    __slots__ = ()

    @property
    def computeset(self) -> ComputeSet:
        """The compute set that is run."""
        return ComputeSet(self._data, int(self._value("programs", "compute_set")))


class ExchangeProgram(Program):
    """A program that moves data."""

    __slots__ = ()
    _lists = ""

    @property
    def estimatedCyclesByTile(self) -> Numbers:
        """How long each tile takes part, in cycles."""
        return self._by_tile("cycles")

    @property
    def bytesSentByTile(self) -> Numbers:
        """Bytes that each tile sends."""
        return self._by_tile("bytes_sent")

    @property
    def bytesReceivedByTile(self) -> Numbers:
        """Bytes that each tile receives."""
        return self._by_tile("bytes_received")

    def _by_tile(self, what: str) -> Numbers:
        row = int(self._value("programs", "exchange"))
        return Numbers(self._data.array(f"{self._lists}_{what}")[row])


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


CLASSES: dict[str, type[Program]] = {
    "OnTileExecute": OnTileExecuteProgram,
    "DoExchange": DoExchangeProgram,
    "GlobalExchange": GlobalExchangeProgram,
    "StreamCopy": StreamCopyMidProgram,
    "StreamCopyBegin": StreamCopyBeginProgram,
    "StreamCopyEnd": StreamCopyEndProgram,
}


class ProgramVisitor:
    """Derive from this and define methods such as `visitOnTileExecute(self, program)`.

    There is one for each member of `Program.Type`; those that are not defined do nothing.
    """


def _nothing(self: ProgramVisitor, program: Program) -> None:
    """Do nothing."""


for _member in ProgramType:
    setattr(ProgramVisitor, f"visit{_member.name}", _nothing)


def program(data: Dataset, row: int) -> Program:
    """Make the view of a program, of the class of its type."""
    return CLASSES.get(_tag(data, row), Program)(data, row)


def programs(data: Dataset, rows: range | list[int]) -> Items[Program]:
    """Make views of programs on access."""
    return Items(rows, lambda row: program(data, row))


def _tag(data: Dataset, row: int) -> str:
    return schema.PROGRAM_TYPES[int(data.column("programs", "type")[row])]
