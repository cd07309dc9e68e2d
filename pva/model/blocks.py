"""Blocks: what lightweight profiling saw on one tile of each IPU."""

from __future__ import annotations

from pva import schema
from pva.data.dataset import Dataset
from pva.model.programs import Program, program
from pva.model.variables import tile_row
from pva.model.views import Item, Items


class Block(Item):
    """From the begin of a block of the program to its end, or something that the profiler did."""

    __slots__ = ()
    _figures = ("cyclesFrom", "cyclesTo", "tile")

    @property
    def name(self) -> str:
        """Name of the program; of an overflow, which has none, "overflow"."""
        program = self.program
        return (
            schema.BLOCK_KINDS[self._value("blocks", "kind")] if program is None else program.name
        )

    @property
    def program(self) -> Program | None:
        """The program of the block; None for an overflow."""
        row = int(self._value("blocks", "program"))
        return program(self._data, row) if row >= 0 else None

    @property
    def cyclesFrom(self) -> int:
        """Clock of the tile at the begin."""
        return int(self._value("blocks", "cycles_from"))

    @property
    def cyclesTo(self) -> int:
        """Clock of the tile at the end."""
        return int(self._value("blocks", "cycles_to"))

    @property
    def tile(self) -> int:
        """Tile whose clock was read."""
        return int(self._value("blocks", "tile"))

    @property
    def isCommon(self) -> bool:
        """Whether it is a block of the program."""
        return self._is("common")

    @property
    def isOverflow(self) -> bool:
        """Whether the buffer was full, so that blocks were lost."""
        return self._is("overflow")

    @property
    def isBlockFlush(self) -> bool:
        """Whether the buffer was sent to the host."""
        return self._is("blockFlush")

    @property
    def isStreamCopy(self) -> bool:
        """Whether it is a copy between a stream and the device."""
        return self._is("streamCopy")

    def _is(self, kind: str) -> bool:
        return bool(schema.BLOCK_KINDS[self._value("blocks", "kind")] == kind)


def blocks(data: Dataset, tile: int) -> Items[Block]:
    """Return the blocks that were seen on a tile, in order; none when none were recorded.

    Raises IndexError, where the machine is told.
    """
    row = tile_row(data, tile) if data.has("target") else tile
    rows = data.rows_where("blocks", "tile", row).tolist() if data.has("blocks") else []
    return Items(rows, lambda row: Block(data, row))
