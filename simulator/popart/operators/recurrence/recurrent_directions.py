"""The gradient of an RNN or GRU of ONNX, put together from those of its directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.popart.operators.call import Call
from simulator.popart.operators.recurrence.recurrent import directions
from simulator.poplibs.popops.expr import _1, _2

# The gradients of a direction's inputs, of both weights, the biases and the first state, from its
# place, the gradients of all outputs in its order of time, and that of the last output.
OfDirection: TypeAlias = Callable[[int, Tensor | None, Tensor | None], list[Tensor]]


def of_directions(
    call: Call, grads: Sequence[Tensor], of_direction: OfDirection
) -> list[Tensor | None]:
    """Return the gradients of inputs, weights, biases and the first state of all directions."""
    by_batch = bool(call.attribute("layout", 0))
    sequence, last = output_gradients(call, grads, 2)
    results = []
    for place, backward in enumerate(directions(call)):
        shown = None if sequence is None else sequence[:, place]
        if shown is not None and backward:
            shown = shown.reverse(0)
        parts = of_direction(place, shown, None if last is None else last[place])
        results.append([parts[0].reverse(0), *parts[1:]] if backward else parts)
    inputs = results[0][0]
    for following in results[1:]:
        inputs = call.map(_1 + _2, inputs, following[0])
    stacks = [concat([direction[n].expand([0]) for direction in results], 0) for n in range(1, 5)]
    if by_batch:
        inputs, stacks[3] = inputs.dimShufflePartial([0], [1]), stacks[3].dimShuffle([1, 0, 2])
    return [inputs, *stacks[:3], None, stacks[3]][: len(call.inputs)]


def output_gradients(call: Call, grads: Sequence[Tensor], count: int) -> list[Tensor | None]:
    """Return the gradient of each of `count` outputs, time before batch, None without a reader."""
    by_batch = bool(call.attribute("layout", 0))
    places = [place for place, name in enumerate(call.node.outputs) if name]
    gradients: list[Tensor | None] = [None] * count
    for place, grad in zip(places, grads, strict=True):
        order = [1, 2, 0, 3] if place == 0 else [1, 0, 2]
        gradients[place] = grad.dimShuffle(order) if by_batch else grad
    return gradients
