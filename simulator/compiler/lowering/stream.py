"""Lower copies with memory outside the IPU: data streams and remote buffers.

Source: programming guide, 2.6 "Data streams and remote buffers". The syncs of a stream copy are
those that the public screenshot of tutorial 4 (SDK 2.0, GA_execution.png) shows: its three phases
follow one another without a sync, and one internal sync follows them. The user guide's sample, of
2019, has one phase and two internal syncs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.compiler.exchange import HOST_LATENCY, host_exchange_cost
from simulator.compiler.executable import Exchange, LoweredProgram
from simulator.compiler.lowering.copy import Side, side_of
from simulator.compiler.lowering.state import Building, Part, sync, with_access
from simulator.graph.geometry.intervals import first_of_each, kinds, offsets_of, present, uniform
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray

# Each IPU reaches the memory of its machine through PCIe Gen4 x8 (block diagram of the IPU-M2000
# in its public BMC guide): 16 GT/s a lane, 128 of 130 bits are data. What a copy reaches of that
# is not published, so this is an upper bound.
REMOTE_BYTES_PER_SECOND = 16_000_000_000 * 8 // 8 * 128 // 130


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """Pieces [low, high) of the arena, each on one tile, and the transfer that each is part of."""

    number: IntArray
    low: IntArray
    high: IntArray
    tile: IntArray

    def sorted(self) -> Transfers:
        """Put the pieces of each transfer together."""
        if not self.number.any():
            return self
        order = np.argsort(self.number, kind="stable")
        return Transfers(self.number[order], self.low[order], self.high[order], self.tile[order])


def transfer_limit(stream: Stream, target: Target) -> int:
    """Return the bytes that one transfer of a stream may have on each IPU."""
    return stream.splitLimit or target.stream_copy_limit


def lower_stream(
    building: Building, name: str, tensor: Tensor, to_device: bool, limit: int | None = None
) -> list[Part]:
    """Copy between the host and a tensor, in as many stream copies as the limit makes of it.

    Each one has an external sync before and an internal one after it. `limit` is in bytes on
    each IPU; the target's when not given.
    """
    target = building.graph.target
    whole_elements = (limit or target.stream_copy_limit) // tensor.dtype.size * tensor.dtype.size
    transfers = split_by_ipu(side_of(building, tensor), whole_elements, target.tiles_per_ipu)
    copies = _copies(building, name, transfers, to_device)
    return [part for copy in copies for part in host_copy(copy)]


def host_copy(copy: Part) -> list[Part]:
    """Return the phases and the syncs of a copy with the host."""
    begin, middle, end = in_phases(copy)
    return [sync("External"), begin, middle, end, sync("Internal")]


def in_phases(copy: Part) -> list[Part]:
    """Return the three phases of a stream copy: in the first and the last the device waits.

    StreamCopyBegin waits until the host has made the buffer ready, StreamCopyEnd until it has
    taken it back. The model's host always is ready, so that both take no cycles. Source: PopTorch
    user guide, "Overlapping compute and IO", whose profile without buffering has all three.
    """
    begin, end = (
        Part(LoweredProgram(f"StreamCopy{phase}", copy.program.name)) for phase in ("Begin", "End")
    )
    return [begin, copy, end]


def lower_remote(
    building: Building,
    name: str,
    buffer: RemoteBuffer,
    tensor: Tensor,
    offset: Tensor | None,
    to_device: bool,
) -> list[Part]:
    """Copy between rows of a remote buffer and a tensor, a transfer a row.

    The host takes no part, so no external sync is needed: the tiles of the IPU meet before the
    first row, so that none is still at work on the tensor, and after each row.
    """
    side = side_of(building, tensor)
    row_bytes = buffer.row_bytes
    rows = tensor.numElements() // (buffer.num_elements * buffer.replicas)
    cuts = _cut(side, side.position, row_bytes)
    transfers = replace(cuts, number=cuts.number % rows)  # the replicas move their rows together
    reads = []
    if offset is not None:
        reads.append(building.variables_at(offset.begins * offset.dtype.size))
    copies = _copies(building, name, transfers, to_device, reads, remote=True)
    phases = [part for copy in copies for part in (*in_phases(copy), sync("Internal"))]
    return [sync("Internal"), *phases]


def stream_copy(
    building: Building,
    name: str,
    tile: IntArray,
    size: IntArray,
    to_device: bool,
    *,
    remote: bool = False,
) -> Part:
    """Add an exchange with the host, or with a remote buffer."""
    tiles, which = kinds(tile)
    total = np.bincount(which, weights=size, minlength=len(tiles)).astype(np.int64)
    cost = host_exchange_cost(building.graph.target, tiles, total, to_device)
    if remote:
        cost = _remote_cost(building.graph.target, cost)
    building.host_exchanges.append(cost)
    return Part(LoweredProgram("StreamCopy", name, exchange=len(building.host_exchanges) - 1))


def split_by_ipu(side: Side, limit: int, tiles_per_ipu: int) -> Transfers:
    """Split a tensor into transfers that have at most `limit` bytes on each IPU, in its order."""
    length = side.high - side.low
    if int(length.sum()) <= limit:
        return Transfers(uniform(0, len(length)), side.low, side.high, side.tile)
    ipu = side.tile // tiles_per_ipu
    # Of 16 bits, which is more than enough, NumPy sorts by counting.
    order = np.argsort(ipu.astype(np.int16), kind="stable")
    before = np.cumsum(length[order]) - length[order]
    counts = np.bincount(ipu)
    counts = counts[counts > 0]
    place = np.empty_like(before)
    place[order] = before - np.repeat(before[offsets_of(counts)[:-1]], counts)
    return _cut(side, place, limit)


def _cut(side: Side, place: IntArray, size: int) -> Transfers:
    """Cut pieces that begin at these places wherever a multiple of `size` is passed."""
    length = side.high - side.low
    first, last = place // size, (place + length - 1) // size
    if np.array_equal(first, last):
        return Transfers(first, side.low, side.high, side.tile)
    count = last - first + 1
    piece = np.repeat(np.arange(len(place)), count)
    number = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + first[piece]
    begin = np.maximum(place[piece], number * size) - place[piece]
    end = np.minimum((place + length)[piece], (number + 1) * size) - place[piece]
    return Transfers(number, side.low[piece] + begin, side.low[piece] + end, side.tile[piece])


def _copies(
    building: Building,
    name: str,
    transfers: Transfers,
    to_device: bool,
    reads: Sequence[IntArray] = (),
    *,
    remote: bool = False,
) -> list[Part]:
    """Add a stream copy for each transfer, with what it reads and writes.

    A variable that all transfers together write is written whole by the first of them that touches
    it: nobody reads it before the last.
    """
    transfers = transfers.sorted()
    number, size = transfers.number, transfers.high - transfers.low
    variables = building.variables_at(transfers.low)
    written, kills = building.whole(variables, size)
    first = first_of_each(kinds(variables)[1])
    count = int(number.max(initial=0)) + 1
    bounds = np.searchsorted(number, np.arange(count + 1)).tolist()
    parts = []
    for k, (begin, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        label = f"{name}/{k}" if count > 1 else name
        mine = slice(begin, end)
        part = stream_copy(
            building, label, transfers.tile[mine], size[mine], to_device, remote=remote
        )
        touched = present(variables[mine])
        if to_device:
            place = np.searchsorted(written, touched)
            starts = (number[first] == k) & kills
            parts.append(with_access(part, reads, [touched], starts[place]))
        else:
            parts.append(with_access(part, [*reads, touched]))
    return parts


def _remote_cost(target: Target, cost: Exchange) -> Exchange:
    """Cost a transfer of a remote buffer: each IPU has a way of its own to that memory."""
    moved = cost.sent + cost.received
    by_ipu = moved.reshape(-1, target.tiles_per_ipu).sum(axis=1)
    link = -(-by_ipu * target.clock_frequency // REMOTE_BYTES_PER_SECOND)
    cycles = np.where(moved > 0, HOST_LATENCY + np.repeat(link, target.tiles_per_ipu), 0)
    return replace(cost, cycles=cycles)
