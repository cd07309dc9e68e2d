"""Copies of a model that train on batches of their own and change their weights alike."""

from __future__ import annotations

from collections.abc import Iterable

from simulator.graph.graph import Graph
from simulator.graph.program import Copy, CrossReplicaCopy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs import popops


def of_all(replicas: int) -> list[int]:
    """Return the distances of partners by which all replicas, a power of two, come together."""
    return [1 << turn for turn in range(replicas.bit_length() - 1)]


def summed(
    graph: Graph, tensor: Tensor, distances: Iterable[int], prog: Sequence, name: str
) -> Tensor:
    """Add up a tensor of replicas, in each of them; partners are at powers of two.

    In every round each has the sum of twice as many. Whatever the numbers, all get the same bits:
    in each round both of a pair add the same two, and a sum of two has no order.
    """
    replicas = range(graph.getReplicationFactor())
    total = graph.clone(tensor, f"{name}/AllReduce")
    prog.add(Copy(tensor, total, name=f"{name}/AllReduce"))
    for distance in distances:
        received = graph.clone(total, f"{name}/Other")
        pairs = {replica: replica ^ distance for replica in replicas}
        prog.add(CrossReplicaCopy(total, received, pairs, f"{name}/AllReduce"))
        popops.addInPlace(graph, total, received, prog, f"{name}/AllReduce")
    return total
