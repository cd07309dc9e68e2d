"""Gradients of what picks elements by their places: they go back to these places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.pointwise_gradients import Grads
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.operators.images import fields
from simulator.popart.operators.images.windows import in_images, positions, spread_readers
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import _1, _2, _3

Tensors = Sequence[Tensor]


def added_at(call: Call, places: Tensor, values: Tensor, size: int) -> Tensor:
    """Add each value to the element of its place, among `size` zeros."""
    name, count = f"{call.name}/PlacedGrad", values.numElements()
    table = call.variable(values.dtype, [size, 1], "PlacedGrad")
    popops.zero(call.graph, table, call.prog, name)
    popops.multiUpdateAdd(
        call.graph, table, values.reshape((count, 1, 1)),
        call.cast(places, UNSIGNED_INT).reshape((count, 1)),
        call.constant(1.0, values.dtype, "one"), [0], [1], call.prog, debugContext=name,
    )  # fmt: skip
    return table.flatten()


def of_top_k(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient to the elements that were chosen."""
    axis, shape, last = call.axis(-1), call[0].shape, call[0].rank() - 1
    (places,) = call.saved  # [rows, k], in each row
    size, rows = shape[axis], places.shape[0]
    before = np.repeat(np.arange(rows, dtype=np.uint32) * size, places.shape[1])
    offsets = call.constant(before.reshape(places.shape), UNSIGNED_INT, "rows")
    flat = call.map(_1 + _2, call.cast(places, UNSIGNED_INT), offsets)
    moved = grads[0].dimRoll(axis, last)
    scattered = added_at(call, flat, moved.flatten(), rows * size)
    grad = scattered.reshape((*moved.shape[:-1], size)).dimRoll(last, axis)
    return [grad, *[None] * (len(call.inputs) - 1)]


def of_scatter(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return what was replaced no gradient, and that of its place to what replaced it.

    Where updates are added, what they are added to keeps its gradient.
    """
    if not call.saved:
        return [grads[0], None, None]
    (places,) = call.saved
    rows, count = places.expand([1]), places.numElements()
    masked = grads[0]
    if call.attribute("reduction", "none") == "none":
        masked = call.copy(grads[0], "ScatterGrad")
        nothing = call.constant(np.zeros((count, 1, 1)), masked.dtype, "nothing")
        arguments = (call.graph, masked.flatten().expand([1]), nothing, rows, [0], [1], call.prog)
        popops.multiUpdate(*arguments, debugContext=f"{call.name}/ScatterGrad")
    slices = popops.multiSlice(
        call.graph, grads[0].flatten().expand([1]), rows, [0], [1], call.prog,
        debugContext=f"{call.name}/UpdatesGrad",
    )  # fmt: skip
    return [masked, None, slices.reshape(call[2].shape)]


def of_gathered_elements(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add the gradient of each element to the place that it was taken from."""
    if not call.saved:
        return [zeros(call, call[0]), None]
    (places,) = call.saved
    scattered = added_at(call, places, grads[0].flatten(), call[0].numElements())
    return [scattered.reshape(call[0].shape), None]


def of_placed_maximum(call: Call, grads: Tensors) -> Grads:
    """Return the gradients of the windows that read an element, of those whose maximum it is."""
    windows, data, dtype = fields.pool_windows(call), call[0], grads[0].dtype
    (places,) = call.saved
    element_numbers = np.arange(data.numElements(), dtype=np.int32).reshape(data.shape)
    seen = spread_readers(call, grads[0], windows, 0)
    readers = spread_readers(call, places, windows, data.numElements())
    last = seen.rank() - 1
    numbers = call.constant(element_numbers, INT, "elements").expand([last])
    contributions = call.map(
        expr.Select(_1, expr.Const(0.0, dtype), expr.Equal(_2, _3)),
        seen,
        readers,
        broadcast(numbers, seen.shape),
    )
    if seen.shape[last] == 1:
        return [contributions.reshape(data.shape)]
    return [reduced(call, contributions, [last], Operation.ADD)]


def of_dilated_average(call: Call, grads: Tensors) -> Grads:
    """Assign each element its share of the windows that read it."""
    windows, elements = fields.pool_windows(call), call[0].numElements()
    with_padding = bool(call.attribute("count_include_pad", 0))
    counts = fields.counted(call, windows, with_padding)
    shares = call.constant(1 / counts, grads[0].dtype, "shares")
    contributions = call.map(_1 * _2, grads[0], broadcast(shares, grads[0].shape))
    places = in_images(call, positions(call, windows), elements)
    wide = broadcast(contributions.expand([contributions.rank()]), places.shape)
    numbers = call.constant(places.astype(np.uint32), UNSIGNED_INT, "places")
    scattered = added_at(call, numbers.flatten(), wide.flatten(), elements + 1)
    return [scattered.slice(0, elements).reshape(call[0].shape)]
