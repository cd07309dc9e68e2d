"""Where a dataset takes its columns and arrays from, and how much memory they may take."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from pva.array_types import Values
from pva.errors import DamagedFileError

TEXT_COST = 16  # times as long as a byte of an array takes to be read again (variables.name: 13)
Spend = Callable[[int, str], None]  # bytes that are about to be taken, and what takes them


class Source(Protocol):
    """Where a dataset takes its columns and arrays from; a format implements it.

    What reading gives is spent before it is made, whatever is needed for it beside is not.
    """

    room: Room

    def tables(self) -> Collection[str]:
        """Name the tables that are there."""

    def arrays(self) -> Collection[str]:
        """Name the arrays that are there."""

    def length(self, table: str) -> int:
        """Count the rows of a table that is there."""

    def column(self, table: str, column: str, spend: Spend) -> Values:
        """Read one column of a table that is there."""

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        """Read all columns of a table at once; None when that is no faster than one by one."""

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        """Read rows `first` to `stop` (exclusive; None for the end) of an array that is there."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where a column or array lies in memory, its bytes, and how readily it is let go of."""

    address: int
    size: int
    weight: float

    @classmethod
    def of(cls, values: Values, size: int) -> Block:
        """Describe an array: a view of another lies where that one does."""
        # By ctypes: making the dict of the array interface crashes NumPy when memory runs out.
        address = values.ctypes.data
        return cls(address, size, size / TEXT_COST if values.dtype.kind == "O" else size)


class Room:
    """The bytes that reading a file may take; what is held makes way for what is read."""

    def __init__(self, limit: float = float("inf"), file: object = "") -> None:
        self.limit = limit
        self._file = file
        self._taken = 0
        self._held: list[weakref.ref[Held]] = []
        self._lock = threading.Lock()

    def keep(self, share: float) -> Held:
        """Make a place where things may be held that take a share of the room."""
        holder = Held(share * self.limit)
        with self._lock:
            self._held = [*(reference for reference in self._held if reference() is not None),
                          weakref.ref(holder)]  # fmt: skip
        return holder

    @contextmanager
    def spending(self) -> Iterator[Spending]:
        """Return what takes bytes until the end of the block."""
        spend = Spending(self)
        try:
            yield spend
        finally:
            self.take(-spend.spent)

    def take(self, amount: int) -> None:
        """Count bytes as taken, or as given back."""
        with self._lock:
            self._taken += amount

    def check(self, amount: int, place: str) -> None:
        """Let go of what is held when bytes are needed; raises DamagedFileError when too many."""
        if self.limit == float("inf"):
            return
        if amount + self._taken > self.limit:
            remedy = f"at most {self.limit - self._taken:.0f} more in a file of this size"
            raise DamagedFileError(self._file, f"{amount} bytes", remedy, place=place)
        with self._lock:
            holders = self._places()
            while (
                holders
                and sum(holder.bytes for holder in holders) + amount + self._taken > self.limit
            ):
                max(holders, key=lambda holder: holder.bytes).drop_oldest()

    @property
    def held(self) -> int:
        """Count the bytes that are held and can be let go of, what two places share once."""
        return sum(block.size for block in self._blocks().values())

    @property
    def largest(self) -> float:
        """Return the weight of what is let go of first."""
        return max((block.weight for block in self._blocks().values()), default=0)

    def let_go_of_largest(self) -> None:
        """Let go of the column or array of the most weight, in all places that share it."""
        with self._lock:
            blocks = self._blocks()
            address = max(blocks, key=lambda at: blocks[at].weight, default=0)
            for holder in self._places():
                holder.drop_at(address)

    def _blocks(self) -> dict[int, Block]:
        """Return what is held and takes bytes by where it lies in memory."""
        blocks = (block for holder in self._places() for block in holder.blocks())
        return {block.address: block for block in sorted(blocks, key=lambda block: block.size)}

    def _places(self) -> list[Held]:
        return [holder for reference in self._held if (holder := reference()) is not None]


