"""Lower copies: between tiles by exchange, on a tile by copy vertices, with the host by streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.compiler.building import Building, Part, sync, with_access
from simulator.compiler.exchange import host_exchange_cost
from simulator.compiler.executable import LoweredProgram
from simulator.graph.intervals import offsets_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One tensor of a copy: pieces [low, high) of the arena by position (bytes) in the tensor."""

    position: IntArray
    low: IntArray
    high: IntArray
    tile: IntArray

    def cut(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Give the arena's byte and the tile at each position."""
        piece = np.searchsorted(self.position, positions, side="right") - 1
        return self.low[piece] + positions - self.position[piece], self.tile[piece]


def side_of(building: Building, tensor: Tensor) -> Side:
    """Find where the bytes of a tensor lie, in the tensor's order."""
    begins = tensor.begins * tensor.dtype.size
    lengths = tensor.lengths * tensor.dtype.size
    source, low, high, tile = building.owners(begins, begins + lengths)
    position = offsets_of(lengths)[source] + low - begins[source]
    return Side(position, low, high, tile)


def lower_copy(building: Building, name: str, src: Tensor, dst: Tensor) -> list[Part]:
    """Copy a tensor to a tensor."""
    source, destination = side_of(building, src), side_of(building, dst)
    position = np.union1d(source.position, destination.position)
    size = np.diff(np.append(position, src.numElements() * src.dtype.size))
    from_byte, from_tile = source.cut(position)
    to_byte, to_tile = destination.cut(position)
    read, written = building.variables_at(from_byte), building.variables_at(to_byte)
    written, whole = building.whole(written, size)
    parts: list[Part] = []
    remote = from_tile != to_tile
    if remote.any():
        low, high = from_byte[remote], (from_byte + size)[remote]
        parts += building.exchange(
            f"{name}/ExchangePre",
            low,
            high,
            from_tile[remote],
            to_tile[remote],
            reads=[read],
            writes=[written],
            whole=whole,
        )
    local = ~remote
    if local.any():
        rows = np.ones(int(local.sum()), dtype=np.int64)
        copy = building.tile_copy(f"{name}/OnTileCopy-0", to_tile[local], size[local], rows)
        parts.append(with_access(copy, [read], [written], whole))
    return parts


def lower_stream(building: Building, name: str, tensor: Tensor, to_device: bool) -> list[Part]:
    """Copy between the host and a tensor: an external sync before, two internal ones after."""
    side = side_of(building, tensor)
    size = side.high - side.low
    variables = building.variables_at(side.low)
    written, whole = building.whole(variables, size)
    part = stream_copy(building, name, side.tile, size, to_device)
    reads, writes = ([], [written]) if to_device else ([variables], [])
    part = with_access(part, reads, writes, whole if to_device else None)
    return [sync("External"), part, sync("Internal"), sync("Internal")]


def stream_copy(
    building: Building, name: str, tile: IntArray, size: IntArray, to_device: bool
) -> Part:
    """Add an exchange with the host."""
    tiles, which = np.unique(tile, return_inverse=True)
    total = np.bincount(which, weights=size, minlength=len(tiles)).astype(np.int64)
    cost = host_exchange_cost(building.graph.target, tiles, total, to_device)
    building.host_exchanges.append(cost)
    return Part(LoweredProgram("StreamCopy", name, exchange=len(building.host_exchanges) - 1))
