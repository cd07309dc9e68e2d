"""Bring stream data that is spread thinly over many tiles by whole packets.

A packet goes to one tile, so words for many tiles would need a packet each. Instead the tile of a
packet's first word receives it, a short copy lays it out, and an exchange hands it on.

Source: the published profiles of the matrix-vector tutorial. Its vector, 4,000 bytes with a word a
tile, comes with 63 ShortMemcpy on Mk1 (packets of 64 bytes) and 32 on Mk2 (of 128). Its result of
32 or 36 bytes a tile comes with none: only data to the device is gathered.
"""

from __future__ import annotations

import numpy as np

from simulator.compiler.lowering.copy import Side, side_of
from simulator.compiler.lowering.state import Building, Part, with_access
from simulator.compiler.lowering.stream import host_copy, lower_stream, split_by_ipu, stream_copy
from simulator.graph.geometry.intervals import among, first_of_each, kinds, present
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor

PACKET, REARRANGED = "{}Packet", "{}Rearranged"


def lower_gathered(
    building: Building, name: str, tensor: Tensor, to_device: bool, limit: int
) -> list[Part]:
    """Copy between a stream and a tensor; `limit` is the bytes of one transfer on each IPU."""
    side = side_of(building, tensor)
    if not to_device or not _is_thin(side, building.graph.target, limit):
        return lower_stream(building, name, tensor, to_device, limit)
    return _gather(building, name, side)


def _is_thin(side: Side, target: Target, limit: int) -> bool:
    """Return whether each tile has less than a packet, and all together one transfer of packets."""
    size = np.bincount(side.tile, weights=side.high - side.low, minlength=target.num_tiles)
    by_ipu = size.reshape(-1, target.tiles_per_ipu).sum(axis=1)
    packet = target.host_packet_bytes
    return bool(size.max(initial=0) < packet <= by_ipu.max(initial=0) <= limit)


def _gather(building: Building, name: str, side: Side) -> list[Part]:
    """Stream packets to some tiles, copy them there, and exchange what belongs elsewhere."""
    target = building.graph.target
    pieces = split_by_ipu(side, target.host_packet_bytes, target.tiles_per_ipu)
    most = int(pieces.number.max(initial=0)) + 1
    _, which = kinds(pieces.tile // target.tiles_per_ipu * most + pieces.number)
    first = first_of_each(which)
    holder = pieces.tile[first][which]
    size = pieces.high - pieces.low
    variables = building.variables_at(pieces.low)
    packets = building.copies_of(variables, holder, size, "rearrangement", PACKET)
    rearranged = building.copies_of(variables, holder, size, "rearrangement", REARRANGED)

    stream = with_access(stream_copy(building, name, holder, size, True), [], [packets])
    written, kills = building.whole(variables, size)
    stays = holder == pieces.tile
    local, remote = present(variables[stays]), present(variables[~stays])
    # The copy writes what stays on its tile, and with it begins the new life of the variable.
    begun = among(local, written[kills])
    copy = with_access(
        building.packet_copy(f"{name}/PostArrange-0", pieces.tile[first]),
        [packets],
        [rearranged, local],
        np.append(np.ones(len(rearranged), dtype=bool), begun),
    )
    exchange = building.exchange(
        f"{name}/ExchangePost",
        pieces.low[~stays],
        pieces.high[~stays],
        holder[~stays],
        pieces.tile[~stays],
        reads=[rearranged],
        writes=[remote],
        whole=among(remote, written[kills]) & ~among(remote, local),
    )
    return [*host_copy(stream), copy, *exchange]
