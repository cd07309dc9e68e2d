"""Tensors for copies with the host (popops/HostSliceTensor.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Type, element_count
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil.regions import balancedPartition

# Bytes of a packet that the host writes and reads (PopLibs lib/popops/HostSliceTensor.cpp).
WRITTEN, READ = 1024, 256


class IndicesAndTensor(NamedTuple):
    """The rows of a remote buffer that a copy moves, and the tensor."""

    indices: Tensor
    tensor: Tensor


@library_call("POPOPS")
def createHostSliceableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    isRead: bool,
    offset: int | str = 0,
    debugContext: str = "",
) -> IndicesAndTensor:
    """Add a tensor [rows, elements] that lies in whole packets, and its indices [rows].

    `isRead` says that the host reads it. Packets of a row each are dealt out in order, an index
    lies with the first of its row. `offset` are the bytes of tensors before it, whose packets took
    the tiles before. PopLibs deals packets out among exchange blocks, which the model has not.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> indices, rows = popops.createHostSliceableTensor(trial.graph, poplar.FLOAT, [8, 4], True)
    >>> indices.shape, rows.shape
    ((8,), (8, 4))
    """
    offset, debugContext = (0, offset) if isinstance(offset, str) else (offset, debugContext)
    name = debug_name(debugContext, "HostSliceAble")
    if len(shape) != 2:
        raise poplibs_error(f"{name}: shape is {list(shape)}; [rows, elements] is needed")
    tensor = graph.addVariable(type, shape, name)
    packet = max((READ if isRead else WRITTEN) // type.size, 1)
    tiles, (rows, columns) = graph.target.num_tiles, shape
    first = np.arange(0, columns, packet, dtype=np.int64)
    low = (np.arange(rows, dtype=np.int64)[:, None] * columns + first).reshape(-1)
    high = np.minimum(low + packet, (low // max(columns, 1) + 1) * columns)
    # As even as can be, the first tiles take one packet more.
    share = np.array(balancedPartition(len(low), min(len(low), tiles) or 1), dtype=np.int64)
    before = ceil_div(offset, READ if isRead else WRITTEN)
    tile = (np.repeat(np.arange(len(share)), share) + before) % tiles
    graph.map_ranges(tensor, low, high, tile)
    indices = graph.addVariable(
        UNSIGNED_INT, [shape[0]], debug_name(debugContext, "HostSliceIndices")
    )
    places, head = np.arange(rows, dtype=np.int64), np.arange(rows) * len(first)
    graph.map_ranges(indices, places, places + 1, tile[head] if len(tile) else places * 0)
    return IndicesAndTensor(indices, tensor)


@library_call("POPOPS")
def createHostTransferableTensor(
    graph: Graph,
    type: Type,
    shape: Sequence[int],
    isRead: bool,
    offset: int | str = 0,
    debugContext: str = "",
) -> Tensor:
    """Add a tensor that lies in whole packets of the host's, of which `isRead` says the way.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> popops.createHostTransferableTensor(trial.graph, poplar.FLOAT, [8, 4], True).shape
    (8, 4)
    """
    row = [1, element_count(tuple(shape))]
    pair = createHostSliceableTensor(graph, type, row, isRead, offset, debugContext)
    return pair.tensor.reshape(shape)
