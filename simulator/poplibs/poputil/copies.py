"""Copies of tensors: where they lie, several of them, or on another IPU."""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensor import Tensor
from simulator.logging import library_call


@library_call("POPUTIL")
def duplicate(graph: Graph, tensor: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """Add a variable that lies where a tensor lies, and copy the tensor into it."""
    copy = graph.clone(tensor, name)
    prog.add(Copy(tensor, copy, name=name))
    return copy


@library_call("POPUTIL")
def cloneN(graph: Graph, t: Tensor, N: int, debugContext: str = "") -> Tensor:
    """Add N variables laid out like a tensor; give them along a new first dimension."""
    if not isinstance(N, int | np.integer) or N < 1:
        raise poplibs_error(f"{debugContext or 'cloneN'}: N is {N!r}; at least 1 is needed")
    return graph.cloneN(t, N, debugContext)


@library_call("POPUTIL")
def cloneToIpu(graph: Graph, t: Tensor, dstIPU: int, debugContext: str = "") -> Tensor:
    """Add a variable like a tensor, on the tiles of an IPU that have its tiles' places there."""
    target, name = graph.target, debugContext or "cloneToIpu"
    if not isinstance(dstIPU, int | np.integer) or not 0 <= dstIPU < target.num_ipus:
        raise poplibs_error(f"{name}: IPU {dstIPU!r}; the target has 0 to {target.num_ipus - 1}")
    clone = graph.clone(t, debugContext or t.describe())
    low, high, tiles = graph.tile_ranges(t)
    tiles_per_ipu = target.tiles_per_ipu
    graph.map_ranges(clone, low, high, dstIPU * tiles_per_ipu + tiles % tiles_per_ipu)
    return clone


@library_call("POPUTIL")
def copyToIpu(
    masterGraph: Graph, t: Tensor, prog: Sequence, dstIPU: int, debugContext: str = ""
) -> Tensor:
    """Copy a tensor to the same tiles of another IPU."""
    clone = cloneToIpu(masterGraph, t, dstIPU, debugContext)
    prog.add(Copy(t, clone, name=debugContext))
    return clone


@library_call("POPUTIL")
def createIpuCopy(
    graph: Graph, t: Tensor, dstIpu: int, debugContext: str = ""
) -> tuple[Tensor, Tensor, Tensor]:
    """Prepare `copyToIpu`: give the tensor there, and what is to be copied to what."""
    clone = cloneToIpu(graph, t, dstIpu, debugContext)
    return clone, t.flatten(), clone.flatten()
