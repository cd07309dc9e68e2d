"""Which IPU each node is on: by the builder's notes, or balanced by weights and spent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import (
    IPU_ATTRIBUTE,
    PHASE_ATTRIBUTE,
    STAGE_ATTRIBUTE,
    Ir,
    Node,
)
from simulator.poplibs import poputil

STAGES = 2  # of execution phases: IPUs that take turns


def place_nodes(
    ir: Ir, ipus: int, subject: str, cycles: Callable[[Node], float] | None = None, *,
    phased: bool = False,
) -> dict[str, int]:  # fmt: skip
    """Return the IPU of each node by its name; raises popart_exception for one that is not there.

    With the cycles of nodes these and the weights are balanced, whatever was noted. A node whose
    IPU is not noted is on that of its phase, if nodes are `phased`.
    """
    if cycles is not None:
        return _balanced(ir, ipus, cycles)
    placed: dict[str, int] = {}
    by_output: dict[str, tuple[int, int]] = {}  # stage, if it is noted, and IPU
    for node in ir.nodes:
        # What nobody placed stays with the last of what it reads.
        beside = [by_output[name] for name in node.inputs if name in by_output]
        stage, ipu = max(beside, default=(-1, 0))
        stage = int(node.attributes.get(STAGE_ATTRIBUTE, stage))
        if phased and PHASE_ATTRIBUTE in node.attributes:
            ipu = int(node.attributes[PHASE_ATTRIBUTE]) % min(STAGES, ipus)
        ipu = int(node.attributes.get(IPU_ATTRIBUTE, ipu))
        if not 0 <= ipu < ipus:
            raise popart_exception(
                f"{subject}: {node} is placed on IPU {ipu}; the device has {ipus}"
            )
        placed[node.name] = ipu
        by_output |= dict.fromkeys(node.outputs, (stage, ipu))
    return placed


def _balanced(ir: Ir, ipus: int, cycles: Callable[[Node], float]) -> dict[str, int]:
    """Cut the order of nodes into as many parts, alike in bytes of weights and in cycles."""
    seen: set[str] = set()
    weights = np.zeros(len(ir.nodes))
    spent = np.zeros(len(ir.nodes))
    for place, node in enumerate(ir.nodes):
        new = {name for name in node.reads if name in ir.weights and name not in seen}
        seen |= new
        weights[place] = sum(ir.infos[name].nbytes() for name in new)
        spent[place] = cycles(node)
    shares = sum(column / column.sum() for column in (weights, spent) if column.sum())
    shares = np.broadcast_to(shares, len(ir.nodes))
    total = max(float(shares.sum()), 1e-30)
    middle = (np.cumsum(shares) - shares / 2) / total
    parts = np.minimum((middle * ipus).astype(np.int64), ipus - 1)
    return {node.name: int(part) for node, part in zip(ir.nodes, parts, strict=True)}


def graphs_of(graph: Graph) -> list[Graph]:
    """Return a graph of the tiles of each IPU."""
    target = graph.getTarget()
    tiles = target.tiles_per_ipu
    if target.num_ipus == 1:
        return [graph]
    return [
        graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles) for ipu in range(target.num_ipus)
    ]


def lies_on(graph: Graph, tensor: Tensor, ipu: int) -> bool:
    """Return whether all of a tensor is on an IPU."""
    per_ipu = graph.getTarget().tiles_per_ipu
    tiles = graph.window.inside(graph.mapping_table(variables_of(tensor)).tile)
    # Most are of variables that are wholly on one IPU; of others the elements tell.
    on_ipu = tiles[tiles >= 0] // per_ipu == ipu
    if on_ipu.all() or not on_ipu.any():
        return bool(on_ipu.all())
    return bool((graph.tile_ranges(tensor)[2] // per_ipu == ipu).all())


def brought(graph: Graph, tensor: Tensor, ipu: int, prog: Sequence, name: str) -> Tensor:
    """Return a tensor on an IPU: itself, or a copy that crosses to the same tiles there."""
    if graph.getTarget().num_ipus == 1 or lies_on(graph, tensor, ipu):
        return tensor
    return poputil.copyToIpu(graph, tensor, prog, ipu, f"{name}/ToIpu{ipu}")
