"""Operators of ai.graphcore that replicas do together."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.operators.call import Call
from simulator.popart.representation.ir import GROUP_ATTRIBUTE
from simulator.popart.scheduling.replicas import summed
from simulator.popart.settings.choices import CommGroupType


def all_reduced(call: Call, tensor: Tensor | None = None) -> Tensor:
    """Return the sum of a tensor over the replicas of a group, or over all of them."""
    data = call[0] if tensor is None else tensor
    replicas = call.graph.getReplicationFactor()
    return summed(call.graph, data, _distances(call, replicas), call.prog, call.name)


def of_all_reduced(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Sum the gradients, too: each replica's output depends on the inputs of all."""
    return [all_reduced(call, grads[0])]


def _distances(call: Call, replicas: int) -> list[int]:
    """Return how far the partners of each round are; raises popart_exception for other groups.

    A group is all replicas, so many that follow each other, or so many that lie evenly spread.
    """
    kind, size = call.attribute(GROUP_ATTRIBUTE) or (int(CommGroupType.All), replicas)
    if kind == CommGroupType["None"]:
        return []
    size = replicas if kind == CommGroupType.All else int(size)
    if size < 1 or size & (size - 1) or replicas % size:
        raise popart_exception(
            f"{call.node}: groups of {size} of {replicas} replicas; a power of two that divides "
            "them is needed"
        )
    step = replicas // size if kind == CommGroupType.Orthogonal else 1
    return [step << turn for turn in range(size.bit_length() - 1)]
