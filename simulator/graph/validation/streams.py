"""What must hold of copies with memory outside the IPU, before they are compiled.

Source: programming guide, 2.6.1 "Stream buffer size limit", 2.6.3 "Remote buffer restrictions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.host.streams import RemoteBuffer, Stream, check_remote_buffers
from simulator.graph.program import Copy, Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray

# By remote buffer (its id) and replica of a view: its IPU, and the first tensor that says so.
Homes = dict[tuple[int, int], tuple[int, str]]


def check_outside_copies(
    graph: Graph, nodes: Iterable[Program], *, overlap: str = "Any", extended_memory: bool = False
) -> None:
    """Raise PoplarError for the first copy that a stream or remote buffer cannot do.

    `overlap` and `extended_memory` are the engine options exchange.streamBufferOverlap and
    target.extendedMemory.
    """
    homes: Homes = {}
    buffers: dict[int, IntArray] = {}
    ends: set[Stream | RemoteBuffer] = {*graph.streams, *graph.remote_buffers}
    for end, tensor, offset in _outside_copies(nodes):
        if end not in ends:
            kind = "stream" if isinstance(end, Stream) else "remote buffer"
            raise PoplarError(f"{kind} {end.handle!r}: is not of this graph")
        if isinstance(end, RemoteBuffer):
            _check_rows(end, tensor, offset)
            _check_home(graph, end, tensor, homes)
        elif overlap == "None":
            _check_own_buffer(graph, end, tensor, buffers)
    ipus = {key: ipu for key, (ipu, _) in homes.items()}
    check_remote_buffers(graph.remote_buffers, extended_memory, ipus)


def _outside_copies(
    nodes: Iterable[Program],
) -> Iterator[tuple[Stream | RemoteBuffer, Tensor, Tensor | None]]:
    """List the copies with a stream or remote buffer: it, the tensor, and the offsets of rows."""
    for node in nodes:
        match node:
            case Copy(src=Stream() | RemoteBuffer() as end, dst=Tensor() as tensor):
                yield end, tensor, node.offset
            case Copy(src=Tensor() as tensor, dst=Stream() | RemoteBuffer() as end):
                yield end, tensor, node.offset


def _check_rows(buffer: RemoteBuffer, tensor: Tensor, offset: Tensor | None) -> None:
    """Each row has an offset, and there are no more of them than rows."""
    subject, replicas = f"remote buffer {buffer.handle!r}", buffer.replicas
    rows = tensor.numElements() // (buffer.num_elements * replicas)
    offset_count = replicas if offset is None else offset.numElements()
    if offset_count != rows * replicas:
        raise PoplarError(
            f"{subject}: {offset_count} offset(s); {rows} in each of {replicas} replicas are needed"
        )
    if rows > buffer.repeats:
        raise PoplarError(f"{subject}: {rows} offsets; it has {buffer.repeats} rows (repeats)")


def _check_home(graph: Graph, buffer: RemoteBuffer, tensor: Tensor, homes: Homes) -> None:
    """All copies of a buffer are of one IPU."""
    low, high, tiles = graph.tile_ranges(tensor)
    length = tensor.numElements() // buffer.replicas
    ipus = tiles // graph.target.tiles_per_ipu
    for replica in range(buffer.replicas):
        inside = (low < (replica + 1) * length) & (high > replica * length)
        for ipu in np.unique(ipus[inside]).tolist():
            home, name = homes.setdefault((buffer.id, replica), (ipu, tensor.describe()))
            if home != ipu:
                raise PoplarError(
                    f"remote buffer {buffer.handle!r}: {name} is on IPU {home}, "
                    f"{tensor.describe()} on IPU {ipu}; all its copies have to be of one IPU"
                )


def _check_own_buffer(
    graph: Graph, stream: Stream, tensor: Tensor, buffers: dict[int, IntArray]
) -> None:
    """Where buffers do not overlap, none can be split, and all have to fit beside one another."""
    target = graph.target
    low, high, tiles = graph.tile_ranges(tensor)
    ipus = tiles // target.tiles_per_ipu
    size = np.bincount(ipus, weights=high - low, minlength=target.num_ipus) * stream.dtype.size
    moved = size.astype(np.int64)
    limit = stream.splitLimit or target.stream_copy_limit
    ipu = int(moved.argmax())
    why = "exchange.streamBufferOverlap is None"
    if moved[ipu] > limit:
        raise PoplarError(
            f"stream {stream.handle!r}: {int(moved[ipu]):,} bytes on IPU {ipu}; a transfer above "
            f"{limit:,} cannot be split while {why}"
        )
    mine = moved * stream.bufferingDepth
    buffers[stream.id] = np.maximum(buffers.get(stream.id, mine), mine)
    ipu_bytes = np.sum(list(buffers.values()), axis=0)
    ipu = int(ipu_bytes.argmax())
    if ipu_bytes[ipu] > target.stream_copy_limit:
        raise PoplarError(
            f"stream {stream.handle!r}: with it the stream buffers of IPU {ipu} take "
            f"{int(ipu_bytes[ipu]):,} bytes; at most {target.stream_copy_limit:,} fit while {why}"
        )
