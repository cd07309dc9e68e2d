"""The gradient of GridSample: to the elements that samples are made of, and to the grid."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.pointwise_gradients import Grads
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.operators.indexing.indexed_gradients import added_rows
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.expr import _1, _2

Tensors = Sequence[Tensor]


def of_grid_sample(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add each sample's gradient, weighed, to its elements; that of the grid is by the slopes."""
    places, weights, slopes = call.saved
    batch, channels, *field = call.info().dims
    corners, samples = places.shape
    size = element_count(tuple(field))
    grad = call.cast(grads[0], FLOAT).reshape((batch, channels, samples // batch))
    grad = grad.dimShuffle([0, 2, 1]).reshape((samples, channels))
    every = broadcast(grad.expand([0]), (corners, samples, channels))
    data = to_grid = None
    if call.needed[0]:
        parts = call.map(_1 * _2, every, broadcast(weights.expand([2]), every.shape))
        rows = parts.reshape((corners * samples, channels))
        added = added_rows(call, rows, places.flatten(), batch * size)
        moved = added.reshape((batch, size, channels)).dimShuffle([0, 2, 1])
        data = call.cast(moved.reshape(call.info().dims), call[0].dtype)
    if call.needed[1]:
        rows = call[0].reshape((batch, channels, size)).dimShuffle([0, 2, 1])
        elements = popops.multiSlice(
            call.graph, rows.reshape((batch * size, channels)), places.flatten().expand([1]),
            [0], [1], call.prog, debugContext=call.name,
        )  # fmt: skip
        values = call.cast(elements, FLOAT).reshape((corners, samples, channels))
        worth = reduced(call, call.map(_1 * _2, values, every), [2], Operation.ADD)
        axes = [
            reduced(call, call.map(_1 * _2, worth, slope), [0], Operation.ADD).expand([1])
            for slope in reversed(slopes)
        ]
        to_grid = call.cast(concat(axes, 1).reshape(call.info(1).dims), call[1].dtype)
    return [data, to_grid]