class Spending:
    """What was taken from a room in one place."""

    def __init__(self, room: Room) -> None:
        self.spent = 0
        self._room = room

    def __call__(self, amount: int, place: str) -> None:
        """Take bytes; raises DamagedFileError when there are not so many."""
        self._room.check(amount, place)
        self._room.take(amount)
        self.spent += amount


class Held(dict[str | tuple[str, str], Values]):
    """Columns and arrays that were read, the oldest let go of when they are too large."""

    def __init__(self, limit: float) -> None:
        self._limit, self.bytes = limit, 0
        self._placed: dict[str | tuple[str, str], Block] = {}

    def hold(self, name: str | tuple[str, str], values: Values, size: int) -> Values:
        """Keep one of some bytes, whatever its size, until the next comes."""
        self._drop(name)
        self[name], self._placed[name] = values, Block.of(values, size)
        self.bytes += size
        while self.bytes > self._limit and len(self) > 1:
            self.drop_oldest()
        return values

    def drop_oldest(self) -> None:
        """Let go of one."""
        self._drop(*list(self)[:1])

    def blocks(self) -> list[Block]:
        """List those that take any bytes."""
        return [block for block in list(self._placed.values()) if block.size]

    def drop_at(self, address: int) -> None:
        """Let go of those that lie at an address."""
        placed = list(self._placed.items())
        self._drop(*(name for name, block in placed if block.size and block.address == address))

    def _drop(self, *names: str | tuple[str, str]) -> None:
        for name in names:  # another thread may have been first
            self.pop(name, None)
            block = self._placed.pop(name, None)
            self.bytes -= block.size if block else 0


class Memory:
    """The source of a dataset that was made in memory."""

    def __init__(self, tables: dict[str, dict[str, Values]], arrays: dict[str, Values]) -> None:
        self.room = Room()
        self._tables = tables
        self.held = arrays

    def tables(self) -> Collection[str]:
        return self._tables.keys()

    def arrays(self) -> Collection[str]:
        return self.held.keys()

    def length(self, table: str) -> int:
        return len(next(iter(self._tables[table].values())))

    def column(self, table: str, column: str, spend: Spend) -> Values:
        return self._tables[table][column]

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        return None

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        return self.held[array][first:stop]


class Part(Protocol):
    """A dataset that is a part of another."""

    room: Room

    @property
    def tables(self) -> Collection[str]:
        """Name the tables that are there."""

    @property
    def arrays(self) -> Collection[str]:
        """Name the arrays that are there."""

    def length(self, table: str) -> int:
        """Count the rows of a table."""

    def column(self, table: str, column: str) -> Values:
        """Return a column."""

    def size(self, table: str, column: str) -> int:
        """Return the bytes of a column that was read."""

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        """Read all columns of a table at once, where that is faster."""

    def rows(self, array: str, first: int, stop: int | None) -> Values:
        """Return rows of an array."""


class Joined:
    """The source of a dataset that several others make up, or what is named of one."""

    def __init__(self, parts: Sequence[Part], names: Collection[str] | None = None) -> None:
        rooms = [part.room for part in parts]
        self.room = min(rooms, key=lambda room: room.limit, default=Room())
        self._tables = {name: part for part in reversed(parts) for name in part.tables
                        if names is None or name in names}  # fmt: skip
        self._arrays = {name: part for part in reversed(parts) for name in part.arrays
                        if names is None or name in names}  # fmt: skip

    def tables(self) -> Collection[str]:
        return self._tables.keys()

    def arrays(self) -> Collection[str]:
        return self._arrays.keys()

    def length(self, table: str) -> int:
        return self._tables[table].length(table)

    def column(self, table: str, column: str, spend: Spend) -> Values:
        values = self._tables[table].column(table, column)
        spend(self._tables[table].size(table, column), f"table {table}, column {column}")
        return values

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        return self._tables[table].whole(table, spend)

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        values = self._arrays[array].rows(array, first, stop)
        spend(values.nbytes, array)
        return values
