"""Tensors for copies with the host (popops/HostSliceTensor.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simulator.codelets.costs import ceil_div, even_bounds
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Type, element_count
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name

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

    `isRead` says that the host reads it. Packets are dealt out in order from tile `offset` on;
    PopLibs deals them out among exchange blocks, which the model has not.
    """
    offset, debugContext = (0, offset) if isinstance(offset, str) else (offset, debugContext)
    name = debug_name(debugContext, "HostSliceAble")
    if len(shape) != 2:
        raise poplibs_error(f"{name}: shape is {list(shape)}; [rows, elements] is needed")
    tensor = graph.addVariable(type, shape, name)
    packet = max((READ if isRead else WRITTEN) // type.size, 1)
    elements, tiles = tensor.numElements(), graph.target.num_tiles
    packets = ceil_div(elements, packet)
    used = min(packets, tiles)
    bounds = np.minimum(even_bounds(packets, max(used, 1)) * packet, elements)
    graph.map_ranges(tensor, bounds[:-1], bounds[1:], (np.arange(used) + offset) % tiles)
    indices = graph.addVariable(
        UNSIGNED_INT, [shape[0]], debug_name(debugContext, "HostSliceIndices")
    )
    graph.setTileMapping(indices, offset % tiles)
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
    """Add a tensor that lies in whole packets of the host's, of which `isRead` says the way."""
    row = [1, element_count(tuple(shape))]
    pair = createHostSliceableTensor(graph, type, row, isRead, offset, debugContext)
    return pair.tensor.reshape(shape)
