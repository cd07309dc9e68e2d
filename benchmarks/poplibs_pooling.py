"""The programs of PopLibs' tools/pooling_layer.cpp: max pooling, then its gradient.

No copies from or to the host are compiled. That is our reading of `--ignore-data`, taken after
seeing the published total memory: with them ours is 11 to 16 % above it.
"""

from __future__ import annotations

from benchmarks.poplibs_programs import Programs, field_of, number, type_of
from benchmarks.poplibs_table import Parameters
from simulator import popnn, poputil
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type

USUAL_GROUP = 16  # channels that lie together, where they divide evenly


def build(graph: Graph, parameters: Parameters) -> Programs:
    """Add the tensors and the programs: forward, then backward; no copies from or to the host."""
    field = field_of(parameters["field"])

    def by_dimension(name: str, usual: str) -> tuple[int, ...]:
        return field_of(parameters.get(name, usual), len(field))

    channels, batch = number(parameters["channels"]), number(parameters.get("batch-size", "1"))
    dtype = type_of(parameters)
    params = popnn.pooling.PoolParams(
        popnn.pooling.PoolingType.MAX,
        field,
        by_dimension("kernel", "1"),
        by_dimension("stride", "1"),
        by_dimension("padding-lower", "0"),
        by_dimension("padding-upper", "0"),
        channels,
        batch,
        dtype,
    )
    usual = str(1 if channels % USUAL_GROUP else USUAL_GROUP)
    group, back = (
        number(parameters.get(f"{way}-chans-per-group", usual)) for way in ("fwd", "bwd")
    )
    activations = _activations(graph, dtype, channels, [batch, *field], group, "prevAct")
    out_field = params.getOutputFieldShape()
    deltas = _activations(graph, dtype, channels, [batch, *out_field], back, "zDeltas")
    forward, reverse = Sequence(), Sequence()
    pooled = popnn.pooling.pool(graph, params, activations, forward, "TestFwd")
    popnn.pooling.poolInputGradient(
        graph, params, activations, pooled, deltas, False, reverse, "TestBwdMax"
    )
    return Programs([forward, reverse], run=2)


def _activations(
    graph: Graph, dtype: Type, channels: int, others: list[int], group: int, name: str
) -> Tensor:
    """Add a tensor [batch][channel][field...] that lies by groups of channels, then samples."""
    tensor = graph.addVariable(dtype, [channels // group, *others, group], name)
    poputil.mapTensorLinearly(graph, tensor)
    view = tensor.dimShufflePartial([0, tensor.rank() - 1], [1, 2])
    return view.reshapePartial(1, 3, [channels])
