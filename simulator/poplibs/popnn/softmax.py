"""Softmax over the last dimension, by popops; it is no vertex of its own (as in PopLibs)."""

from __future__ import annotations

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensor import Tensor
from simulator.poplibs import popops

ADD, MAX = popops.Operation.ADD, popops.Operation.MAX


def softmax(graph: Graph, tensor: Tensor, prog: Sequence, name: str) -> Tensor:
    """Give exp(x - max) / sum of it, for each row."""
    last = tensor.rank() - 1
    largest = popops.reduce(graph, tensor, [last], MAX, prog, f"{name}/Max")
    shifted = popops.sub(graph, tensor, _column(largest), prog, f"{name}/Shift")
    exponents = popops.exp(graph, shifted, prog, name)
    sums = popops.reduce(graph, exponents, [last], ADD, prog, f"{name}/Sum")
    return popops.div(graph, exponents, _column(sums), prog, name)


def softmax_gradient(
    graph: Graph, out: Tensor, out_gradient: Tensor, prog: Sequence, name: str
) -> Tensor:
    """Give out * (gradient - sum of out * gradient), for each row."""
    weighted = popops.mul(graph, out, out_gradient, prog, name)
    sums = popops.reduce(graph, weighted, [out.rank() - 1], ADD, prog, f"{name}/Sum")
    centred = popops.sub(graph, out_gradient, _column(sums), prog, name)
    return popops.mul(graph, out, centred, prog, f"{name}/Scale")


def _column(tensor: Tensor) -> Tensor:
    """View a value a row so that it broadcasts over the row."""
    return tensor.reshape((*tensor.shape, 1))
