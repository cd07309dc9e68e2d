"""A check, at run time, that offsets lie in a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph import program
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.poplibs.popops.operators import gteq
from simulator.poplibs.popops.reduction.reduce import Operation, reduce


def validate_indices(
    graph: Graph, offsets: Tensor, limits: Sequence[int], prog: program.Sequence, name: str
) -> None:
    """Stop the program when an offset [...][dimension] is not below the limit of its dimension."""
    columns = offsets.flatten(0, offsets.rank() - 1)
    for place, limit in enumerate(limits):
        end = graph.addConstant(UNSIGNED_INT, [], limit, f"{name}/endIndex")
        graph.setTileMapping(end, 0)
        largest = reduce(graph, columns[:, place], [0], Operation.MAX, prog, f"{name}/getMaxIndex")
        wrong = gteq(graph, largest, end, prog, f"{name}/invalid")
        stop = program.ErrorProgram(f"{name}: offset that is not below {limit}", largest)
        prog.add(program.If(wrong, stop, program.Sequence()))
