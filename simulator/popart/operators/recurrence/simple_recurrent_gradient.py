"""The gradient of ONNX's RNN: back through its steps, then one product for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.popart.operators.call import Call
from simulator.popart.operators.recurrence.recurrent_directions import of_directions
from simulator.popart.representation.ir import Node
from simulator.poplibs import poplin, popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.expr import Expr, Select, _1, _2, _3

Tensors = Sequence[Tensor]

# By the output of the activation _2, what of a gradient _1 reaches the sum that it is of.
_SLOPES: dict[str, Callable[[], Expr]] = {
    "relu": lambda: Select(_1, _1 * 0.0, _2 > 0.0),
    "sigmoid": lambda: _1 * _2 * (1.0 - _2),
    "tanh": lambda: _1 * (1.0 - _2 * _2),
}


def lacks_gradient(node: Node) -> str:
    """Return what of an RNN has no gradient."""
    names = node.attributes.get("activations") or ()
    wrong = [name for name in names if name.lower() not in _SLOPES]
    if wrong:
        return f"activation {wrong[0]!r} has none; Relu, Sigmoid and Tanh have"
    return "clipped sums have none" if node.attributes.get("clip") else ""


def of_rnn(call: Call, outputs: Tensors, grads: Tensors) -> list[Tensor | None]:
    """Return the gradients of inputs, weights, biases and the first state of all directions."""
    return of_directions(call, grads, partial(_of_direction, call))


def _of_direction(
    call: Call, place: int, sequence_grad: Tensor | None, last: Tensor | None
) -> list[Tensor]:
    """Return those of the inputs, of both weights, the biases and the first state."""
    direction_inputs, first, outputs, within = call.saved[place]
    steps, batch, size = outputs.shape
    names = call.attribute("activations") or ["Tanh"] * (place + 1)
    slope = _SLOPES[names[place].lower()]()
    sums: list[Tensor] = []
    reached = last
    for step in range(steps - 1, -1, -1):
        shown = None if sequence_grad is None else sequence_grad[step]
        parts = [part for part in (shown, reached) if part is not None]
        both = call.map(_1 + _2, *parts) if len(parts) > 1 else parts[0]
        sums.insert(0, call.map(slope, both, outputs[step]))
        if within:  # behind its end a sequence hands on what reached its state
            passed, mask = reached, within[step]
            sums[0] = call.map(Select(_1, _1 * 0.0, _2), sums[0], mask)
            reached = _product(call, sums[0], call[2][place], "Recurrent")
            if passed is not None:
                reached = call.map(Select(_1, _2, _3), reached, passed, mask)
        else:
            reached = _product(call, sums[0], call[2][place], "Recurrent")
    together = concat(sums, 0)
    before = concat([first.expand([0]), outputs.slice(0, steps - 1)], 0)
    rows = [part.reshape((steps * batch, part.shape[2])) for part in (direction_inputs, before)]
    weights = [_product(call, together.transpose(), part, "Weights") for part in rows]
    inputs = _product(call, together, call[1][place], "Inputs").reshape(direction_inputs.shape)
    name = f"{call.name}/Biases"
    biases = popops.reduce(call.graph, together, [0], Operation.ADD, call.prog, name)
    state = call.map(_1 * 1.0, reached) if reached is not None else biases
    return [inputs, *weights, concat([biases, biases], 0), state]


def _product(call: Call, a: Tensor, b: Tensor, label: str) -> Tensor:
    name = f"{call.name}/{label}"
    return poplin.matMul(call.graph, a, b, call.prog, debugContext=name, options=call.options)
