"""Outputs of element-wise operations."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.poputil.tile_mapping import best_spread


@library_call("POPOPS")
def createOutputForElementWiseOp(
    graph: Graph, inputs: Sequence[Tensor], outputType: Type, debugContext: str = ""
) -> Tensor:
    """Add a variable laid out like the operand that is spread best, or spread in order.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[1.0, 2.0]]), trial.tensor([[3.0], [4.0]])
    >>> popops.createOutputForElementWiseOp(trial.graph, [a, a], poplar.BOOL).shape
    (1, 2)
    """
    name = debugContext or "createOutputForElementWiseOp"
    if not inputs or len({tensor.shape for tensor in inputs}) > 1:
        raise poplibs_error(f"{name}: inputs {list(inputs)!r}; needs some, of one shape")
    best = best_spread(graph, inputs)
    if best is not None:
        return graph.clone(best, name, outputType)
    out = graph.addVariable(outputType, inputs[0].shape, name)
    poputil.mapTensorLinearly(graph, out)
    return out
