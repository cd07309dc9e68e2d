"""Lower copies: between tiles by exchange, on a tile by copy vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.compiler.copies import WORD_BYTES
from simulator.compiler.edges import Touch, fragments_of_senders, in_order_of_senders
from simulator.compiler.lowering.execute import MESSAGE
from simulator.compiler.lowering.state import NONE, Building, Part, with_access
from simulator.graph import kernels
from simulator.graph.geometry.intervals import among, offsets_of, present
from simulator.graph.geometry.strides import Strides
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One tensor of a copy: pieces [low, high) of the arena by position (bytes) in the tensor."""

    position: IntArray
    low: IntArray
    high: IntArray
    tile: IntArray

    def cut(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """Return the arena's byte and the tile at each position."""
        piece = np.searchsorted(self.position, positions, side="right") - 1
        return self.low[piece] + positions - self.position[piece], self.tile[piece]


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """What a copy moves: `size` bytes from `from_byte` of the arena, and the variables of both.

    Where a row has a `count`, it stands for so many fragments that go the same way, of bytes that
    are in no other row.
    """

    from_byte: IntArray
    from_tile: IntArray
    to_tile: IntArray
    size: IntArray
    read: IntArray
    written: IntArray
    count: IntArray | None = None

    def where(self, selection: BoolArray) -> Fragments:
        """Keep the chosen fragments."""
        columns = {name: getattr(self, name) for name in Fragments.__dataclass_fields__}
        return Fragments(**{name: x[selection] for name, x in columns.items() if x is not None})


def side_of(building: Building, tensor: Tensor) -> Side:
    """Return where the bytes of a tensor lie, in the tensor's order."""
    begins = tensor.begins * tensor.dtype.size
    lengths = tensor.lengths * tensor.dtype.size
    source, low, high, tile = building.owners(begins, begins + lengths)
    position = offsets_of(lengths)[source] + low - begins[source]
    return Side(position, low, high, tile)


def fragments(building: Building, src: Tensor, dst: Tensor) -> Fragments:
    """Cut a copy of a tensor to a tensor where either side changes its place."""
    summed = _summed(building, src, dst)
    if summed is not None:
        return summed
    source, destination = side_of(building, src), side_of(building, dst)
    position = present(np.concatenate([source.position, destination.position]))
    size = np.diff(np.append(position, src.numElements() * src.dtype.size))
    from_byte, from_tile = source.cut(position)
    to_byte, to_tile = destination.cut(position)
    read, written = building.variables_at(from_byte), building.variables_at(to_byte)
    return Fragments(from_byte, from_tile, to_tile, size, read, written)


def _summed(building: Building, src: Tensor, dst: Tensor) -> Fragments | None:
    """Count the fragments between each two mapped pieces; None where they have to be listed.

    That is where the same byte goes to several places, which an exchange may send once.
    """
    if kernels.compiled is None or src.containsAliases():
        return None
    mapping, size = building.layout.mapping, np.full(1, src.dtype.size)
    sides = (*_nested(src), *_nested(dst))
    columns = kernels.columns("flows", *sides, size, mapping.begin, mapping.end)
    if not columns:
        return None
    source, destination, first, total, count = columns
    tile, variable = mapping.tile, mapping.variable
    return Fragments(
        first,
        tile[source],
        tile[destination],
        total,
        variable[source],
        variable[destination],
        count,
    )


def _nested(tensor: Tensor) -> tuple[IntArray, ...]:
    """Return the intervals of a tensor, and the loops around them: none where they are listed."""
    if isinstance(tensor.places, Strides):
        return tensor.places.nested()
    return *tensor.intervals(), NONE, NONE


def lower_copy(building: Building, name: str, src: Tensor, dst: Tensor) -> list[Part]:
    """Copy a tensor to a tensor: inside each IPU, from one to another, and on tiles."""
    moved = fragments(building, src, dst)
    written, kills = building.whole(moved.written, moved.size)
    # What the copy reads itself goes on living, in whichever order the parts come.
    complete = written[kills]
    complete = complete[~among(complete, moved.read)]
    parts: list[Part] = []
    crossing = building.crossing(moved.from_tile, moved.to_tile)
    local = moved.from_tile == moved.to_tile
    inside = ~local & ~crossing
    once = _come_again(building, moved, inside) if moved.count is None else np.zeros_like(inside)
    for route, move in (
        (inside & ~once, _move),
        (once, _move_once),
        (crossing, _move),
        (local, _move),
    ):
        if route.any():
            part = moved.where(route)
            now = present(part.written)
            parts += move(building, name, part, now, among(now, complete))
            # The first to write a variable begins its new life; the others add to it.
            complete = complete[~among(complete, now)]
    return parts


def _homes(building: Building, moved: Fragments) -> IntArray:
    """Return where fragments lie in the rows of their senders."""
    mapping = building.layout.mapping
    piece = np.searchsorted(mapping.begin, moved.from_byte, side="right") - 1
    homes: IntArray = building.layout.home[piece] + moved.from_byte - mapping.begin[piece]
    return homes


def _come_again(building: Building, moved: Fragments, inside: BoolArray) -> BoolArray:
    """Return the fragments of tiles that take a byte several times, all in whole 64-bit words.

    Such a tile receives each byte once and copies it, as for edges of vertices: our estimate.
    """
    result = np.zeros(len(inside), dtype=bool)
    rows = np.flatnonzero(inside)
    home, size = _homes(building, moved)[rows], moved.size[rows]
    order, begin, reached = in_order_of_senders(moved.to_tile[rows], home, size)
    tile = moved.to_tile[rows]
    again, broken = tile[order[begin < reached]], tile[size % WORD_BYTES > 0]
    result[rows] = among(tile, present(again)) & ~among(tile, present(broken))
    return result


def _move_once(
    building: Building, name: str, part: Fragments, written: IntArray, kills: BoolArray
) -> list[Part]:
    """Bring each byte once to a tile, in the order of its sender's memory, and copy it there."""
    home = _homes(building, part)
    follows = np.zeros(len(home), dtype=bool)
    follows[1:] = (part.to_tile[1:] == part.to_tile[:-1]) & (home[1:] == (home + part.size)[:-1])
    yes = np.ones(len(home), dtype=bool)
    remote = Touch(
        part.from_byte,
        part.from_byte + part.size,
        part.from_tile,
        part.to_tile,
        part.read,
        home,
        yes,
        ~follows,
        yes,
    )
    variable, owner, user, low, size = fragments_of_senders(remote)
    messages = building.copies_of(variable, user, size, "message", MESSAGE)
    parts = building.exchange(
        f"{name}/ExchangePre",
        low,
        low + size,
        owner,
        user,
        reads=[variable],
        writes=[messages],
        in_rows=True,
    )
    rows = remote.breaks.astype(np.int64)
    copy = building.tile_copy(f"{name}/OnTileCopy-0", part.to_tile, part.size, rows)
    return [*parts, with_access(copy, [messages], [written], kills)]


def _move(
    building: Building, name: str, part: Fragments, written: IntArray, kills: BoolArray
) -> list[Part]:
    """Move fragments that all go the same way."""
    if part.from_tile[0] == part.to_tile[0]:
        rows = np.ones(len(part.size), dtype=np.int64) if part.count is None else part.count
        copy = building.tile_copy(f"{name}/OnTileCopy-0", part.to_tile, part.size, rows)
        return [with_access(copy, [part.read], [written], kills)]
    return building.exchange(
        f"{name}/ExchangePre",
        part.from_byte,
        part.from_byte + part.size,
        part.from_tile,
        part.to_tile,
        reads=[part.read],
        writes=[written],
        whole=kills,
        count=part.count,
    )
