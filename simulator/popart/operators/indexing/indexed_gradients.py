"""Gradients of what is addressed by tuples of indices: they go back to the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call
from simulator.popart.operators.elements.pointwise_gradients import Grads
from simulator.poplibs import popops

Tensors = Sequence[Tensor]


def of_gathered_nd(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add the gradient of each slice to the row that it was taken from."""
    if not call.saved:
        return [zeros(call, call[0]), None]
    (places,) = call.saved
    count, size = places.numElements(), call[0].numElements()
    width = grads[0].numElements() // count
    summed = added_rows(call, grads[0].reshape((count, width)), places, size // width)
    return [summed.reshape(call[0].shape), None]


def added_rows(call: Call, rows: Tensor, places: Tensor, size: int) -> Tensor:
    """Add each row [rows, elements] to the one of its place, of so many that begin with zero."""
    name, (count, width) = f"{call.name}/RowsGrad", rows.shape
    table = call.variable(rows.dtype, [size, width], "RowsGrad")
    popops.zero(call.graph, table, call.prog, name)
    one = call.constant(1.0, rows.dtype, "one").reshape([])
    popops.multiUpdateAdd(
        call.graph, table, rows.reshape((count, 1, width)), places.expand([1]), one,
        [0], [1], call.prog, debugContext=name,
    )  # fmt: skip
    return table


def of_scattered_nd(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return what was replaced no gradient, and that of its row to what replaced it.

    Where updates are added, what they are added to keeps its gradient.
    """
    if not call.saved:
        return [grads[0], None, None]
    (places,) = call.saved
    count, name = places.numElements(), f"{call.name}/ScatterGrad"
    width = call[2].numElements() // count
    shape, offsets = (grads[0].numElements() // width, width), places.expand([1])
    masked = grads[0]
    if call.attribute("reduction", "none") == "none":
        masked = call.copy(grads[0], "ScatterGrad")
        nothing = call.constant(np.zeros((count, 1, width)), masked.dtype, "nothing")
        arguments = (call.graph, masked.reshape(shape), nothing, offsets, [0], [1], call.prog)
        popops.multiUpdate(*arguments, debugContext=name)
    slices = popops.multiSlice(
        call.graph, grads[0].reshape(shape), offsets, [0], [1], call.prog, debugContext=name
    )
    return [masked, None, slices.reshape(call[2].shape)]
