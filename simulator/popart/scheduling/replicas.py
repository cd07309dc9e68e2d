"""Copies of a model that train on batches of their own and change their weights alike."""

from __future__ import annotations

from simulator.graph.graph import Graph
from simulator.graph.program import Copy, CrossReplicaCopy, Sequence
from simulator.graph.tensor import Tensor
from simulator.poplibs import popops


def summed(graph: Graph, tensor: Tensor, replicas: int, prog: Sequence, name: str) -> Tensor:
    """Add up a tensor of all replicas, a power of two, in each of them.

    In every round each has the sum of twice as many. Whatever the numbers, all get the same bits:
    in each round both of a pair add the same two, and a sum of two has no order.
    """
    total = graph.clone(tensor, f"{name}/AllReduce")
    prog.add(Copy(tensor, total, name=f"{name}/AllReduce"))
    distance = 1
    while distance < replicas:
        received = graph.clone(total, f"{name}/Other")
        pairs = {replica: replica ^ distance for replica in range(replicas)}
        prog.add(CrossReplicaCopy(total, received, pairs, f"{name}/AllReduce"))
        popops.addInPlace(graph, total, received, prog, f"{name}/AllReduce")
        distance *= 2
    return total
