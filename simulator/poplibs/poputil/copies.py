"""Copies of tensors: where they lie, several of them, or on another IPU."""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.tensors.variables import TensorCloneMethod
from simulator.logging import library_call

UNLESS_ALIASES = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES


@library_call("POPUTIL")
def duplicate(
    graph: Graph,
    tensor: Tensor,
    prog: Sequence,
    name: str = "",
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """Add a variable that lies where a tensor lies, and copy the tensor into it.

    >>> from simulator import poputil
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([1.0, 2.0])
    >>> trial.values(poputil.duplicate(trial.graph, x, trial.prog))
    [1.0, 2.0]
    """
    copy = graph.clone(tensor, name, method=method)
    prog.add(Copy(*_without_aliases(tensor, copy), name=name))
    return copy


def _without_aliases(tensor: Tensor, copy: Tensor) -> tuple[Tensor, Tensor]:
    """Return a tensor and its clone, or views of what they have once, where they have it twice."""
    if not copy.containsAliases():
        return tensor, copy
    elements, places = (one.elements().reshape(-1) for one in (tensor, copy))
    first = np.unique(places, return_index=True)[1]
    return tensor.view(elements[first]), copy.view(places[first])


@library_call("POPUTIL")
def cloneN(
    graph: Graph,
    t: Tensor,
    N: int,
    debugContext: str = "",
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """Add N variables laid out like a tensor; give them along a new first dimension.

    >>> from simulator import poputil
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poputil.cloneN(trial.graph, trial.tensor([1.0, 2.0]), 3).shape
    (3, 2)
    """
    if not isinstance(N, int | np.integer) or N < 1:
        raise poplibs_error(f"{debugContext or 'cloneN'}: N is {N!r}; at least 1 is needed")
    clones = [graph.clone(t, debugContext, method=method).expand([0]) for _ in range(N)]
    return concat(clones)


@library_call("POPUTIL")
def cloneToIpu(
    graph: Graph,
    t: Tensor,
    dstIPU: int,
    debugContext: str = "",
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """Add a variable like a tensor, on the tiles of an IPU that have its tiles' places there.

    >>> from simulator import poplar, poputil
    >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> graph.getTileMapping(poputil.cloneToIpu(graph, x, 1))[5]  # tile 1 of IPU 1
    [(0, 2)]
    """
    target, name = graph.target, debugContext or "cloneToIpu"
    if not isinstance(dstIPU, int | np.integer) or not 0 <= dstIPU < target.num_ipus:
        raise poplibs_error(f"{name}: IPU {dstIPU!r}; the target has 0 to {target.num_ipus - 1}")
    clone = graph.clone(t, debugContext or t.describe(), method=method)
    low, high, tiles = graph.tile_ranges(t)
    tiles_per_ipu = target.tiles_per_ipu
    graph.map_ranges(clone, low, high, dstIPU * tiles_per_ipu + tiles % tiles_per_ipu)
    return clone


@library_call("POPUTIL")
def copyToIpu(
    masterGraph: Graph,
    t: Tensor,
    prog: Sequence,
    dstIPU: int,
    debugContext: str = "",
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> Tensor:
    """Copy a tensor to the same tiles of another IPU.

    >>> from simulator import poplar, poputil
    >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> copy = poputil.copyToIpu(graph, x, poplar.program.Sequence(), 1)
    >>> graph.getTileMapping(copy)[5]  # tile 1 of IPU 1
    [(0, 2)]
    """
    clone = cloneToIpu(masterGraph, t, dstIPU, debugContext, method)
    prog.add(Copy(*_without_aliases(t, clone), name=debugContext))
    return clone


@library_call("POPUTIL")
def createIpuCopy(
    graph: Graph,
    t: Tensor,
    dstIpu: int,
    debugContext: str = "",
    method: TensorCloneMethod = UNLESS_ALIASES,
) -> tuple[Tensor, Tensor, Tensor]:
    """Prepare `copyToIpu`: give the tensor there, and what is to be copied to what.

    >>> from simulator import poplar, poputil
    >>> device = poplar.IPUModel(numIPUs=2, tilesPerIPU=4).createDevice()
    >>> graph = poplar.Graph(device.getTarget())
    >>> x = graph.addVariable(poplar.FLOAT, [2], "x")
    >>> graph.setTileMapping(x, 1)
    >>> there, source, target = poputil.createIpuCopy(graph, x, 1)
    >>> poplar.program.Copy(source, target).dst.shape
    (2,)
    """
    clone = cloneToIpu(graph, t, dstIpu, debugContext, method)
    source, destination = _without_aliases(t, clone)
    return clone, source.flatten(), destination.flatten()
